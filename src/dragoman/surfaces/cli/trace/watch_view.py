"""What a watcher is shown: a picture for a terminal, or one line for each thing that happens."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dragoman.core.events import EVENT_NAMES, TurnRecorded
from dragoman.core.moments import parse_rfc3339
from dragoman.surfaces.cli.task.view import TASK_STATUS_STYLES
from dragoman.surfaces.cli.trace.watch_scene import ToolCall, TurnAuthors, WatchedEvent, WatchFrame
from dragoman.surfaces.cli.words.phrases import truncate
from dragoman.surfaces.cli.words.table import EVENT_TEXT
from dragoman.surfaces.cli.words.traces import TRANSITION_REQUEST
from dragoman.text.safe_text import safe_text

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

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
    section("terminal", [line for said in frame.terminal[-rows:] for line in text(said)][-rows:])
    for at, said in frame.notices[-_MIN_ROWS:]:
        parts.append(Text(f"{at[_TIME_OF_DAY]}  {safe_text(said, one_line=True)}", style="cyan"))
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
            {"attempt": event.body["attempt"], "beside": event.beside_attempt}
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
    """Text as `events` prints it; an event that this release cannot decode has only its name."""
    shape = _EVENT_CLASSES.get(event.type)
    if shape is None:
        return event.type
    try:
        return truncate(f"{event.actor}  {EVENT_TEXT[shape](msgspec.convert(event.body, shape))}")
    except msgspec.ValidationError:
        return event.type


_EVENT_CLASSES: Final = {name: shape for shape, name in EVENT_NAMES.items()}


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
