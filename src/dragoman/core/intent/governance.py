"""Governance: may this goal be delegated at all, and may this agent have it (S-CCOS-4).

Every rule is a pure function that returns the reason of its veto, or None.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final, cast
from unicodedata import normalize

import msgspec
from msgspec import Struct

from dragoman.core.agent import TIERS, AgentDescriptor, AgentRecord, Reputation, describe_pause
from dragoman.core.authority import holder_objection
from dragoman.core.intent.candidate import (
    LOCALITY_PREFIX,
    Candidate,
    Policy,
    Requirements,
    ScoreParts,
)
from dragoman.core.intent.state import Intent
from dragoman.core.task_state import Task
from dragoman.core.timestamps import format_duration
from dragoman.text.safe_text import HARMFUL
from dragoman.text.search_terms import Words, extract_words


class Candidacy(Struct, frozen=True):
    """One agent as a candidate for one piece of work."""

    candidate: Candidate
    reputation: Reputation
    descriptor: AgentDescriptor
    record: AgentRecord
    requirements: Requirements
    policy: Policy
    now: int


_WORD: Final = re.compile(r"[^\W_]+")

RuleTable = dict[str, Callable[[Candidacy], str | None]]

FORBIDDEN_GOAL: Final = "forbidden goal"
"""First rule: it is about the texts, whichever agent would get them."""

NO_AGENTS: Final = (
    "nobody in the registry has said what it can do: `dragoman agent add NAME --skill SKILL`"
)
"""Reason if the registry has no agent with skills."""


def forbidden_goal_reason(goal: str, policy: Policy, other_texts: Iterable[str] = ()) -> str | None:
    """Reason why nobody may be given this goal, or the other texts that its agent would see; None:
    no veto.
    """
    if not policy.forbidden_goals:
        return None
    by_first_word = _phrases_by_first_word(policy.forbidden_goals)
    for text, prefix in chain(((goal, "it has"),), ((one, "it comes with") for one in other_texts)):
        found = _find_phrase(_split_words(text), by_first_word)
        if found:
            return f"{FORBIDDEN_GOAL}: {prefix} the words {' '.join(found)!r}"
    return None


def agent_visible_texts(intent: Intent, task: Task, extra: object = ()) -> Iterator[str]:
    """All texts that an agent would see besides the goal: the intent's arguments, the task's texts,
    and `extra`.
    """
    intent_parts = [intent.params, intent.constraints, intent.skills, intent.extra_fields]
    task_parts = msgspec.to_builtins((task.delegation, task.checkpoint))
    return _iter_texts([intent_parts, task.title, task.body, task_parts, extra])


def _iter_texts(value: Any) -> Iterator[str]:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            pairs = cast(Mapping[object, object], item)
            stack += [*pairs.keys(), *pairs.values()]
        elif isinstance(item, Sequence):
            stack += cast(Sequence[object], item)


@lru_cache(maxsize=16)
def _phrases_by_first_word(forbidden: tuple[str, ...]) -> Mapping[str, Sequence[Words]]:
    """The phrases by their first words, split once for all goals."""
    phrases: dict[str, list[Words]] = {}
    for phrase in forbidden:
        words = _split_words(phrase)
        if words:
            phrases.setdefault(words[0], []).append(words)
    return phrases


def _split_words(text: str) -> Words:
    """All words of a text, as they are seen: invisible characters are no part of them."""
    shown = HARMFUL.sub(lambda found: " " * found[0].isspace(), text)
    return tuple(_WORD.findall(normalize("NFKC", shown).casefold()))


def _find_phrase(words: Words, by_first_word: Mapping[str, Sequence[Words]]) -> Words | None:
    """Find a phrase whose words follow one another."""
    for index, word in enumerate(words):
        for phrase in by_first_word.get(word, ()):
            if words[index : index + len(phrase)] == phrase:
                return phrase
    return None


def find_vetoes(
    candidate: Candidate,
    reputation: Reputation | None,
    record: AgentRecord | None,
    requirements: Requirements,
    policy: Policy,
    now: int,
) -> tuple[str, ...]:
    """Reasons why this agent may not be given the work; none: it may."""
    agent, descriptor = candidate.agent, None if reputation is None else reputation.descriptor
    if record is None:
        return (f"unknown: nobody in the registry is called {agent}",)
    if reputation is None or descriptor is None:
        hint = f"say it with `dragoman agent add {agent} --skill SKILL`"
        return (f"unknown: nobody has said what {agent} can do; {hint}",)
    case = Candidacy(candidate, reputation, descriptor, record, requirements, policy, now)
    return _failed_rules(GOVERNANCE_RULES, case)


def find_policy_vetoes(
    agent: str, reputation: Reputation | None, requirements: Requirements, policy: Policy, now: int
) -> tuple[str, ...]:
    """Reasons why the policy forbids an agent that was chosen by hand; none: it permits it.

    Rules that only tell better candidates from worse are skipped, because somebody has chosen. An
    agent that is not in the registry has claimed no skills.
    """
    profile = reputation or Reputation(agent)
    case = Candidacy(
        Candidate(agent, 0.0, ScoreParts(), 0.0),
        profile,
        profile.descriptor or AgentDescriptor(()),
        AgentRecord(agent, "agent", (), now),
        requirements,
        policy,
        now,
    )
    return _failed_rules(POLICY_RULES, case)


def _failed_rules(rules: RuleTable, case: Candidacy) -> tuple[str, ...]:
    return tuple(
        f"{rule}: {reason}" for rule, check in rules.items() if (reason := check(case)) is not None
    )


@lru_cache(maxsize=4_096)
def _skill_words(skill: str) -> Words:
    return extract_words(skill)


def _veto_threshold(case: Candidacy) -> str | None:
    candidate = case.candidate
    if candidate.meets_threshold:
        return None
    return f"it scores {candidate.score}, below its threshold of {candidate.threshold}"


def _veto_skills(case: Candidacy) -> str | None:
    needed = (*case.policy.required_skills, *case.requirements.skills)
    if needed:
        has = set(map(_skill_words, case.descriptor.skills))
        missing = [skill for skill in needed if _skill_words(skill) not in has]
        if missing:
            return f"it lacks {', '.join(missing)}"
    return None


def _veto_capability(case: Candidacy) -> str | None:
    lacks = _veto_skills(case)
    if lacks or case.candidate.matched:
        return lacks
    return "the goal names none of its skills"


def _veto_trust(case: Candidacy) -> str | None:
    has, floor = case.descriptor.trust, case.policy.trust_floor
    if TIERS.index(has) >= TIERS.index(floor):
        return None
    return f"it has {has}, and {floor} is the least"


def _veto_cost(case: Candidacy) -> str | None:
    costs, ceiling = case.descriptor.cost, case.policy.cost_ceiling
    if ceiling is None or costs <= ceiling:
        return None
    return f"it costs {costs:g}, and {ceiling:g} is the most"


def _veto_locality(case: Candidacy) -> str | None:
    works_in = frozenset(map(str.casefold, case.descriptor.locality))
    allowed = frozenset(map(str.casefold, case.policy.data_locality))
    required = [
        constraint.casefold().removeprefix(LOCALITY_PREFIX)
        for constraint in case.requirements.constraints
        if constraint.casefold().startswith(LOCALITY_PREFIX)
    ]
    if allowed and not (works_in and works_in <= allowed):
        return (
            f"it works in {_format_places(works_in)}, and data stays in {_format_places(allowed)}"
        )
    for place in required:
        if works_in != frozenset((place,)):
            return f"it works in {_format_places(works_in)}, and {place} was asked for"
    return None


def _veto_capacity(case: Candidacy) -> str | None:
    has, most = case.reputation.open, case.descriptor.capacity
    open_ones = "1 open request" if has == 1 else f"{has} open requests"
    return f"it has {open_ones} and takes {most}" if most and has >= most else None


def _veto_availability(case: Candidacy) -> str | None:
    pause = case.record.active_pause(case.now)
    if pause is None:
        return holder_objection(case.record) or None
    return f"it is {describe_pause(pause.until)}: {pause.reason}"


def _veto_latency(case: Candidacy) -> str | None:
    takes, may_take = case.descriptor.latency_ms, case.requirements.patience_ms
    if not may_take or takes <= may_take:
        return None
    return f"it takes {format_duration(takes)}, and there are {format_duration(may_take)}"


def _format_places(places: frozenset[str]) -> str:
    return ", ".join(sorted(places)) or "places that it does not name"


POLICY_RULES: Final[RuleTable] = {
    "capability": _veto_skills,
    "trust": _veto_trust,
    "cost": _veto_cost,
    "data locality": _veto_locality,
}
"""The rules that are configured: in the settings, or with the intent."""

GOVERNANCE_RULES: Final[RuleTable] = {
    "threshold": _veto_threshold,
    **POLICY_RULES,
    "capability": _veto_capability,
    "capacity": _veto_capacity,
    "availability": _veto_availability,
    "latency": _veto_latency,
}
"""Rule -> check that returns the reason of a veto, or None."""
