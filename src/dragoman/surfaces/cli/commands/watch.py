"""`dragoman watch`: what an agent thinks, does and observes at a task, as it happens."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.config import environment
from dragoman.core.base import Status
from dragoman.core.event_table import EVENT_NAMES, STATUS_CHANGE_NAMES
from dragoman.core.timestamps import parse_nearest_rfc3339, parse_rfc3339
from dragoman.core.trace import TurnRecorded
from dragoman.surfaces.cli.command import CliCommand, TaskArgument, option
from dragoman.surfaces.cli.context import CommandContext, CommandResult
from dragoman.surfaces.cli.event_text import TRANSITION_REQUEST, describe_event
from dragoman.surfaces.cli.render import TASK_STATUS_STYLES, truncate
from dragoman.text.safe_text import safe_text

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

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

    On a terminal it is one picture, redrawn a few times a second; else a line for each event, with
    --json an object. Where DRAGOMAN_URL names a hub and there is no data
    directory, that hub's stream is watched.

    \b
    Examples:
      dragoman watch TASK-2026-02-09-001
      dragoman watch TASK-2026-02-09-001 --after 0 --json
    """

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
    from dragoman.surfaces.cli.commands.task import load_task
    from dragoman.surfaces.cli.event_text import follow_entries, warn_of_gap

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
    from dragoman.engine.queries.streams import stream_entries

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


# --- state ------------------------------------------------------------------------------------

_MAX_LINES: Final = 100
"""Number of terminal lines, tools and notices that are kept."""

_MAX_THOUGHT: Final = 4_000
"""Number of last characters kept of a thought that still grows."""

_MAX_TEXT: Final = 4_000

_MAX_CONFIDENCES: Final = 40


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


class ToolCall(Struct, frozen=True):
    """A tool call."""

    call_id: str
    name: str
    started_at: int
    status: str = ""
    """Empty while it runs."""
    took_ms: int = 0


class WatchFrame(Struct, frozen=True):
    """All that is drawn at one time."""

    task: str
    title: str
    status: Status
    agent: str = ""
    turn_author: str = ""
    """Agent and attempt of the turn, where there are several."""
    turn: int | None = None
    thought: str = ""
    action: str = ""
    observation: str = ""
    confidences: tuple[float, ...] = ()
    running: tuple[ToolCall, ...] = ()
    ended: tuple[ToolCall, ...] = ()
    terminal: tuple[str, ...] = ()
    notices: tuple[tuple[str, str], ...] = ()
    """Transitions, anomalies and escalations: time and text."""
    count: int = 0
    at: str = ""


class WatchState:
    """State of a watched task, updated in one thread while another draws it."""

    def __init__(self, task: str, title: str, status: Status) -> None:
        self._lock = Lock()
        self._frame = WatchFrame(task, title, status)
        self._thought = ""
        self._thought_is_over = True
        self._running: dict[str, ToolCall] = {}
        self._ended = deque[ToolCall](maxlen=_MAX_LINES)
        self._terminal = deque[str](maxlen=_MAX_LINES)
        self._notices = deque[tuple[str, str]](maxlen=_MAX_LINES)
        self._confidences = deque[float](maxlen=_MAX_CONFIDENCES)
        self._authors = TurnAuthors()

    def apply(self, event: WatchedEvent) -> None:
        """Apply an event."""
        handler = _HANDLERS.get(
            event.type, _TRANSITION_HANDLER if event.type in STATUS_CHANGE_NAMES else None
        )
        with self._lock:
            self._frame = replace(self._frame, count=self._frame.count + 1, at=event.at)
            if handler is not None:
                handler(self, event)

    def frame(self) -> WatchFrame:
        """Snapshot to be drawn."""
        with self._lock:
            return replace(
                self._frame,
                thought=self._thought or self._frame.thought,
                confidences=tuple(self._confidences),
                running=tuple(self._running.values()),
                ended=tuple(self._ended),
                terminal=tuple(self._terminal),
                notices=tuple(self._notices),
            )

    def on_turn(self, event: WatchedEvent) -> None:
        content: Mapping[str, str] = event.body["envelope"]["content"]
        self._thought, self._thought_is_over = "", True
        self._confidences.append(event.body["confidence"])
        self._frame = replace(
            self._frame,
            agent=event.body["agent"],
            turn_author=self._authors.label(event),
            turn=event.body["turn_index"],
            thought=content["thought"][-_MAX_TEXT:],
            action=content["action"][:_MAX_TEXT],
            observation=content["observation"][-_MAX_TEXT:],
        )

    def on_trace_event(self, event: WatchedEvent) -> None:
        handler = _TRACE_HANDLERS.get(event.body["type"])
        if handler is not None:
            handler(self, event)

    def on_thought(self, event: WatchedEvent) -> None:
        """Append a chunk of a thought."""
        if self._thought_is_over:
            self._thought = ""
        self._thought = (self._thought + event.payload["chunk"])[-_MAX_THOUGHT:]
        self._thought_is_over = event.payload["is_final"]
        self._frame = replace(self._frame, agent=event.payload["agent_id"])

    def on_tool_start(self, event: WatchedEvent) -> None:
        call, tool = event.payload["call_id"], event.payload["tool"]
        while len(self._running) >= _MAX_LINES:
            del self._running[next(iter(self._running))]
        self._running[call] = ToolCall(
            call, tool, parse_nearest_rfc3339(event.payload["timestamp"])
        )

    def on_tool_end(self, event: WatchedEvent) -> None:
        payload = event.payload
        ended = self._running.pop(payload["call_id"], None) or ToolCall(
            payload["call_id"], payload["tool"], 0
        )
        self._ended.append(
            replace(ended, status=payload["status"], took_ms=round(payload["duration_ms"]))
        )

    def on_terminal_line(self, event: WatchedEvent) -> None:
        self._terminal.append(event.payload["line"])

    def on_transition(self, event: WatchedEvent) -> None:
        from_ = event.body.get("from", "in-progress")
        to: Status = (
            "in-progress" if event.type == "task.claimed" else event.body.get("to", "ready")
        )
        self._frame = replace(self._frame, status=to)
        self._notices.append((event.at, f"{from_} → {to} by {event.actor}"))

    def on_anomaly(self, event: WatchedEvent) -> None:
        self._notices.append(
            (event.at, f"{event.body['kind']}: {event.body.get('detail', 'settled')}")
        )


