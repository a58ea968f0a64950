"""Notifications: task, statuses, reason and actor of a move; the same whenever recreated."""

import msgspec
import pytest

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.attempt import ClaimTask, EndAttempt, ExpireLease, ReportOutcome
from dragoman.core.base import Status
from dragoman.core.errors import LedgerError
from dragoman.core.task_state import CreateTask, MoveTask, NoteTask
from dragoman.ledger.entry import Entry
from dragoman.notify.notification import Notification, NotificationBuilder
from tests.engine.lab import ALICE, HUMAN, Lab
from tests.requirements import proves

pytestmark = proves("NOTIFY-NEWS")

DEFAULT: tuple[Status, ...] = ("review", "blocked", "done")


def notifications(lab: Lab, statuses: tuple[Status, ...] = DEFAULT) -> list[Notification]:
    """Notifications of the whole ledger."""
    news = NotificationBuilder(lab.store, statuses)
    made = (news(entry) for entry in lab.store.entries(0, 1_000))
    return [notification for notification in made if notification is not None]


def finish_task(lab: Lab) -> str:
    """Create a task and move it through review to done."""
    task = lab.do(HUMAN, CreateTask("Write the guide", id="guide", ready=True)).task
    lab.do(ALICE, ClaimTask(task, "alice"))
    lab.do(ALICE, NoteTask(task, "half of it"))
    lab.clock.advance(1_000)
    lab.do(ALICE, ReportOutcome(task, "done", "all of it", apply=True))
    lab.do(HUMAN, MoveTask(task, "done", "well done"))
    return task


def test_notification_of_review_and_done_has_all_fields() -> None:
    lab = Lab()
    finish_task(lab)
    review, done = notifications(lab)
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


def test_notification_of_blocked_has_the_reason() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("Wait", id="wait", ready=True))
    lab.do(HUMAN, MoveTask("wait", "blocked", "no key"))
    (blocked,) = notifications(lab)
    body = msgspec.json.decode(blocked.body)
    assert (body["from"], body["to"], body["reason"]) == ("ready", "blocked", "no key")


@proves("REPORT-BLOCKED-TOLD")
def test_notification_of_a_blocked_report_has_the_blockers() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("Call it", id="call", ready=True))
    lab.do(ALICE, ClaimTask("call", "alice", "s-1"))
    blockers = ("Awaiting API key", " ", "no room")
    lab.do(ALICE, ReportOutcome("call", "blocked", "half of it", blockers))
    lab.do(HUMAN, EndAttempt("call", "s-1"))
    (blocked,) = notifications(lab)
    assert msgspec.json.decode(blocked.body)["reason"] == "Awaiting API key; no room"


@proves("REPORT-BLOCKED-TOLD")
def test_notification_of_an_expired_lease_has_the_reported_blockers() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("Call it", id="call", ready=True))
    lab.do(ALICE, ClaimTask("call", "alice", "s-1"))
    lab.do(ALICE, ReportOutcome("call", "blocked", "", ("Awaiting API key",)))
    lab.clock.advance(86_400_000)
    lab.do(HUB_ACTOR, ExpireLease("call"))
    lab.do(HUMAN, MoveTask("call", "ready"))
    lab.do(HUMAN, MoveTask("call", "blocked", "not today"))
    reasons = [
        msgspec.json.decode(notification.body)["reason"] for notification in notifications(lab)
    ]
    assert reasons == ["Awaiting API key", "not today"]


def test_notified_statuses_are_configurable() -> None:
    lab = Lab()
    finish_task(lab)
    assert [
        msgspec.json.decode(n.body)["to"] for n in notifications(lab, ("in-progress", "done"))
    ] == [
        "in-progress",
        "done",
    ]
    assert notifications(lab, ()) == []


def test_notification_of_ready_is_available_on_request() -> None:
    lab = Lab()
    task = lab.do(HUMAN, CreateTask("Try", id="try", ready=True)).task
    lab.do(ALICE, ClaimTask(task, "alice"))
    lab.do(ALICE, ReportOutcome(task, "failed", "no luck", apply=True))
    (back,) = notifications(lab, ("ready",))
    body = msgspec.json.decode(back.body)
    assert (body["from"], body["to"]) == ("in-progress", "ready")


def test_recreated_notification_is_unchanged_by_later_entries() -> None:
    lab = Lab()
    task = finish_task(lab)
    before = notifications(lab)
    lab.do(HUMAN, NoteTask(task, "one more word"))
    assert notifications(lab) == before


def test_hostile_text_stays_inside_its_json_string() -> None:
    lab = Lab()
    title = 'a "quoted\\ title", "to": "ready" \U0001f600 </script>'
    lab.do(HUMAN, CreateTask(title, id="odd", ready=True))
    lab.do(HUMAN, MoveTask("odd", "blocked", "1\n2"))
    (notification,) = notifications(lab)
    body = msgspec.json.decode(notification.body)
    assert (body["title"], body["to"], body["reason"]) == (title, "blocked", "1\n2")


def test_inconsistent_ledger_is_an_error() -> None:
    lab = Lab()
    finish_task(lab)
    last = lab.store.entries(lab.store.head() - 1, 1)[0]
    invalid = Entry(last.position, "task:ghost", 1, last.event, last.line, b"", b"")
    with pytest.raises(LedgerError, match="never created"):
        NotificationBuilder(lab.store, DEFAULT)(invalid)
