"""Who belongs to a teamspace, and the no to everybody else."""

from dragoman.core.actors import Actor
from dragoman.core.states.handoff import Handoff
from dragoman.engine.faults import Fault
from dragoman.engine.reads.handoffs import is_shut_out
from dragoman.engine.reads.teamspaces import belongs, closed_to
from dragoman.protocols.acp.settings import Choices


def is_hidden(handoff: Handoff, actor: Actor, choices: Choices) -> bool:
    """Return whether the caller may not see this handoff."""
    return is_shut_out(handoff, actor.name, closed_to(choices.teamspaces, actor))


def outsider(teamspace: str, who: Actor | str, choices: Choices) -> Fault | None:
    """Check that a caller or an agent belongs to the teamspace."""
    if belongs(choices.teamspaces, teamspace, who):
        return None
    name = who if isinstance(who, str) else who.label
    return Fault("not_authorized", f"{name} does not belong to the teamspace {teamspace}")
