"""A notice says what has moved, why and by whom, and is the same whenever it is made again."""

import msgspec
import pytest

from dragoman.core.actors import SYSTEM
from dragoman.core.commands import (
    ClaimTask,
    CreateTask,
    EndAttempt,
    ExpireLease,
    MoveTask,
    NoteTask,
    ReportOutcome,
)
from dragoman.core.errors import LedgerError
from dragoman.core.events import Status
from dragoman.ledger.entry import Entry
from dragoman.notify.notice import News, Notice
from tests.engine.lab import ALICE, HUMAN, Lab
from tests.requirements import proves

pytestmark = proves("NOTIFY-NEWS")

DEFAULT: tuple[Status, ...] = ("review", "blocked", "done")


def told(lab: Lab, statuses: tuple[Status, ...] = DEFAULT) -> list[Notice]:
    """The notices of the whole ledger."""
    news = News(lab.store, statuses)
    made = (news(entry) for entry in lab.store.entries(0, 1_000))
    return [notice for notice in made if notice is not None]


def life(lab: Lab) -> str:
    """A task that goes through review to done."""
    task = lab.do(HUMAN, CreateTask("Write the guide", id="guide", ready=True)).task
    lab.do(ALICE, ClaimTask(task, "alice"))
    lab.do(ALICE, NoteTask(task, "half of it"))
    lab.clock.advance(1_000)
    lab.do(ALICE, ReportOutcome(task, "done", "all of it", apply=True))
    lab.do(HUMAN, MoveTask(task, "done", "well done"))
    return task


def test_entering_review_and_done_is_told_with_all_that_matters() -> None:
    lab = Lab()
    life(lab)
    review, done = told(lab)
    position = lab.store.head()
    assert (done.id, done.task) == (f"lab:{position}", "TASK-2026-02-09-001")
    assert msgspec.json.decode(done.body) == {
        "id": f"lab:{position}",
        "taskId": "TASK-2026-02-09-001",
        "title": "Write the guide",
        "from": "review",
        "to": "done",
        "reason": "well done",
        "actor": "human:hera",
        "at": "2026-02-09T14:30:01.000Z",
    }
    assert msgspec.json.decode(review.body)["actor"] == "agent:alice"
    assert msgspec.json.decode(review.body)["from"] == "in-progress"


def test_entering_blocked_is_told() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("Wait", id="wait", ready=True))
    lab.do(HUMAN, MoveTask("wait", "blocked", "no key"))
    (blocked,) = told(lab)
    body = msgspec.json.decode(blocked.body)
    assert (body["from"], body["to"], body["reason"]) == ("ready", "blocked", "no key")


@proves("REPORT-BLOCKED-TOLD")
def test_a_report_of_blocked_is_told_with_what_blocks() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("Call it", id="call", ready=True))
    lab.do(ALICE, ClaimTask("call", "alice", "s-1"))
    blockers = ("Awaiting API key", " ", "no room")
    lab.do(ALICE, ReportOutcome("call", "blocked", "half of it", blockers))
    lab.do(HUMAN, EndAttempt("call", "s-1"))
    (blocked,) = told(lab)
    assert msgspec.json.decode(blocked.body)["reason"] == "Awaiting API key; no room"


@proves("REPORT-BLOCKED-TOLD")
def test_what_a_silent_agent_had_reported_is_told_too_and_another_reason_stays() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("Call it", id="call", ready=True))
    lab.do(ALICE, ClaimTask("call", "alice", "s-1"))
    lab.do(ALICE, ReportOutcome("call", "blocked", "", ("Awaiting API key",)))
    lab.clock.advance(86_400_000)
    lab.do(SYSTEM, ExpireLease("call"))
    lab.do(HUMAN, MoveTask("call", "ready"))
    lab.do(HUMAN, MoveTask("call", "blocked", "not today"))
    reasons = [msgspec.json.decode(notice.body)["reason"] for notice in told(lab)]
    assert reasons == ["Awaiting API key", "not today"]


def test_the_statuses_that_are_told_can_be_chosen() -> None:
    lab = Lab()
    life(lab)
    assert [msgspec.json.decode(n.body)["to"] for n in told(lab, ("in-progress", "done"))] == [
        "in-progress",
        "done",
    ]
    assert told(lab, ()) == []


def test_a_task_that_goes_back_to_the_queue_is_told_to_who_wants_it() -> None:
    lab = Lab()
    task = lab.do(HUMAN, CreateTask("Try", id="try", ready=True)).task
    lab.do(ALICE, ClaimTask(task, "alice"))
    lab.do(ALICE, ReportOutcome(task, "failed", "no luck", apply=True))
    (back,) = told(lab, ("ready",))
    body = msgspec.json.decode(back.body)
    assert (body["from"], body["to"]) == ("in-progress", "ready")


def test_later_changes_do_not_change_a_notice_that_is_made_again() -> None:
    lab = Lab()
    task = life(lab)
    before = told(lab)
    lab.do(HUMAN, NoteTask(task, "one more word"))
    assert told(lab) == before


def test_text_that_would_break_out_of_json_stays_inside() -> None:
    lab = Lab()
    title = 'a "quoted\\ title", "to": "ready" \U0001f600 </script>'
    lab.do(HUMAN, CreateTask(title, id="odd", ready=True))
    lab.do(HUMAN, MoveTask("odd", "blocked", "1\n2"))
    (notice,) = told(lab)
    body = msgspec.json.decode(notice.body)
    assert (body["title"], body["to"], body["reason"]) == (title, "blocked", "1\n2")


def test_a_ledger_that_does_not_hold_is_told() -> None:
    lab = Lab()
    life(lab)
    last = lab.store.entries(lab.store.head() - 1, 1)[0]
    stray = Entry(last.position, "task:ghost", 1, last.event, last.line, b"", b"")
    with pytest.raises(LedgerError, match="never began"):
        News(lab.store, DEFAULT)(stray)
