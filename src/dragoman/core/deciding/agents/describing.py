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
from dragoman.core.ids import check_agent, standing_stream
from dragoman.core.limits import (
    OPEN_REQUESTS,
    PRICE,
    REASON,
    WAIT_MS,
    check_range,
    check_text,
    faults_of_words,
)
from dragoman.core.offers import TIERS, Trust
from dragoman.core.reading import Decision, Read, Receipt
from dragoman.core.rules.scoring import telling
from dragoman.core.states.agent import AgentRecord
from dragoman.core.states.standing import Descriptor, Standing


def describe(command: DescribeAgent, read: Read, now: int) -> Decision | Refusal:
    """Describe an agent's capabilities, or change them. The same again is a no-op."""
    del now
    refusal = next(filter(None, _faults_of_offer(command)), None)
    if refusal:
        return refusal
    known = read.agent(command.name)
    refusal = _check_describer(command.name, known, read.actor)
    if refusal:
        return refusal
    standing = read.standing(command.name)
    descriptor = Descriptor(
        tuple(dict.fromkeys(command.skills)),
        tuple(dict.fromkeys(command.constraints)),
        tuple(dict.fromkeys(command.locality)),
        _trust(command.trust, standing, read.actor),
        float(command.cost),  # an int would be read back as another number than was stored
        command.latency_ms,
        command.capacity,
        command.reach,
    )
    if read.actor.role == "agent" and standing is not None and standing.descriptor is not None:
        descriptor = _no_looser(descriptor, standing.descriptor)
    told = Receipt("", None, stream=standing_stream(command.name))
    if standing is not None and standing.descriptor == descriptor:
        return Decision(told)
    event = AgentDescribed(command.name, *msgspec.structs.astuple(descriptor))
    return Decision(told, ((standing_stream(command.name), event),))


def _trust(asked: Trust | None, standing: Standing | None, actor: Actor) -> Trust:
    """Tier that the caller may give: an agent's own word never raises what it has."""
    has = standing.descriptor.trust if standing and standing.descriptor else None
    if actor.role != "agent":
        return asked or has or "T1"
    own: Trust = has or "T0"
    return own if asked is None else TIERS[min(TIERS.index(asked), TIERS.index(own))]


def _no_looser(said: Descriptor, known: Descriptor) -> Descriptor:
    """Restrict what an agent claims about itself to what was vouched for.

    Governance rests on these terms: the agent may tighten them, others loosen them. At T0 nobody
    vouches for anything, and its word is all there is.
    """
    if said.trust == "T0":
        return said
    few = [most for most in (said.capacity, known.capacity) if most]
    return replace(
        said,
        skills=_both(said.skills, known.skills) or known.skills,
        constraints=_both(said.constraints or known.constraints, known.constraints),
        locality=_both(said.locality or known.locality, known.locality),
        cost=max(said.cost, known.cost),
        latency_ms=max(said.latency_ms, known.latency_ms),
        capacity=min(few, default=0),
    )


def _both(said: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one for one in said if one in known)


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


def _faults_of_offer(command: DescribeAgent) -> Iterator[Refusal | None]:
    yield check_agent(command.name, "name")
    if not command.skills:
        yield Refusal("invalid_field", "skills is empty; name at least one", path="skills")
    for field in ("skills", "constraints", "locality"):
        yield from faults_of_words(field, getattr(command, field))
    for index, skill in enumerate(command.skills):
        if not telling(skill):
            why = f"the skill {skill[:40]!a} says nothing: name a subject"
            yield Refusal("invalid_field", why, path=f"skills[{index}]")
    if not (isfinite(command.cost) and 0 <= command.cost <= PRICE):
        why = f"cost is {command.cost}; it must be from 0 to {PRICE:g}"
        yield Refusal("invalid_field", why, path="cost")
    yield check_range("latency_ms", command.latency_ms, 0, WAIT_MS[1])
    yield check_range("capacity", command.capacity, 0, OPEN_REQUESTS)
    yield check_text("reach", command.reach, REASON)
