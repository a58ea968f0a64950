"""Numbers of the last days: counted from the ledger, once."""

import pytest

from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.question_state import AnswerQuestion, AskQuestion
from dragoman.core.task_state import CreateTask, MoveTask, NoteTask
from dragoman.engine.queries import numbers
from dragoman.engine.queries.numbers import DAY_MS, HOUR_MS, Counts, Numbers, NumbersIndex
from dragoman.engine.schemas.numbers import numbers_resource
from tests.engine.lab import ALICE, BOB, HUMAN, Lab
from tests.requirements import proves

pytestmark = proves("SEE-NUMBERS")

MINUTE = 60_000


def finish(lab: Lab, task: str, **details: object) -> None:
    """Let alice work on a task for four minutes, and a person approve it 26 later."""
    lab.do(HUMAN, CreateTask(task, id=task, ready=True))
    lab.do(ALICE, ClaimTask(task, "alice"))
    lab.clock.advance(4 * MINUTE)
    lab.do(ALICE, ReportOutcome(task, "done", details=dict(details), apply=True))
    lab.clock.advance(26 * MINUTE)
    lab.do(HUMAN, MoveTask(task, "done"))


def read(lab: Lab, index: NumbersIndex | None = None, days: int = 14) -> Numbers:
    """Read the numbers now."""
    return (index or NumbersIndex(lab.store)).read(lab.clock.now(), days)


def test_hub_without_work_has_no_numbers() -> None:
    found = read(Lab())

    assert (found.total, found.hours, found.agents) == (Counts(), (), ())
    assert found.since == found.now - 14 * DAY_MS


def test_work_is_counted_by_the_hour_and_by_agent() -> None:
    lab = Lab()
    finish(lab, "one", tokens=1200, cost=0.1)
    finish(lab, "two", tokens=800, cost=0.2)
    lab.do(HUMAN, CreateTask("three", id="three", ready=True, max_attempts=1))
    lab.do(BOB, ClaimTask("three", "bob"))
    lab.do(BOB, ReportOutcome("three", "failed", "no route", apply=True))

    found = read(lab)

    assert found.total == Counts(
        attempts=3,
        finished=2,
        failures=1,
        given_up=1,
        reviews=2,
        review_ms=52 * MINUTE,
        tokens=2_000,
        cost=0.1 + 0.2,
    )
    assert [(name, one.finished, one.failures) for name, one in found.agents] == [
        ("alice", 2, 0),
        ("bob", 0, 1),
    ]
    first, second = (lab.clock.now() // HOUR_MS * HOUR_MS - HOUR_MS + step for step in (0, HOUR_MS))
    assert [(at, one.attempts, one.finished) for at, one in found.hours] == [
        (first, 1, 0),
        (second, 2, 2),
    ]
    shown = numbers_resource(found)
    assert shown.total.cost == 0.3
    assert [one.at for one in shown.hours] == [
        "2026-02-09T14:00:00.000Z",
        "2026-02-09T15:00:00.000Z",
    ]
    assert [one.name for one in shown.agents] == ["alice", "bob"]


def test_wait_for_an_answer_is_counted_when_it_ends() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("t", id="t", ready=True))
    lab.do(ALICE, ClaimTask("t", "alice"))
    lab.do(ALICE, AskQuestion("t", "Half to even?"))
    index = NumbersIndex(lab.store)
    assert read(lab, index).total == Counts(attempts=1, questions=1)

    lab.clock.advance(7 * MINUTE)
    lab.do(HUMAN, AnswerQuestion("t", "Yes."))

    asked = Counts(attempts=1, questions=1, answers=1, answer_ms=7 * MINUTE)
    assert read(lab, index).total == asked
    assert read(lab).total == asked


def test_last_report_of_an_attempt_counts() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("t", id="t", ready=True))
    lab.do(ALICE, ClaimTask("t", "alice", session="s"))
    for cost in (0.5, 0.75):
        lab.do(ALICE, ReportOutcome("t", "partial", details={"cost": cost}))

    assert read(lab).total.cost == 0.75


def test_only_the_days_that_are_asked_for_are_counted() -> None:
    lab = Lab()
    finish(lab, "old")
    index = NumbersIndex(lab.store)
    lab.clock.advance(2 * DAY_MS)
    finish(lab, "new")

    assert read(lab, index, days=1).total.finished == 1
    assert read(lab, index, days=14).total.finished == 2
    lab.clock.advance(20 * DAY_MS)
    assert read(lab, index).total == Counts()


def test_long_ledger_is_counted_from_where_it_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "ENTRY_PAGE", 10)
    lab = Lab()
    finish(lab, "old")
    for _ in range(20):
        lab.do(HUMAN, NoteTask("old", "it was long ago"))
    lab.clock.advance(20 * DAY_MS)
    index = NumbersIndex(lab.store)
    assert read(lab, index).total == Counts()
    for number in range(3):
        finish(lab, f"new-{number}")
    assert read(lab, index).total.finished == 3


def test_what_was_written_before_the_part_that_is_read_is_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab = Lab()
    finish(lab, "early")
    lab.do(HUMAN, CreateTask("t", id="t", ready=True))
    lab.do(ALICE, ClaimTask("t", "alice"))
    lab.do(ALICE, AskQuestion("t", "Which one?"))
    lab.clock.advance(MINUTE)
    monkeypatch.setattr(numbers, "ENTRY_PAGE", 2)
    monkeypatch.setattr(numbers, "MAX_ENTRIES", 4)
    lab.do(HUMAN, AnswerQuestion("t", "This one."))
    lab.do(ALICE, ReportOutcome("t", "done", details={"cost": 1}, apply=True))

    found = read(lab)

    assert found.total == Counts(cost=1)
    assert found.agents == (("alice", Counts(cost=1)),)
    assert found.since == lab.clock.now() - MINUTE
