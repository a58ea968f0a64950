"""The group `dragoman agent`: who is known to the hub, and in which role."""

from typing import Annotated, Literal

import typer

from dragoman.core.commands import RegisterAgent
from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.values import QuickGroup
from dragoman.surfaces.cli.verb import Verb, add_verb, help_when_alone

GivenRole = Literal["agent", "orchestrator", "coordinator", "human", "observer"]
DIALECTS = ("aof", "agentmail", "saop", "acp", "ccos")


def read_dialect(given: str) -> str:
    """The name of a dialect."""
    if given in DIALECTS:
        return given
    raise ValueError(f"{given!a} is not a dialect; known: {', '.join(DIALECTS)}")


def add(
    call: Call,
    name: Annotated[
        str, typer.Argument(metavar="NAME", show_default=False, help="The agent or person.")
    ],
    role: Annotated[GivenRole, typer.Option("--role", help="What it may do.")] = "agent",
    speaks: Annotated[
        list[str] | None,
        typer.Option(
            "--speaks",
            metavar="DIALECT",
            parser=read_dialect,
            show_default=False,
            help="A dialect that it understands; again for more.",
        ),
    ] = None,
) -> Answer:
    """Make an agent or a person known, or change what is known of one.

    From then on `--as NAME` speaks in that role.

    \b
    Examples:
      dragoman agent add swe-backend --speaks aof
      dragoman agent add dispatcher --role orchestrator
    """
    dialects = tuple(speaks or ())
    with call.writing() as place:
        actor = call.actor(place, call.speaker())
        place.hub.do(actor, RegisterAgent(name, role, dialects))

    def show(screen: Screen) -> None:
        spoken = f", speaks {', '.join(dialects)}" if dialects else ""
        screen.line((name, "bold"), f" is known: {role}{spoken}")

    return Answer({"agent": name, "role": role, "speaks": list(dialects)}, show)


VERBS = (Verb("add", add),)


def group() -> typer.Typer:
    """The group with its commands."""
    agents = typer.Typer(help="Make agents and people known.", cls=QuickGroup)
    agents.callback(invoke_without_command=True)(help_when_alone)
    for verb in VERBS:
        add_verb(agents, verb)
    return agents
