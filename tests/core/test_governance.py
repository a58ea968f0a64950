"""Governance: every rule, for and against, with the reason that it gives."""

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.agent import AgentDescriptor, AgentRecord, Pause, Reputation
from dragoman.core.base import Role
from dragoman.core.intent.candidate import Candidate, Policy, Requirements, ScoreParts
from dragoman.core.intent.governance import (
    GOVERNANCE_RULES,
    agent_visible_texts,
    find_vetoes,
    forbidden_goal_reason,
)
from dragoman.core.intent.state import Intent
from tests.core.world import NOW
from tests.core.world import task as make_task
from tests.requirements import proves

pytestmark = proves("CCOS-GOVERNANCE")

DESCRIPTOR = AgentDescriptor(("python",), locality=("EU",), trust="T1", cost=2, latency_ms=5_000)
RECORD = AgentRecord("a", "agent", (), NOW)
NO_POLICY, PYTHON = Policy(), Requirements("python")
FIT = Candidate("a", 0.7, ScoreParts(0.7), 0.3, ("python",))


def veto_text(
    policy: Policy = NO_POLICY,
    wish: Requirements = PYTHON,
    candidate: Candidate = FIT,
    pause: Pause | None = None,
    role: Role = "agent",
    **terms: Any,
) -> str:
    """Reasons against agent a; empty if there are none."""
    reputation = Reputation("a", replace(DESCRIPTOR, **terms), open=1)
    record = replace(RECORD, pause=pause, role=role)
    return "; ".join(find_vetoes(candidate, reputation, record, wish, policy, NOW))


CASES: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("all fits", {}, ""),
    ("score at its threshold", {"candidate": replace(FIT, score=0.3)}, ""),
    (
        "score below it",
        {"candidate": replace(FIT, score=0.2)},
        "threshold: it scores 0.2, below its threshold of 0.3",
    ),
    (
        "no skill",
        {"candidate": replace(FIT, matched=())},
        "capability: the goal names none of its skills",
    ),
    ("requested skill", {"wish": Requirements("x", skills=("Python",))}, ""),
    ("missing skill", {"wish": Requirements("x", skills=("rust",))}, "capability: it lacks rust"),
    (
        "required skill",
        {"policy": Policy(required_skills=("audited",))},
        "capability: it lacks audited",
    ),
    ("trusted enough", {"policy": Policy(trust_floor="T1")}, ""),
    (
        "not trusted enough",
        {"policy": Policy(trust_floor="T2")},
        "trust: it has T1, and T2 is the least",
    ),
    ("cheap enough", {"policy": Policy(cost_ceiling=2)}, ""),
    (
        "too expensive",
        {"policy": Policy(cost_ceiling=1.5)},
        "cost: it costs 2, and 1.5 is the most",
    ),
    ("free", {"policy": Policy(cost_ceiling=0), "cost": 0.0}, ""),
    ("allowed locality", {"policy": Policy(data_locality=("eu", "ch"))}, ""),
    (
        "another locality",
        {"policy": Policy(data_locality=("ch",))},
        "data locality: it works in eu, and data stays in ch",
    ),
    (
        "one of two localities outside",
        {"policy": Policy(data_locality=("eu",)), "locality": ("eu", "us")},
        "data locality: it works in eu, us, and data stays in eu",
    ),
    (
        "unknown locality",
        {"policy": Policy(data_locality=("eu",)), "locality": ()},
        "data locality: it works in places that it does not name, and data stays in eu",
    ),
    ("requested locality", {"wish": Requirements("x", ("Locality:EU",))}, ""),
    (
        "another requested locality",
        {"wish": Requirements("x", ("locality:us", "fast"))},
        "data locality: it works in eu, and us was asked for",
    ),
    ("free capacity", {"capacity": 2}, ""),
    ("full", {"capacity": 1}, "capacity: it has 1 open request and takes 1"),
    ("pause over", {"pause": Pause("x", NOW - 2, NOW)}, ""),
    ("paused", {"pause": Pause("broken", NOW)}, "availability: it is paused: broken"),
    (
        "paused for a time",
        {"pause": Pause("tired", NOW, NOW + 1_000)},
        "availability: it is paused until 2026-02-09T14:30:01.000Z: tired",
    ),
    (
        "read-only role",
        {"role": "observer"},
        "availability: a is registered as observer, which may only read",
    ),
    ("fast enough", {"wish": Requirements("x", patience_ms=5_000)}, ""),
    (
        "too slow",
        {"wish": Requirements("x", patience_ms=4_000)},
        "latency: it takes 5s, and there are 4s",
    ),
)


