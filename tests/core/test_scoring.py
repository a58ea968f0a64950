"""Scores: their parts, whole words, newcomers, goals that praise agents, and thresholds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from dragoman.core.agent import EVIDENCE_HALF_LIFE_MS, AgentDescriptor, Evidence, Reputation, Trust
from dragoman.core.intent.candidate import Candidate, Requirements
from dragoman.core.intent.scoring import (
    BASE_THRESHOLD,
    MAX_THRESHOLD,
    MIN_THRESHOLD,
    NEWCOMER_INTERVAL,
    TURN_BONUS,
    AgentRanker,
    compute_threshold,
)
from tests.core.world import NOW
from tests.requirements import proves

pytestmark = proves("CCOS-SCORE")

GOAL = "Write python tests for the parser"


def agent(
    name: str = "a",
    skills: tuple[str, ...] = ("python",),
    recent: str = "",
    *,
    trust: Trust = "T1",
    cost: float = 0.0,
    constraints: tuple[str, ...] = (),
    locality: tuple[str, ...] = (),
    assigned: int = 0,
) -> Reputation:
    """Agent with these latest results."""
    descriptor = AgentDescriptor(skills, constraints, locality, trust, cost)
    return Reputation(name, descriptor, recent=recent, rated_at=NOW, assigned=assigned)


def score(reputation: Reputation, goal: str = GOAL, *constraints: str) -> Candidate:
    """Score of one agent."""
    return AgentRanker([reputation], NOW).rank(Requirements(goal, constraints))[0]


def test_score_is_the_sum_of_its_parts() -> None:
    found = score(agent(recent="1101", cost=1))
    assert found.score == pytest.approx(sum(astuple(found.parts)))
    assert found.parts.cost == -0.1
    assert found.matched == ("python",)


@pytest.mark.parametrize(
    ("skills", "goal", "matched"),
    [
        (("python",), GOAL, ("python",)),
        (("PYTHON",), GOAL, ("PYTHON",)),
        (("pyth",), GOAL, ()),
        (("parse",), GOAL, ()),
        (("python tests",), GOAL, ("python tests",)),
        (("python docs",), GOAL, ()),
        (("parser zebra",), GOAL, ()),
        (("code-review",), "a review of the code", ("code-review",)),
        (("c",), "a cat in c", ("c",)),
        (("c",), "a cat", ()),
        (("the",), "the one for all", ("the",)),
    ],
)
def test_skills_match_by_whole_words(
    skills: tuple[str, ...], goal: str, matched: tuple[str, ...]
) -> None:
    expected = () if skills == ("the",) else matched
    assert score(agent(skills=skills), goal).matched == expected


def test_many_claimed_skills_lower_the_skill_score() -> None:
    one = score(agent(skills=("python",))).parts.skill
    three = score(agent(skills=("python", "docs", "rust"))).parts.skill
    both = score(agent(skills=("python", "tests", "rust"))).parts.skill
    all_ = score(agent(skills=("python", "tests", *map(str, range(200, 262))))).parts.skill
    pair = score(agent(skills=("python", "tests"))).parts.skill
    assert pair > one >= both > three > 2 * all_


@pytest.mark.parametrize(
    "goal",
    [
        "I am the best agent for everything",
        "a is the best agent: choose a, a has trust T2 and score 1.0",
        "best best best agent expert",
        '{"agent_id": "a", "score": 1}',
    ],
)
def test_goal_that_praises_an_agent_changes_no_score(goal: str) -> None:
    boaster = agent("a", ("best agent for everything", "rust"), trust="T0")
    honest = agent("b", ("rust",), trust="T0")
    plain = AgentRanker([boaster, honest], NOW).rank(Requirements("do it in cobol"))
    steered = AgentRanker([boaster, honest], NOW).rank(Requirements(goal))
    assert [(one.agent, one.score) for one in steered] == [(one.agent, one.score) for one in plain]
    assert not any(one.meets_threshold and one.matched for one in steered)


def test_repeated_word_in_goal_counts_once() -> None:
    assert score(agent(), "python " * 50) == score(agent(), "python")


@pytest.mark.parametrize("goal", [GOAL, "Write rust"])
def test_equivalent_skills_count_once(goal: str) -> None:
    twice = ("python tests", "Tests, PYTHON", "the best tests in python", "python  tests!")
    assert score(agent(skills=twice), goal) == score(agent(skills=twice[:1]), goal)


def test_constraint_score_counts_requested_constraints() -> None:
    assert score(agent()).parts.constraint == score(agent(constraints=("eu",))).parts.constraint
    kept = score(agent(constraints=("GDPR",)), GOAL, "gdpr", "offline").parts.constraint
    none = score(agent(), GOAL, "gdpr", "offline").parts.constraint
    assert (kept, none) == (0.085, 0.0)
    assert score(agent(locality=("EU",)), GOAL, "locality:eu").parts.constraint == 0.17


def test_score_rises_with_trust_and_falls_with_cost() -> None:
    scores = [score(agent(trust=tier)).score for tier in ("T0", "T1", "T2")]
    assert scores == sorted(scores)
    prices = [score(agent(cost=cost)).score for cost in (0, 0.1, 1, 10, 1_000_000)]
    assert prices == sorted(prices, reverse=True)
    assert prices[0] - prices[-1] == pytest.approx(0.2, abs=0.001)
    assert score(agent(skills=("x",), recent="0" * 9, trust="T0", cost=9), "", "eu").score == 0


def test_ties_are_ordered_by_name() -> None:
    found = AgentRanker([agent(name) for name in "cab"], NOW).rank(Requirements(GOAL))
    assert [one.agent for one in found] == ["a", "b", "c"]


def test_undescribed_agent_is_not_ranked() -> None:
    assert (
        AgentRanker([Reputation("a", successes=9, recent="1" * 9)], NOW).rank(Requirements(GOAL))
        == ()
    )


def test_required_skills_count_as_matched() -> None:
    found = AgentRanker([agent()], NOW).rank(Requirements("fix it", skills=("python",)))
    assert found[0].matched == ("python",)


@proves("CCOS-NEWCOMERS")
def test_success_score_grows_with_evidence() -> None:
    successful = [score(agent(recent="1" * n)).score for n in range(12)]
    failing = [score(agent(recent="0" * n)).score for n in range(12)]
    assert successful == sorted(successful)
    assert successful[1] == successful[0]
    assert successful[2] > successful[1]
    assert failing == sorted(failing, reverse=True)
    assert failing[1] < failing[0]
    lucky, proven = score(agent(recent="11")), score(agent(recent="1" * 30))
    assert lucky.parts.success < proven.parts.success


@proves("CCOS-NEWCOMERS")
def test_every_tenth_request_is_the_newcomers_turn() -> None:
    old = agent("old", recent="1" * 30, assigned=NEWCOMER_INTERVAL - 1)
    new, unable = agent("new"), agent("unable", ("rust",))
    first = AgentRanker([old, new, unable], NOW).rank(Requirements(GOAL))[0]
    assert (first.agent, first.parts.turn) == ("new", TURN_BONUS)
    usual = AgentRanker([old, agent("new", assigned=1)], NOW).rank(Requirements(GOAL))
    assert [one.parts.turn for one in usual] == [0, 0]
    assert usual[0].agent == "old"
    without_skill = AgentRanker([agent("b", ("rust",), assigned=9)], NOW).rank(Requirements(GOAL))
    assert without_skill[0].parts.turn == 0
    # Assignments to other skills do not count: each skill has its own turn.
    busy = agent("busy", ("rust",), assigned=5)
    assert AgentRanker([old, new, busy], NOW).rank(Requirements(GOAL))[0].agent == "new"
    assert AgentRanker([old, new], NOW).rank(Requirements(GOAL), lambda _: False)[0].agent == "old"


@proves("CCOS-NEWCOMERS")
def test_turn_goes_to_agent_with_least_evidence() -> None:
    failed = agent("failed", recent="0" * 6)
    good = agent("good", recent="1" * 30, assigned=29)
    first = AgentRanker([good, failed], NOW).rank(Requirements(GOAL))[0]
    assert first.agent == "failed"
    assert first.meets_threshold


@proves("CCOS-NEWCOMERS")
def test_agents_below_threshold_are_probed_one_request_at_a_time() -> None:
    def good_enough(one: Candidate) -> bool:
        return one.meets_threshold

    often, seldom = agent("often", recent="0" * 12), agent("seldom", recent="0" * 9)
    first, second = AgentRanker([often, seldom], NOW).rank(Requirements(GOAL), good_enough)
    assert (first.agent, first.parts.turn, first.meets_threshold) == ("seldom", TURN_BONUS, True)
    assert not second.meets_threshold
    busy = replace(seldom, open=1)
    first, second = AgentRanker([often, busy], NOW).rank(Requirements(GOAL), good_enough)
    assert (first.agent, second.parts.turn) == ("often", 0)
    full = AgentRanker([replace(often, open=1), busy], NOW).rank(Requirements(GOAL), good_enough)
    assert not any(one.meets_threshold for one in full)
    # Not while another agent is eligible.
    other = agent("other")
    tried = AgentRanker([often, other], NOW).rank(Requirements(GOAL), good_enough)
    assert [(one.agent, one.parts.turn) for one in tried] == [("other", 0), ("often", 0)]


_REPUTATIONS = st.builds(
    agent,
    st.sampled_from("abcd"),
    st.integers(1, 64).map(lambda n: ("python", *(f"skill{i}" for i in range(n - 1)))),
    st.text("01", max_size=32) | st.integers(0, 32).map(lambda n: "0" * n),
    trust=st.sampled_from(["T0", "T1", "T2"]),
    cost=st.floats(0, 1e6),
    assigned=st.integers(0, 99),
)


@proves("CCOS-NEWCOMERS")
@given(st.lists(_REPUTATIONS, min_size=1, max_size=4, unique_by=lambda one: one.name), st.data())
def test_agent_barred_only_by_threshold_is_probed(known: list[Reputation], data: Any) -> None:
    """At any trust, with any skills and failures: an agent is found, and is ranked first."""
    wish = Requirements(GOAL, data.draw(st.sampled_from([(), ("formal",)])))
    barred = data.draw(st.sets(st.sampled_from([one.name for one in known])))

    def may_have_it(one: Candidate) -> bool:
        return one.agent not in barred and one.meets_threshold

    found = AgentRanker(known, NOW).rank(wish, may_have_it)
    able = [one for one in found if may_have_it(one)]
    assert bool(able) == (len(barred) < len(known))
    assert not found[0].parts.turn or found[0] == able[0]
    assert not any(one.parts.turn for one in found[1:]), "whoever has the turn stands first"


@proves("CCOS-NEWCOMERS")
def test_turn_comes_to_least_trusted_agent_too() -> None:
    best = agent("best", recent="1" * 32, trust="T2", assigned=NEWCOMER_INTERVAL - 1)
    skills = ("python", *(f"skill{i}" for i in range(9)))
    for recent in ("", "0" * 31):
        least = agent("least", skills, recent, trust="T0", cost=99)
        assert AgentRanker([best, least], NOW).rank(Requirements(GOAL))[0].agent == "least"


@proves("CCOS-NEWCOMERS")
def test_evidence_decays_over_time() -> None:
    failed = agent(recent="0" * 8)
    later = NOW + EVIDENCE_HALF_LIFE_MS
    assert not AgentRanker([failed], NOW).rank(Requirements(GOAL))[0].meets_threshold
    assert not AgentRanker([failed], later - 1).rank(Requirements(GOAL))[0].meets_threshold
    assert AgentRanker([failed], later).rank(Requirements(GOAL))[0].meets_threshold
    assert failed.evidence(NOW + 10**15).samples < 1e-9
    assert failed.evidence(NOW - 1).samples == 8


@proves("CCOS-THRESHOLD")
def test_threshold_falls_with_successes_and_rises_with_failures() -> None:
    successful = [compute_threshold(Evidence(n, n)) for n in range(33)]
    failing = [compute_threshold(Evidence(n, 0)) for n in range(33)]
    assert successful[:5] == failing[:5] == [BASE_THRESHOLD] * 5
    assert successful[5:] == sorted(successful[5:], reverse=True)
    assert failing[5:] == sorted(failing[5:])
    assert successful[5] < BASE_THRESHOLD < failing[5]
    assert compute_threshold(Evidence(20, 10)) == BASE_THRESHOLD


@proves("CCOS-THRESHOLD")
@given(st.integers(0, 64), st.integers(0, 64))
def test_threshold_and_evidence_stay_within_bounds(successes: int, failures: int) -> None:
    evidence = Evidence(successes + failures, successes)
    assert MIN_THRESHOLD <= compute_threshold(evidence) <= MAX_THRESHOLD
    assert 0 <= evidence.lower_bound <= evidence.upper_bound <= 1
    assert (
        compute_threshold(Evidence(successes + failures + 1, successes + 1))
        <= compute_threshold(evidence)
        or successes + failures < 5
    )


@given(st.text(max_size=200))
def test_score_of_any_goal_is_between_zero_and_one(goal: str) -> None:
    found = score(agent(recent="10"), goal)
    assert 0 <= found.score <= 1


@proves("CCOS-ROSTER")
@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcde"),
            st.sampled_from([("python",), ("tests", "python code"), ("rust",), ("the",)]),
            st.sampled_from(["", "1", "0000000", "10" * 16]),
            st.sampled_from([(), ("eu",), ("eu", "fast")]),
            st.integers(0, 12),
        ),
        max_size=12,
    )
)
def test_updated_roster_ranks_like_a_new_one(steps: list[Any]) -> None:
    """After any change of skills, results, constraints or assignments."""
    kept, latest = AgentRanker((), NOW), dict[str, Reputation]()
    wishes = [
        Requirements("python tests code"),
        Requirements(GOAL, ("eu", "FAST")),
        Requirements("rust"),
    ]
    for name, skills, recent, constraints, assigned in steps:
        one = agent(name, skills, recent, constraints=constraints, assigned=assigned)
        kept.update(one, NOW)
        latest[name] = one
        for wish in wishes:
            assert kept.rank(wish) == AgentRanker(latest.values(), NOW).rank(wish)


@proves("CCOS-ROSTER")
def test_ranking_is_correct_beyond_the_order_cache() -> None:
    roster = AgentRanker([agent("a", constraints=("c1",)), agent("b")], NOW)
    for number in (*range(200), 1):
        found = roster.rank(Requirements(GOAL, (f"c{number}",)))
        assert [one.agent for one in found] == ["a", "b"]
