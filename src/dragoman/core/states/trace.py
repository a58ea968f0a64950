"""What is remembered of a session's trace, and of the turns of a task (S-SAOP-6).

Only what the next event has to be compared with: the events themselves are in the ledger.
"""

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.events import (
    EntropyEscalated,
    EntropySettled,
    TraceAnomaly,
    TraceEvent,
    TraceRecorded,
    TurnEvent,
    TurnRecorded,
)
from dragoman.core.states.task import Task

SAOP_ROLES: Final = ("researcher", "architect", "developer", "reviewer")
"""SAOP roles: an agent with such a name plays it, unless another is registered."""

MAX_CALL_ID_LENGTH: Final = 256
"""Longest id of a call (S-LIMIT)."""

MAX_REMEMBERED: Final = 256
"""Ended calls, finished thoughts, and tasks remembered of a session."""
MAX_OPEN_CALLS: Final = 512
"""Open calls of a session; of more, the oldest are forgotten."""


class Trace(Struct, frozen=True, omit_defaults=True):
    """State of a session's trace, folded from the stream `trace:SESSION`."""

    session: str
    events: int = 0
    tasks: tuple[str, ...] = ()
    """Tasks of its events, as many as are remembered; the latest at the end."""
    open_calls: tuple[str, ...] = ()
    """Digests of a call's sender and id, which may be long."""
    ended_calls: tuple[str, ...] = ()
    thoughts: tuple[str, ...] = ()
    """Finished thoughts, by turn, agent and sender."""
    anomalies: int = 0

    @property
    def task(self) -> str:
        """Task that it worked on last."""
        return self.tasks[-1] if self.tasks else ""


class TurnLog(Struct, frozen=True, omit_defaults=True):
    """State of a task's turns, folded from the stream `turns:TASK`."""

    task: str
    turns: int = 0
    raised: dict[str, float] = {}
    """Kind of a raised sign that has not settled -> its measured value."""
    attempt: int = 0
    """Last attempt of which there is a turn: the raised signs are about that one."""
    beside: tuple[tuple[str, int], ...] = ()
    """Authors of turns who never had an attempt, with the attempt that the task was in then.

    Each counts apart: the turns of the first one stand as attempt -1, then -2.
    """


class RecordedEntry(Struct, frozen=True, gc=False):
    """Position of a recorded turn or trace event, and the digest that tells it from others."""

    position: int
    """Below 0 while its batch is not committed: its place there."""
    digest: str
    masked: bool = False


def turn_attempt(task: Task, actor: Actor, log: TurnLog | None) -> int:
    """Attempt that a turn of this actor belongs to; below 0: it never held the task."""
    if actor.role != "agent" or actor.name in task.agents:
        return task.attempts
    counts = log.beside if log else ()
    count = (actor.name, task.attempts)
    return -1 - (counts.index(count) if count in counts else len(counts))


def outside_attempts(log: TurnLog | None, actor: Actor) -> Iterator[int]:
    """Negative attempt numbers of this actor's turns, the last one first."""
    counts = log.beside if log else ()
    for place in reversed(range(len(counts))):
        if counts[place][0] == actor.name:
            yield -1 - place


def find_anomalies(trace: Trace, event: TraceRecorded) -> Iterator[tuple[str, str]]:
    """Anomalies of an event against those before it: a kind and a sentence each."""
    call, thought = event.call, _thought_key(event)
    key = _call_key(event) if call else ""
    if call and event.ends_call and key not in trace.open_calls:
        if key in trace.ended_calls:
            yield "second_completion", f"the call {call[:200]!a} had ended already"
        else:
            yield "orphan_completion", f"the call {call[:200]!a} ended without having begun"
    elif call and not event.ends_call and key in trace.open_calls:
        yield "second_invocation", f"the call {call[:200]!a} had begun already"
    if thought and thought in trace.thoughts:
        kind = "second_final" if event.is_final else "chunk_after_final"
        yield kind, f"the thought of turn {event.turn} of {event.agent} had its final part already"


def _thought_key(event: TraceRecorded) -> str:
    return "" if event.turn is None else f"{event.turn} {event.agent} {event.by}".rstrip()


def _call_key(event: TraceRecorded) -> str:
    """Digest per sender: nobody ends another's call, and no long id fills the state."""
    return sha256(f"{event.by}\n{event.call}".encode(errors="surrogatepass")).hexdigest()[:16]


def _fold_trace_recorded(trace: Trace | None, event: TraceRecorded, at: int) -> Trace:
    del at
    trace = trace or Trace(event.session)
    open_calls, ended, thoughts = trace.open_calls, trace.ended_calls, trace.thoughts
    if event.call:
        key = _call_key(event)
        open_calls = tuple(call for call in open_calls if call != key)
        if event.ends_call:
            ended = (*ended, key)[-MAX_REMEMBERED:]
        else:
            open_calls = (*open_calls, key)[-MAX_OPEN_CALLS:]
    if event.is_final:
        thoughts = (*thoughts, _thought_key(event))[-MAX_REMEMBERED:]
    tasks = trace.tasks
    if event.task not in ("", trace.task):
        tasks = (*(one for one in tasks if one != event.task), event.task)[-MAX_REMEMBERED:]
    return Trace(
        trace.session,
        trace.events + 1,
        tasks,
        open_calls,
        ended,
        thoughts,
        trace.anomalies,
    )


def _fold_trace_anomaly(trace: Trace, _: TraceAnomaly, at: int) -> Trace:
    del at
    return replace(trace, anomalies=trace.anomalies + 1)


def _fold_turn_recorded(log: TurnLog | None, event: TurnRecorded, at: int) -> TurnLog:
    del at
    log = log or TurnLog(event.task)
    log = replace(log, turns=log.turns + 1)
    if event.attempt > log.attempt:
        return replace(log, raised={}, attempt=event.attempt)
    count = (event.by, event.beside)
    if event.attempt >= 0 or count in log.beside:
        return log
    return replace(log, beside=(*log.beside, count))


def _fold_entropy_escalated(log: TurnLog, event: EntropyEscalated, at: int) -> TurnLog:
    del at
    return replace(log, raised={**log.raised, event.kind: float(event.measured)})


def _fold_entropy_settled(log: TurnLog, event: EntropySettled, at: int) -> TurnLog:
    del at
    raised = {kind: value for kind, value in log.raised.items() if kind != event.kind}
    return replace(log, raised=raised)


TRACE_FOLDS: dict[type[TraceEvent], Callable[[Any, Any, int], Trace]] = {
    TraceRecorded: _fold_trace_recorded,
    TraceAnomaly: _fold_trace_anomaly,
}
"""Event -> fold: the trace after it, from the trace before it (None at first) and its time."""

TURN_FOLDS: dict[type[TurnEvent], Callable[[Any, Any, int], TurnLog]] = {
    TurnRecorded: _fold_turn_recorded,
    EntropyEscalated: _fold_entropy_escalated,
    EntropySettled: _fold_entropy_settled,
}
"""The same for the turns of a task."""
