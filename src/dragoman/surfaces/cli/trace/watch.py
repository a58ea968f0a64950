"""`dragoman watch`: what an agent thinks, does and observes at a task, as it happens."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct

from dragoman.config import environment
from dragoman.core.events import Status
from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.options import TaskArgument
from dragoman.surfaces.cli.verb import Verb

if TYPE_CHECKING:
    from dragoman.engine.ports import Store
    from dragoman.surfaces.cli.trace.watch_scene import Happening, Writers

_CLAIMED = "task.claimed"


def watch(
    call: Call,
    task: TaskArgument,
    after: Annotated[
        int | None,
        typer.Option(
            "--after",
            metavar="POSITION",
            min=0,
            show_default=False,
            help="Begin after this one; else with the last attempt (of a hub: at the beginning).",
        ),
    ] = None,
) -> None:
    """Watch an agent at work.

    Its thoughts, actions, tools and terminal; Ctrl-C ends it.

    On a terminal it is one picture, redrawn a few times a second; else a line for each event, with
    --json an object. Where DRAGOMAN_URL names a hub and there is no data
    directory, that hub's stream is watched.

    \b
    Examples:
      dragoman watch TASK-2026-02-09-001
      dragoman watch TASK-2026-02-09-001 --after 0 --json
    """
    from dragoman.surfaces.cli.trace.watch_scene import Scene, Writers
    from dragoman.surfaces.cli.trace.watch_view import draw

    with _seats(call, task, after) as seat:
        if call.out.is_terminal and not call.shared.json:
            scene = Scene(seat.task, seat.title, seat.status)
            with call.out.live(lambda width, height: draw(scene.picture(), width, height)):
                for one in seat.happenings:
                    scene.take(one)
        else:
            writers = Writers()
            for one in seat.happenings:
                _print(one, writers, call)


class _Seat(Struct, frozen=True):
    """A task to watch, and its events."""

    task: str
    title: str
    status: Status
    happenings: "Iterator[Happening]"


@contextmanager
def _seats(call: Call, task: str, after: int | None) -> Generator[_Seat]:
    """Watch by the store of the data directory or, where there is none, by a remote hub."""
    from dragoman.surfaces.cli.following import following, tell_gap
    from dragoman.surfaces.cli.task.looking import look_at

    far = call.shared.data is None and not call.data.is_dir()
    if far and environment().get("DRAGOMAN_URL"):
        tell = partial(tell_gap, call)
        with call.house.watch_hub(task, after, tell) as (found, entries):
            yield _Seat(found.id, found.title, found.status, _chosen(entries, found.id))
        return
    with call.looking() as look:
        seen, store = look_at(look, task).task, look.store
        begin = _last_attempt(store, seen.id) if after is None else after
        entries = _of(seen.id, following(call, store, begin))
        yield _Seat(seen.id, seen.title, seen.status, _chosen(entries, seen.id))


def _last_attempt(store: "Store", task: str) -> int:
    """Position before the last claim of a task, or before its first entry."""
    from dragoman.core.ids import task_stream
    from dragoman.engine.reads.ask import history

    begin = 0
    for entry in history(store, task_stream(task)):
        if begin == 0 or entry.event == _CLAIMED:
            begin = entry.position
    return begin - 1


def _of(task: str, entries: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """Entries as a stream shows them; those that surely belong to another task are not decoded."""
    from dragoman.surfaces.cli.entry_view import as_object

    own = (f"task:{task}", f"turns:{task}")
    for entry in entries:
        if entry.stream in own or entry.event.startswith("trace."):
            yield as_object(entry)


def _chosen(entries: Iterable[Mapping[str, Any]], task: str) -> "Iterator[Happening]":
    """Events of the task, and of the sessions that work on it."""
    from dragoman.surfaces.cli.trace.watch_scene import Happening

    own = (f"task:{task}", f"turns:{task}")
    for entry in entries:
        body: Mapping[str, Any] = entry["body"]
        if entry["stream"] in own or (
            entry["type"].startswith("trace.") and body.get("task") == task
        ):
            yield Happening(
                entry["position"],
                entry["at"],
                entry["type"],
                entry["stream"],
                entry["actor"],
                body,
            )


def _print(one: "Happening", writers: "Writers", call: Call) -> None:
    from dragoman.surfaces.cli.trace.watch_view import as_object, line_of

    call.tell(Answer(as_object(one), lambda screen: screen.line(line_of(one, writers))))
    # A watcher needs each line when it happens, not when a buffer is full.
    call.out.flush()


VERBS = (Verb("watch", watch, speaks=False),)
