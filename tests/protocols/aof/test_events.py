"""Rendered event lines: ids, names, actor, task and payload as specified."""

from typing import Any

import msgspec
import pytest

from dragoman.core.actor import HUB_ACTOR, Actor
from dragoman.core.agent import RegisterAgent
from dragoman.core.attempt import ReleaseTask, ReportOutcome
from dragoman.core.delegation import EscalateDelegation
from dragoman.core.errors import Refused
from dragoman.core.task_state import (
    AliasTask,
    CreateTask,
    EditTask,
    LinkTask,
    MoveTask,
    NoteTask,
    RewindTask,
    TaskNoted,
)
from dragoman.ledger.entry import GENESIS, Entry, Line, write_line
from dragoman.protocols.aof.render import LINES_PER_ENTRY, render_lines
from tests.protocols.aof.hub import (
    BACKEND,
    CHILD,
    PARENT,
    PERSON,
    AofHub,
    accepted,
    report,
    request,
    update,
)
from tests.requirements import proves

pytestmark = proves("AOF-EVENTS")

BLOCKER = "TASK-2026-02-09-063"
DAY = 86_400_000


def last_line(hub: AofHub, kind: str) -> dict[str, Any]:
    """Return the newest line of a type."""
    return [line for line in hub.lines() if line["type"] == kind][-1]


def busy_hub() -> AofHub:
    """Build a hub in which every kind of event has been recorded."""
    hub = AofHub()
    hub.do(PERSON, CreateTask("Waits", "bead-1", blocked_by=(PARENT,), parent=CHILD, body="Text"))
    hub.create_ready(BLOCKER)
    hub.do(PERSON, AliasTask(PARENT, "bead:ol-1"), LinkTask(CHILD, "blocked-by", BLOCKER))
    hub.do(PERSON, MoveTask(BLOCKER, "cancelled"))
    hub.do(PERSON, EditTask(CHILD, title="Better"), NoteTask(CHILD, "Look"))
    hub.do(PERSON, RegisterAgent("boss", "orchestrator", ("aof",)))
    hub.accept(request(acceptanceCriteria=3))
    hub.accept(accepted())
    hub.accept(update(progress="Half"))
    hub.accept(update(status="in-progress"))
    hub.lab.clock.advance(3 * DAY)
    hub.do(HUB_ACTOR, EscalateDelegation(CHILD))
    hub.reject("AOF/1 {")
    hub.reject(report() | {"type": "what.ever"})
    return hub


def test_event_ids_rise_and_encode_the_position() -> None:
    hub = busy_hub()
    ids = [line["eventId"] for line in hub.lines()]

    assert ids == sorted(set(ids))
    for entry in hub.lab.store.entries(0, 999):
        lines = [msgspec.json.decode(line) for line in render_lines(entry, hub.aof_id)]
        first = entry.position * LINES_PER_ENTRY
        assert [line["eventId"] for line in lines] == list(range(first, first + len(lines)))
        assert len(lines) < LINES_PER_ENTRY


def test_every_line_has_its_fields_in_order() -> None:
    hub = busy_hub()
    for entry in hub.lab.store.entries(0, 999):
        for raw in render_lines(entry, hub.aof_id):
            assert b"\n" not in raw
            line = msgspec.json.decode(raw)
            fields = ["eventId", "type", "timestamp", "actor", "taskId", "payload"]
            assert list(line) == [field for field in fields if field in line]
            assert set(fields) - set(line) <= {"taskId"}
            assert line["timestamp"].endswith("Z")
            assert ":" not in line["actor"]


def test_lines_are_rendered_deterministically() -> None:
    hub = busy_hub()
    assert hub.lines() == hub.lines()


def test_rewind_is_rendered_as_a_transition() -> None:
    hub = busy_hub()
    hub.do(PERSON, RewindTask(BLOCKER, 1, reason="too early"))
    transition = last_line(hub, "task.transitioned")
    assert transition["taskId"] == BLOCKER
    assert transition["payload"] == {
        "from": "cancelled",
        "to": "ready",
        "reason": "too early",
        "rewoundTo": 1,
        "assignee": "",
        "reservedFor": "",
        "commit": "",
        "branch": "",
    }


def test_lines_name_tasks_by_aof_id() -> None:
    hub = busy_hub()
    own = hub.task("bead-1").aof_id

    created = last_line(hub, "task.created")
    hub.do(PERSON, LinkTask(CHILD, "discovered-from", "bead-1"))
    waits = next(ln for ln in hub.lines() if ln["payload"].get("title") == "Waits")
    assert waits["taskId"] == own
    assert waits["payload"]["parentTaskId"] == CHILD
    assert waits["payload"]["blockedBy"] == [PARENT]
    assert created["taskId"] == BLOCKER
    assert last_line(hub, "task.linked")["payload"] == {"kind": "discovered-from", "target": own}
    assert last_line(hub, "task.unblocked")["payload"]["blocker"] == BLOCKER


