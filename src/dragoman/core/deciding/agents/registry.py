"""Decider of the registry: who is known by which name, in which role, speaking what (S-ROLE)."""

from dragoman.core.actors import HUB_NAME, HUB_NAME_TAKEN, Actor
from dragoman.core.authority import MAY_REGISTER
from dragoman.core.commands import RegisterAgent
from dragoman.core.errors import Refusal
from dragoman.core.events import AgentRegistered
from dragoman.core.ids import agent_stream, check_agent, check_dialect
from dragoman.core.limits import MAX_DIALECTS, check_count
from dragoman.core.reading import Decision, Read, Receipt
from dragoman.core.states.agent import AgentRecord
from dragoman.core.states.trace import SAOP_ROLES

_REGISTRATION_RECEIPT = Receipt("", None)


def decide_register_agent(command: RegisterAgent, read: Read, now: int) -> Decision | Refusal:
    """Register a name, or change what is known of it. The same again is a no-op."""
    del now
    refusal = (
        check_agent(command.name, "name")
        or _check_hub_name(command.name, read.actor)
        or check_count("speaks", command.speaks, MAX_DIALECTS)
        or next(filter(None, map(check_dialect, command.speaks)), None)
        or _check_saop_role(command.plays)
    )
    if refusal:
        return refusal
    known = read.agent(command.name)
    refusal = _check_registrar(command, known, read.actor)
    if refusal:
        return refusal
    known_plays = known.plays if known is not None else ""
    plays = known_plays if command.plays is None else command.plays
    if plays != known_plays and read.actor.role == "agent":
        return Refusal("not_authorized", f"{read.actor.label} may not choose its SAOP role")
    speaks = tuple(dict.fromkeys(command.speaks))
    event = AgentRegistered(command.name, command.role, speaks, plays)
    if known is not None and (known.role, known.speaks, known.plays) == (
        event.role,
        event.speaks,
        event.plays,
    ):
        return Decision(_REGISTRATION_RECEIPT)
    return Decision(_REGISTRATION_RECEIPT, ((agent_stream(command.name), event),))


def _check_hub_name(name: str, actor: Actor) -> Refusal | None:
    if name != HUB_NAME or actor.role == "system":
        return None
    return Refusal("invalid_field", HUB_NAME_TAKEN, path="name")


def _check_saop_role(part: str | None) -> Refusal | None:
    if not part or part in SAOP_ROLES:
        return None
    return Refusal(
        "invalid_field", f"{part[:40]!a} is no SAOP role; known: {', '.join(SAOP_ROLES)}"
    )


def _check_registrar(
    command: RegisterAgent, known: AgentRecord | None, actor: Actor
) -> Refusal | None:
    """Refuse a caller that gives or takes a role that it may not give."""
    givable = MAY_REGISTER[actor.role]
    if actor.role == "agent" and command.name != actor.name:
        return Refusal(
            "not_authorized", f"{actor.label} may register itself only, not {command.name}"
        )
    role_before = command.role if known is None else known.role
    for role in (command.role, role_before):
        if role not in givable:
            return Refusal(
                "not_authorized",
                f"{actor.label} may not give or take the role {role}: {command.name}",
            )
    return None
