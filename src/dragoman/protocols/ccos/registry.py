"""The registry as it is shown: what each agent can do, and what was learned of it."""

from typing import Any

from dragoman.core.rules.threshold import compute_threshold
from dragoman.core.states.agent import AgentRecord
from dragoman.core.states.standing import AgentDescriptor, Reputation
from dragoman.engine.operation import Facts
from dragoman.engine.reads.ask import find_agent, list_agents
from dragoman.engine.reads.intents import find_standing
from dragoman.protocols.ccos.arguments import AgentsQuery
from dragoman.protocols.ccos.settings import Choices
from dragoman.text.words import extract_words

_PAGE = 500


def query_agents(args: AgentsQuery, facts: Facts) -> Any:
    """Answer `ccos.agents`: by name, by skill, by dialect."""
    found: list[dict[str, Any]] = []
    after, now = args.after, facts.now()
    while page := list_agents(facts.store, after, _PAGE):
        for record in page:
            after = record.name
            reputation = find_standing(facts.store, record.name)
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
    reputation = find_standing(facts.store, name)
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
