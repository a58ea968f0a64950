"""The group `dragoman agent`: who is known to the hub, in which role, and by which credentials."""

import typer

from dragoman.surfaces.cli import agent_make, agent_pause, agent_rank, agent_read
from dragoman.surfaces.cli.values import QuickGroup
from dragoman.surfaces.cli.verb import add_verb, help_when_alone

VERBS = (*agent_make.VERBS, *agent_read.VERBS, *agent_pause.VERBS, *agent_rank.VERBS)


def group() -> typer.Typer:
    """The group with its commands."""
    agents = typer.Typer(help="Make agents and people known.", cls=QuickGroup)
    agents.callback(invoke_without_command=True)(help_when_alone)
    for verb in VERBS:
        add_verb(agents, verb)
    return agents
