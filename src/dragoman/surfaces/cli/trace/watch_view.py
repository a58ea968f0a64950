"""What a watcher is shown: a picture for a terminal, or one line for each thing that happens."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from dragoman.core.events import EVENT_NAMES, TurnRecorded
from dragoman.core.moments import parse_rfc3339
from dragoman.surfaces.cli.task.view import STATUS_STYLES
from dragoman.surfaces.cli.trace.watch_scene import Happening, Picture, Tool, Writers
from dragoman.surfaces.cli.words.phrases import cut
from dragoman.surfaces.cli.words.table import WORDS
from dragoman.surfaces.cli.words.traces import REQUEST
from dragoman.text.safe_text import safe_text

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

_BARS: Final = "▁▂▃▄▅▆▇█"
_STATUS: Final = {"success": "green", "failure": "red", "timeout": "magenta", "": "yellow"}
_LEAST: Final = 3
_FIXED: Final = 8
"""Number of rows that are headings."""
_CLOCK: Final = slice(11, 19)
_TURN: Final = EVENT_NAMES[TurnRecorded]


def draw(seen: Picture, width: int, height: int) -> "Group":
    """Draw a frame, cut to the size of the terminal."""
    from rich.console import Group
    from rich.text import Text

    rows = max(_LEAST, (height - _FIXED) // 5)
    parts: list[Text] = [_head(seen)]

    def section(name: str, lines: list[Text]) -> None:
        parts.append(Text(name, style="bold"))
        parts.extend(lines or [Text("  -", style="dim")])

    def text(said: str, style: str = "") -> list[Text]:
        """Last rows of a text."""
        lines = safe_text(said).replace("\t", "    ").split("\n") if said else []
        wrapped = [line[at : at + width - 4] for line in lines for at in _starts(line, width - 4)]
        return [Text(f"  {line}", style=style, no_wrap=True) for line in wrapped[-rows:]]

    section("thought", text(seen.thought, "italic"))
    section("action", text(seen.action))
    section("observation", text(seen.observation, "dim"))
    now = parse_rfc3339(seen.at) if seen.at else 0
    tools = [_tool(tool, now) for tool in (*seen.ended[-rows:], *seen.running[-rows:])]
    section("tools", tools[-rows:])
    section("terminal", [line for said in seen.terminal[-rows:] for line in text(said)][-rows:])
    for at, said in seen.remarks[-_LEAST:]:
        parts.append(Text(f"{at[_CLOCK]}  {safe_text(said, one_line=True)}", style="cyan"))
    return Group(*parts)


def _starts(line: str, width: int) -> range:
    return range(0, max(1, len(line)), max(1, width))


def _head(seen: Picture) -> "Text":
    from rich.text import Text

    head = Text(no_wrap=True, overflow="ellipsis")
    head.append(seen.task, "bold").append(f"  {safe_text(seen.title, one_line=True)}  ")
    head.append(seen.status, STATUS_STYLES[seen.status])
    if seen.turn is not None:
        whose = f" of {seen.whose}" if seen.whose else ""
        head.append(f"  {seen.agent}, turn {seen.turn}{whose}")
    if seen.confidences:
        bars = "".join(_BARS[min(7, int(value * 8))] for value in seen.confidences)
        head.append(f"  {bars} {seen.confidences[-1]:.2f}", "green")
    return head.append(f"  {seen.count} events", "dim")


def _tool(tool: Tool, now: int) -> "Text":
    from rich.text import Text

    took = tool.took_ms if tool.status else max(0, now - tool.began)
    line = Text("  ", no_wrap=True, overflow="ellipsis")
    line.append(f"{safe_text(tool.name, one_line=True):<24} ")
    line.append(f"{seconds(took):>9}  ")
    return line.append(tool.status or "running", _STATUS.get(tool.status, ""))


def seconds(milliseconds: int) -> str:
    """Format a duration for people."""
    if milliseconds < 1_000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1_000:.1f} s"
    return f"{milliseconds // 60_000} m {milliseconds // 1_000 % 60:02d} s"


def line_of(one: Happening, writers: Writers) -> str:
    """Format an event as one line."""
    kind = _kind(one)
    told = _turn(one, writers) if kind == _TURN else _LINES.get(kind, _in_words)(one)
    return f"{one.position:>6}  {one.at}  {told}"


def as_object(one: Happening) -> Mapping[str, Any]:
    """JSON object of an event."""
    return {
        "position": one.position,
        "at": one.at,
        "type": _kind(one),
        "actor": one.actor,
        **({"attempt": one.body["attempt"], "beside": one.beside} if one.type == _TURN else {}),
        "message": _message(one),
    }


def _message(one: Happening) -> Mapping[str, Any]:
    """Message of an event; a requested transition is marked, as it need not have happened."""
    said: Mapping[str, Any] = one.body.get("envelope", one.body)
    if _kind(one) != REQUEST:
        return said
    return {**said, "payload": {**one.payload, "requested": True}}


def _kind(one: Happening) -> str:
    """Type of a trace event, else the name of the entry."""
    return one.body["type"] if one.type == "trace.recorded" else one.type


def _in_words(one: Happening) -> str:
    """Text as `events` prints it; an event that this release cannot decode has only its name."""
    shape = _SHAPES.get(one.type)
    if shape is None:
        return one.type
    try:
        return cut(f"{one.actor}  {WORDS[shape](msgspec.convert(one.body, shape))}")
    except msgspec.ValidationError:
        return one.type


_SHAPES: Final = {name: shape for shape, name in EVENT_NAMES.items()}


def _turn(one: Happening, writers: Writers) -> str:
    content: Mapping[str, str] = one.body["envelope"]["content"]
    said = "; ".join(f"{name}: {content[name]}" for name in content if content[name])
    whose = f" of {whose}" if (whose := writers.whose(one)) else ""
    return cut(f"turn {one.body['turn_index']}{whose} ({one.body['confidence']:.2f}) {said}")


def _thought(one: Happening) -> str:
    chunk, is_final = one.payload["chunk"], one.payload["is_final"]
    # The possible beginning of a secret is held back until the next chunk: the thought goes on.
    return cut(f"thinks: {chunk}") if chunk else "has thought" if is_final else "thinks"


def _began(one: Happening) -> str:
    return cut(f"tool {one.payload['tool']} {one.payload['arguments']}")


def _ended(one: Happening) -> str:
    said = one.payload
    return f"tool {said['tool']} {said['status']} after {seconds(round(said['duration_ms']))}"


_LINES: Final[dict[str, Callable[[Happening], str]]] = {
    "THOUGHT_STREAM": _thought,
    "TOOL_LIFECYCLE_INVOKED": _began,
    "TOOL_LIFECYCLE_COMPLETED": _ended,
    "SANDBOX_PULSE": lambda one: f"| {one.payload['line']}",
}
"""Event type -> its line; others are printed as by `events`."""
