"""Index of candidate agents: updated from the ledger, reading only changed agents."""

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.agent import DescribeAgent, PauseAgent, RegisterAgent
from dragoman.core.base import Command
from dragoman.core.intent.candidate import Policy, Requirements
from dragoman.core.intent.scoring import BASE_THRESHOLD
from dragoman.core.intent.state import DelegateIntent, ReceiveResult
from dragoman.core.task_state import CreateTask, EditTask
from dragoman.engine import candidate_index
from dragoman.engine.candidate_index import CandidateIndex
from tests.engine.lab import ALICE, HUMAN, START, Lab
from tests.requirements import proves

pytestmark = proves("CCOS-ROSTER")

GOAL = Requirements("Write python tests")


def describe_agent(lab: Lab, name: str, *skills: str, cost: float = 0.0) -> None:
    """Register an agent with these skills."""
    lab.do(HUMAN, RegisterAgent(name), DescribeAgent(name, skills, cost=cost))


def ranked_names(index: CandidateIndex, now: int = START) -> list[str]:
    """List the agents by rank."""
    return [one.agent for one in index.rank(GOAL, now)]


def test_index_follows_the_ledger(lab: Lab) -> None:
    index = CandidateIndex(lab.store)
    assert ranked_names(index) == []
    describe_agent(lab, "bob", "python")
    assert ranked_names(index) == ["bob"]
    lab.do(HUMAN, CreateTask("something else"))
    assert ranked_names(index) == ["bob"]
    describe_agent(lab, "alice", "python", "tests")
    assert ranked_names(index) == ["alice", "bob"]
    describe_agent(lab, "alice", "rust")
    assert ranked_names(index) == ["bob", "alice"]


def test_reputation_is_updated_at_once(lab: Lab) -> None:
    index = CandidateIndex(lab.store)
    describe_agent(lab, "alice", "python")
    found = index.shortlist(GOAL, Policy(), START)
    lab.do(HUMAN, DelegateIntent(GOAL.goal, "i", candidates=found))
    assert (known := index.reputation("alice", START)) is not None
    assert known.open == 1
    lab.do(ALICE, ReceiveResult("i", "alice", success=True))
    assert (known := index.reputation("alice", START)) is not None
    assert (known.open, known.recent) == (0, "1")
    assert index.reputation("nobody", START) is None


def test_only_changed_agents_are_read_again(lab: Lab) -> None:
    index = CandidateIndex(lab.store)
    for number in range(30):
        describe_agent(lab, f"a{number:02d}", "python")
    first = index.rank(GOAL, START)
    assert index.rank(GOAL, START) == first
    lab.do(HUMAN, DescribeAgent("a07", ("python", "tests")))
    assert ranked_names(index)[0] == "a07"
    assert len(ranked_names(index)) == 30


@proves("CCOS-HANDS")
def test_busy_agents_rank_after_free_ones(lab: Lab) -> None:
    index = CandidateIndex(lab.store)
    describe_agent(lab, "alice", "python", "tests")
    describe_agent(lab, "bob", "python")
    describe_agent(lab, "carol", "cooking")
    capacity = {"alice": 1, "bob": 2}

    def shortlisted() -> list[str]:
        return [one.agent for one in index.shortlist(GOAL, Policy(), START, capacity)]

    assert shortlisted() == ["alice", "bob", "carol"]
    assigned = list[str]()
    for number in range(4):
        found = index.shortlist(GOAL, Policy(), START, capacity)
        lab.do(HUMAN, DelegateIntent(GOAL.goal, f"i{number}", candidates=found))
        assigned.append(lab.task(f"i{number}").assignee)
        if number == 0:
            assert shortlisted() == ["bob", "alice", "carol"]
    # Without free capacity the best agent gets the intent.
    assert assigned == ["alice", "bob", "bob", "alice"]
    assert shortlisted() == ["alice", "bob", "carol"]


