"""`dragoman tick`: every time-driven duty once."""

from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import Verb

_WORDS = {
    "recovery": "leases ended, their tasks taken back",
    "promotion": "tasks rested long enough, now in the queue",
    "checkpoint": "entries signed",
}
"""Duty -> what its number counts."""


def tick(call: Call) -> Answer:
    """Do once what time asks for: recovery, promotion, checkpoint.

    Without a running hub, call it from time to time; twice at one time does no more than once.

    \b
    Example:
      dragoman tick
    """
    with call.writing() as place:
        now = place.hub.clock.now()
        done = {duty.name: duty.run_once(now) for duty in place.duties}

    def show(screen: Screen) -> None:
        for name, count in done.items():
            screen.line(f"{name:<11} {count:>6}  {_WORDS.get(name, '')}")

    return Answer({"duties": done}, show)


VERBS = (Verb("tick", tick, speaks=False),)
