"""What waits for a slow listener: thoughts and terminal lines grow together, nothing else is lost.

When it is full, parts of the same thought, and lines of the same terminal, become one event, with a
mark that says so. Calls of tools and moves of tasks stand where they stood, whole.
"""

from collections.abc import Collection, Iterable
from typing import Any, Final, NamedTuple

import msgspec

from dragoman.engine.reads.traces import Told

MOST_TEXT: Final = 4_096
"""Characters of a coalesced text that are kept; its mark says how many are missing."""

MOST_BYTES: Final = 16 * 1024 * 1024
"""Approximate bytes that wait for one subscriber, as JSON."""

_TEXT: Final = {"THOUGHT_STREAM": ("chunk", ""), "SANDBOX_PULSE": ("line", "\n")}
"""Type of event -> the field whose texts can be coalesced, and the separator between two."""


class Weighed(NamedTuple):
    """An event and its size as JSON, measured once for all subscribers."""

    told: Told
    size: int


def weighed(events: Iterable[Told]) -> list[Weighed]:
    """Measure the size of each event."""
    return [Weighed(one, len(msgspec.json.encode(one.event))) for one in events]


class Backlog:
    """A queue of events, bounded in number and bytes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._events: list[Told] = []
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._events)

    def take(self) -> list[Told]:
        """Return all events and empty the queue."""
        taken, self._events, self._bytes = self._events, [], 0
        return taken

    def add(self, events: Collection[Weighed]) -> bool:
        """Add events; return False if there is no room, even after coalescing."""
        told, sizes = zip(*events, strict=True) if events else ((), ())
        self._events += told
        self._bytes += sum(sizes)
        if len(self._events) > self._size or self._bytes > MOST_BYTES:
            self._events = coalesced(self._events)
            self._bytes = sum(one.size for one in weighed(self._events))
        return len(self._events) <= self._size and self._bytes <= MOST_BYTES


def coalesced(events: Iterable[Told]) -> list[Told]:
    """Coalesce neighbouring events that are parts of one text."""
    found: list[Told] = []
    open_ones: dict[tuple[object, ...], int] = {}
    """Key of a text -> the index of the event that it grows in."""
    for event in events:
        key = _belongs(event)
        if key is None:
            # What comes behind this event must not move before it.
            open_ones.clear()
        elif key in open_ones:
            place = open_ones[key]
            found[place] = _joined(found[place], event)
            continue
        else:
            open_ones[key] = len(found)
        found.append(event)
    # A text has the position of its last part: a reader that resumes behind it has missed nothing.
    return sorted(found, key=lambda event: event.position)


def _belongs(told: Told) -> tuple[object, ...] | None:
    """Return the key of the text that an event is a part of; None: it stands for itself."""
    if told.type not in _TEXT:
        return None
    payload = told.event["payload"]
    about = (payload.get("agent_id"), payload.get("turn_index"))
    return (told.type, told.event["session_id"], *about)


def _joined(first: Told, second: Told) -> Told:
    """Merge two parts; the result has the second one's position, so that a cursor behind it is
    true."""
    field, between = _TEXT[first.type]
    one, other = first.event["payload"], second.event["payload"]
    gap: dict[str, Any] = first.event.get("gap") or {
        "coalesced": 1,
        "missing_characters": 0,
        "from_position": first.position,
    }
    text = one[field] + between + other[field]
    missing = max(0, len(text) - MOST_TEXT)
    payload = {**other, field: text[:MOST_TEXT]}
    if "masked" in payload:
        payload["masked"] = one["masked"] or other["masked"]
    marked = {
        **second.event,
        "payload": payload,
        "gap": {
            **gap,
            "coalesced": gap["coalesced"] + 1,
            "missing_characters": gap["missing_characters"] + missing,
            "to_position": second.position,
        },
    }
    return Told(second.position, second.type, second.task, first.masked or second.masked, marked)
