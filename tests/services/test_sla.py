"""SLA enforcement: late delegations and requests are escalated once; nothing else changes."""

import pytest
from msgspec.structs import replace

from dragoman.core.agent import DescribeAgent, RegisterAgent
from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.delegation import RejectDelegation, RequestDelegation
from dragoman.core.intent.candidate import Requirements
from dragoman.core.intent.state import DelegateIntent
from dragoman.core.task_state import CreateTask, MoveTask
from dragoman.engine.candidate_index import CandidateIndex
from dragoman.engine.queries.agents import find_reputation
from dragoman.engine.queries.entries import stream_entries
from dragoman.services import timers
from dragoman.services.timers import SlaService
from tests.engine.lab import BOB, HUMAN, START, Lab, findings
from tests.requirements import proves

HOUR = 3_600_000


def create_delegations(lab: Lab, count: int, due_by: int = START + HOUR) -> list[str]:
    """Create parts of one task, each offered to bob."""
    lab.do(HUMAN, CreateTask("the whole", "P"))
    names = [f"T{number:03}" for number in range(count)]
    for name in names:
        lab.do(HUMAN, CreateTask(name, name, ready=True))
        lab.do(HUMAN, RequestDelegation(name, "P", "bob", due_by))
    return names


def run(lab: Lab) -> int:
    """Run the service once, at the hub's own time."""
    return SlaService(lab.hub).run_once(lab.clock.now())


def events(lab: Lab, name: str) -> list[str]:
    """Events of a task."""
    return [entry.event for entry in stream_entries(lab.store, f"task:{name}")]


@proves("DELEGATION-SLA")
def test_late_delegation_is_escalated_once_at_the_millisecond() -> None:
    lab = Lab()
    create_delegations(lab, 1)
    lab.clock.advance(START + HOUR - 1 - lab.clock.now())
    assert run(lab) == 0
    lab.clock.advance(1)
    assert run(lab) == 1
    task = lab.task("T000")
    assert task.delegation is not None
    assert (task.status, task.delegation.state, task.delegation.escalated) == (
        "ready",
        "requested",
        True,
    )
    assert events(lab, "T000")[-1] == "delegation.escalated"
    lab.clock.advance(HOUR)
    assert run(lab) == 0
    assert findings(lab.store) == []


@proves("DELEGATION-SLA")
def test_escalation_does_not_interrupt_the_holder() -> None:
    lab = Lab()
    create_delegations(lab, 1)
    lab.do(BOB, ClaimTask("T000", "bob", ttl_ms=2 * HOUR))
    lab.clock.advance(HOUR)
    assert run(lab) == 1
    assert lab.task("T000").status == "in-progress"
    lab.do(BOB, ReportOutcome("T000", "done", apply=True))


@proves("DELEGATION-SLA")
def test_ended_and_rejected_delegations_are_not_escalated() -> None:
    lab = Lab()
    create_delegations(lab, 3)
    lab.do(HUMAN, MoveTask("T000", "cancelled"))
    lab.do(BOB, RejectDelegation("T001", "no"))
    lab.clock.advance(HOUR)
    assert run(lab) == 1
    assert events(lab, "T002")[-1] == "delegation.escalated"


@proves("DELEGATION-SLA")
def test_new_request_has_its_own_deadline() -> None:
    lab = Lab()
    create_delegations(lab, 1)
    lab.clock.advance(HOUR)
    assert run(lab) == 1
    lab.do(HUMAN, RequestDelegation("T000", "P", "bob", START + 2 * HOUR))
    assert run(lab) == 0
    lab.clock.advance(HOUR)
    assert run(lab) == 1
    assert events(lab, "T000").count("delegation.escalated") == 2


@proves("DELEGATION-SLA")
def test_any_number_of_delegations_is_escalated_page_by_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timers, "_PAGE", 10)
    lab = Lab()
    create_delegations(lab, 25)
    lab.clock.advance(HOUR)
    assert run(lab) == 25


@proves("DELEGATION-SLA")
def test_service_clock_ahead_of_the_hub_escalates_nothing_and_terminates() -> None:
    lab = Lab()
    create_delegations(lab, 2)
    assert SlaService(lab.hub).run_once(lab.clock.now() + 2 * HOUR) == 0
    assert events(lab, "T000")[-1] != "delegation.escalated"


