"""Retry promotion: tasks join the ready queue when their backoff is over, and not before."""

import pytest

from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.task_state import CreateTask, MoveTask
from dragoman.engine.ports import Transaction
from dragoman.services import timers
from dragoman.services.timers import RetryPromotion
from tests.engine.lab import ALICE, HUMAN, Lab, findings
from tests.requirements import proves

pytestmark = proves("RETRY-BACKOFF", "TASK-READY")


def create_failed(lab: Lab, *names: str) -> None:
    """Create tasks that have failed once, with a backoff of a second."""
    for name in names:
        lab.do(HUMAN, CreateTask(name, name, ready=True))
        lab.do(ALICE, ClaimTask(name, "alice"), ReportOutcome(name, "failed", apply=True))


def ready_queue(lab: Lab) -> list[str]:
    """The stored queue, read without triggering a promotion."""

    def read(session: Transaction) -> list[str]:
        return [key.name.removeprefix("task:") for key in session.ready_page("", None, 1_000)]

    return lab.store.transact(read)


def run(lab: Lab) -> int:
    """Run the service once, at the hub's own time."""
    return RetryPromotion(lab.hub).run_once(lab.clock.now())


def test_task_in_backoff_is_promoted_at_its_millisecond() -> None:
    lab = Lab()
    create_failed(lab, "T")
    head = lab.store.head()
    lab.clock.advance(999)
    assert (run(lab), ready_queue(lab)) == (0, [])
    lab.clock.advance(1)
    assert (run(lab), ready_queue(lab)) == (1, ["T"])
    assert run(lab) == 0, "a second time changes nothing"
    assert lab.store.head() == head, "it is no history"
    assert findings(lab.store) == []


def test_only_tasks_in_backoff_are_promoted() -> None:
    lab = Lab()
    create_failed(lab, "T", "BLOCKED", "CLAIMED")
    lab.do(HUMAN, CreateTask("backlog", "BACKLOG"), CreateTask("ready", "READY", ready=True))
    lab.do(HUMAN, MoveTask("BLOCKED", "blocked"))
    lab.do(ALICE, ClaimTask("CLAIMED", "alice"))
    lab.clock.advance(1_000)
    assert run(lab) == 1
    assert set(ready_queue(lab)) == {"T", "READY"}


def test_any_number_of_tasks_is_promoted_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timers, "_BATCH", 4)
    for count in (7, 8, 9):
        lab = Lab()
        names = [f"T{number}" for number in range(count)]
        create_failed(lab, *names)
        lab.clock.advance(1_000)
        assert run(lab) == count
        assert ready_queue(lab) == names


def test_claim_promotes_due_tasks_before_the_service_does() -> None:
    lab = Lab()
    create_failed(lab, "T", "U")
    lab.clock.advance(1_000)
    assert lab.do(ALICE, ClaimTask("", "alice")).task == "T"
    assert run(lab) == 0, "asking for the next task has promoted what was due"
    assert RetryPromotion.name == "retry-promotion"
