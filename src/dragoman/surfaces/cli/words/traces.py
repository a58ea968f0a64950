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
from dragoman.surfaces.cli.words.phrases import cut

REQUEST = "TASK_TRANSITION"
"""Type of the trace events that request a transition."""
_MASKED = {True: ", with secrets masked", False: ""}


def _turn(event: TurnRecorded) -> str:
    sure = f"{event.confidence:.0%} sure"
    return f"turn {event.turn_index} of the {event.agent}, {sure}{_MASKED[event.masked]}"


def _trace(event: TraceRecorded) -> str:
    about = f" about {event.task}" if event.task else ""
    where = f"in session {event.session}{about}{_MASKED[event.masked]}"
    # An agent's transition event is a request: an actual transition is an entry of its own.
    asked = " asked for" if event.type == REQUEST else ""
    return f"{event.type}{asked} {where}{_gist(event)}"


def _gist(event: TraceRecorded) -> str:
    """Summary of the payload in a few words; empty for unknown types."""
    payload: Any = event.envelope.get("payload")
    fields = _SAYS.get(event.type, ())
    said = [str(payload[name]) for name in fields if name in payload] if payload else []
    between = " → " if event.type == REQUEST else " "
    return f": {cut(between.join(said), _GIST)}" if said else ""


_GIST = 100
_SAYS: dict[str, tuple[str, ...]] = {
    "THOUGHT_STREAM": ("chunk",),
    "TOOL_LIFECYCLE_INVOKED": ("tool",),
    "TOOL_LIFECYCLE_COMPLETED": ("tool", "status"),
    REQUEST: ("from_state", "to_state"),
    "SANDBOX_PULSE": ("line",),
}
"""Type of trace event -> payload fields for its summary."""


def _anomaly(event: TraceAnomaly) -> str:
    return f"anomaly ({event.kind}) in session {event.session}: {event.detail}"


def _escalated(event: EntropyEscalated) -> str:
    turns = ", ".join(map(str, event.turns))
    return f"escalated: {event.kind}, {event.detail} (turns {turns})"


def _settled(event: EntropySettled) -> str:
    return f"settled: {event.kind} is over"


TRACE_WORDS: dict[type[Event], Callable[[Any], str]] = {
    TurnRecorded: _turn,
    TraceRecorded: _trace,
    TraceAnomaly: _anomaly,
    EntropyEscalated: _escalated,
    EntropySettled: _settled,
}
