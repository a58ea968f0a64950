"""Texts of the live view: marks, ages and lines, in which nothing of an agent's words acts."""

from datetime import UTC, datetime
from typing import Final

from rich.text import Text

from dragoman.core.base import AttentionKind, Status
from dragoman.core.timestamps import format_rough_duration, parse_rfc3339
from dragoman.text.safe_text import safe_text

RUN, WAIT, BAD, GOOD, HAND, IDLE = "#6fbdf2", "#eabf5d", "#fa8a80", "#68d292", "#ccaaf8", "#94989f"
"""Colours, which are for states only."""

STATUSES: Final[dict[Status, tuple[str, str, str]]] = {
    "in-progress": ("●", "in progress", RUN),
    "review": ("◆", "review", WAIT),
    "blocked": ("■", "blocked", BAD),
    "deadletter": ("▲", "given up", BAD),
    "ready": ("○", "ready", "#b9bdc2"),
    "backlog": ("·", "backlog", "#6b7076"),
    "done": ("✓", "done", GOOD),
    "cancelled": ("×", "cancelled", IDLE),
}
"""Status -> its mark, word and colour, in the order in which they are shown."""

KINDS: Final[dict[AttentionKind, tuple[str, str, str]]] = {
    "waits_for_input": ("◆", "Input", WAIT),
    "question": ("◆", "Question", WAIT),
    "help": ("◆", "Help", WAIT),
    "gate": ("⇄", "Approval", HAND),
    "review": ("◆", "Review", WAIT),
    "paused": ("○", "Paused", IDLE),
    "no_progress": ("◆", "Quiet", WAIT),
    "deadletter": ("▲", "Given up", BAD),
    "unknown_assignee": ("■", "Unknown", BAD),
    "escalation": ("▲", "Late", BAD),
}
"""Kind of a person's need -> its mark, word and colour."""


def plain(text: str, style: str = "") -> Text:
    """Make a text of one line that is shown as it is: no markup, no control characters."""
    return Text(safe_text(text, one_line=True), style, no_wrap=True, end="")


def status_cell(status: Status) -> Text:
    """Mark and word of a status."""
    mark, word, colour = STATUSES[status]
    return plain(f"{mark} {word}", colour)


def parse_time(at: str) -> int:
    """Time of the API in milliseconds."""
    return parse_rfc3339(at)


def age(at: str | None, now: int) -> str:
    """Time since a moment, in its largest unit: 5s, 12m, 3h, 2d."""
    return "" if at is None else _rough(now - parse_time(at))


def time_left(until: str | None, now: int) -> Text:
    """Time until a lease ends; red when it is over or nearly so."""
    if until is None:
        return plain("")
    left = parse_time(until) - now
    return plain(_rough(left) if left > 0 else "over", "" if left > 30_000 else BAD)


def _rough(ms: int) -> str:
    return format_rough_duration(max(ms // 1_000, 1) * 1_000)


def clock(at: int) -> str:
    """Time of day in the zone of this terminal."""
    return f"{datetime.fromtimestamp(at / 1_000, UTC).astimezone():%H:%M:%S}"
