"""`dragoman watch`: what an agent thinks, does and observes at a task, as it happens."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct

from dragoman.config import environment
from dragoman.core.events import Status
from dragoman.surfaces.cli.call import CommandContext, CommandResult
from dragoman.surfaces.cli.options import TaskArgument
from dragoman.surfaces.cli.verb import CliCommand

if TYPE_CHECKING:
    from dragoman.engine.ports import Store
    from dragoman.surfaces.cli.trace.watch_scene import TurnAuthors, WatchedEvent

_CLAIMED = "task.claimed"


def watch(
    context: CommandContext,
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
    from dragoman.surfaces.cli.trace.watch_scene import TurnAuthors, WatchState
    from dragoman.surfaces.cli.trace.watch_view import draw

    with _open_watched_task(context, task, after) as watched:
        if context.out.is_terminal and not context.shared.json:
            scene = WatchState(watched.task, watched.title, watched.status)
            with context.out.live(lambda width, height: draw(scene.frame(), width, height)):
                for event in watched.events:
                    scene.apply(event)
        else:
            writers = TurnAuthors()
            for event in watched.events:
                _print_event(event, writers, context)


class _WatchedTask(Struct, frozen=True):
    """A task to watch, and its events."""

    task: str
    title: str
    status: Status
    events: "Iterator[WatchedEvent]"


@contextmanager
def _open_watched_task(
    context: CommandContext, task: str, after: int | None
) -> Generator[_WatchedTask]:
    """Watch by the store of the data directory or, where there is none, by a remote hub."""
    from dragoman.surfaces.cli.following import follow_entries, warn_of_gap
    from dragoman.surfaces.cli.task.looking import load_task

    is_remote = context.shared.data is None and not context.data.is_dir()
    if is_remote and environment().get("DRAGOMAN_URL"):
        on_gap = partial(warn_of_gap, context)
        with context.wiring.watch_remote_hub(task, after, on_gap) as (found, entries):
            yield _WatchedTask(
                found.id, found.title, found.status, _watched_events(entries, found.id)
            )
        return
    with context.open_readonly() as directory:
        shown, store = load_task(directory, task).task, directory.store
        start = _last_attempt_start(store, shown.id) if after is None else after
        entries = _task_entries(shown.id, follow_entries(context, store, start))
        yield _WatchedTask(shown.id, shown.title, shown.status, _watched_events(entries, shown.id))


def _last_attempt_start(store: "Store", task: str) -> int:
    """Position before the last claim of a task, or before its first entry."""
    from dragoman.core.ids import task_stream
    from dragoman.engine.reads.ask import stream_entries

    start = 0
    for entry in stream_entries(store, task_stream(task)):
        if start == 0 or entry.event == _CLAIMED:
            start = entry.position
    return start - 1


def _task_entries(task: str, entries: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """Entries as a stream shows them; those that surely belong to another task are not decoded."""
    from dragoman.surfaces.cli.entry_view import entry_to_dict

    own = (f"task:{task}", f"turns:{task}")
    for entry in entries:
        if entry.stream in own or entry.event.startswith("trace."):
            yield entry_to_dict(entry)


def _watched_events(entries: Iterable[Mapping[str, Any]], task: str) -> "Iterator[WatchedEvent]":
    """Events of the task, and of the sessions that work on it."""
    from dragoman.surfaces.cli.trace.watch_scene import WatchedEvent

    own = (f"task:{task}", f"turns:{task}")
    for entry in entries:
        body: Mapping[str, Any] = entry["body"]
        if entry["stream"] in own or (
            entry["type"].startswith("trace.") and body.get("task") == task
        ):
            yield WatchedEvent(
                entry["position"],
                entry["at"],
                entry["type"],
                entry["stream"],
                entry["actor"],
                body,
            )


def _print_event(event: "WatchedEvent", writers: "TurnAuthors", context: CommandContext) -> None:
    from dragoman.surfaces.cli.trace.watch_view import event_to_dict, format_line

    context.print_result(
        CommandResult(event_to_dict(event), lambda screen: screen.line(format_line(event, writers)))
    )
    # A watcher needs each line when it happens, not when a buffer is full.
    context.out.flush()


COMMANDS = (CliCommand("watch", watch, takes_as=False),)
