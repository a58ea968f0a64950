"""Event lines: rising ids, names, actor, task, payload as specified; true, no more than true."""

from typing import Any

import msgspec
import pytest

from dragoman.core.actors import SYSTEM, Actor
from dragoman.core.commands import (
    AliasTask,
    CreateTask,
    EditTask,
    EscalateDelegation,
    LinkTask,
    MoveTask,
    NoteTask,
    RegisterAgent,
    ReleaseTask,
    ReportOutcome,
    RewindTask,
)
from dragoman.core.errors import Refused
from dragoman.core.events import TaskNoted
from dragoman.ledger.chain import GENESIS
from dragoman.ledger.entry import Entry, Line, write_line
from dragoman.protocols.aof.render import LINES_PER_ENTRY, render_lines
from tests.protocols.aof.scene import (
    BACKEND,
    CHILD,
    PARENT,
    PERSON,
    Scene,
    accepted,
    report,
    request,
    update,
)
from tests.requirements import proves

pytestmark = proves("AOF-EVENTS")

BLOCKER = "TASK-2026-02-09-063"
DAY = 86_400_000


def last(scene: Scene, kind: str) -> dict[str, Any]:
    """The newest line of a type."""
    return [line for line in scene.lines() if line["type"] == kind][-1]


def busy() -> Scene:
    """A scene in which everything has happened that can."""
    scene = Scene()
    scene.do(PERSON, CreateTask("Waits", "bead-1", blocked_by=(PARENT,), parent=CHILD, body="Text"))
    scene.ready(BLOCKER)
    scene.do(PERSON, AliasTask(PARENT, "bead:ol-1"), LinkTask(CHILD, "blocked-by", BLOCKER))
    scene.do(PERSON, MoveTask(BLOCKER, "cancelled"))
    scene.do(PERSON, EditTask(CHILD, title="Better"), NoteTask(CHILD, "Look"))
    scene.do(PERSON, RegisterAgent("boss", "orchestrator", ("aof",)))
    scene.taken(request(acceptanceCriteria=3))
    scene.taken(accepted())
    scene.taken(update(progress="Half"))
    scene.taken(update(status="in-progress"))
    scene.lab.clock.advance(3 * DAY)
    scene.do(SYSTEM, EscalateDelegation(CHILD))
    scene.turned("AOF/1 {")
    scene.turned(report() | {"type": "what.ever"})
    return scene


def test_ids_rise_and_tell_the_position() -> None:
    scene = busy()
    ids = [line["eventId"] for line in scene.lines()]

    assert ids == sorted(set(ids))
    for entry in scene.lab.store.entries(0, 999):
        lines = [msgspec.json.decode(line) for line in render_lines(entry, scene.aof_id)]
        first = entry.position * LINES_PER_ENTRY
        assert [line["eventId"] for line in lines] == list(range(first, first + len(lines)))
        assert len(lines) < LINES_PER_ENTRY


def test_every_line_has_its_fields_in_their_order() -> None:
    scene = busy()
    for entry in scene.lab.store.entries(0, 999):
        for raw in render_lines(entry, scene.aof_id):
            assert b"\n" not in raw
            line = msgspec.json.decode(raw)
            fields = ["eventId", "type", "timestamp", "actor", "taskId", "payload"]
            assert list(line) == [field for field in fields if field in line]
            assert set(fields) - set(line) <= {"taskId"}
            assert line["timestamp"].endswith("Z")
            assert ":" not in line["actor"]


def test_a_line_is_written_the_same_each_time() -> None:
    scene = busy()
    assert scene.lines() == scene.lines()


def test_a_rewind_is_told_as_the_transition_that_it_is() -> None:
    scene = busy()
    scene.do(PERSON, RewindTask(BLOCKER, 1, reason="too early"))
    told = last(scene, "task.transitioned")
    assert told["taskId"] == BLOCKER
    assert told["payload"] == {
        "from": "cancelled",
        "to": "ready",
        "reason": "too early",
        "rewoundTo": 1,
        "commit": "",
        "branch": "",
    }


def test_tasks_are_named_by_their_aof_ids() -> None:
    scene = busy()
    own = scene.task("bead-1").aof_id

    created = last(scene, "task.created")
    scene.do(PERSON, LinkTask(CHILD, "discovered-from", "bead-1"))
    waits = next(ln for ln in scene.lines() if ln["payload"].get("title") == "Waits")
    assert waits["taskId"] == own
    assert waits["payload"]["parentTaskId"] == CHILD
    assert waits["payload"]["blockedBy"] == [PARENT]
    assert created["taskId"] == BLOCKER
    assert last(scene, "task.linked")["payload"] == {"kind": "discovered-from", "target": own}
    assert last(scene, "task.unblocked")["payload"]["blocker"] == BLOCKER