@pytest.mark.parametrize(("case", "fields", "expected"), CASES, ids=[case for case, _, _ in CASES])
def test_rule_gives_its_reason(case: str, fields: dict[str, Any], expected: str) -> None:
    del case
    assert veto_text(**fields) == expected


def test_cases_cover_every_rule() -> None:
    rules_seen = {expected.partition(":")[0] for _, _, expected in CASES if expected}
    assert rules_seen == set(GOVERNANCE_RULES)


def test_all_reasons_are_listed() -> None:
    reasons = veto_text(Policy(cost_ceiling=1, trust_floor="T2"), capacity=1)
    assert reasons.count("; ") == 2


@pytest.mark.parametrize("reputation", [None, Reputation("a", DESCRIPTOR)])
def test_unregistered_agent_is_vetoed(reputation: Reputation | None) -> None:
    reasons = find_vetoes(FIT, reputation, None, Requirements("x"), Policy(), NOW)
    assert reasons == ("unknown: nobody in the registry is called a",)


@pytest.mark.parametrize("reputation", [None, Reputation("a")])
def test_agent_without_capabilities_is_vetoed_with_remedy(
    reputation: Reputation | None,
) -> None:
    reasons = find_vetoes(FIT, reputation, RECORD, Requirements("x"), Policy(), NOW)
    assert reasons == (
        "unknown: nobody has said what a can do; say it with `dragoman agent add a --skill SKILL`",
    )


@pytest.mark.parametrize(
    ("goal", "is_forbidden"),
    [
        ("Delete production data now", True),
        ("DELETE  production-data", True),
        ("ｄｅｌｅｔｅ production data", True),
        ("delete the production data", False),
        ("undelete production data", False),
        ("wipe", True),
        ("wiper", False),
        ("", False),
        ("d\u200belete production\u200b data", True),
        ("de\u00adlete production da\u034fta", True),
        ("delete\u2028production data", True),
        ("the " * 300 + "delete production data", True),
        ("delete a heart \u2764\ufe0f, swiper", False),
        ("de\u00adlete it", False),
    ],
)
def test_forbidden_goal_is_found_by_whole_words(goal: str, is_forbidden: bool) -> None:
    policy = Policy(forbidden_goals=("delete production data", "wipe", "?!"))
    assert (forbidden_goal_reason(goal, policy) is not None) == is_forbidden


@pytest.mark.parametrize(
    ("intent_fields", "task_fields", "is_forbidden"),
    [
        ({"params": {"text": "please wipe it"}}, {}, True),
        ({"params": {"a": [1, None, {"wipe": True}]}}, {}, True),
        ({"params": {"a": ["swiper", 1.5]}}, {}, False),
        ({"constraints": ("formal", "wipe it")}, {}, True),
        ({"skills": ("disk wipe",)}, {}, True),
        ({}, {"title": "Wipe the disk"}, True),
        ({}, {"body": "then wipe the disk"}, True),
    ],
)
def test_forbidden_words_are_found_in_params_constraints_skills_and_task(
    intent_fields: dict[str, Any], task_fields: dict[str, Any], is_forbidden: bool
) -> None:
    intent = Intent("i", "t", "clean up", "ann", NOW, **intent_fields)
    other_text = agent_visible_texts(intent, replace(make_task(), **task_fields))
    veto = forbidden_goal_reason("clean up", Policy(forbidden_goals=("wipe",)), other_text)
    assert veto == ("forbidden goal: it comes with the words 'wipe'" if is_forbidden else None)
