"""Who would be asked, and why: every candidate with the parts of its score, and what decides."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import fields

from dragoman.core.offers import Candidate, Requirements, ScoreParts, Trust
from dragoman.core.rules.governance import NO_AGENTS, forbidden_goal_reason
from dragoman.core.rules.threshold import BASE_THRESHOLD
from dragoman.engine.operation import Facts
from dragoman.protocols.ccos import registry
from dragoman.protocols.ccos.arguments import RankQuery
from dragoman.protocols.ccos.settings import Choices

PARTS: Final = tuple(field.name for field in fields(ScoreParts))
_MIN_SHOWN_GAIN: Final = 0.0001
_MAX_COMPARED: Final = 2
"""Number of eligible agents that are compared in the explanation."""
_MAX_NAMED: Final = 5
"""Number of passed-over agents that are named."""


class RankedAgent(Struct, frozen=True):
    """A candidate with its results, and the vetoes of governance."""

    candidate: Candidate
    trust: Trust
    samples: int
    successes: int
    reasons: tuple[str, ...]
    has_address: bool
    """True if it has an address of its own."""
    is_busy: bool
    """True if all its slots are in use."""


def query_ranking(args: RankQuery, facts: Facts, choices: Choices) -> dict[str, Any]:
    """Answer `ccos.rank`."""
    now = facts.now()
    requirements = Requirements(args.goal, args.constraints, args.skills, choices.patience_ms)
    ranked = facts.registry.rank(requirements, now, choices.policy)
    forbidden = forbidden_goal_reason(args.goal, choices.policy, (*args.constraints, *args.skills))
    rank_agent = partial(_rank_agent, wish=requirements, facts=facts, choices=choices, now=now)
    end = args.after + args.limit
    shown = [rank_agent(one) for one in ranked[args.after : end]]
    # The chosen agent is searched among all, even if only a page is shown.
    before, behind = map(rank_agent, ranked[: args.after]), map(rank_agent, ranked[end:])
    eligible = () if forbidden else _free_first(_eligible(chain(before, shown, behind)))
    if eligible and eligible[0].candidate in ranked[end:]:
        shown.append(eligible[0])
    return {
        "goal": args.goal,
        "candidates": [_candidate_row(one, facts, choices) for one in shown],
        "threshold": BASE_THRESHOLD,
        "of": len(ranked),
        "chosen": eligible[0].candidate.agent if eligible else None,
        "why": forbidden or _explain_choice(eligible, [one.agent for one in ranked]),
    } | ({"next": end} if end < len(ranked) else {})


def _eligible(candidates: Iterable[RankedAgent]) -> Iterator[RankedAgent]:
    return (one for one in candidates if not one.reasons)


def _free_first(eligible: Iterable[RankedAgent]) -> tuple[RankedAgent, ...]:
    """First eligible agents in the order of assignment: those with a free slot first."""
    free, busy = list[RankedAgent](), list[RankedAgent]()
    for one in eligible:
        (busy if one.is_busy else free).append(one)
        if len(free) == _MAX_COMPARED:
            break
    return (*free, *busy)


def _rank_agent(
    candidate: Candidate, wish: Requirements, facts: Facts, choices: Choices, now: int
) -> RankedAgent:
    reputation = facts.registry.standing(candidate.agent, now)
    reasons = facts.registry.vetoes(candidate, wish, choices.policy, now)
    successes, failures = (reputation.successes, reputation.failures) if reputation else (0, 0)
    descriptor = reputation.descriptor if reputation else None
    trust = descriptor.trust if descriptor else "T0"
    has_address = descriptor is not None and bool(descriptor.reach)
    most = choices.concurrency.get(candidate.agent, 0)
    is_busy = reputation is not None and reputation.is_at_capacity(most)
    samples = successes + failures
    return RankedAgent(candidate, trust, samples, successes, reasons, has_address, is_busy)


def _candidate_row(one: RankedAgent, facts: Facts, choices: Choices) -> dict[str, Any]:
    candidate = one.candidate
    row = {
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
    remark = (
        registry.reachability_warning(candidate.agent, facts, choices) if one.has_address else ""
    )
    return row | ({"remark": remark} if remark else {})


def _explain_choice(eligible: Sequence[RankedAgent], ranked: Sequence[str]) -> str:
    if not ranked:
        return NO_AGENTS
    if not eligible:
        return "governance has something against all of them"
    first = eligible[0].candidate
    ahead = ranked[: ranked.index(first.agent)]
    passed_over = [one.candidate.agent for one in eligible if one.candidate.agent in ahead]
    if passed_over:
        return _explain_busy(first.agent, passed_over[0])
    more = f" and {len(ahead) - _MAX_NAMED} others" if len(ahead) > _MAX_NAMED else ""
    names = ", ".join(ahead[:_MAX_NAMED]) + more
    better = f"; {names} would score more, but may not have it" if ahead else ""
    if len(eligible) == 1 and first.score - first.parts.turn < first.threshold:
        return (
            f"{first.agent} is tried with one piece of work, by the turn that it has although it "
            "scores below its threshold: nobody else may have it"
        )
    if len(eligible) == 1:
        return f"{first.agent} is the only one that may have it{better}"
    second = eligible[1].candidate
    lead = first.score - second.score
    if lead < _MIN_SHOWN_GAIN:
        return f"{first.agent} and {second.agent} score the same, and ties go by name{better}"
    gained = sorted(
        ((getattr(first.parts, part) - getattr(second.parts, part), part) for part in PARTS),
        reverse=True,
    )
    by = ", ".join(f"{part} +{gain:.2f}" for gain, part in gained if gain >= _MIN_SHOWN_GAIN)
    return f"{first.agent} is {lead:.2f} ahead of {second.agent}: {by}{better}"


def _explain_busy(free: str, busy: str) -> str:
    return (
        f"{free} has a hand free, and {busy}, who would score more, works on all that it does at a "
        f"time ([agents.{busy}] concurrency)"
    )
