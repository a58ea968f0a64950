"""tick: every duty once, and the second time nothing is left to do."""

import json
from errno import ENOSPC
from pathlib import Path

import pytest
from msgspec.structs import replace

from dragoman.bootstrap import open_place
from dragoman.services.clockwork import Group
from dragoman.surfaces.cli.place import Place
from tests.protocols.aof.hub import PARENT, update
from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console

DUTIES = (
    "recovery",
    "sla",
    "waves",
    "entropy",
    "thoughts",
    "spawner",
    "promotion",
    "handing-on",
    "inbox",
    "files",
    "artifacts",
    "projection",
    "copies",
    "checkpoint",
    "notify",
    "search",
)

LATER = "2026-02-09T12:10:00Z"

pytestmark = proves("CLI-TICK")


@proves("LEASE-RECOVERY", "RETRY-BACKOFF")
def test_tick_recovers_promotes_and_signs(dragoman: Console) -> None:
    dragoman.make("One", "--id", "T-1", "--ready", "--now", NOON)
    dragoman.ask("task", "claim", "--agent", "ada", "--now", NOON)

    early = dragoman.ask("tick", "--now", "2026-02-09T12:04:59Z")
    assert early["duties"] == dict.fromkeys(DUTIES, 0)
    assert dragoman.ask("tick", "--now", LATER)["duties"]["recovery"] == 1
    assert dragoman.ask("task", "show", "T-1")["status"] == "ready"
    assert dragoman.ask("tick", "--now", "2026-02-09T12:10:05Z")["duties"]["promotion"] == 1


def test_a_second_tick_at_the_same_time_changes_nothing(dragoman: Console) -> None:
    dragoman.make("One", "--id", "T-1", "--ready", "--now", NOON)
    dragoman.ask("task", "claim", "--agent", "ada", "--now", NOON)
    dragoman.ask("tick", "--now", LATER)
    before = dragoman("events", "--json").out, (dragoman.data / "checkpoints.jsonl").read_bytes()

    again = dragoman.ask("tick", "--now", LATER)

    assert set(again["duties"].values()) == {0}
    after = dragoman("events", "--json").out, (dragoman.data / "checkpoints.jsonl").read_bytes()
    assert after == before


def test_tick_tells_people_what_each_duty_did(dragoman: Console) -> None:
    lines = dragoman("tick").out.splitlines()

    assert [line.split()[:2] for line in lines] == [[duty, "0"] for duty in DUTIES]
    assert all(len(line.split()) > 2 for line in lines), "and what is counted"


@proves("LEDGER-CHECKPOINT")
def test_every_command_that_wrote_leaves_a_checkpoint_level_with_the_ledger(
    dragoman: Console,
) -> None:
    dragoman.make("One", "--id", "T-1", "--ready")
    dragoman.ask("task", "claim", "T-9", "--agent", "ada", code=1)

    reached = len(dragoman("events", "--json").objects)
    assert reached == 2, "a refusal is an entry too"
    assert dragoman.ask("verify")["checkpoints"] == 2
    last = (dragoman.data / "checkpoints.jsonl").read_text().splitlines()[-1]
    assert f'"size":{reached}' in last


class Failing:
    """A duty for which the disk is full."""

    name = "first"

    def run_once(self, now: int) -> int:
        """Fail."""
        raise OSError(ENOSPC, "No space left on device")


def open_failing(data: Path, store: str, now: int | None, *, create: bool, **_: bool) -> Place:
    """A place whose first duty fails."""
    place = open_place(data, store, now, create=create)
    return replace(place, groups=(Group("first", (Failing(),)), *place.groups))


@proves("CLI-EXIT")
def test_a_duty_that_fails_stops_no_other_and_is_told(dragoman: Console) -> None:
    dragoman.make("One", "--id", "T-1", "--ready", "--now", NOON)
    dragoman.ask("task", "claim", "--agent", "ada", "--now", NOON)
    failing = Console(dragoman.data, open_failing)

    told = failing.ask("tick", "--now", LATER, code=1)

    assert (told["ok"], set(told["duties"])) == (False, set(DUTIES))
    assert told["duties"]["recovery"] == 1
    assert told["failed"]["first"]["code"] == "store_unavailable"
    assert dragoman.ask("task", "show", "T-1")["status"] == "ready"
    for words in (("tick",), ("tick", "--watch")):
        said = failing(*words, wait=lambda: False)
        assert said.code == 1
        assert "first failed: store_unavailable: No space left on device" in said.err