def test_event_types_include_those_of_the_seed() -> None:
    hub = busy_hub()
    types = set(hub.types())

    assert types >= {
        "task.created",
        "task.aliased",
        "task.linked",
        "task.unblocked",
        "task.transitioned",
        "task.updated",
        "task.edited",
        "delegation.requested",
        "delegation.accepted",
        "delegation.escalated",
        "protocol.message.received",
        "protocol.message.rejected",
        "protocol.message.unknown",
        "protocol.message.warning",
        "agent.registered",
    }
    assert last_line(hub, "agent.registered")["payload"]["role"] == "orchestrator"
    assert "taskId" not in last_line(hub, "agent.registered")
    escalated = last_line(hub, "delegation.escalated")
    assert escalated["payload"] == {"dueBy": "2026-02-10T12:00:00.000Z"}
    assert (escalated["taskId"], escalated["actor"]) == (CHILD, "hub")


@pytest.mark.parametrize(
    ("commands", "moves"),
    [
        ((ReleaseTask(PARENT),), [("in-progress", "ready")]),
        ((ReportOutcome(PARENT, "failed", apply=True),), [("in-progress", "ready")]),
        ((ReportOutcome(PARENT, "done", apply=True),), [("in-progress", "review")]),
        ((MoveTask(PARENT, "blocked"), MoveTask(PARENT, "blocked")), [("in-progress", "blocked")]),
        ((NoteTask(PARENT, "x"),), []),
    ],
)
def test_each_transition_is_one_line_with_its_previous_status(
    hub: AofHub, commands: tuple[Any, ...], moves: list[tuple[str, str]]
) -> None:
    before = hub.head()
    hub.do(BACKEND, *commands)

    lines = [line for line in hub.lines(before) if line["type"] == "task.transitioned"]
    assert [(ln["payload"]["from"], ln["payload"]["to"]) for ln in lines] == moves
    assert all("reason" in line["payload"] for line in lines)


def test_claim_is_rendered_as_a_transition(hub: AofHub) -> None:
    claimed = next(ln for ln in hub.lines() if ln["type"] == "task.transitioned")

    assert claimed["actor"] == "swe-backend"
    assert claimed["payload"] == {
        "from": "ready",
        "to": "in-progress",
        "reason": "claimed",
        "agent": "swe-backend",
        "attempt": 1,
    }


def test_failed_attempt_has_a_backoff(hub: AofHub) -> None:
    hub.do(BACKEND, ReportOutcome(PARENT, "failed", apply=True))
    payload = last_line(hub, "task.transitioned")["payload"]

    assert (payload["attempt"], payload["failures"]) == (1, 1)
    assert payload["notBefore"] > "2026-02-09T14:30:00.000Z"


def test_report_details_cannot_override_its_fields(hub: AofHub) -> None:
    details: dict[str, object] = {"outcome": "blocked", "attempt": 9, "notes": "no", "cost": 1}
    hub.do(BACKEND, ReportOutcome(PARENT, "done", "yes", details=details))
    completed = last_line(hub, "task.completed")["payload"]
    assert completed == {"outcome": "done", "attempt": 1, "notes": "yes", "blockers": [], "cost": 1}


def test_note_is_rendered_as_task_updated(hub: AofHub) -> None:
    hub.do(PERSON, NoteTask(PARENT, "Look here"))
    assert last_line(hub, "task.updated")["payload"] == {"notes": "Look here"}


def test_refusals_outside_aof_render_no_lines(hub: AofHub) -> None:
    before = hub.head()
    with pytest.raises(Refused):
        hub.lab.hub.submit(Actor("agent", "eve"), ReleaseTask(PARENT))
    mail = msgspec.Raw(b'{"subject":"DONE","body_md":"x"}')
    with pytest.raises(Refused):
        hub.lab.hub.submit(Actor("agent", "eve"), NoteTask("nope", "x"), original_text=mail)
    with pytest.raises(Refused):
        hub.lab.hub.submit(
            Actor("agent", "ivo"), NoteTask("nope", "x"), original_text=msgspec.Raw(b'"hi"')
        )

    assert hub.head() == before + 3
    assert hub.lines(before) == []


def test_messages_of_other_dialects_render_no_receipt(hub: AofHub) -> None:
    before = hub.head()
    for quoting in (
        {"subject": "PROGRESS", "content": report()},
        {"taskId": PARENT, "progress": "Half", "message": report()},
    ):
        original = msgspec.Raw(msgspec.json.encode(quoting))
        hub.lab.hub.submit(BACKEND, NoteTask(PARENT, "x"), original_text=original)

    assert hub.types(before) == ["task.updated", "task.updated"]


@pytest.mark.parametrize("text", ['a\n{"eventId":1}', "\u2028\u2029", "\x1b[31m", "\x00", '"},{"'])
def test_text_cannot_add_a_line(text: str) -> None:
    line = Line("task:T", 1, "task.noted", 1, 0, "agent:eve", "c", TaskNoted(text))
    entry = Entry(7, "task:T", 1, "task.noted", write_line(line), GENESIS, GENESIS)

    (raw,) = render_lines(entry, lambda _: PARENT)
    assert len(raw.splitlines()) == 1
    assert msgspec.json.decode(raw)["payload"]["notes"] == text
