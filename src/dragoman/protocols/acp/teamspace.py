"""Who belongs to a teamspace, and the no to everybody else."""

from dragoman.core.actors import Actor
from dragoman.engine.faults import Fault
from dragoman.engine.reads.teamspaces import belongs
from dragoman.protocols.acp.settings import Choices


def outsider(teamspace: str, who: Actor | str, choices: Choices) -> Fault | None:
    """Why this one has nothing to do in a teamspace; None when it has."""
    if belongs(choices.teamspaces, teamspace, who):
        return None
    name = who if isinstance(who, str) else who.label
    return Fault("not_authorized", f"{name} does not belong to the teamspace {teamspace}")
