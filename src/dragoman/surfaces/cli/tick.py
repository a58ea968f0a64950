"""`dragoman tick`: every time-driven duty, once or over and over."""

from typing import Annotated

import typer

from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.place import Place
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import Verb

_WORDS = {
    "recovery": "leases ended, their tasks taken back",
    "sla": "deadlines passed, told",
    "inbox": "messages taken from the inbox",
    "files": "edited or moved task files answered",
    "projection": "entries brought into the files",
    "promotion": "tasks rested long enough, now in the queue",
    "checkpoint": "entries signed",
    "notify": "notices delivered",
}
"""Duty -> what its number counts."""

Done = dict[str, int]

WatchOption = Annotated[
    bool,
    typer.Option("--watch", help="Go on until Ctrl-C, as the only hub of the data directory."),
]


def tick(call: Call, *, watch: WatchOption = False) -> Answer | None:
    """Do once what time asks for.

    Recovery, deadlines, inbox, edited files, projection, queue, checkpoint, notices.

    Without a running hub, call it from time to time; twice at one time does no more than once.

    \b
    Examples:
      dragoman tick
      dragoman tick --watch
    """
    with call.writing() as place:
        if watch:
            _watch(call, place)
            return None
        done = _do_all(place)
    return _answer(done)


def _do_all(place: Place) -> Done:
    now = place.hub.clock.now()
    return {duty.name: duty.run_once(now) for duty in place.duties}


def _watch(call: Call, place: Place) -> None:
    """Tick until nobody listens any more; only what was done is told."""
    # Loaded here, because only this command wants to be a hub.
    from dragoman.system.hub_lock import HubLock

    with HubLock.acquire(place.data, "dragoman tick --watch"):
        while True:
            done = {name: count for name, count in _do_all(place).items() if count}
            if done:
                call.tell(_answer(done))
            if not call.wait():
                return


def _answer(done: Done) -> Answer:
    def show(screen: Screen) -> None:
        for name, count in done.items():
            screen.line(f"{name:<11} {count:>6}  {_WORDS.get(name, '')}")

    return Answer({"duties": done}, show)


VERBS = (Verb("tick", tick, speaks=False),)
