"""Ranking of agents for a goal with its explanation, and the listing of the registry."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import fields

from dragoman.core.agent import AgentDescriptor, AgentRecord, Reputation, Trust
from dragoman.core.intent.candidate import Candidate, Requirements, ScoreParts
from dragoman.core.intent.governance import NO_AGENTS, forbidden_goal_reason
from dragoman.core.intent.scoring import BASE_THRESHOLD, compute_threshold
from dragoman.engine.operation import Facts
from dragoman.engine.queries.agents import find_agent, find_reputation, list_agents
from dragoman.protocols.ccos.settings import Choices
from dragoman.protocols.ccos.wire import AgentsQuery, RankQuery
from dragoman.text.search_terms import extract_words

# --- ranking ----------------------------------------------------------------------------------

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
    reputation = facts.registry.reputation(candidate.agent, now)
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
    remark = reachability_warning(candidate.agent, facts, choices) if one.has_address else ""
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


# --- registry ---------------------------------------------------------------------------------

_PAGE = 500


def query_agents(args: AgentsQuery, facts: Facts) -> Any:
    """Answer `ccos.agents`: by name, by skill, by dialect."""
    found: list[dict[str, Any]] = []
    after, now = args.after, facts.now()
    while page := list_agents(facts.store, after, _PAGE):
        for record in page:
            after = record.name
            reputation = find_reputation(facts.store, record.name)
            if reputation is None or not _agent_matches(args, record, reputation):
                continue
            if len(found) == args.limit:
                return {"agents": found, "next": found[-1]["agent_id"]}
            found.append(agent_view(record, reputation, now))
    return {"agents": found}


def _agent_matches(args: AgentsQuery, record: AgentRecord, reputation: Reputation) -> bool:
    descriptor = reputation.descriptor
    if descriptor is None:
        return False
    wanted = extract_words(args.skill)
    has = [extract_words(skill) for skill in descriptor.skills]
    knows = not wanted or any(set(wanted) <= set(skill) for skill in has)
    return knows and args.speaks in (None, *record.speaks)


def agent_view(record: AgentRecord, reputation: Reputation, now: int) -> dict[str, Any]:
    """An agent of the registry, for a reply."""
    descriptor, evidence = reputation.descriptor, reputation.evidence(now)
    assert descriptor is not None, "others are no part of the registry"
    return {
        "agent_id": record.name,
        **agent_terms(descriptor),
        "speaks": list(record.speaks),
        "took_ms": reputation.latency_ms,
        "open": reputation.open,
        "successes": reputation.successes,
        "failures": reputation.failures,
        "success_at_least": round(evidence.lower_bound, 4),
        "threshold": compute_threshold(evidence),
        "paused": record.active_pause(now) is not None,
    }


def reachability_warning(name: str, facts: Facts, choices: Choices) -> str:
    """Warning that requests will not reach an agent; empty: it polls, or the hub calls it."""
    reputation = find_reputation(facts.store, name)
    descriptor = None if reputation is None else reputation.descriptor
    if name in choices.concurrency or descriptor is None or not descriptor.reach:
        return ""
    record = find_agent(facts.store, name)
    if record is None or record.key or record.valid_tokens(facts.now()):
        return ""
    return (
        f"nothing reaches {name}: only its address is known ({descriptor.reach}), and A2A is not "
        f"spoken to it. Give it a token (`dragoman agent token {name}`) so that it asks for its "
        f"requests, or set [agents.{name}] url so that they are posted to it"
    )


def agent_terms(descriptor: AgentDescriptor) -> dict[str, Any]:
    """Skills and terms of an agent, for a reply."""
    return {
        "skills": list(descriptor.skills),
        "constraints": list(descriptor.constraints),
        "locality": list(descriptor.locality),
        "trust": descriptor.trust,
        "cost": descriptor.cost,
        "latency_ms": descriptor.latency_ms,
        "capacity": descriptor.capacity,
        "reach": descriptor.reach,
    }
