"""The registry in memory: level with the ledger, and read again only where it has changed."""

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    AnyCommand,
    CreateTask,
    DelegateIntent,
    DescribeAgent,
    EditTask,
    PauseAgent,
    ReceiveResult,
    RegisterAgent,
)
from dragoman.core.offers import Policy, Wish
from dragoman.core.rules.threshold import BASE
from dragoman.engine.reads import roster
from dragoman.engine.reads.roster import Rosters
from tests.engine.lab import ALICE, HUMAN, START, Lab
from tests.requirements import proves

pytestmark = proves("CCOS-ROSTER")

WISH = Wish("Write python tests")


def describe(lab: Lab, name: str, *skills: str, cost: float = 0.0) -> None:
    """An agent that can do this."""
    lab.do(HUMAN, RegisterAgent(name), DescribeAgent(name, skills, cost=cost))


def names(rosters: Rosters, now: int = START) -> list[str]:
    """Who is ranked, the first first."""
    return [one.agent for one in rosters.rank(WISH, now)]


def test_it_follows_the_ledger(lab: Lab) -> None:
    rosters = Rosters(lab.store)
    assert names(rosters) == []
    describe(lab, "bob", "python")
    assert names(rosters) == ["bob"]
    lab.do(HUMAN, CreateTask("something else"))
    assert names(rosters) == ["bob"]
    describe(lab, "alice", "python", "tests")
    assert names(rosters) == ["alice", "bob"]
    describe(lab, "alice", "rust")
    assert names(rosters) == ["bob", "alice"]


def test_what_was_learned_is_there_at_once(lab: Lab) -> None:
    rosters = Rosters(lab.store)
    describe(lab, "alice", "python")
    found = rosters.shortlist(WISH, Policy(), START)
    lab.do(HUMAN, DelegateIntent(WISH.goal, "i", candidates=found))
    assert (known := rosters.standing("alice", START)) is not None
    assert known.open == 1
    lab.do(ALICE, ReceiveResult("i", "alice", success=True))
    assert (known := rosters.standing("alice", START)) is not None
    assert (known.open, known.recent) == (0, "1")
    assert rosters.standing("nobody", START) is None


def test_only_what_has_changed_is_read_again(lab: Lab) -> None:
    rosters = Rosters(lab.store)
    for number in range(30):
        describe(lab, f"a{number:02d}", "python")
    first = rosters.rank(WISH, START)
    assert rosters.rank(WISH, START) == first
    lab.do(HUMAN, DescribeAgent("a07", ("python", "tests")))
    assert names(rosters)[0] == "a07"
    assert len(names(rosters)) == 30


@proves("CCOS-HANDS")
def test_who_has_its_hands_full_comes_after_who_has_not(lab: Lab) -> None:
    rosters = Rosters(lab.store)
    describe(lab, "alice", "python", "tests")
    describe(lab, "bob", "python")
    describe(lab, "carol", "cooking")
    hands = {"alice": 1, "bob": 2}

    def order() -> list[str]:
        return [one.agent for one in rosters.shortlist(WISH, Policy(), START, hands)]

    assert order() == ["alice", "bob", "carol"]
    asked = list[str]()
    for number in range(4):
        found = rosters.shortlist(WISH, Policy(), START, hands)
        lab.do(HUMAN, DelegateIntent(WISH.goal, f"i{number}", candidates=found))
        asked.append(lab.task(f"i{number}").assignee)
        if number == 0:
            assert order() == ["bob", "alice", "carol"]
    # What nobody has a hand free for waits with the best.
    assert asked == ["alice", "bob", "bob", "alice"]
    assert order() == ["alice", "bob", "carol"]