_Handler = Callable[[WatchState, WatchedEvent], None]

_TRANSITION_HANDLER: Final[_Handler] = WatchState.on_transition

_HANDLERS: Final[dict[str, _Handler]] = {
    "turn.recorded": WatchState.on_turn,
    "trace.recorded": WatchState.on_trace_event,
    "trace.anomaly": WatchState.on_anomaly,
    "entropy.escalated": WatchState.on_anomaly,
    "entropy.settled": WatchState.on_anomaly,
}
"""Event name -> its handler; other events change nothing."""

_TRACE_HANDLERS: Final[dict[str, _Handler]] = {
    "THOUGHT_STREAM": WatchState.on_thought,
    "TOOL_LIFECYCLE_INVOKED": WatchState.on_tool_start,
    "TOOL_LIFECYCLE_COMPLETED": WatchState.on_tool_end,
    "SANDBOX_PULSE": WatchState.on_terminal_line,
}
"""Type of a trace event -> its handler."""


# --- drawing and lines ------------------------------------------------------------------------

_BARS: Final = "▁▂▃▄▅▆▇█"

_TOOL_STYLES: Final = {"success": "green", "failure": "red", "timeout": "magenta", "": "yellow"}

_MIN_ROWS: Final = 3

_HEADING_ROWS: Final = 8
"""Number of rows that are headings."""

_TIME_OF_DAY: Final = slice(11, 19)

_TURN_EVENT: Final = EVENT_NAMES[TurnRecorded]


def draw(frame: WatchFrame, width: int, height: int) -> "Group":
    """Draw a frame, cut to the size of the terminal."""
    from rich.console import Group
    from rich.text import Text

    rows = max(_MIN_ROWS, (height - _HEADING_ROWS) // 5)
    parts: list[Text] = [_draw_header(frame)]

    def section(name: str, lines: list[Text]) -> None:
        parts.append(Text(name, style="bold"))
        parts.extend(lines or [Text("  -", style="dim")])

    def text(content: str, style: str = "") -> list[Text]:
        """Last rows of a text."""
        lines = safe_text(content).replace("\t", "    ").split("\n") if content else []
        wrapped = [
            line[at : at + width - 4] for line in lines for at in _wrap_offsets(line, width - 4)
        ]
        return [Text(f"  {line}", style=style, no_wrap=True) for line in wrapped[-rows:]]

    section("thought", text(frame.thought, "italic"))
    section("action", text(frame.action))
    section("observation", text(frame.observation, "dim"))
    now = parse_rfc3339(frame.at) if frame.at else 0
    tools = [_draw_tool(tool, now) for tool in (*frame.ended[-rows:], *frame.running[-rows:])]
    section("tools", tools[-rows:])
    section(
        "terminal",
        [line for text_shown in frame.terminal[-rows:] for line in text(text_shown)][-rows:],
    )
    for at, text_shown in frame.notices[-_MIN_ROWS:]:
        parts.append(
            Text(f"{at[_TIME_OF_DAY]}  {safe_text(text_shown, one_line=True)}", style="cyan")
        )
    return Group(*parts)


def _wrap_offsets(line: str, width: int) -> range:
    return range(0, max(1, len(line)), max(1, width))


def _draw_header(frame: WatchFrame) -> "Text":
    from rich.text import Text

    head = Text(no_wrap=True, overflow="ellipsis")
    head.append(frame.task, "bold").append(f"  {safe_text(frame.title, one_line=True)}  ")
    head.append(frame.status, TASK_STATUS_STYLES[frame.status])
    if frame.turn is not None:
        whose = f" of {frame.turn_author}" if frame.turn_author else ""
        head.append(f"  {frame.agent}, turn {frame.turn}{whose}")
    if frame.confidences:
        bars = "".join(_BARS[min(7, int(value * 8))] for value in frame.confidences)
        head.append(f"  {bars} {frame.confidences[-1]:.2f}", "green")
    return head.append(f"  {frame.count} events", "dim")


def _draw_tool(tool: ToolCall, now: int) -> "Text":
    from rich.text import Text

    took = tool.took_ms if tool.status else max(0, now - tool.started_at)
    line = Text("  ", no_wrap=True, overflow="ellipsis")
    line.append(f"{safe_text(tool.name, one_line=True):<24} ")
    line.append(f"{format_milliseconds(took):>9}  ")
    return line.append(tool.status or "running", _TOOL_STYLES.get(tool.status, ""))


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