def append_many_entries(lab: Lab) -> None:
    """Append more entries than the index follows one by one."""
    for number in range(candidate_index.MAX_FOLLOWED // 100 + 1):
        batch = [CreateTask(f"{number}.{one}") for one in range(100)]
        lab.do(HUMAN, *batch)


def test_rebuild_after_many_entries_reads_only_changed_agents(lab: Lab) -> None:
    index = CandidateIndex(lab.store)
    describe_agent(lab, "alice", "python")
    describe_agent(lab, "cy", "python")
    assert ranked_names(index) == ["alice", "cy"]
    alice = index.reputation("alice", START)
    append_many_entries(lab)
    describe_agent(lab, "bob", "python", "tests")
    describe_agent(lab, "cy", "rust")
    assert ranked_names(index) == ["bob", "alice", "cy"]
    assert index.reputation("alice", START) is alice


def test_unreadable_record_is_retried_on_the_next_read(lab: Lab) -> None:
    describe_agent(lab, "alice", "python")
    row = lab.store.stream("reputation:alice")
    assert row is not None
    index = CandidateIndex(lab.store)
    assert ranked_names(index) == ["alice"]
    describe_agent(lab, "alice", "python", "tests")
    whole = lab.store.stream("reputation:alice")
    assert whole is not None
    append_many_entries(lab)
    lab.store.tables.rows[row.number] = replace(whole, state=b"{")
    assert ranked_names(index) == []
    lab.store.tables.rows[row.number] = whole
    append_many_entries(lab)
    assert ranked_names(index) == ["alice"]


def test_learned_threshold_decays_with_time(lab: Lab) -> None:
    index = CandidateIndex(lab.store)
    describe_agent(lab, "alice", "python")
    alice = Actor("agent", "alice")
    for number in range(8):
        found = tuple(replace(one, score=1.0) for one in index.rank(GOAL, START))
        lab.do(HUMAN, DelegateIntent(GOAL.goal, f"i{number}", candidates=found))
        lab.do(alice, ReceiveResult(f"i{number}", "alice", success=False, error="no"))
    assert index.rank(GOAL, START + 1)[0].threshold > BASE_THRESHOLD
    weeks = 3 * 7 * 86_400_000
    assert index.rank(GOAL, START + weeks)[0].threshold == BASE_THRESHOLD
    assert index.rank(GOAL, START + 1)[0].threshold > BASE_THRESHOLD


@proves("CCOS-GOVERNANCE")
def test_shortlist_has_eligible_and_some_ineligible_candidates(lab: Lab) -> None:
    index = CandidateIndex(lab.store)
    for number in range(40):
        describe_agent(lab, f"dear{number:02d}", "python", "tests", cost=9)
    for number in range(20):
        describe_agent(lab, f"cheap{number:02d}", "python", "docs")
    assert all(one.agent.startswith("dear") for one in index.rank(GOAL, START)[:40])
    policy = Policy(cost_ceiling=1)
    found = [one.agent for one in index.shortlist(GOAL, policy, START)]
    assert found == [f"dear{n:02d}" for n in range(16)] + [f"cheap{n:02d}" for n in range(16)]
    lab.do(HUMAN, PauseAgent("cheap00", "tired"))
    candidate = next(one for one in index.rank(GOAL, START) if one.agent == "cheap00")
    for _ in range(2):
        reasons = index.vetoes(candidate, GOAL, policy, START)
        assert reasons == ("availability: it is paused: tired",)


def test_unreadable_record_is_not_a_candidate(lab: Lab) -> None:
    describe_agent(lab, "alice", "python")
    describe_agent(lab, "bob", "python")
    tampered = lab.store.copy()
    row = tampered.stream("reputation:bob")
    assert row is not None
    tampered.tables.rows[row.number] = replace(row, state=b"{")
    assert ranked_names(CandidateIndex(tampered)) == ["alice"]


def test_record_that_became_unreadable_is_removed(lab: Lab) -> None:
    describe_agent(lab, "alice", "python")
    describe_agent(lab, "bob", "python")
    index = CandidateIndex(lab.store)
    assert ranked_names(index) == ["alice", "bob"]
    describe_agent(lab, "bob", "python", "tests")
    row = lab.store.stream("reputation:bob")
    assert row is not None
    lab.store.tables.rows[row.number] = replace(row, state=b"{")
    assert ranked_names(index) == ["alice"]
    lab.store.tables.rows[row.number] = row


def test_manual_assignee_is_counted_but_not_a_candidate(lab: Lab) -> None:
    index = CandidateIndex(lab.store)
    describe_agent(lab, "alice", "python")
    lab.do(HUMAN, DelegateIntent(GOAL.goal, "i", candidates=index.rank(GOAL, START)))
    lab.do(HUMAN, EditTask("i", assignee="bob"))
    assert ranked_names(index) == ["alice"]
    assert (known := index.reputation("bob", START)) is not None
    assert known.open == 1


class Flaky:
    """Store whose reads fail while it is locked."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.is_locked = False

    def __getattr__(self, name: str) -> Any:
        if self.is_locked and name in ("listed", "stream"):
            raise OSError("database is locked")
        return getattr(self.store, name)


def test_failed_read_is_made_up_for_by_the_next(lab: Lab) -> None:
    store: Any = Flaky(lab.store)
    index = CandidateIndex(store)
    for name in ("alice", "bob"):
        describe_agent(lab, name, "python")
        store.is_locked = True
        with pytest.raises(OSError, match="locked"):
            index.rank(GOAL, START)
        store.is_locked = False
        assert name in ranked_names(index)


@proves("CCOS-NEWCOMERS")
def test_ineligible_newcomer_takes_no_probation_turn(lab: Lab) -> None:
    index, policy = CandidateIndex(lab.store), Policy(cost_ceiling=1)
    describe_agent(lab, "pro", "python", "tests")
    for number in range(9):
        found = index.shortlist(GOAL, policy, START)
        lab.do(HUMAN, DelegateIntent(GOAL.goal, f"i{number}", candidates=found))
    describe_agent(lab, "a-dear-one", "python", "tests", cost=9)
    describe_agent(lab, "new", "python", "tests")
    assert index.shortlist(GOAL, policy, START)[0].agent == "new"
    assert index.rank(GOAL, START)[0].agent == "a-dear-one"


@proves("CCOS-ROSTER", "CCOS-SCORE")
def test_best_of_a_thousand_agents_is_found_and_assigned() -> None:
    lab = Lab()
    for start in range(0, 1_000, 100):
        commands: list[Command] = []
        for number in range(start, start + 100):
            name = f"agent-{number:03d}"
            skills = ("python", "tests") if number == 777 else (f"skill {number}",)
            commands += [RegisterAgent(name), DescribeAgent(name, skills)]
        lab.do(HUMAN, *commands)
    index = CandidateIndex(lab.store)
    ranked = index.rank(GOAL, START)
    assert (len(ranked), ranked[0].agent) == (1_000, "agent-777")
    lab.do(HUMAN, DelegateIntent(GOAL.goal, "i", candidates=index.shortlist(GOAL, Policy(), START)))
    assert lab.task("i").assignee == "agent-777"
