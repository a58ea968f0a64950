"""`dragoman watch`: what an agent thinks, does and observes at a task, as it happens."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Struct

from dragoman.config import environment
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.trace import TurnRecorded
from dragoman.surfaces.cli.command import CliCommand, TaskArgument, option
from dragoman.surfaces.cli.context import CommandContext, CommandResult
from dragoman.surfaces.cli.event_text import TRANSITION_REQUEST, describe_event
from dragoman.surfaces.cli.render import truncate

if TYPE_CHECKING:
    from dragoman.engine.ports import Store

# --- command ----------------------------------------------------------------------------------

_CLAIMED = "task.claimed"


def watch(
    context: CommandContext,
    task: TaskArgument,
    after: Annotated[
        int | None,
        option(
            "--after",
            "POSITION",
            "Begin after this one; else with the last attempt (of a hub: at the beginning).",
            min=0,
        ),
    ] = None,
) -> None:
    """Watch an agent at work.

    Its thoughts, actions, tools and terminal; Ctrl-C ends it.

    A line for each event, with --json an object. Where DRAGOMAN_URL names a hub and there is no
    data directory, that hub's stream is watched.

    \b
    Examples:
      dragoman watch TASK-2026-02-09-001
      dragoman watch TASK-2026-02-09-001 --after 0 --json
    """

    with _open_watched_task(context, task, after) as watched:
        writers = TurnAuthors()
        for event in watched:
            _print_event(event, writers, context)


@contextmanager
def _open_watched_task(
    context: CommandContext, task: str, after: int | None
) -> "Generator[Iterator[WatchedEvent]]":
    """Watch by the store of the data directory or, where there is none, by a remote hub."""
    from dragoman.surfaces.cli.commands.task import load_task
    from dragoman.surfaces.cli.event_text import follow_entries, warn_of_gap

    is_remote = context.shared.data is None and not context.data.is_dir()
    if is_remote and environment().get("DRAGOMAN_URL"):
        on_gap = partial(warn_of_gap, context)
        with context.wiring.watch_remote_hub(task, after, on_gap) as (found, entries):
            yield _watched_events(entries, found.id)
        return
    with context.open_readonly() as directory:
        shown, store = load_task(directory, task).task, directory.store
        start = _last_attempt_start(store, shown.id) if after is None else after
        entries = _task_entries(shown.id, follow_entries(context, store, start))
        yield _watched_events(entries, shown.id)


def _last_attempt_start(store: "Store", task: str) -> int:
    """Position before the last claim of a task, or before its first entry."""
    from dragoman.core.ids import task_stream
    from dragoman.engine.queries.entries import stream_entries

    start = 0
    for entry in stream_entries(store, task_stream(task)):
        if start == 0 or entry.event == _CLAIMED:
            start = entry.position
    return start - 1


def _task_entries(task: str, entries: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """Entries as a stream shows them; those that surely belong to another task are not decoded."""
    from dragoman.surfaces.cli.event_text import entry_to_dict

    own = (f"task:{task}", f"turns:{task}")
    for entry in entries:
        if entry.stream in own or entry.event.startswith("trace."):
            yield entry_to_dict(entry)


def _watched_events(entries: Iterable[Mapping[str, Any]], task: str) -> "Iterator[WatchedEvent]":
    """Events of the task, and of the sessions that work on it."""

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

    context.print_result(
        CommandResult(event_to_dict(event), lambda screen: screen.line(format_line(event, writers)))
    )
    # A watcher needs each line when it happens, not when a buffer is full.
    context.out.flush()


# --- events ------------------------------------------------------------------------------------


class WatchedEvent(Struct, frozen=True):
    """A ledger entry as a stream or the store returns it."""

    position: int
    at: str
    type: str
    stream: str
    actor: str
    body: Mapping[str, Any]

    @property
    def payload(self) -> Mapping[str, Any]:
        """Payload of a trace event."""
        return self.body["envelope"]["payload"]

    @property
    def beside_attempt(self) -> int | None:
        """Attempt beside which a turn was recorded; None: the turn belongs to an attempt."""
        return self.body.get("after_attempt", 0) if self.body["attempt"] < 0 else None


class TurnAuthors:
    """Authors of turns: as soon as there are several, each turn is labelled with its own.

    A turn outside of the attempts always is.
    """

    def __init__(self) -> None:
        self._seen: set[tuple[str, int]] = set()

    def label(self, turn: WatchedEvent) -> str:
        """Agent and attempt of a turn; empty while all turns are of one attempt."""
        attempt: int = turn.body["attempt"]
        self._seen.add((turn.actor, attempt))
        if turn.beside_attempt is not None:
            return f"{turn.actor}, beside attempt {turn.beside_attempt}"
        return f"{turn.actor}, attempt {attempt}" if len(self._seen) > 1 else ""


# --- lines ------------------------------------------------------------------------------------

_TURN_EVENT: Final = EVENT_NAMES[TurnRecorded]


def format_milliseconds(milliseconds: int) -> str:
    """Format a duration for people."""
    if milliseconds < 1_000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1_000:.1f} s"
    return f"{milliseconds // 60_000} m {milliseconds // 1_000 % 60:02d} s"


def format_line(event: WatchedEvent, authors: TurnAuthors) -> str:
    """Format an event as one line."""
    kind = _event_type(event)
    text = (
        _describe_turn(event, authors)
        if kind == _TURN_EVENT
        else _EVENT_LINES.get(kind, _describe_other)(event)
    )
    return f"{event.position:>6}  {event.at}  {text}"


def event_to_dict(event: WatchedEvent) -> Mapping[str, Any]:
    """JSON object of an event."""
    return {
        "position": event.position,
        "at": event.at,
        "type": _event_type(event),
        "actor": event.actor,
        **(
            {"attempt": event.body["attempt"], "after_attempt": event.beside_attempt}
            if event.type == _TURN_EVENT
            else {}
        ),
        "message": _event_message(event),
    }


def _event_message(event: WatchedEvent) -> Mapping[str, Any]:
    """Message of an event; a requested transition is marked, as it need not have happened."""
    message: Mapping[str, Any] = event.body.get("envelope", event.body)
    if _event_type(event) != TRANSITION_REQUEST:
        return message
    return {**message, "payload": {**event.payload, "requested": True}}


def _event_type(event: WatchedEvent) -> str:
    """Type of a trace event, else the name of the entry."""
    return event.body["type"] if event.type == "trace.recorded" else event.type


def _describe_other(event: WatchedEvent) -> str:
    """Text as `events` prints it."""
    return truncate(f"{event.actor}  {describe_event(event.type, event.body)}")


def _describe_turn(event: WatchedEvent, authors: TurnAuthors) -> str:
    content: Mapping[str, str] = event.body["envelope"]["content"]
    parts = "; ".join(f"{name}: {content[name]}" for name in content if content[name])
    whose = f" of {whose}" if (whose := authors.label(event)) else ""
    return truncate(
        f"turn {event.body['turn_index']}{whose} ({event.body['confidence']:.2f}) {parts}"
    )


def _describe_thought(event: WatchedEvent) -> str:
    chunk, is_final = event.payload["chunk"], event.payload["is_final"]
    # The possible beginning of a secret is held back until the next chunk: the thought goes on.
    return truncate(f"thinks: {chunk}") if chunk else "has thought" if is_final else "thinks"


def _describe_tool_start(event: WatchedEvent) -> str:
    return truncate(f"tool {event.payload['tool']} {event.payload['arguments']}")


def _describe_tool_end(event: WatchedEvent) -> str:
    payload = event.payload
    return (
        f"tool {payload['tool']} {payload['status']} after "
        f"{format_milliseconds(round(payload['duration_ms']))}"
    )


_EVENT_LINES: Final[dict[str, Callable[[WatchedEvent], str]]] = {
    "THOUGHT_STREAM": _describe_thought,
    "TOOL_LIFECYCLE_INVOKED": _describe_tool_start,
    "TOOL_LIFECYCLE_COMPLETED": _describe_tool_end,
    "SANDBOX_PULSE": lambda one: f"| {one.payload['line']}",
}
"""Event type -> its line; others are printed as by `events`."""


COMMANDS = (CliCommand("watch", watch, takes_as=False),)