def test_the_other_names_of_the_seed_and_ours() -> None:
    scene = busy()
    types = set(scene.types())

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
    assert last(scene, "agent.registered")["payload"]["role"] == "orchestrator"
    assert "taskId" not in last(scene, "agent.registered")
    escalated = last(scene, "delegation.escalated")
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
def test_one_transition_is_one_line_with_its_real_from(
    scene: Scene, commands: tuple[Any, ...], moves: list[tuple[str, str]]
) -> None:
    before = scene.size()
    scene.do(BACKEND, *commands)

    lines = [line for line in scene.lines(before) if line["type"] == "task.transitioned"]
    assert [(ln["payload"]["from"], ln["payload"]["to"]) for ln in lines] == moves
    assert all("reason" in line["payload"] for line in lines)


def test_a_claim_is_a_transition(scene: Scene) -> None:
    claimed = next(ln for ln in scene.lines() if ln["type"] == "task.transitioned")

    assert claimed["actor"] == "swe-backend"
    assert claimed["payload"] == {
        "from": "ready",
        "to": "in-progress",
        "reason": "claimed",
        "agent": "swe-backend",
        "attempt": 1,
    }


def test_a_failed_attempt_rests(scene: Scene) -> None:
    scene.do(BACKEND, ReportOutcome(PARENT, "failed", apply=True))
    payload = last(scene, "task.transitioned")["payload"]

    assert (payload["attempt"], payload["failures"]) == (1, 1)
    assert payload["notBefore"] > "2026-02-09T14:30:00.000Z"


def test_no_detail_of_a_report_says_another_outcome(scene: Scene) -> None:
    details: dict[str, object] = {"outcome": "blocked", "attempt": 9, "notes": "no", "cost": 1}
    scene.do(BACKEND, ReportOutcome(PARENT, "done", "yes", details=details))
    told = last(scene, "task.completed")["payload"]
    assert told == {"outcome": "done", "attempt": 1, "notes": "yes", "blockers": [], "cost": 1}


def test_a_note_is_an_update_of_the_work_log(scene: Scene) -> None:
    scene.do(PERSON, NoteTask(PARENT, "Look here"))
    assert last(scene, "task.updated")["payload"] == {"notes": "Look here"}


def test_what_was_refused_otherwise_than_by_a_message_of_ours_is_silent(scene: Scene) -> None:
    before = scene.size()
    with pytest.raises(Refused):
        scene.lab.hub.do(Actor("agent", "eve"), ReleaseTask(PARENT))
    mail = msgspec.Raw(b'{"subject":"DONE","body_md":"x"}')
    with pytest.raises(Refused):
        scene.lab.hub.do(Actor("agent", "eve"), NoteTask("nope", "x"), said=mail)
    with pytest.raises(Refused):
        scene.lab.hub.do(Actor("agent", "ivo"), NoteTask("nope", "x"), said=msgspec.Raw(b'"hi"'))

    assert scene.size() == before + 3
    assert scene.lines(before) == []


def test_words_of_another_dialect_are_not_received_here(scene: Scene) -> None:
    before = scene.size()
    for quoting in (
        {"subject": "PROGRESS", "content": report()},
        {"taskId": PARENT, "progress": "Half", "message": report()},
    ):
        said = msgspec.Raw(msgspec.json.encode(quoting))
        scene.lab.hub.do(BACKEND, NoteTask(PARENT, "x"), said=said)

    assert scene.types(before) == ["task.updated", "task.updated"]


@pytest.mark.parametrize("text", ['a\n{"eventId":1}', "\u2028\u2029", "\x1b[31m", "\x00", '"},{"'])
def test_no_text_makes_a_second_line(text: str) -> None:
    line = Line("task:T", 1, "task.noted", 1, 0, "agent:eve", "c", TaskNoted(text))
    entry = Entry(7, "task:T", 1, "task.noted", write_line(line), GENESIS, GENESIS)

    (raw,) = render_lines(entry, lambda _: PARENT)
    assert len(raw.splitlines()) == 1
    assert msgspec.json.decode(raw)["payload"]["notes"] == text
