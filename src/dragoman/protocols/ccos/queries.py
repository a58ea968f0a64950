"""Queries of the dialect: intents and their causal chains, the ranking, the registry."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import Struct

from dragoman.core.agent import AgentDescriptor, AgentRecord, Reputation, Trust
from dragoman.core.errors import Refusal
from dragoman.core.ids import intent_stream
from dragoman.core.intent.candidate import Candidate, Requirements
from dragoman.core.intent.governance import NO_AGENTS, forbidden_goal_reason
from dragoman.core.intent.scoring import BASE_THRESHOLD, compute_threshold
from dragoman.core.intent.state import Intent, intent_list_keys
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.operation import Facts, fault_from_refusal
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.queries.agents import find_agent, find_reputation, list_agents
from dragoman.engine.queries.entries import stream_entries
from dragoman.engine.queries.intents import IntentItem, find_intent, is_cancelled, list_intents
from dragoman.protocols.ccos.render import (
    Action,
    action_tree,
    iter_actions,
    render_entry,
    summarize_action,
)
from dragoman.protocols.ccos.settings import Choices
from dragoman.protocols.ccos.task_request import find_open_request
from dragoman.protocols.ccos.wire import (
    AgentsQuery,
    IntentQuery,
    IntentsQuery,
    RankQuery,
    WhyQuery,
    as_value,
)
from dragoman.text.search_terms import extract_words

# --- intents and their causal chains ----------------------------------------------------------

_PAGE: Final = 100

_MAX_SCANNED: Final = 20_000
"""Number of intents that are scanned for one page."""


def query_why(args: WhyQuery, facts: Facts) -> Any:
    """Answer `ccos.why`: the causal chain as a tree; long chunks only by their size."""
    intent = find_intent(facts.store, args.intent_id)
    if isinstance(intent, Refusal):
        return fault_from_refusal(intent, "intent_id")
    count = _chain_length(facts.store, intent.id)
    answer = {
        "intent_id": intent.id,
        "goal": intent.goal,
        "state": intent.state,
        **({"cancelled": True} if is_cancelled(facts.store, intent) else {}),
        "count": count,
        "actions": action_tree(islice(_intent_actions(facts.store, intent.id), args.limit)),
    }
    return answer | ({"more": True} if count > args.limit else {})


def query_intent(args: IntentQuery, facts: Facts) -> Any:
    """Answer `ccos.intent`: the state of an intent, and its history."""
    intent = find_intent(facts.store, args.intent_id)
    if isinstance(intent, Refusal):
        return fault_from_refusal(intent, "intent_id")
    page = list(islice(_intent_actions(facts.store, intent.id, args.after), args.limit))
    end = args.after + len(page)
    more = {"next": end} if end < _chain_length(facts.store, intent.id) else {}
    view = intent_view(facts.store, intent) | _last_result(facts.store, intent)
    return view | {"history": [_history_row(one) for one in page]} | more


def _last_result(store: Store, intent: Intent) -> dict[str, Any]:
    """Result of the last request, with its output if policy stores it."""
    if not any(not one.is_superseded for one in intent.closed):
        return {}
    action = next(one for one in _iter_backwards(store, intent.id) if one.type == "TaskCompleted")
    completed: dict[str, Any] = msgspec.to_builtins(action)
    fields = ("agent_id", "request_id", "success", "error", "duration_ms", "at")
    result = {name: completed[name] for name in fields if name in completed}
    details = completed.get("details", {})
    # What the agent adds stands apart, so that it is not taken for the hub's own word.
    fields = ("output", "synthetic", "left_out", "digest", "extra_fields")
    return {"result": result | {name: details[name] for name in fields if name in details}}


def _iter_backwards(store: Store, intent: str) -> Iterator[Action]:
    """Actions of an intent from the last one on, without their parents."""
    stream, after = intent_stream(intent), _chain_length(store, intent)
    while after > 0:
        after, until = max(after - _PAGE, 0), after
        yield from map(render_entry, reversed(store.history(stream, after, until - after)))


def query_intents(args: IntentsQuery, facts: Facts) -> Any:
    """Answer `ccos.intents`: a page of the intents that match all filters, the oldest first."""
    filters = (("follows", args.follows), ("plan", args.plan_id), ("delegated", args.agent_id))
    lists = [f"{kind}:{name}" for kind, name in filters if name]
    wanted = lists + ["intents:open"] * args.open or ["intents"]
    rows: list[dict[str, Any]] = []
    last = args.after
    # Go through the list that is probably the shortest.
    for looked_at, placed in enumerate(_iter_list(facts.store, wanted[0], args.after)):
        fits = set(wanted) <= set(intent_list_keys(placed.intent))
        if looked_at == _MAX_SCANNED or (fits and len(rows) == args.limit):
            return {"intents": rows, "next": last}
        if fits:
            rows.append(intent_view(facts.store, placed.intent))
        last = placed.position
    return {"intents": rows}


def _iter_list(store: Store, list_: str, after: int) -> Iterator[IntentItem]:
    """All intents on a list, page by page."""
    while page := list_intents(store, ListQuery(list_, after, limit=_PAGE)):
        yield from page
        after = page[-1].position


def intent_view(store: Store, intent: Intent) -> dict[str, Any]:
    """State of an intent, for a reply."""
    request = find_open_request(store, intent)
    view: dict[str, Any] = {
        "intent_id": intent.id,
        "state": intent.state,
        "goal": intent.goal,
        "task_id": intent.task,
        "by": intent.by,
        "created_at": to_rfc3339(intent.created_at),
        "requests": intent.requests,
        "tried": list(intent.agents),
        "updates": intent.updates,
        "anomalies": intent.anomalies,
    }
    optional = {
        "cancelled": is_cancelled(store, intent),
        "request": None if request is None else as_value(request),
        "plan_id": intent.plan,
        "follows": intent.follows,
        "reasons": list(intent.reasons),
    }
    return view | {name: value for name, value in optional.items() if value}


def _history_row(action: Action) -> dict[str, Any]:
    """An Action as a row of a history: named by the state that it led to."""
    row = summarize_action(action)
    row["state"] = row["type"]
    for known in ("intent_id", "hash"):
        row.pop(known)
    return row


def _intent_actions(store: Store, intent: str, after: int = 0) -> Iterator[Action]:
    return iter_actions(intent, stream_entries(store, intent_stream(intent)), after)


def _chain_length(store: Store, intent: str) -> int:
    """Number of entries in its chain."""
    row = store.stream(intent_stream(intent))
    return 0 if row is None else row.version


# --- ranking ----------------------------------------------------------------------------------

_NOBODY: Final = "governance has something against all of them"


def query_ranking(args: RankQuery, facts: Facts, choices: Choices) -> dict[str, Any]:
    """Answer `ccos.rank`: a page of the candidates, and who would be chosen of all."""
    now = facts.now()
    requirements = Requirements(args.goal, args.constraints, args.skills, choices.patience_ms)
    ranked = facts.registry.rank(requirements, now, choices.policy)
    forbidden = forbidden_goal_reason(args.goal, choices.policy, (*args.constraints, *args.skills))
    rank_agent = partial(_rank_agent, wish=requirements, facts=facts, choices=choices, now=now)
    end = args.after + args.limit
    chosen = None if forbidden else _first_eligible(map(rank_agent, ranked))
    return {
        "goal": args.goal,
        "candidates": [
            _candidate_row(rank_agent(one), facts, choices) for one in ranked[args.after : end]
        ],
        "threshold": BASE_THRESHOLD,
        "of": len(ranked),
        "chosen": chosen,
        "why": forbidden or (_NOBODY if ranked else NO_AGENTS) if chosen is None else "",
    } | ({"next": end} if end < len(ranked) else {})


def _first_eligible(candidates: Iterable["RankedAgent"]) -> str | None:
    """The agent that would be chosen: the first with a free slot, else the first that is busy."""
    busy: str | None = None
    for one in candidates:
        if not one.reasons and not one.is_busy:
            return one.candidate.agent
        busy = busy or (None if one.reasons else one.candidate.agent)
    return busy


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
        "parts": msgspec.to_builtins(candidate.parts),
        "threshold": candidate.threshold,
        "matched": list(candidate.matched),
        "results": one.samples,
        "successes": one.successes,
        "eligible": not one.reasons,
        "reasons": list(one.reasons),
    }
    remark = reachability_warning(candidate.agent, facts, choices) if one.has_address else ""
    return row | ({"remark": remark} if remark else {})


# --- registry ---------------------------------------------------------------------------------


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
    return knows and args.speaks in (None, *record.dialects)


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
        f"nothing reaches {name}: only its address is known ({descriptor.reach}). Give it a token "
        f"(`dragoman agent token {name}`) so that it asks for its requests, or set "
        f"[agents.{name}] url so that they are posted to it"
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
