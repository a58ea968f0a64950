"""Who belongs to a teamspace, and the no to everybody else."""

from dragoman.core.actors import Actor
from dragoman.core.states.handoff import Handoff
from dragoman.engine.faults import Fault
from dragoman.engine.reads.handoffs import is_shut_out
from dragoman.engine.reads.teamspaces import belongs, closed_to
from dragoman.protocols.acp.settings import Choices


def is_hidden(handoff: Handoff, actor: Actor, choices: Choices) -> bool:
    """Whether a handoff is as good as not there for this one."""
    return is_shut_out(handoff, actor.name, closed_to(choices.teamspaces, actor))


def outsider(teamspace: str, who: Actor | str, choices: Choices) -> Fault | None:
    """Why this one has nothing to do in a teamspace; None when it has."""
    if belongs(choices.teamspaces, teamspace, who):
        return None
    name = who if isinstance(who, str) else who.label
    return Fault("not_authorized", f"{name} does not belong to the teamspace {teamspace}")
