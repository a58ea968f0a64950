"""The registry as it is shown: what each agent can do, and what was learned of it."""

from typing import Any

from dragoman.core.rules.threshold import threshold
from dragoman.core.states.agent import AgentRecord
from dragoman.core.states.standing import Descriptor, Standing
from dragoman.engine.operation import Facts
from dragoman.engine.reads.ask import find_agent, list_agents
from dragoman.engine.reads.intents import find_standing
from dragoman.protocols.ccos.arguments import Agents
from dragoman.protocols.ccos.settings import Choices
from dragoman.text.words import words_of

_PAGE = 500


def agents(asked: Agents, facts: Facts) -> Any:
    """Answer `ccos.agents`: by name, by skill, by dialect."""
    found: list[dict[str, Any]] = []
    after, now = asked.after, facts.now()
    while page := list_agents(facts.store, after, _PAGE):
        for record in page:
            after = record.name
            standing = find_standing(facts.store, record.name)
            if standing is None or not _fits(asked, record, standing):
                continue
            if len(found) == asked.limit:
                return {"agents": found, "next": found[-1]["agent_id"]}
            found.append(shown(record, standing, now))
    return {"agents": found}


def _fits(asked: Agents, record: AgentRecord, standing: Standing) -> bool:
    descriptor = standing.descriptor
    if descriptor is None:
        return False
    wanted = words_of(asked.skill)
    has = [words_of(skill) for skill in descriptor.skills]
    knows = not wanted or any(set(wanted) <= set(skill) for skill in has)
    return knows and asked.speaks in (None, *record.speaks)


def shown(record: AgentRecord, standing: Standing, now: int) -> dict[str, Any]:
    """An agent of the registry, for a reply."""
    descriptor, evidence = standing.descriptor, standing.evidence(now)
    assert descriptor is not None, "others are no part of the registry"
    return {
        "agent_id": record.name,
        **terms(descriptor),
        "speaks": list(record.speaks),
        "took_ms": standing.latency_ms,
        "open": standing.open,
        "successes": standing.successes,
        "failures": standing.failures,
        "success_at_least": round(evidence.lower, 4),
        "threshold": threshold(evidence),
        "paused": record.paused(now) is not None,
    }


def remark(name: str, facts: Facts, choices: Choices) -> str:
    """Warning that requests will not reach an agent; empty: it polls, or the hub calls it."""
    standing = find_standing(facts.store, name)
    descriptor = None if standing is None else standing.descriptor
    if name in choices.called or descriptor is None or not descriptor.reach:
        return ""
    record = find_agent(facts.store, name)
    if record is None or record.key or record.live_tokens(facts.now()):
        return ""
    return (
        f"nothing reaches {name}: only its address is known ({descriptor.reach}), and A2A is not "
        f"spoken to it. Give it a token (`dragoman agent token {name}`) so that it asks for its "
        f"requests, or set [agents.{name}] url so that they are posted to it"
    )


def terms(descriptor: Descriptor) -> dict[str, Any]:
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
