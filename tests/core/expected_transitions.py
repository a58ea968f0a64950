"""Expected transitions and the actors that may make them, by hand from S-TASK and S-ROLE."""

from dragoman.core.base import Status

# S-TASK: one line for each status, one letter for each kind of actor that may make the change.
#
#   h human, o orchestrator, s the hub itself, c coordinator, f an edited file, t a trusted one,
#   H the holder, a the assignee, n the assignee where no review is needed
#
# A pair that is missing is no transition. In-progress is entered only by a claim.
EXPECTED_TRANSITIONS: dict[Status, dict[Status, str]] = {
    "backlog": {"ready": "hoscft", "blocked": "hoscft", "cancelled": "hosc"},
    "ready": {
        "in-progress": "",
        "blocked": "hoscftan",
        "backlog": "hoscft",
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
        "ready": "hoscftan",
        "review": "hoscan",
        "deadletter": "hosc",
        "cancelled": "hosc",
    },
    "review": {
        "done": "hosnt",
        "in-progress": "",
        "ready": "hosct",
        "blocked": "hosc",
        "cancelled": "hosc",
    },
    "deadletter": {"ready": "hosc"},
    "done": {},
    "cancelled": {},
}
