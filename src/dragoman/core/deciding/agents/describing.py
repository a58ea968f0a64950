"""Decider of the registry: what an agent can do, on which terms, and whose word counts for that."""

from collections.abc import Iterator
from math import isfinite

import msgspec
from msgspec.structs import replace

from dragoman.core import missing
from dragoman.core.actors import Actor
from dragoman.core.authority import MAY_REGISTER
from dragoman.core.commands import DescribeAgent
from dragoman.core.errors import Refusal
from dragoman.core.events import AgentDescribed
from dragoman.core.ids import check_agent, reputation_stream
from dragoman.core.limits import (
    MAX_OPEN_REQUESTS,
    MAX_PRICE,
    MAX_REASON,
    WAIT_RANGE_MS,
    check_range,
    check_text,
    iter_skill_faults,
)
from dragoman.core.offers import TIERS, Trust
from dragoman.core.reading import Decision, Read, Receipt
from dragoman.core.rules.scoring import significant_words
from dragoman.core.states.agent import AgentRecord
from dragoman.core.states.standing import AgentDescriptor, Reputation


def decide_describe_agent(command: DescribeAgent, read: Read, now: int) -> Decision | Refusal:
    """Describe an agent's capabilities, or change them. The same again is a no-op."""
    del now
    refusal = next(filter(None, _iter_description_faults(command)), None)
    if refusal:
        return refusal
    known = read.agent(command.name)
    refusal = _check_describer(command.name, known, read.actor)
    if refusal:
        return refusal
    reputation = read.standing(command.name)
    descriptor = AgentDescriptor(
        tuple(dict.fromkeys(command.skills)),
        tuple(dict.fromkeys(command.constraints)),
        tuple(dict.fromkeys(command.locality)),
        _granted_trust(command.trust, reputation, read.actor),
        float(command.cost),  # an int would be read back as another number than was stored
        command.latency_ms,
        command.capacity,
        command.reach,
    )
    if read.actor.role == "agent" and reputation is not None and reputation.descriptor is not None:
        descriptor = _restrict_to_known(descriptor, reputation.descriptor)
    receipt = Receipt("", None, stream=reputation_stream(command.name))
    if reputation is not None and reputation.descriptor == descriptor:
        return Decision(receipt)
    event = AgentDescribed(command.name, *msgspec.structs.astuple(descriptor))
    return Decision(receipt, ((reputation_stream(command.name), event),))


def _granted_trust(requested: Trust | None, reputation: Reputation | None, actor: Actor) -> Trust:
    """Tier that the caller may give: an agent's own word never raises what it has."""
    current = reputation.descriptor.trust if reputation and reputation.descriptor else None
    if actor.role != "agent":
        return requested or current or "T1"
    own: Trust = current or "T0"
    return own if requested is None else TIERS[min(TIERS.index(requested), TIERS.index(own))]


def _restrict_to_known(claimed: AgentDescriptor, known: AgentDescriptor) -> AgentDescriptor:
    """Restrict what an agent claims about itself to what was vouched for.

    Governance rests on these terms: the agent may tighten them, others loosen them. At T0 nobody
    vouches for anything, and its word is all there is.
    """
    if claimed.trust == "T0":
        return claimed
    capacities = [most for most in (claimed.capacity, known.capacity) if most]
    return replace(
        claimed,
        skills=_intersect(claimed.skills, known.skills) or known.skills,
        constraints=_intersect(claimed.constraints or known.constraints, known.constraints),
        locality=_intersect(claimed.locality or known.locality, known.locality),
        cost=max(claimed.cost, known.cost),
        latency_ms=max(claimed.latency_ms, known.latency_ms),
        capacity=min(capacities, default=0),
    )


def _intersect(claimed: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one for one in claimed if one in known)


def _check_describer(name: str, known: AgentRecord | None, actor: Actor) -> Refusal | None:
    if known is None:
        return missing.agent(name)
    if actor.role == "agent" and actor.name != name:
        return Refusal("not_authorized", f"{actor.label} may describe itself only, not {name}")
    if known.role not in MAY_REGISTER[actor.role]:
        return Refusal(
            "not_authorized", f"{actor.label} may not describe {name}, whose role is {known.role}"
        )
    return None


def _iter_description_faults(command: DescribeAgent) -> Iterator[Refusal | None]:
    yield check_agent(command.name, "name")
    if not command.skills:
        yield Refusal("invalid_field", "skills is empty; name at least one", path="skills")
    for field in ("skills", "constraints", "locality"):
        yield from iter_skill_faults(field, getattr(command, field))
    for index, skill in enumerate(command.skills):
        if not significant_words(skill):
            detail = f"the skill {skill[:40]!a} says nothing: name a subject"
            yield Refusal("invalid_field", detail, path=f"skills[{index}]")
    if not (isfinite(command.cost) and 0 <= command.cost <= MAX_PRICE):
        detail = f"cost is {command.cost}; it must be from 0 to {MAX_PRICE:g}"
        yield Refusal("invalid_field", detail, path="cost")
    yield check_range("latency_ms", command.latency_ms, 0, WAIT_RANGE_MS[1])
    yield check_range("capacity", command.capacity, 0, MAX_OPEN_REQUESTS)
    yield check_text("reach", command.reach, MAX_REASON)