@proves("FILES-INBOX", "ROLE-TABLE")
@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("folder", ["inbox", "inbox/boss"])
def test_in_the_inbox_a_name_is_an_agents_at_most(
    dragoman: Console, folder: str, trusted: bool
) -> None:
    dragoman.ask("agent", "add", "boss", "--role", "orchestrator")
    dragoman.make("One", "--id", PARENT, "--ready")
    dragoman.ask("task", "claim", PARENT, "--agent", "swe-backend")
    dragoman.ask("task", "move", PARENT, "review", "--as", "swe-backend")
    approval = update(agentId="boss", status="done") | {"fromAgent": "boss"}
    if trusted:
        (dragoman.data / "dragoman.toml").write_text("[files]\ntrust_moves = true\n")
    slot = dragoman.data / folder
    slot.mkdir(exist_ok=True)
    (slot / "1.json").write_text(json.dumps(approval))

    dragoman.ask("tick")

    assert dragoman.ask("task", "show", PARENT)["status"] == ("done" if trusted else "review")
    if not trusted:
        reason = (slot / "rejected/1.json.reason.txt").read_text()
        assert reason.startswith("unauthorized_agent: orchestrator:boss cannot speak through the")
        last = dragoman("events", "--json").objects[-1]
        assert (last["actor"], last["body"]["code"]) == ("orchestrator:boss", "not_authorized")


def line_of(duty: str, words: str) -> str:
    """What a tick says about one duty."""
    return next(line for line in words.splitlines() if line.startswith(duty))


def test_one_is_told_as_one_and_many_as_many(dragoman: Console) -> None:
    dragoman.make("One", "--id", "T-1", "--ready", "--now", NOON)
    dragoman.make("Two", "--id", "T-2", "--ready", "--now", NOON)
    for task in ("T-1", "T-2"):
        dragoman.ask("task", "claim", task, "--agent", "ada", "--now", NOON)

    said = line_of("recovery", dragoman("tick", "--now", LATER).out)

    assert said == "recovery         2  leases ended, by a report or by taking the task back"
    assert dragoman("tick", "--now", LATER).out.startswith("recovery         0  leases ended")
    dragoman.ask("task", "claim", "T-1", "--agent", "ada", "--now", "2026-02-09T12:20:00Z")
    later = dragoman("tick", "--now", "2026-02-09T12:30:00Z").out
    assert line_of("recovery", later).startswith("recovery         1  lease ended")


@proves("FILES-INBOX")
def test_broken_json_in_the_inbox_is_told_where(dragoman: Console) -> None:
    dragoman.make("One", "--id", PARENT, "--ready")
    (dragoman.data / "inbox" / "1.json").write_bytes(b'{"subject": ')

    dragoman("tick")

    reason = (dragoman.data / "inbox/rejected/1.json.reason.txt").read_text()
    assert reason.startswith("invalid_json: this is not JSON: it ends before it is complete")


@proves("FILES-INBOX")
def test_what_the_inbox_rejected_is_counted_apart(dragoman: Console) -> None:
    dragoman.make("One", "--id", PARENT, "--ready")
    for name in ("1.json", "2.json"):
        (dragoman.data / "inbox" / name).write_text("AOF/1 {")

    assert line_of("inbox", dragoman("tick").out) == (
        "inbox            2  messages of the inbox answered; rejected, with the reason beside it: 2"
    )
    assert dragoman.ask("tick")["remarks"] == {}


@proves("NOTIFY-AT-LEAST-ONCE", "CLI-DOCTOR")
def test_a_target_that_fails_is_told_by_tick_and_doctor(dragoman: Console) -> None:
    dragoman.make("One", "--id", "T-1", "--ready", "--now", NOON)
    (dragoman.data / "dragoman.toml").write_text('[notify]\ncommand = ["/bin/false"]\n')
    dragoman.ask("tick", "--now", NOON)
    dragoman.ask("task", "move", "T-1", "blocked", "--now", NOON)

    remark = dragoman.ask("tick", "--now", NOON)["remarks"]["notify"]
    assert remark.startswith("command: ")
    assert remark.endswith("(tried 1 of 10 times, again after 2026-02-09T12:00:05.000Z)")
    assert line_of("notify", dragoman("tick", "--now", NOON).out).endswith(remark)
    (found,) = [
        check
        for check in dragoman.ask("doctor", "--now", NOON)["checks"]
        if check["name"] == "notify"
    ]
    assert (found["state"], found["found"]) == ("warning", remark)
    for day in range(10, 20):
        dragoman.ask("tick", "--now", f"2026-02-{day}T12:00:00Z")
    assert "command: 1 notice was given up" in dragoman("doctor").out
    assert dragoman.ask("tick")["remarks"] == {}


@proves("CLOCK-SET-TOLD")
def test_what_a_tick_at_another_time_does_says_so(dragoman: Console) -> None:
    dragoman.make("One", "--id", "T-1", "--ready", "--now", NOON)
    dragoman.ask("task", "claim", "--agent", "ada", "--now", NOON)
    dragoman.ask("tick", "--now", LATER)

    told = dragoman("events", "--json").objects

    assert "system:hub" in {entry["actor"] for entry in told}
    assert all(entry["via"].endswith("--now") for entry in told)
