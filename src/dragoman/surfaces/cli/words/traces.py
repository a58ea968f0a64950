"""Turns and traces in words: each as the rest of a sentence that its actor begins."""

from collections.abc import Callable
from typing import Any

from dragoman.core.events import (
    EntropyEscalated,
    EntropySettled,
    Event,
    TraceAnomaly,
    TraceRecorded,
    TurnRecorded,
)
from dragoman.surfaces.cli.words.phrases import truncate

TRANSITION_REQUEST = "TASK_TRANSITION"
"""Type of the trace events that request a transition."""
_MASKED = {True: ", with secrets masked", False: ""}


def _turn_recorded(event: TurnRecorded) -> str:
    confidence = f"{event.confidence:.0%} sure"
    return f"turn {event.turn_index} of the {event.agent}, {confidence}{_MASKED[event.masked]}"


def _trace_recorded(event: TraceRecorded) -> str:
    about = f" about {event.task}" if event.task else ""
    where = f"in session {event.session}{about}{_MASKED[event.masked]}"
    # An agent's transition event is a request: an actual transition is an entry of its own.
    request_note = " asked for" if event.type == TRANSITION_REQUEST else ""
    return f"{event.type}{request_note} {where}{_payload_summary(event)}"


def _payload_summary(event: TraceRecorded) -> str:
    """Summary of the payload in a few words; empty for unknown types."""
    payload: Any = event.envelope.get("payload")
    fields = _SUMMARY_FIELDS.get(event.type, ())
    values = [str(payload[name]) for name in fields if name in payload] if payload else []
    between = " → " if event.type == TRANSITION_REQUEST else " "
    return f": {truncate(between.join(values), _MAX_SUMMARY)}" if values else ""


_MAX_SUMMARY = 100
_SUMMARY_FIELDS: dict[str, tuple[str, ...]] = {
    "THOUGHT_STREAM": ("chunk",),
    "TOOL_LIFECYCLE_INVOKED": ("tool",),
    "TOOL_LIFECYCLE_COMPLETED": ("tool", "status"),
    TRANSITION_REQUEST: ("from_state", "to_state"),
    "SANDBOX_PULSE": ("line",),
}
"""Type of trace event -> payload fields for its summary."""


def _trace_anomaly(event: TraceAnomaly) -> str:
    return f"anomaly ({event.kind}) in session {event.session}: {event.detail}"


def _entropy_escalated(event: EntropyEscalated) -> str:
    turns = ", ".join(map(str, event.turns))
    return f"escalated: {event.kind}, {event.detail} (turns {turns})"


def _entropy_settled(event: EntropySettled) -> str:
    return f"settled: {event.kind} is over"


TRACE_EVENT_TEXT: dict[type[Event], Callable[[Any], str]] = {
    TurnRecorded: _turn_recorded,
    TraceRecorded: _trace_recorded,
    TraceAnomaly: _trace_anomaly,
    EntropyEscalated: _entropy_escalated,
    EntropySettled: _entropy_settled,
}
