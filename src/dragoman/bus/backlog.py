"""What waits for a slow listener: thoughts and terminal lines grow together, nothing else is lost.

When it is full, parts of the same thought, and lines of the same terminal, become one event, with a
mark that says so. Calls of tools and moves of tasks stand where they stood, whole.
"""

from collections.abc import Collection, Iterable
from typing import Any, Final, NamedTuple

import msgspec

from dragoman.engine.reads.traces import TraceEvent

MAX_TEXT: Final = 4_096
"""Characters of a coalesced text that are kept; its mark says how many are missing."""

MAX_QUEUE_BYTES: Final = 16 * 1024 * 1024
"""Approximate bytes that wait for one subscriber, as JSON."""

_TEXT_FIELDS: Final = {"THOUGHT_STREAM": ("chunk", ""), "SANDBOX_PULSE": ("line", "\n")}
"""Type of event -> the field whose texts can be coalesced, and the separator between two."""


class SizedEvent(NamedTuple):
    """An event and its size as JSON, measured once for all subscribers."""

    event: TraceEvent
    size: int


def measure(events: Iterable[TraceEvent]) -> list[SizedEvent]:
    """Measure the size of each event."""
    return [SizedEvent(event, len(msgspec.json.encode(event.event))) for event in events]


class EventQueue:
    """A queue of events, bounded in number and bytes."""

    def __init__(self, max_events: int) -> None:
        self._max_events = max_events
        self._events: list[TraceEvent] = []
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._events)

    def take(self) -> list[TraceEvent]:
        """Return all events and empty the queue."""
        events, self._events, self._bytes = self._events, [], 0
        return events

    def add(self, events: Collection[SizedEvent]) -> bool:
        """Add events; return False if there is no room, even after coalescing."""
        incoming, sizes = zip(*events, strict=True) if events else ((), ())
        self._events += incoming
        self._bytes += sum(sizes)
        if len(self._events) > self._max_events or self._bytes > MAX_QUEUE_BYTES:
            self._events = coalesce(self._events)
            self._bytes = sum(one.size for one in measure(self._events))
        return len(self._events) <= self._max_events and self._bytes <= MAX_QUEUE_BYTES


def coalesce(events: Iterable[TraceEvent]) -> list[TraceEvent]:
    """Coalesce neighbouring events that are parts of one text."""
    found: list[TraceEvent] = []
    open_texts: dict[tuple[object, ...], int] = {}
    """Key of a text -> the index of the event that it grows in."""
    for event in events:
        key = _text_key(event)
        if key is None:
            # What comes behind this event must not move before it.
            open_texts.clear()
        elif key in open_texts:
            index = open_texts[key]
            found[index] = _merge(found[index], event)
            continue
        else:
            open_texts[key] = len(found)
        found.append(event)
    # A text has the position of its last part: a reader that resumes behind it has missed nothing.
    return sorted(found, key=lambda event: event.position)


def _text_key(event: TraceEvent) -> tuple[object, ...] | None:
    """Return the key of the text that an event is a part of; None: it stands for itself."""
    if event.type not in _TEXT_FIELDS:
        return None
    payload = event.event["payload"]
    about = (payload.get("agent_id"), payload.get("turn_index"))
    return (event.type, event.event["session_id"], *about)


def _merge(first: TraceEvent, second: TraceEvent) -> TraceEvent:
    """Merge two parts; the result has the second one's position, so that a cursor behind it is
    true."""
    field, separator = _TEXT_FIELDS[first.type]
    first_payload, second_payload = first.event["payload"], second.event["payload"]
    gap: dict[str, Any] = first.event.get("gap") or {
        "coalesced": 1,
        "missing_characters": 0,
        "from_position": first.position,
    }
    text = first_payload[field] + separator + second_payload[field]
    missing = max(0, len(text) - MAX_TEXT)
    payload = {**second_payload, field: text[:MAX_TEXT]}
    if "masked" in payload:
        payload["masked"] = first_payload["masked"] or second_payload["masked"]
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
    return TraceEvent(
        second.position, second.type, second.task, first.masked or second.masked, marked
    )
