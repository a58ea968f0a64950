"""Who belongs where: a teamspace with members is theirs, and one without is everyone's.

Roles count beside it: people, orchestrators and the hub itself belong everywhere; a coordinator
only where it is named, if anybody is named there.
"""

from collections.abc import Collection, Mapping
from typing import Final, Protocol

from dragoman.core.actors import Actor
from dragoman.core.authority import MAY_DISPATCH
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import names_in_role


class Team(Protocol):
    """The members of a teamspace."""

    @property
    def members(self) -> Collection[str]:
        """Names of those who work in it."""
        ...

    @property
    def coordinators(self) -> Collection[str]:
        """Names of those who coordinate it."""
        ...


NO_TEAMS: Final[Mapping[str, Team]] = {}
"""Without teams every teamspace is open to all."""


def find_coordinators(store: Store, team: Team | None = None) -> tuple[str, ...]:
    """The coordinators for a stuck handoff: those of that teamspace.

    Without one there, all orchestrators and people.
    """
    named = names_in_role(store, "coordinator")
    members = (team.coordinators or team.members) if team else ()
    if not members:
        return named
    here = tuple(name for name in named if name in members)
    return here or names_in_role(store, "orchestrator") + names_in_role(store, "human")


def is_member(teams: Mapping[str, Team], teamspace: str, actor: Actor | str) -> bool:
    """True if this actor may see and act in a teamspace, as far as membership is concerned."""
    team = teams.get(teamspace)
    if team is None or (isinstance(actor, Actor) and actor.role in MAY_DISPATCH):
        return True
    if isinstance(actor, Actor) and actor.role == "coordinator" and team.coordinators:
        return actor.name in team.coordinators
    name = actor if isinstance(actor, str) else actor.name
    return not team.members or name in team.members or name in team.coordinators


def hidden_teamspaces(teams: Mapping[str, Team], actor: Actor) -> frozenset[str]:
    """The teamspaces that this actor may neither see nor act in."""
    return frozenset(name for name in teams if not is_member(teams, name, actor))
