"""Printing of results: for people, in colour on a terminal only, or as ASCII JSON.

All text for people passes `safe_text` here, so that no command can forget it. `rich` is loaded only
for a terminal, because it takes longer to load than most commands run.
"""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

from msgspec import Struct

from dragoman.surfaces.cli.caller import terminal_variables
from dragoman.text.safe_text import safe_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

# --- screen -----------------------------------------------------------------------------------

StyledText = str | tuple[str, str]
"""A text, or a text with its style."""

Progress = Callable[[int], None]
"""Called with the number of further steps done."""

ProgressBars = Callable[[str, int], AbstractContextManager[Progress]]
"""Makes a progress bar: label and total."""

_COLUMN_GAP = "  "


class Column(Struct, frozen=True):
    """Column of a table: its heading, and its style on a terminal."""

    heading: str
    style: str = ""
    styles: Mapping[str, str] = {}
    """Cell -> its style, where the style depends on the content."""
    max_width: int | None = None
    """Width beyond which a long cell widens its own row only; None: the column is as wide as its
    longest cell."""


class OutputError(Exception):
    """The output cannot be written, for example because a disk is full."""


class OutputClosed(Exception):
    """The reader has closed the output."""


def to_ascii_json(value: Mapping[str, object]) -> str:
    """Format one line of ASCII JSON: control characters for terminals are escaped."""
    return json.dumps(value, ensure_ascii=True)


class Screen:
    """One of the two standard streams."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.is_terminal = stream.isatty()
        self._rich_console: Console | None = None

    def line(self, *parts: StyledText) -> None:
        """Print one line; line feeds in its text are replaced."""
        if self.is_terminal and any(isinstance(part, tuple) for part in parts):
            self._console().print(_to_rich_text(parts), soft_wrap=True)
        else:
            texts = (part if isinstance(part, str) else part[0] for part in parts)
            self._write(safe_text("".join(texts), one_line=True))

    def block(self, text: str, margin: str) -> None:
        """Print several lines behind a margin, so that none of them passes for one of ours."""
        for line in safe_text(text).split("\n"):
            self._write(margin + line)

    def json(self, value: Mapping[str, object]) -> None:
        """Print one JSON object on one line."""
        self._write(to_ascii_json(value))

    def write_raw(self, text: str) -> None:
        """Write a text unchanged and at once, byte by byte."""
        with _translate_output_errors():
            buffer = getattr(self._stream, "buffer", None)
            if buffer is None:
                self._stream.write(text)
            else:
                self._stream.flush()
                buffer.write(text.encode(errors="surrogateescape"))
                buffer.flush()

    def flush(self) -> None:
        with _translate_output_errors():
            self._stream.flush()

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        """Print rows under headings, aligned by spaces; cut at the edge of a terminal."""
        headings = [column.heading for column in columns]
        safe = [[safe_text(cell, one_line=True) for cell in row] for row in rows]
        longest = (max(map(len, cells)) for cells in zip(headings, *safe, strict=True))
        widths = [
            width if column.max_width is None else min(width, column.max_width)
            for column, width in zip(columns, longest, strict=True)
        ]
        self._print_row([(head, "bold") for head in headings], widths)
        for row in safe:
            cells = zip(columns, row, strict=True)
            self._print_row([(cell, c.styles.get(cell, c.style)) for c, cell in cells], widths)

    @contextmanager
    def progress(self, label: str, total: int) -> Generator[Progress]:
        """Show a progress bar on a terminal; elsewhere nothing."""
        if not self.is_terminal:
            yield lambda _: None
            return
        from rich.progress import Progress as Bar

        with Bar(console=self._console(), transient=True) as bar:
            task = bar.add_task(label, total=total)
            yield lambda done: bar.advance(task, done)

    def _write(self, text: str) -> None:
        with _translate_output_errors():
            self._stream.write(text + "\n")

    def _print_row(self, cells: Sequence[tuple[str, str]], widths: Sequence[int]) -> None:
        padded = [
            (text.ljust(width), style) for (text, style), width in zip(cells, widths, strict=True)
        ]
        if self.is_terminal:
            line = _to_rich_text([part for cell in padded for part in (cell, _COLUMN_GAP)])
            line.rstrip()
            self._console().print(line, no_wrap=True, overflow="ellipsis")
        else:
            self._write(_COLUMN_GAP.join(text for text, _ in padded).rstrip())

    def _console(self) -> "Console":
        if self._rich_console is None:
            from rich.console import Console

            self._rich_console = Console(
                file=self._stream,
                markup=False,
                highlight=False,
                emoji=False,
                **terminal_variables(),
            )
        return self._rich_console


@contextmanager
def _translate_output_errors() -> Generator[None]:
    """Translate errors of the output, so that they are not taken for errors of the store."""
    try:
        yield
    except BrokenPipeError as error:
        raise OutputClosed from error
    except OSError as error:
        raise OutputError(f"the answer could not be printed: {error.strerror}") from error


def _to_rich_text(parts: Sequence[StyledText]) -> "Text":
    from rich.text import Text

    text = Text()
    for part in parts:
        content, style = (part, "") if isinstance(part, str) else part
        text.append(safe_text(content, one_line=True), style)
    return text


# --- pieces of sentences ----------------------------------------------------------------------

UNSIGNED_WARNING = (
    "no signed checkpoint covers them: a complete rewrite would not be noticed. "
    "If checkpoints.jsonl was there before, bring it back; else `dragoman tick` signs from now on"
)
"""Warning about entries without a checkpoint."""


def pluralize(number: int, singular: str, plural: str = "") -> str:
    """Format a count: 1 success, 2 successes."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


# --- any object -------------------------------------------------------------------------------

_MARGIN = "  "


def print_fields(screen: Screen, values: Mapping[str, Any], margin: str = "") -> None:
    """Print an object: a line for each field that is not empty, objects in it further in."""
    from dragoman.engine.sentences import format_value

    present = {name: value for name, value in values.items() if value not in (None, "", [], (), {})}
    width = min(max(map(len, present), default=0), 18)
    for name, value in present.items():
        label = name.replace("_", " ")
        if isinstance(value, Mapping):
            screen.line(margin, (label, "bold"))
            print_fields(screen, cast(Mapping[str, Any], value), margin + _MARGIN)
        elif isinstance(value, list | tuple) and isinstance(value[0], Mapping):
            for item in cast(Sequence[Mapping[str, Any]], value):
                screen.line(margin, (label, "bold"))
                print_fields(screen, item, margin + _MARGIN)
        elif "\n" in (text := format_value(value)):
            screen.line(margin, (label, "bold"))
            screen.block(text, f"{margin}{_MARGIN}| ")
        else:
            screen.line(margin, (f"{label:<{width}}  ", "bold"), text)


# --- styles -----------------------------------------------------------------------------------

TASK_STATUS_STYLES: dict[str, str] = {
    "backlog": "dim",
    "ready": "cyan",
    "in-progress": "yellow",
    "blocked": "magenta",
    "review": "blue",
    "done": "green",
    "deadletter": "bold red",
    "cancelled": "dim",
}