@proves("DELEGATION-SLA")
def test_unreadable_task_does_not_stop_the_others() -> None:
    lab = Lab()
    create_delegations(lab, 3)
    rows = lab.store.tables.rows
    number = lab.store.tables.numbers["task:T000"]
    rows[number] = replace(rows[number], state=b"{")
    later = Lab(lab.store)
    later.clock.advance(HOUR)
    assert run(later) == 2


@proves("DELEGATION-SLA")
def test_unreadable_page_does_not_stop_later_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timers, "_PAGE", 2)
    lab = Lab()
    create_delegations(lab, 6)
    rows, numbers = lab.store.tables.rows, lab.store.tables.numbers
    for name in ("T000", "T001", "T002"):
        number = numbers[f"task:{name}"]
        rows[number] = replace(rows[number], state=b"{")
    later = Lab(lab.store)
    later.clock.advance(HOUR)
    assert run(later) == 3
    assert run(later) == 0


@proves("CCOS-DEADLINE")
def test_unanswered_request_fails_and_moves_to_the_next_candidate() -> None:
    lab = Lab()
    for name in ("alice", "bob"):
        lab.do(HUMAN, RegisterAgent(name), DescribeAgent(name, ("python",)))
    candidates = CandidateIndex(lab.store).rank(Requirements("python"), START)
    lab.do(HUMAN, DelegateIntent("python", "i", patience_ms=HOUR, candidates=candidates))
    assert run(lab) == 0
    lab.clock.advance(HOUR)
    assert run(lab) == 1
    assert run(lab) == 0, "bob has an hour of his own"
    assert lab.task("i").assignee == "bob"
    lab.clock.advance(HOUR)
    assert run(lab) == 1
    assert lab.task("i").status == "deadletter"
    assert run(lab) == 0


@proves("CCOS-UNSENT")
def test_undelivered_request_is_withdrawn_without_blaming_the_called_agent() -> None:
    lab = Lab()
    for name in ("alice", "bob"):
        lab.do(HUMAN, RegisterAgent(name), DescribeAgent(name, ("python",)))
    candidates = CandidateIndex(lab.store).rank(Requirements("python"), START)
    lab.do(HUMAN, DelegateIntent("python", "i", patience_ms=HOUR, candidates=candidates))
    for failures in ((0, 0), (0, 1)):
        lab.clock.advance(HOUR)
        assert SlaService(lab.hub, hub_started={"alice"}).run_once(lab.clock.now()) == 1
        reputations = [find_reputation(lab.store, name) for name in ("alice", "bob")]
        assert tuple(reputation.failures for reputation in reputations if reputation) == failures
    assert lab.task("i").status == "deadletter"


@proves("CCOS-DEADLINE")
def test_request_in_review_does_not_delay_the_others() -> None:
    lab = Lab()
    lab.do(HUMAN, RegisterAgent("bob"), DescribeAgent("bob", ("python",)))
    candidates = CandidateIndex(lab.store).rank(Requirements("python"), START)
    for id in ("i", "j"):
        command = DelegateIntent("python", id, patience_ms=HOUR, candidates=candidates)
        lab.do(HUMAN, replace(command, review_required=True))
    lab.do(BOB, ClaimTask("i", "bob"))
    lab.do(BOB, ReportOutcome("i", "partial", "half", apply=True))
    lab.clock.advance(HOUR)
    assert run(lab) == 1
    assert (lab.task("i").status, lab.task("j").status) == ("review", "deadletter")
    # A request in review is not expired; when it is claimed again after its deadline, it fails.
    for command in (MoveTask("i", "ready"), ClaimTask("i", "bob")):
        lab.do(HUMAN, command)
    lab.clock.advance(HOUR)
    assert run(lab) == 1
    assert lab.task("i").status == "deadletter"


@proves("CCOS-DEADLINE")
def test_unreadable_intent_does_not_stop_the_others() -> None:
    lab = Lab()
    lab.do(HUMAN, RegisterAgent("bob"), DescribeAgent("bob", ("python",)))
    candidates = CandidateIndex(lab.store).rank(Requirements("python"), START)
    for id in ("i", "j"):
        lab.do(HUMAN, DelegateIntent("python", id, patience_ms=HOUR, candidates=candidates))
    row = lab.store.stream("intent:i")
    assert row is not None
    lab.store.tables.rows[row.number] = replace(row, state=b"{")
    lab.clock.advance(HOUR)
    assert run(lab) == 1
    assert lab.task("j").status == "deadletter"
