"""Who belongs to a teamspace, and the no to everybody else."""

from dragoman.core.actors import Actor
from dragoman.core.states.handoff import Handoff
from dragoman.engine.faults import Fault
from dragoman.engine.reads.handoffs import is_hidden_from
from dragoman.engine.reads.teamspaces import hidden_teamspaces, is_member
from dragoman.protocols.acp.settings import Choices


def is_hidden(handoff: Handoff, actor: Actor, choices: Choices) -> bool:
    """Return whether the caller may not see this handoff."""
    return is_hidden_from(handoff, actor.name, hidden_teamspaces(choices.teamspaces, actor))


def check_membership(teamspace: str, party: Actor | str, choices: Choices) -> Fault | None:
    """Check that a caller or an agent belongs to the teamspace."""
    if is_member(choices.teamspaces, teamspace, party):
        return None
    name = party if isinstance(party, str) else party.label
    return Fault("not_authorized", f"{name} does not belong to the teamspace {teamspace}")
