"""The table of transitions and of who may ask for them, written by hand from S-TASK and S-ROLE."""

from dragoman.core.events import Status

# S-TASK, read aloud: one line for each status, one letter for each way of going there.
#
#   h human, o orchestrator, s the hub itself, c coordinator, f an edited file,
#   H the holder, a the assignee, n the assignee where no review is needed
#
# A pair that is not here is no transition. In-progress is entered by a claim, whoever asks.
BY_HAND: dict[Status, dict[Status, str]] = {
    "backlog": {"ready": "hoscf", "blocked": "hoscf", "cancelled": "hosc"},
    "ready": {
        "in-progress": "",
        "blocked": "hoscfan",
        "backlog": "hoscf",
        "deadletter": "hosc",
        "cancelled": "hosc",
    },
    "in-progress": {
        "review": "hoscH",
        "ready": "hoscH",
        "blocked": "hoscH",
        "deadletter": "hosc",
        "cancelled": "hosc",
    },
    "blocked": {
        "ready": "hoscfan",
        "review": "hosc",
        "deadletter": "hosc",
        "cancelled": "hosc",
    },
    "review": {
        "done": "hosn",
        "in-progress": "",
        "ready": "hosc",
        "blocked": "hosc",
        "cancelled": "hosc",
    },
    "deadletter": {"ready": "hosc"},
    "done": {},
    "cancelled": {},
}