def time_passes(lab: Lab) -> None:
    """More happens than is looked through."""
    for number in range(roster.FOLLOWED // 100 + 1):
        batch = [CreateTask(f"{number}.{one}") for one in range(100)]
        lab.do(HUMAN, *batch)


def test_after_a_long_absence_all_are_compared_and_only_who_has_changed_is_read(lab: Lab) -> None:
    rosters = Rosters(lab.store)
    describe(lab, "alice", "python")
    describe(lab, "cy", "python")
    assert names(rosters) == ["alice", "cy"]
    alice = rosters.standing("alice", START)
    time_passes(lab)
    describe(lab, "bob", "python", "tests")
    describe(lab, "cy", "rust")
    assert names(rosters) == ["bob", "alice", "cy"]
    assert rosters.standing("alice", START) is alice


def test_what_could_not_be_read_then_is_tried_again_the_next_time(lab: Lab) -> None:
    describe(lab, "alice", "python")
    row = lab.store.stream("standing:alice")
    assert row is not None
    rosters = Rosters(lab.store)
    assert names(rosters) == ["alice"]
    describe(lab, "alice", "python", "tests")
    whole = lab.store.stream("standing:alice")
    assert whole is not None
    time_passes(lab)
    lab.store.tables.rows[row.number] = replace(whole, state=b"{")
    assert names(rosters) == []
    lab.store.tables.rows[row.number] = whole
    time_passes(lab)
    assert names(rosters) == ["alice"]


def test_what_is_known_grows_old_by_itself(lab: Lab) -> None:
    rosters = Rosters(lab.store)
    describe(lab, "alice", "python")
    alice = Actor("agent", "alice")
    for number in range(8):
        found = tuple(replace(one, score=1.0) for one in rosters.rank(WISH, START))
        lab.do(HUMAN, DelegateIntent(WISH.goal, f"i{number}", candidates=found))
        lab.do(alice, ReceiveResult(f"i{number}", "alice", success=False, error="no"))
    assert rosters.rank(WISH, START + 1)[0].threshold > BASE
    weeks = 3 * 7 * 86_400_000
    assert rosters.rank(WISH, START + weeks)[0].threshold == BASE
    assert rosters.rank(WISH, START + 1)[0].threshold > BASE


@proves("CCOS-GOVERNANCE")
def test_the_shortlist_has_those_who_pass_and_some_who_do_not(lab: Lab) -> None:
    rosters = Rosters(lab.store)
    for number in range(40):
        describe(lab, f"dear{number:02d}", "python", "tests", cost=9)
    for number in range(20):
        describe(lab, f"cheap{number:02d}", "python", "docs")
    assert all(one.agent.startswith("dear") for one in rosters.rank(WISH, START)[:40])
    policy = Policy(cost_ceiling=1)
    found = [one.agent for one in rosters.shortlist(WISH, policy, START)]
    assert found == [f"dear{n:02d}" for n in range(16)] + [f"cheap{n:02d}" for n in range(16)]
    lab.do(HUMAN, PauseAgent("cheap00", "tired"))
    candidate = next(one for one in rosters.rank(WISH, START) if one.agent == "cheap00")
    for _ in range(2):
        reasons = rosters.vetoes(candidate, WISH, policy, START)
        assert reasons == ("availability: it is paused: tired",)


def test_one_that_cannot_be_read_is_no_candidate(lab: Lab) -> None:
    describe(lab, "alice", "python")
    describe(lab, "bob", "python")
    tampered = lab.store.copy()
    row = tampered.stream("standing:bob")
    assert row is not None
    tampered.tables.rows[row.number] = replace(row, state=b"{")
    assert names(Rosters(tampered)) == ["alice"]


def test_nor_one_that_can_be_read_no_longer(lab: Lab) -> None:
    describe(lab, "alice", "python")
    describe(lab, "bob", "python")
    rosters = Rosters(lab.store)
    assert names(rosters) == ["alice", "bob"]
    describe(lab, "bob", "python", "tests")
    row = lab.store.stream("standing:bob")
    assert row is not None
    lab.store.tables.rows[row.number] = replace(row, state=b"{")
    assert names(rosters) == ["alice"]
    lab.store.tables.rows[row.number] = row


def test_whoever_took_a_task_over_by_hand_is_counted_and_is_no_candidate(lab: Lab) -> None:
    rosters = Rosters(lab.store)
    describe(lab, "alice", "python")
    lab.do(HUMAN, DelegateIntent(WISH.goal, "i", candidates=rosters.rank(WISH, START)))
    lab.do(HUMAN, EditTask("i", assignee="bob"))
    assert names(rosters) == ["alice"]
    assert (known := rosters.standing("bob", START)) is not None
    assert known.open == 1


class Flaky:
    """A store that cannot be read for a moment."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.is_locked = False

    def __getattr__(self, name: str) -> Any:
        if self.is_locked and name in ("listed", "stream"):
            raise OSError("database is locked")
        return getattr(self.store, name)


def test_a_read_that_fails_is_made_up_for_by_the_next(lab: Lab) -> None:
    store: Any = Flaky(lab.store)
    rosters = Rosters(store)
    for name in ("alice", "bob"):
        describe(lab, name, "python")
        store.is_locked = True
        with pytest.raises(OSError, match="locked"):
            rosters.rank(WISH, START)
        store.is_locked = False
        assert name in names(rosters)


@proves("CCOS-NEWCOMERS")
def test_whoever_may_not_have_it_takes_no_turn(lab: Lab) -> None:
    rosters, policy = Rosters(lab.store), Policy(cost_ceiling=1)
    describe(lab, "pro", "python", "tests")
    for number in range(9):
        found = rosters.shortlist(WISH, policy, START)
        lab.do(HUMAN, DelegateIntent(WISH.goal, f"i{number}", candidates=found))
    describe(lab, "a-dear-one", "python", "tests", cost=9)
    describe(lab, "new", "python", "tests")
    assert rosters.shortlist(WISH, policy, START)[0].agent == "new"
    assert rosters.rank(WISH, START)[0].agent == "a-dear-one"


@proves("CCOS-ROSTER", "CCOS-SCORE")
def test_of_a_thousand_agents_the_one_who_can_is_found_and_given_it() -> None:
    lab = Lab()
    for start in range(0, 1_000, 100):
        commands: list[AnyCommand] = []
        for number in range(start, start + 100):
            name = f"agent-{number:03d}"
            skills = ("python", "tests") if number == 777 else (f"skill {number}",)
            commands += [RegisterAgent(name), DescribeAgent(name, skills)]
        lab.do(HUMAN, *commands)
    rosters = Rosters(lab.store)
    ranked = rosters.rank(WISH, START)
    assert (len(ranked), ranked[0].agent) == (1_000, "agent-777")
    lab.do(
        HUMAN, DelegateIntent(WISH.goal, "i", candidates=rosters.shortlist(WISH, Policy(), START))
    )
    assert lab.task("i").assignee == "agent-777"
