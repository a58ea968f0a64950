"""`dragoman tick`: every time-driven duty, once or over and over."""

from collections.abc import Mapping
from typing import Annotated

import typer

from dragoman.surfaces.cli.call import Answer, Call, told
from dragoman.surfaces.cli.place import Place, Ran
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import Verb

_WORDS = {
    "recovery": (
        "lease ended, by a report or by taking the task back",
        "leases ended, by a report or by taking the task back",
    ),
    "sla": ("deadline passed and was escalated", "deadlines passed and were escalated"),
    "waves": ("wave advanced", "waves advanced"),
    "entropy": (
        "sign of a lost agent escalated or settled",
        "signs of lost agents escalated or settled",
    ),
    "thoughts": ("abandoned thought stream closed", "abandoned thought streams closed"),
    "handing-on": ("handoff's work items passed on late", "handoffs' work items passed on late"),
    "artifacts": ("leftover of a copy removed", "leftovers of copies removed"),
    "copies": ("copy that no handoff needs removed", "copies that no handoff needs removed"),
    "spawner": ("request for a worker answered", "requests for a worker answered"),
    "inbox": ("message of the inbox answered", "messages of the inbox answered"),
    "files": ("edited or moved task file answered", "edited or moved task files answered"),
    "projection": ("entry written into the files", "entries written into the files"),
    "promotion": (
        "task back in the queue after its cooldown",
        "tasks back in the queue after their cooldown",
    ),
    "checkpoint": ("entry signed", "entries signed"),
    "notify": ("notice delivered", "notices delivered"),
    "search": ("letter indexed for search", "letters indexed for search"),
}
"""Service -> what its count means, in the singular and the plural."""

WatchOption = Annotated[
    bool,
    typer.Option("--watch", help="Go on until Ctrl-C, as the only hub of the data directory."),
]


def tick(call: Call, *, watch: WatchOption = False) -> Answer | None:
    """Run every service of a hub once.

    Recovery, deadlines, waves, spawn requests, queue, work items of handoffs, inbox, edited files,
    projection, artifact copies, checkpoint, notifications, search index.

    Without a running hub, call it from time to time. Two at once do no more than one.

    \b
    Examples:
      dragoman tick
      dragoman tick --watch
    """
    with call.writing() as place:
        if watch:
            return _watch(call, place)
        ran = dict(place.run(place.duties))
        return _answer(call, ran, place.remarks())


def _watch(call: Call, place: Place) -> Answer | None:
    """Run all services until nobody reads the output or one fails; only news is printed."""
    # Only `--watch` takes the lock of a hub.
    from dragoman.system.hub_lock import HubLock

    known: Mapping[str, str] = {}
    warned = frozenset[str]()
    with HubLock.acquire(place.data, "dragoman tick --watch"):
        while True:
            ran = {name: done for name, done in place.run(place.duties) if done}
            remarks = place.remarks()
            answer = _answer(call, ran, remarks)
            if not answer.is_ok:
                return answer
            if ran or remarks != known:
                call.tell(answer)
            known = remarks
            warned = call.warn(place, warned)
            if not call.wait():
                return None


def _answer(call: Call, ran: Mapping[str, Ran], remarks: Mapping[str, str]) -> Answer:
    """Result of the services; failures are listed separately."""
    done = {name: count for name, count in ran.items() if isinstance(count, int)}
    failed = {name: told(error) for name, error in ran.items() if not isinstance(error, int)}

    def show(screen: Screen) -> None:
        for name in [*done, *(name for name in remarks if name not in ran)]:
            screen.line(_line(name, done.get(name, 0), remarks.get(name, "")))
        for name, (code, detail) in failed.items():
            call.err.line((f"{name} failed: {code}: ", "bold red"), detail)

    why = {name: {"code": code, "detail": detail} for name, (code, detail) in failed.items()}
    data = {"duties": done, "remarks": remarks, **({"failed": why} if why else {})}
    return Answer(data, show, is_ok=not why)


def _line(name: str, count: int, remark: str) -> str:
    one, many = _WORDS.get(name, ("", ""))
    return f"{name:<11} {count:>6}  {one if count == 1 else many}{'; ' if remark else ''}{remark}"


VERBS = (Verb("tick", tick, speaks=False),)
