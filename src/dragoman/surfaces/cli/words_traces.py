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

_MASKED = {True: ", with secrets masked", False: ""}


def _turn(event: TurnRecorded) -> str:
    sure = f"{event.confidence:.0%} sure"
    return f"turn {event.turn_index} of the {event.agent}, {sure}{_MASKED[event.masked]}"


def _trace(event: TraceRecorded) -> str:
    about = f" about {event.task}" if event.task else ""
    return f"{event.type} in session {event.session}{about}{_MASKED[event.masked]}"


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
