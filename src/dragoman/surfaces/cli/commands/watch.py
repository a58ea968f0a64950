"""`dragoman watch`: what an agent thinks, does and observes at a task, as it happens."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.trace import TurnRecorded
from dragoman.engine.event_sentences import TRANSITION_REQUEST, describe_event
from dragoman.engine.sentences import fill, truncate
from dragoman.surfaces.cli.command import CliCommand, TaskArgument, option
from dragoman.surfaces.cli.context import CommandContext, CommandResult
from dragoman.surfaces.cli.event_text import Fields
from dragoman.surfaces.cli.render import Screen

if TYPE_CHECKING:
    from dragoman.engine.ports import Store
    from dragoman.ledger.entry import Entry

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
            "Begin after this one; else with the last attempt.",
            min=0,
        ),
    ] = None,
) -> None:
    """Watch an agent at work.

    Its thoughts, actions, tools and terminal; Ctrl-C ends it.

    A line for each event, with --json an object.

    \b
    Examples:
      dragoman watch TASK-2026-02-09-001
      dragoman watch TASK-2026-02-09-001 --after 0 --json
    """

    with _open_watched_task(context, task, after) as entries:
        for entry in entries:
            context.print_result(CommandResult(entry_to_object(entry), _line_printer(entry)))
            # A watcher needs each line when it happens, not when a buffer is full.
            context.out.flush()


def _line_printer(entry: Fields) -> Callable[[Screen], None]:
    return lambda screen: screen.line(format_line(entry))


@contextmanager
def _open_watched_task(
    context: CommandContext, task: str, after: int | None
) -> Generator[Iterator[Fields]]:
    from dragoman.surfaces.cli.commands.task_read import load_task
    from dragoman.surfaces.cli.event_text import follow_entries, shown_entries

    with context.open_readonly() as directory:
        shown, store = load_task(directory, task).task, directory.store
        start = _last_attempt_start(store, shown.id) if after is None else after
        own = _task_entries(shown.id, follow_entries(context, store, start))
        yield _watched_entries(shown_entries(own, directory), shown.id)


def _last_attempt_start(store: "Store", task: str) -> int:
    """Position before the last claim of a task, or before its first entry."""
    from dragoman.core.ids import task_stream
    from dragoman.engine.queries.entries import stream_entries

    start = 0
    for entry in stream_entries(store, task_stream(task)):
        if start == 0 or entry.event == _CLAIMED:
            start = entry.position
    return start - 1


def _task_entries(task: str, entries: "Iterable[Entry]") -> "Iterator[Entry]":
    """Entries but those that surely belong to another task, which need not be decoded."""
    own = (f"task:{task}", f"turns:{task}")
    for entry in entries:
        if entry.stream in own or entry.event.startswith("trace."):
            yield entry


def _watched_entries(entries: Iterable[Fields], task: str) -> Iterator[Fields]:
    """Entries of the task, and of the sessions that work on it."""
    own = (f"task:{task}", f"turns:{task}")
    for entry in entries:
        is_trace = entry["type"].startswith("trace.")
        if entry["stream"] in own or (is_trace and entry["body"].get("task") == task):
            yield entry


# --- lines ------------------------------------------------------------------------------------

_TRACE_TEXT: Final[Mapping[str, str]] = {
    "THOUGHT_STREAM": "thinks|: {chunk}",
    "TOOL_LIFECYCLE_INVOKED": "tool {tool} {arguments}",
    "TOOL_LIFECYCLE_COMPLETED": "tool {tool} {status} after {duration_ms} ms",
    "SANDBOX_PULSE": "> {line}",
}
"""Type of a trace event -> its line; others are printed as by `events`."""

_TURN_TEXT: Final = (
    "turn {turn_index}|{?by} of {by}, beside attempt {after_attempt}| ({confidence})"
    "| thought: {envelope.content.thought}|; action: {envelope.content.action}"
    "|; observation: {envelope.content.observation}"
)


def format_line(entry: Fields) -> str:
    """Format an entry as one line."""
    kind, body = _event_type(entry), entry["body"]
    if kind in _TRACE_TEXT:
        # The possible beginning of a secret is held back until the next chunk of a thought.
        text = fill(_TRACE_TEXT[kind], body["envelope"]["payload"])
    elif kind == EVENT_NAMES[TurnRecorded]:
        text = fill(_TURN_TEXT, body)
    else:
        text = f"{entry['actor']}  {describe_event(entry['type'], body)}"
    return f"{entry['position']:>6}  {entry['at']}  {truncate(text)}"


def entry_to_object(entry: Fields) -> Fields:
    """JSON object of an entry; a requested transition is marked, as it need not have happened."""
    kind, body = _event_type(entry), entry["body"]
    message = body.get("envelope", body)
    if kind == TRANSITION_REQUEST:
        message = {**message, "payload": {**message["payload"], "requested": True}}
    return {
        **{name: entry[name] for name in ("position", "at", "actor")},
        "type": kind,
        **{name: body[name] for name in ("attempt", "after_attempt") if name in body},
        "message": message,
    }


def _event_type(entry: Fields) -> str:
    """Type of a trace event, else the name of the entry."""
    return entry["body"]["type"] if entry["type"] == "trace.recorded" else entry["type"]


COMMANDS = (CliCommand("watch", watch, takes_as=False),)
