"""Governance: whether a goal may be delegated at all, and whether to this agent (S-CCOS-4).

Every check is a pure function that gives the reason why not, or nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from dragoman.core.authority import why_no_holder
from dragoman.core.moments import duration, to_rfc3339
from dragoman.core.offers import PLACE, TIERS, Candidate, Parts, Policy, Wish
from dragoman.core.states.agent import AgentRecord
from dragoman.core.states.intent import Intent
from dragoman.core.states.standing import Descriptor, Standing
from dragoman.core.states.task import Task
from dragoman.text.lookalikes import Seen, seen
from dragoman.text.words import Words, words_of


class Case(Struct, frozen=True):
    """One agent as a candidate for one piece of work."""

    candidate: Candidate
    standing: Standing
    descriptor: Descriptor
    record: AgentRecord
    wish: Wish
    policy: Policy
    now: int


Rules = dict[str, Callable[[Case], str | None]]

FORBIDDEN_GOAL: Final = "forbidden goal"
"""First rule: it is about the texts, whichever agent would get them."""

NOBODY: Final = (
    "nobody in the registry has said what it can do: `dragoman agent add NAME --skill SKILL`"
)
"""Reason if the registry has no agent with skills."""


def check_goal(goal: str, policy: Policy, beside: Iterable[str] = ()) -> str | None:
    """Reason why nobody may be given this goal, or the other texts that its agent would see; None:
    no veto.
    """
    if not policy.forbidden_goals:
        return None
    by_first_word = _phrases(policy.forbidden_goals)
    for text, what in chain(((goal, "it has"),), ((one, "it comes with") for one in beside)):
        found = _found(seen(text), by_first_word)
        if found:
            return f"{FORBIDDEN_GOAL}: {what} the words {' '.join(found)!r}"
    return None


def told_beside(intent: Intent, task: Task, more: object = ()) -> Iterator[str]:
    """All texts that an agent would see besides the goal: the intent's arguments, the task's texts,
    and `extra`.
    """
    asked = [intent.params, intent.constraints, intent.skills, intent.passed_on]
    others = msgspec.to_builtins((task.delegation, task.checkpoint))
    return _texts([asked, task.title, task.body, others, more])


def _texts(value: Any) -> Iterator[str]:
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            pairs = cast(Mapping[object, object], one)
            left += [*pairs.keys(), *pairs.values()]
        elif isinstance(one, Sequence):
            left += cast(Sequence[object], one)


@lru_cache(maxsize=16)
def _phrases(forbidden: tuple[str, ...]) -> Mapping[str, Sequence[Words]]:
    """The phrases by their first words, split once for all goals."""
    phrases: dict[str, list[Words]] = {}
    for phrase in forbidden:
        words = seen(phrase).words
        if words:
            phrases.setdefault(words[0], []).append(words)
    return phrases


def _found(text: Seen, by_first_word: Mapping[str, Sequence[Words]]) -> Words | None:
    """Find a phrase whose words follow one another in the text, or whose letters do if some are
    hidden.
    """
    words = text.words
    for place, word in enumerate(words):
        for phrase in by_first_word.get(word, ()):
            if words[place : place + len(phrase)] == phrase:
                return phrase
    if text.letters:
        for phrase in chain.from_iterable(by_first_word.values()):
            if "".join(phrase) in text.letters:
                return phrase
    return None


def vetoes(
    candidate: Candidate,
    standing: Standing | None,
    record: AgentRecord | None,
    wish: Wish,
    policy: Policy,
    now: int,
) -> tuple[str, ...]:
    """Reasons why this agent may not be given the work; none: it may."""
    agent, descriptor = candidate.agent, None if standing is None else standing.descriptor
    if record is None:
        return (f"unknown: nobody in the registry is called {agent}",)
    if standing is None or descriptor is None:
        say = f"say it with `dragoman agent add {agent} --skill SKILL`"
        return (f"unknown: nobody has said what {agent} can do; {say}",)
    case = Case(candidate, standing, descriptor, record, wish, policy, now)
    return _reasons(RULES, case)


def against_policy(
    agent: str, standing: Standing | None, wish: Wish, policy: Policy, now: int
) -> tuple[str, ...]:
    """Reasons why the policy forbids an agent that was chosen by hand; none: it permits it.

    Rules that only tell better candidates from worse are skipped, because somebody has chosen. An
    agent that is not in the registry has claimed no skills.
    """
    known = standing or Standing(agent)
    case = Case(
        Candidate(agent, 0.0, Parts(), 0.0),
        known,
        known.descriptor or Descriptor(()),
        AgentRecord(agent, "agent", (), now),
        wish,
        policy,
        now,
    )
    return _reasons(POLICY, case)


def _reasons(rules: Rules, case: Case) -> tuple[str, ...]:
    return tuple(
        f"{rule}: {why}" for rule, check in rules.items() if (why := check(case)) is not None
    )


@lru_cache(maxsize=4_096)
def _words(skill: str) -> Words:
    return words_of(skill)


def _threshold(case: Case) -> str | None:
    candidate = case.candidate
    if candidate.is_good_enough:
        return None
    return f"it scores {candidate.score}, below its threshold of {candidate.threshold}"


def _skills(case: Case) -> str | None:
    needed = (*case.policy.required_skills, *case.wish.skills)
    if needed:
        has = set(map(_words, case.descriptor.skills))
        missing = [skill for skill in needed if _words(skill) not in has]
        if missing:
            return f"it lacks {', '.join(missing)}"
    return None


def _capability(case: Case) -> str | None:
    lacks = _skills(case)
    if lacks or case.candidate.matched:
        return lacks
    return "the goal names none of its skills"


def _trust(case: Case) -> str | None:
    has, floor = case.descriptor.trust, case.policy.trust_floor
    if TIERS.index(has) >= TIERS.index(floor):
        return None
    return f"it has {has}, and {floor} is the least"


def _cost(case: Case) -> str | None:
    costs, ceiling = case.descriptor.cost, case.policy.cost_ceiling
    if ceiling is None or costs <= ceiling:
        return None
    return f"it costs {costs:g}, and {ceiling:g} is the most"


def _locality(case: Case) -> str | None:
    works_in = frozenset(map(str.casefold, case.descriptor.locality))
    allowed = frozenset(map(str.casefold, case.policy.data_locality))
    asked = [
        constraint.casefold().removeprefix(PLACE)
        for constraint in case.wish.constraints
        if constraint.casefold().startswith(PLACE)
    ]
    if allowed and not (works_in and works_in <= allowed):
        return f"it works in {_places(works_in)}, and data stays in {_places(allowed)}"
    for place in asked:
        if works_in != frozenset((place,)):
            return f"it works in {_places(works_in)}, and {place} was asked for"
    return None


def _capacity(case: Case) -> str | None:
    has, most = case.standing.open, case.descriptor.capacity
    open_ones = "1 open request" if has == 1 else f"{has} open requests"
    return f"it has {open_ones} and takes {most}" if most and has >= most else None


def _availability(case: Case) -> str | None:
    pause = case.record.paused(case.now)
    if pause is None:
        return why_no_holder(case.record) or None
    until = "" if pause.until is None else f" until {to_rfc3339(pause.until)}"
    return f"it is paused{until}: {pause.reason}"


def _latency(case: Case) -> str | None:
    takes, may_take = case.descriptor.latency_ms, case.wish.patience_ms
    if not may_take or takes <= may_take:
        return None
    return f"it takes {duration(takes)}, and there are {duration(may_take)}"


def _places(places: frozenset[str]) -> str:
    return ", ".join(sorted(places)) or "places that it does not name"


POLICY: Final[Rules] = {
    "capability": _skills,
    "trust": _trust,
    "cost": _cost,
    "data locality": _locality,
}
"""The rules that are configured: in the settings, or with the intent."""

RULES: Final[Rules] = {
    "threshold": _threshold,
    **POLICY,
    "capability": _capability,
    "capacity": _capacity,
    "availability": _availability,
    "latency": _latency,
}
"""Rule -> check that returns the reason of a veto, or None."""
