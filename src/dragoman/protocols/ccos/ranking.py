"""Who would be asked, and why: every candidate with the parts of its score, and what decides."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import fields

from dragoman.core.offers import Candidate, Parts, Trust, Wish
from dragoman.core.rules.governance import NOBODY, check_goal
from dragoman.core.rules.threshold import BASE
from dragoman.engine.operation import Facts
from dragoman.protocols.ccos import registry
from dragoman.protocols.ccos.arguments import Ranked
from dragoman.protocols.ccos.settings import Choices

PARTS: Final = tuple(field.name for field in fields(Parts))
_CLOSE: Final = 0.0001
_COMPARED: Final = 2
"""Number of eligible agents that are compared in the explanation."""
_NAMED: Final = 5
"""Number of passed-over agents that are named."""


class Weighed(Struct, frozen=True):
    """A candidate with its results, and the vetoes of governance."""

    candidate: Candidate
    trust: Trust
    samples: int
    successes: int
    reasons: tuple[str, ...]
    is_elsewhere: bool
    """True if it has an address of its own."""
    is_busy: bool
    """True if all its slots are in use."""


def rank(asked: Ranked, facts: Facts, choices: Choices) -> dict[str, Any]:
    """Answer `ccos.rank`."""
    now = facts.now()
    wish = Wish(asked.goal, asked.constraints, asked.skills, choices.patience_ms)
    ranked = facts.registry.rank(wish, now, choices.policy)
    forbidden = check_goal(asked.goal, choices.policy, (*asked.constraints, *asked.skills))
    weigh = partial(_weighed, wish=wish, facts=facts, choices=choices, now=now)
    end = asked.after + asked.limit
    shown = [weigh(one) for one in ranked[asked.after : end]]
    # The chosen agent is searched among all, even if only a page is shown.
    before, behind = map(weigh, ranked[: asked.after]), map(weigh, ranked[end:])
    able = () if forbidden else _in_turn(_able(chain(before, shown, behind)))
    if able and able[0].candidate in ranked[end:]:
        shown.append(able[0])
    return {
        "goal": asked.goal,
        "candidates": [_row(one, facts, choices) for one in shown],
        "threshold": BASE,
        "of": len(ranked),
        "chosen": able[0].candidate.agent if able else None,
        "why": forbidden or _why(able, [one.agent for one in ranked]),
    } | ({"next": end} if end < len(ranked) else {})


def _able(candidates: Iterable[Weighed]) -> Iterator[Weighed]:
    return (one for one in candidates if not one.reasons)


def _in_turn(able: Iterable[Weighed]) -> tuple[Weighed, ...]:
    """First eligible agents in the order of assignment: those with a free slot first."""
    free, busy = list[Weighed](), list[Weighed]()
    for one in able:
        (busy if one.is_busy else free).append(one)
        if len(free) == _COMPARED:
            break
    return (*free, *busy)


def _weighed(candidate: Candidate, wish: Wish, facts: Facts, choices: Choices, now: int) -> Weighed:
    standing = facts.registry.standing(candidate.agent, now)
    reasons = facts.registry.vetoes(candidate, wish, choices.policy, now)
    successes, failures = (standing.successes, standing.failures) if standing else (0, 0)
    descriptor = standing.descriptor if standing else None
    trust = descriptor.trust if descriptor else "T0"
    is_elsewhere = descriptor is not None and bool(descriptor.reach)
    most = choices.called.get(candidate.agent, 0)
    is_busy = standing is not None and standing.has_its_hands_full(most)
    samples = successes + failures
    return Weighed(candidate, trust, samples, successes, reasons, is_elsewhere, is_busy)


def _row(one: Weighed, facts: Facts, choices: Choices) -> dict[str, Any]:
    candidate = one.candidate
    told = {
        "agent_id": candidate.agent,
        "trust": one.trust,
        "score": candidate.score,
        "parts": {name: getattr(candidate.parts, name) for name in PARTS},
        "threshold": candidate.threshold,
        "matched": list(candidate.matched),
        "results": one.samples,
        "successes": one.successes,
        "eligible": not one.reasons,
        "reasons": list(one.reasons),
    }
    remark = registry.remark(candidate.agent, facts, choices) if one.is_elsewhere else ""
    return told | ({"remark": remark} if remark else {})


def _why(able: Sequence[Weighed], ranked: Sequence[str]) -> str:
    if not ranked:
        return NOBODY
    if not able:
        return "governance has something against all of them"
    first = able[0].candidate
    ahead = ranked[: ranked.index(first.agent)]
    passed_over = [one.candidate.agent for one in able if one.candidate.agent in ahead]
    if passed_over:
        return _busy(first.agent, passed_over[0])
    more = f" and {len(ahead) - _NAMED} others" if len(ahead) > _NAMED else ""
    names = ", ".join(ahead[:_NAMED]) + more
    better = f"; {names} would score more, but may not have it" if ahead else ""
    if len(able) == 1 and first.score - first.parts.turn < first.threshold:
        return (
            f"{first.agent} is tried with one piece of work, by the turn that it has although it "
            "scores below its threshold: nobody else may have it"
        )
    if len(able) == 1:
        return f"{first.agent} is the only one that may have it{better}"
    second = able[1].candidate
    lead = first.score - second.score
    if lead < _CLOSE:
        return f"{first.agent} and {second.agent} score the same, and ties go by name{better}"
    gained = sorted(
        ((getattr(first.parts, part) - getattr(second.parts, part), part) for part in PARTS),
        reverse=True,
    )
    by = ", ".join(f"{part} +{gain:.2f}" for gain, part in gained if gain >= _CLOSE)
    return f"{first.agent} is {lead:.2f} ahead of {second.agent}: {by}{better}"


def _busy(free: str, busy: str) -> str:
    return (
        f"{free} has a hand free, and {busy}, who would score more, works on all that it does at a "
        f"time ([agents.{busy}] concurrency)"
    )
