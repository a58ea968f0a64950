"""Report of a day: what it lists, where it begins and ends, and what it hides."""

import pytest

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.base import Outcome
from dragoman.core.mail import EscalateMail, PostMail
from dragoman.core.task_state import CreateTask, MoveTask
from dragoman.engine.queries import day_report
from dragoman.engine.queries.attention import find_attention
from dragoman.engine.queries.day_report import DayReport, read_day
from dragoman.engine.queries.numbers import DAY_MS
from dragoman.engine.queries.visibility import OWNER, Reader
from dragoman.engine.schemas.day_report import day_report_resource
from tests.engine import handoffs
from tests.engine.lab import ALICE, BOB, HUMAN, START, Lab
from tests.requirements import proves

pytestmark = proves("SEE-DAY")

DAY = START - START % DAY_MS
MINUTE = 60_000


def read(lab: Lab, begin: int = DAY, reader: Reader = OWNER) -> DayReport:
    """Read a day as it is now."""
    now = lab.clock.now()
    return read_day(lab.store, begin, now, find_attention(lab.store, now, reader=reader), reader)


def work(lab: Lab, task: str, outcome: Outcome, notes: str = "") -> None:
    """Let alice work on a new task, and report."""
    lab.do(HUMAN, CreateTask(f"The {task} task", id=task, ready=True, max_attempts=2))
    lab.do(ALICE, ClaimTask(task, "alice"))
    lab.do(ALICE, ReportOutcome(task, outcome, notes, apply=True))


def test_day_lists_what_was_finished_failed_and_given_up() -> None:
    lab = Lab()
    work(lab, "good", "done", "All tests pass.")
    lab.do(HUMAN, MoveTask("good", "done"))
    work(lab, "bad", "failed", "No route.")
    lab.clock.advance(30 * MINUTE)
    lab.do(BOB, ClaimTask("bad", "bob"))
    lab.do(BOB, ReportOutcome("bad", "failed", apply=True))
    lab.do(HUMAN, CreateTask("By hand", id="hand", ready=True))
    lab.do(HUMAN, MoveTask("hand", "deadletter", "nobody can do it"))

    found = read(lab)

    assert [(one.kind, one.about, one.title, one.agent, one.text) for one in found.items] == [
        ("finished", "good", "The good task", "alice", "All tests pass."),
        ("failed", "bad", "The bad task", "alice", "No route."),
        ("failed", "bad", "The bad task", "bob", "its agent reported failed"),
        ("given_up", "bad", "The bad task", "bob", "2 attempts failed, the last: reported_failed"),
        ("given_up", "hand", "By hand", "", "nobody can do it"),
    ]
    assert found.counts == {"finished": 1, "failed": 2, "given_up": 2}
    assert found.numbers.total.finished == 1
    assert [name for name, _ in found.numbers.agents] == ["alice", "bob"]
    assert found.attention.counts == {"deadletter": 2}
    shown = day_report_resource(found)
    assert (shown.day, shown.items[0].at) == ("2026-02-09", "2026-02-09T14:30:00.000Z")
    assert shown.attention_counts == {"deadletter": 2}


def test_day_ends_at_midnight() -> None:
    lab = Lab()
    work(lab, "first", "done")
    lab.do(HUMAN, MoveTask("first", "done"))
    lab.clock.advance(DAY + DAY_MS - START - 1)
    work(lab, "last", "done")
    lab.do(HUMAN, MoveTask("last", "done"))
    lab.clock.advance(1)
    work(lab, "next", "done")
    lab.do(HUMAN, MoveTask("next", "done"))

    days = [read(lab, DAY + step * DAY_MS) for step in (-1, 0, 1, 2)]

    assert [[one.about for one in day.items] for day in days] == [
        [],
        ["first", "last"],
        ["next"],
        [],
    ]
    assert [day.numbers.total.finished for day in days] == [0, 2, 1, 0]


def test_escalations_are_hidden_with_what_they_are_about() -> None:
    lab = Lab()
    handoffs.make(lab)
    handoffs.offer(lab)
    handoffs.late(lab)
    letter = PostMail(("bob",), "Look", "", id="m1", ack_wanted=True, due_in_ms=MINUTE)
    lab.do(ALICE, letter)
    lab.clock.advance(MINUTE)
    lab.do(HUB_ACTOR, EscalateMail("m1"))

    today = lab.clock.now() - lab.clock.now() % DAY_MS

    seen, hidden = read(lab, today), read(lab, today, Reader("eve", frozenset({"default"})))

    assert [(one.kind, one.about) for one in seen.items] == [
        ("escalated", "h1"),
        ("escalated", "m1"),
    ]
    assert seen.items[0].text.startswith("escalated")
    assert [one.about for one in hidden.items] == ["m1"]
    assert hidden.counts == {"escalated": 1}


def test_long_lists_are_cut_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(day_report, "MAX_LISTED", 1)
    lab = Lab()
    for name in ("one", "two"):
        work(lab, name, "done")
        lab.do(HUMAN, MoveTask(name, "done"))

    found = read(lab)

    assert [one.about for one in found.items] == ["one"]
    assert found.counts == {"finished": 2}
