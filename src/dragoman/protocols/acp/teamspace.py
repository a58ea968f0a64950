"""Who belongs where: a teamspace with members is theirs, and one without is everyone's.

Roles count beside it: people, orchestrators and the hub itself belong everywhere; a coordinator
only where it is named, if anybody is named there.
"""

from dragoman.core.actors import Actor
from dragoman.core.authority import MAY_DISPATCH
from dragoman.engine.operation import Fault
from dragoman.protocols.acp.settings import Choices


def outsider(teamspace: str, who: Actor | str, choices: Choices) -> Fault | None:
    """Why this one has nothing to do in a teamspace; None when it has."""
    if belongs(teamspace, who, choices):
        return None
    name = who if isinstance(who, str) else who.label
    return Fault("not_authorized", f"{name} does not belong to the teamspace {teamspace}")


def belongs(teamspace: str, who: Actor | str, choices: Choices) -> bool:
    """Whether this one may see and do something in a teamspace, as far as that is concerned."""
    team = choices.teamspaces.get(teamspace)
    if team is None:
        return True
    if isinstance(who, str):
        return who in team.members or who in team.coordinators
    if who.role in MAY_DISPATCH:
        return True
    if who.role == "coordinator" and team.coordinators:
        return who.name in team.coordinators
    return who.name in team.members or who.name in team.coordinators
