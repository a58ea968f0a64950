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

PARTS: Final = ("researcher", "architect", "developer", "reviewer")
"""The parts that an agent can play: who is named so plays it, unless another is registered."""

MOST_CALL: Final = 256
"""The longest id of a call (S-LIMIT)."""

REMEMBERED: Final = 256
"""So many calls that have ended, finished thoughts, and tasks are remembered of a session."""
MOST_OPEN: Final = 512
"""So many calls of a session may be under way; of more, the oldest are forgotten."""


class Trace(Struct, frozen=True, omit_defaults=True):
    """A session as far as its trace goes, folded from the stream `trace:SESSION`."""

    session: str
    events: int = 0
    tasks: tuple[str, ...] = ()
    """The tasks that its events are about, as many as are remembered; the last one at the end."""
    open_calls: tuple[str, ...] = ()
    """Each by a digest of its sender and its id, which may be long."""
    ended_calls: tuple[str, ...] = ()
    thoughts: tuple[str, ...] = ()
    """Those that are finished, each by its turn, its agent, and who sent it."""
    anomalies: int = 0

    @property
    def task(self) -> str:
        """The task that it worked on last."""
        return self.tasks[-1] if self.tasks else ""


class TurnLog(Struct, frozen=True, omit_defaults=True):
    """The turns of a task as far as the next one needs it, folded from the stream `turns:TASK`."""

    task: str
    turns: int = 0
    raised: dict[str, float] = {}
    """What was told about them and has not settled: its kind -> what was measured."""
    attempt: int = 0
    """The last attempt of which there is a turn: what was told is about that one."""
    beside: tuple[tuple[str, int], ...] = ()
    """Who has shown turns without ever having an attempt, and in which attempt the task was then.

    Each of these is a count of its own: the first one's turns stand as attempt -1, then -2.
    """


class Logged(Struct, frozen=True, gc=False):
    """Where a turn or an event stands that was recorded before, and what tells it from others."""

    position: int
    """Below 0 while its batch is not committed: its place there."""
    digest: str
    masked: bool = False


def attempt_of(task: Task, actor: Actor, log: TurnLog | None) -> int:
    """The attempt to which a turn of this one belongs; below 0 is none: it never had one here."""
    if actor.role != "agent" or actor.name in task.agents:
        return task.attempts
    beside = log.beside if log else ()
    count = (actor.name, task.attempts)
    return -1 - (beside.index(count) if count in beside else len(beside))


def own_counts(log: TurnLog | None, actor: Actor) -> Iterator[int]:
    """Where turns of this one stand beside the attempts, the last place first."""
    beside = log.beside if log else ()
    for place in reversed(range(len(beside))):
        if beside[place][0] == actor.name:
            yield -1 - place


def misfits(trace: Trace, event: TraceRecorded) -> Iterator[tuple[str, str]]:
    """What does not fit about an event after those before it: its kind, and a sentence."""
    call, thought = event.call, _thought(event)
    key = _call(event) if call else ""
    if call and event.ends_call and key not in trace.open_calls:
        if key in trace.ended_calls:
            yield "second_completion", f"the call {call[:200]!a} had ended already"
        else:
            yield "orphan_completion", f"nobody began the call {call[:200]!a} that has ended"
    elif call and not event.ends_call and key in trace.open_calls:
        yield "second_invocation", f"the call {call[:200]!a} had begun already"
    if thought and thought in trace.thoughts:
        kind = "second_final" if event.is_final else "chunk_after_final"
        yield kind, f"the thought of turn {event.turn} of {event.agent} had its final part already"


def _thought(event: TraceRecorded) -> str:
    return "" if event.turn is None else f"{event.turn} {event.agent} {event.by}".rstrip()


def _call(event: TraceRecorded) -> str:
    """One sender's call: nobody ends that of another, and no id fills the state."""
    return sha256(f"{event.by}\n{event.call}".encode(errors="surrogatepass")).hexdigest()[:16]


def _recorded(trace: Trace | None, event: TraceRecorded, at: int) -> Trace:
    del at
    trace = trace or Trace(event.session)
    open_calls, ended, thoughts = trace.open_calls, trace.ended_calls, trace.thoughts
    if event.call:
        key = _call(event)
        open_calls = tuple(call for call in open_calls if call != key)
        if event.ends_call:
            ended = (*ended, key)[-REMEMBERED:]
        else:
            open_calls = (*open_calls, key)[-MOST_OPEN:]
    if event.is_final:
        thoughts = (*thoughts, _thought(event))[-REMEMBERED:]
    tasks = trace.tasks
    if event.task not in ("", trace.task):
        tasks = (*(one for one in tasks if one != event.task), event.task)[-REMEMBERED:]
    return Trace(
        trace.session,
        trace.events + 1,
        tasks,
        open_calls,
        ended,
        thoughts,
        trace.anomalies,
    )


def _odd(trace: Trace, _: TraceAnomaly, at: int) -> Trace:
    del at
    return replace(trace, anomalies=trace.anomalies + 1)


def _turned(log: TurnLog | None, event: TurnRecorded, at: int) -> TurnLog:
    del at
    log = log or TurnLog(event.task)
    log = replace(log, turns=log.turns + 1)
    if event.attempt > log.attempt:
        return replace(log, raised={}, attempt=event.attempt)
    count = (event.by, event.beside)
    if event.attempt >= 0 or count in log.beside:
        return log
    return replace(log, beside=(*log.beside, count))


def _escalated(log: TurnLog, event: EntropyEscalated, at: int) -> TurnLog:
    del at
    return replace(log, raised={**log.raised, event.kind: float(event.measured)})


def _settled(log: TurnLog, event: EntropySettled, at: int) -> TurnLog:
    del at
    left = {kind: value for kind, value in log.raised.items() if kind != event.kind}
    return replace(log, raised=left)


EVOLVE_TRACE: dict[type[TraceEvent], Callable[[Any, Any, int], Trace]] = {
    TraceRecorded: _recorded,
    TraceAnomaly: _odd,
}
"""Event -> the trace after it, from the trace before it (None at first) and its time."""

EVOLVE_TURNS: dict[type[TurnEvent], Callable[[Any, Any, int], TurnLog]] = {
    TurnRecorded: _turned,
    EntropyEscalated: _escalated,
    EntropySettled: _settled,
}
"""The same for the turns of a task."""
