"""`dragoman agent pause` and `resume`: whether the hub starts anything more for an agent."""

from typing import Annotated

import typer

from dragoman.core.commands import PAUSED_BY_HAND, PauseAgent, ResumeAgent
from dragoman.surfaces.cli.agent.make import NameArgument
from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.verb import Verb


def pause(
    call: Call,
    name: NameArgument,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="The reason, shown to others.")
    ] = PAUSED_BY_HAND,
) -> Answer:
    """Stop the hub from starting work of an agent.

    What it works on goes on. An agent that asks for its work itself is not held back by it:
    `dragoman agent revoke` does that.

    \b
    Example:
      dragoman agent pause swe-backend --reason "the build is broken"
    """
    with call.writing() as place:
        place.hub.do(call.actor(place, call.speaker()), PauseAgent(name, reason))
    return _told(name, "paused", f": {reason}")


def resume(call: Call, name: NameArgument) -> Answer:
    """Let a paused agent go on.

    \b
    Example:
      dragoman agent resume swe-backend
    """
    from dragoman.engine.reads.ask import find_agent

    with call.writing() as place:
        known = find_agent(place.hub.store, name)
        was_paused = known is not None and known.paused(place.hub.clock.now()) is not None
        place.hub.do(call.actor(place, call.speaker()), ResumeAgent(name))
    return _told(name, "not paused", " any more" if was_paused else ", and was not")


def _told(name: str, state: str, rest: str) -> Answer:
    data = {"agent": name, "state": state}
    return Answer(data, lambda screen: screen.line((name, "bold"), f" is {state}{rest}"))


VERBS = (Verb("pause", pause), Verb("resume", resume))
