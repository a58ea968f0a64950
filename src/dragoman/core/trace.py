"""Traces of sessions and turns of tasks: record, request a transition, escalate (S-SAOP-3, 6, 9).

The state holds only what the next event is compared with: the recorded events themselves are in
the ledger.
"""

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core import adopt, claim, limits, not_found
from dragoman.core.actor import Actor
from dragoman.core.agent import SAOP_ROLES
from dragoman.core.attempt import ClaimTask
from dragoman.core.attempt_state import renew_lease
from dragoman.core.authority import MAY_DISPATCH, check_holds, check_may_comment, check_write, holds
from dragoman.core.base import (
    DEFAULT_LEASE_MS,
    DEFAULT_MAX_ATTEMPTS,
    Command,
    Event,
    Status,
    TaskCommand,
)
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_event_id, check_session, trace_stream, turns_stream
from dragoman.core.read import Decision, LeaseChange, Read, Receipt, task_receipt
from dragoman.core.task import decide_move_task
from dragoman.core.task_state import STATUS_CHANGES, AdoptTask, MoveTask, Task

# --- commands ---------------------------------------------------------------------------------


class RecordTurn(Command, frozen=True, tag="turn.record"):
    """Record what an agent thought, did and saw in one turn; a repeat changes nothing."""

    task: str
    turn_index: int
    agent: str
    """SAOP role that it states."""
    confidence: float
    envelope: dict[str, object]
    digest: str
    masked: bool = False
    adopt: bool = True
    """Create a task that is unknown, with the sender as its holder."""
    review_required: bool = True
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    ttl_ms: int = DEFAULT_LEASE_MS

    @property
    def heartbeat_task(self) -> str:
        """The task of the turn: sending turns shows that its holder is alive."""
        return self.task


class RecordTrace(Command, frozen=True, tag="trace.record"):
    """Record an event of a session; a repeat changes nothing."""

    event_id: str
    session: str
    kind: str
    """Type of the event in its dialect."""
    envelope: dict[str, object]
    digest: str
    masked: bool = False
    task: str = ""
    """Task that it names; empty: the one that its session works on."""
    agent: str = ""
    """SAOP role of the agent it is about, if stated."""
    call: str = ""
    ends_call: bool = False
    turn: int | None = None
    is_final: bool = False
    commit: str = ""
    """Commit checked out in the repository, for an event that moves a task without stating it."""


class RequestTransition(TaskCommand, frozen=True, tag="task.transition"):
    """Move a task because an event of a trace says that it moved."""

    to: Status
    caused_by: str
    """Id of that event."""
    commit: str = ""
    session: str = ""
    adopt: bool = True
    review_required: bool = True
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    ttl_ms: int = DEFAULT_LEASE_MS
    fence: int | None = None


class EscalateEntropy(TaskCommand, frozen=True, tag="entropy.escalate"):
    """Report once, until it settles, that the turns of a task look like an agent getting lost."""

    free_text = ("detail",)

    kind: str
    detail: str
    turns: tuple[int, ...]
    measured: float
    threshold: float

    @property
    def heartbeat_task(self) -> str:
        """Empty: no sign of life of the holder."""
        return ""


class SettleEntropy(TaskCommand, frozen=True, tag="entropy.settle"):
    """Report that a sign of entropy has settled."""

    kind: str
    measured: float

    @property
    def heartbeat_task(self) -> str:
        """Empty: no sign of life of the holder."""
        return ""


# --- events -----------------------------------------------------------------------------------


class TurnRecorded(Event, frozen=True):
    """An agent has recorded what it thought, did and saw in one turn of its work."""

    task: str
    attempt: int
    """Number of the attempt; below 0: the turn is of an agent that never held the task."""
    turn_index: int
    agent: str
    """Its SAOP role."""
    confidence: float
    envelope: dict[str, object]
    """The whole turn, in the form of its dialect, without secrets."""
    digest: str
    """Keyed digest of the original text: tells a repeat from another turn."""
    masked: bool = False
    by: str = ""
    """Author of a turn outside the attempts: each author's are counted apart."""
    after_attempt: int = 0
    """Attempt that the task was in then."""


class TraceRecorded(Event, frozen=True):
    """An event of a session: a thought, a call of a tool, a terminal line."""

    event_id: str
    session: str
    type: str
    envelope: dict[str, object]
    digest: str
    task: str = ""
    """Empty: the session works on no known task."""
    attempt: int = 0
    agent: str = ""
    masked: bool = False
    call: str = ""
    """Id of the tool call that begins or ends with it."""
    ends_call: bool = False
    turn: int | None = None
    """Turn whose thought it is a part of."""
    is_final: bool = False
    commit: str = ""
    """Commit checked out in the repository, of a task that is to move; takes precedence over the
    text."""
    by: str = ""
    """Sender: calls and thoughts are matched per sender."""


class TraceAnomaly(Event, frozen=True):
    """A recorded event does not fit those before it."""

    kind: str
    event_id: str
    session: str
    detail: str
    task: str = ""


class EntropyEscalated(Event, frozen=True):
    """The turns of a task look as if its agent is getting lost; somebody should look."""

    task: str
    kind: str
    detail: str
    attempt: int
    turns: tuple[int, ...]
    """Indexes of the turns that are the evidence."""
    measured: float
    threshold: float


class EntropySettled(Event, frozen=True):
    """A sign of entropy of a task has settled."""

    task: str
    kind: str
    measured: float


# --- state ------------------------------------------------------------------------------------

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
    outside_authors: tuple[tuple[str, int], ...] = ()
    """Authors of turns who never had an attempt, with the attempt that the task was in then.

    Each counts apart: the turns of the first one stand as attempt -1, then -2.
    """


class RecordedEntry(Struct, frozen=True, gc=False):
    """Position of a recorded turn or trace event, and the digest that tells it from others."""

    position: int
    """Below 0 while its batch is not committed: its place there."""
    digest: str
    masked: bool = False


# --- turns and attempts -----------------------------------------------------------------------


def turn_attempt(task: Task, actor: Actor, log: TurnLog | None) -> int:
    """Attempt that a turn of this actor belongs to; below 0: it never held the task."""
    if actor.role != "agent" or actor.name in task.agents:
        return task.attempts
    counts = log.outside_authors if log else ()
    count = (actor.name, task.attempts)
    return -1 - (counts.index(count) if count in counts else len(counts))


def outside_attempts(log: TurnLog | None, actor: Actor) -> Iterator[int]:
    """Negative attempt numbers of this actor's turns, the last one first."""
    counts = log.outside_authors if log else ()
    for place in reversed(range(len(counts))):
        if counts[place][0] == actor.name:
            yield -1 - place


# --- anomalies --------------------------------------------------------------------------------


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


# --- fold -------------------------------------------------------------------------------------


def _fold_trace_recorded(trace: Trace | None, event: TraceRecorded, _: int) -> Trace:
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


def _fold_trace_anomaly(trace: Trace, _: TraceAnomaly, __: int) -> Trace:
    return replace(trace, anomalies=trace.anomalies + 1)


def _fold_turn_recorded(log: TurnLog | None, event: TurnRecorded, _: int) -> TurnLog:
    log = log or TurnLog(event.task)
    log = replace(log, turns=log.turns + 1)
    if event.attempt > log.attempt:
        return replace(log, raised={}, attempt=event.attempt)
    count = (event.by, event.after_attempt)
    if event.attempt >= 0 or count in log.outside_authors:
        return log
    return replace(log, outside_authors=(*log.outside_authors, count))


def _fold_entropy_escalated(log: TurnLog, event: EntropyEscalated, _: int) -> TurnLog:
    return replace(log, raised={**log.raised, event.kind: float(event.measured)})


def _fold_entropy_settled(log: TurnLog, event: EntropySettled, _: int) -> TurnLog:
    raised = {kind: value for kind, value in log.raised.items() if kind != event.kind}
    return replace(log, raised=raised)


TRACE_FOLDS: dict[type[Event], Callable[[Any, Any, int], Trace]] = {
    TraceRecorded: _fold_trace_recorded,
    TraceAnomaly: _fold_trace_anomaly,
}
"""Event -> fold: the trace after it, from the trace before it (None at first) and its time."""

TURN_FOLDS: dict[type[Event], Callable[[Any, Any, int], TurnLog]] = {
    TurnRecorded: _fold_turn_recorded,
    EntropyEscalated: _fold_entropy_escalated,
    EntropySettled: _fold_entropy_settled,
}
"""The same for the turns of a task."""


# --- shared -----------------------------------------------------------------------------------

SAOP_KIND = "saop"
"""Kind of alias under which SAOP adopts a task."""


def find_or_adopt_task(
    command: RecordTurn | RequestTransition, read: Read, now: int
) -> tuple[Task | None, Receipt, Decision | None] | Refusal:
    """Task of this name and where it stands; with the decision that creates it if it is new."""
    task = read.task(command.task)
    if isinstance(task, Task):
        return task, task_receipt(task, task.status), None
    if task.code != "task_not_found" or not command.adopt:
        return task
    adopted = adopt.decide_adopt_task(
        AdoptTask(
            SAOP_KIND,
            command.task,
            review_required=command.review_required,
            max_attempts=command.max_attempts,
            claim_for=read.actor.name if read.actor.role == "agent" else "",
            ttl_ms=command.ttl_ms,
        ),
        read,
        now,
    )
    return adopted if isinstance(adopted, Refusal) else (None, adopted.receipt, adopted)


def repeat_decision(
    receipt: Receipt, known: RecordedEntry, digest: str, what: str
) -> Decision | Refusal:
    """Answer a repeat as it was answered then; refuse other content under the same key."""
    if known.digest == digest:
        return original_decision(receipt, known)
    return Refusal("key_reused", f"{what} was recorded before with other content, which stays")


def original_decision(receipt: Receipt, known: RecordedEntry) -> Decision:
    """Receipt as it was when the event was recorded."""
    return Decision(replace(receipt, position=known.position, masked=known.masked, is_repeat=True))


def _saop_role_of(name: str, read: Read) -> str:
    """Registered SAOP role; else the agent's name."""
    record = read.agent(name)
    return record.saop_role if record is not None and record.saop_role else name


def check_saop_role(part: str, read: Read) -> Refusal | None:
    """Refuse unless the caller plays this SAOP role, or may dispatch (S-ROLE)."""
    actor = read.actor
    if part not in SAOP_ROLES:
        return Refusal(
            "invalid_field", f"{part[:40]!a} is no SAOP role; known: {', '.join(SAOP_ROLES)}"
        )
    if actor.role in MAY_DISPATCH:
        return None
    plays = _saop_role_of(actor.name, read)
    if plays == part:
        return None
    problem, remedy = f"has the SAOP role {plays}", f"use the role {plays}"
    if plays not in SAOP_ROLES:
        problem = "has no SAOP role"
        remedy = f"register it with `dragoman agent add {actor.name} --saop-role {part}`"
    detail = f"{actor.name} {problem}, and cannot act as {part}: {remedy}"
    return Refusal("identity_mismatch", detail)


# --- traces -----------------------------------------------------------------------------------


def decide_record_trace(command: RecordTrace, read: Read, now: int) -> Decision | Refusal:
    """Record an event of a session once, and anomalies against the events before it."""
    refusal = (
        check_write(read.actor)
        or check_event_id(command.event_id)
        or check_session(command.session)
        or limits.check_text("type", command.kind, limits.MAX_TITLE, minimum=1)
        or limits.check_text("call_id", command.call, MAX_CALL_ID_LENGTH)
        or (check_saop_role(command.agent, read) if command.agent else None)
    )
    if refusal:
        return refusal
    trace = read.trace(command.session) or Trace(command.session)
    refusal = _check_session_owner(command, trace, read, now) or _check_credential_task(
        command, read
    )
    if refusal:
        return refusal
    task = _related_task(command, trace, read, now)
    receipt_now = Receipt("", None) if task is None else task_receipt(task, task.status)
    id = command.event_id.lower()
    key = f"event:{id}"
    known = read.logged(key)
    if known is not None:
        repeat = repeat_decision(
            replace(receipt_now, record_key=key), known, command.digest, f"the event {id}"
        )
        if isinstance(repeat, Refusal):
            return repeat
        return replace(repeat, lease=_renew_if_held(task, read, now, has_progress=False))
    event = TraceRecorded(
        event_id=id,
        session=command.session,
        type=command.kind,
        envelope=command.envelope,
        digest=command.digest,
        task=receipt_now.task,
        attempt=receipt_now.attempt,
        agent=command.agent or _holder_role(task, read, now),
        masked=command.masked,
        call=command.call,
        ends_call=command.ends_call,
        turn=command.turn,
        is_final=command.is_final,
        commit=command.commit,
        by=read.actor.name,
    )
    anomalies = [
        TraceAnomaly(kind, id, command.session, detail, receipt_now.task)
        for kind, detail in find_anomalies(trace, event)
    ]
    stream = trace_stream(command.session)
    events = tuple((stream, one) for one in (event, *anomalies))
    remark = ", ".join(one.kind for one in anomalies)
    return Decision(
        replace(receipt_now, record_key=key, warning=remark, masked=command.masked),
        events,
        _renew_if_held(task, read, now, has_progress=True),
    )


def _check_session_owner(
    command: RecordTrace, trace: Trace, read: Read, now: int
) -> Refusal | None:
    """Refuse unless the session is the caller's, or held by nobody; dispatching roles may write."""
    actor = read.actor
    if actor.role in MAY_DISPATCH:
        return None
    known = read.task(trace.task) if trace.task else None
    lease = read.lease(known) if isinstance(known, Task) else None
    if lease is not None and (lease.session, lease.holder) == (command.session, actor.name):
        return None  # the usual case: no further lookup
    tasks = [read.task(name) for name in read.held(command.session, actor.name)]
    leases = [read.lease(task) for task in tasks if isinstance(task, Task)]
    holders = [
        lease.holder
        for lease in leases
        if lease is not None and lease.session == command.session and lease.is_valid(now)
    ]
    if not holders or actor.name in holders:
        return None
    return Refusal(
        "unauthorized_agent",
        f"the session {command.session!a} belongs to {holders[0]}: {actor.name} needs a session "
        "of its own",
    )


def _check_credential_task(command: RecordTrace, read: Read) -> Refusal | None:
    """Refuse a credential of an attempt that names another task."""
    actor = read.actor
    if not actor.task or not command.task:
        return None
    named = read.task(command.task)
    if isinstance(named, Task) and named.id == actor.task:
        return None
    return Refusal(
        "not_authorized",
        f"this credential of {actor.name} is for an attempt on {actor.task} only",
    )


def _related_task(command: RecordTrace, trace: Trace, read: Read, now: int) -> Task | None:
    """Task of an event, if its sender is involved in it; else the event belongs to no task."""
    task, actor = _named_task(command, trace, read), read.actor
    if task is None or actor.role != "agent" or task.id == actor.task:
        return task
    is_involved = actor.name in (*task.agents, task.assignee) or holds(actor, read.lease(task), now)
    return task if is_involved else None


def _holder_role(task: Task | None, read: Read, now: int) -> str:
    """SAOP role of the task's holder: an event need not say it (S-ROLE)."""
    lease = None if task is None else read.lease(task)
    if lease is None or not lease.is_valid(now):
        return ""
    plays = _saop_role_of(lease.holder, read)
    return plays if plays in SAOP_ROLES else ""


def _named_task(command: RecordTrace, trace: Trace, read: Read) -> Task | None:
    """Task of an event: the one it names, else the one of its session (S-ROLE)."""
    actor = read.actor
    if command.task or actor.task:
        named = read.task(command.task or actor.task)
        return named if isinstance(named, Task) else None
    known = read.task(trace.task) if trace.task else None
    if isinstance(known, Task) and _is_held_in(known, command.session, read):
        return known
    held = read.held(command.session, actor.name)
    found = read.task(held[0]) if len(held) == 1 else known
    return found if isinstance(found, Task) else None


def _is_held_in(task: Task, session: str, read: Read) -> bool:
    lease = read.lease(task)
    return lease is not None and lease.session == session


def _renew_if_held(
    task: Task | None, read: Read, now: int, *, has_progress: bool
) -> LeaseChange | None:
    lease = None if task is None else read.lease(task)
    if task is None or lease is None or not holds(read.actor, lease, now):
        return None
    if read.actor.fence not in (0, lease.fence):
        return None
    return LeaseChange(task.id, renew_lease(lease, now, has_progress=has_progress))


# --- turns ------------------------------------------------------------------------------------

_SHARED_ATTEMPT = 0
"""Attempt number under which all turns of non-holders once stood together."""


def decide_record_turn(command: RecordTurn, read: Read, now: int) -> Decision | Refusal:
    """Record a turn of the work on a task once; an unknown task is adopted (S-ADOPT)."""
    refusal = (
        check_write(read.actor)
        or check_saop_role(command.agent, read)
        or limits.check_range("turn_index", command.turn_index, 0, limits.MAX_SAFE_INTEGER)
    )
    if refusal:
        return refusal
    found = find_or_adopt_task(command, read, now)
    if isinstance(found, Refusal):
        return found
    known_task, task, adopted = found
    by, attempt_then = "", 0
    if known_task is not None:
        attempt = turn_attempt(known_task, read.actor, read.turns(known_task.id))
        task = replace(task, attempt=attempt)
        if attempt < 0:
            by, attempt_then = read.actor.name, known_task.attempts
    key = _turn_key(command, task)
    known = read.logged(key)
    if known is not None:
        where = "beside the attempts on" if by else f"of attempt {task.attempt} on"
        what = f"turn {command.turn_index} {where} {task.task}"
        return repeat_decision(replace(task, record_key=key), known, command.digest, what)
    earlier_answer = _recorded_answer(command, task, (_SHARED_ATTEMPT,), read) if by else None
    if earlier_answer is not None:
        return earlier_answer
    if known_task is not None:
        refusal = _check_may_record_turn(known_task, read, now)
        if refusal:
            return _recorded_answer(command, task, _earlier_attempts(task, read), read) or refusal
    event = TurnRecorded(
        task=task.task,
        attempt=task.attempt,
        turn_index=command.turn_index,
        agent=command.agent,
        confidence=command.confidence,
        envelope=command.envelope,
        digest=command.digest,
        masked=command.masked,
        by=by,
        after_attempt=attempt_then,
    )
    recorded = ((turns_stream(task.task), event),)
    receipt = replace(task, record_key=key, masked=command.masked)
    if adopted is None:
        return Decision(receipt, recorded)
    return replace(adopted, receipt=receipt, events=(*adopted.events, *recorded))


def _turn_key(command: RecordTurn, task: Receipt) -> str:
    return f"turn:{task.task}/{task.attempt}/{command.turn_index}"


def _check_may_record_turn(task: Task, read: Read, now: int) -> Refusal | None:
    """Refuse unless the caller may write about the task; during an attempt, only its holder."""
    lease = read.lease(task)
    if read.actor.role == "agent" and lease is not None and lease.is_valid(now):
        return check_holds(read.actor, task, lease, None, now)
    return check_may_comment(read.actor, task, lease, None, now)


def _earlier_attempts(task: Receipt, read: Read) -> Iterable[int]:
    """Attempts under which an earlier turn of the caller may stand, the last one first."""
    attempts = range(task.attempt - 1, _SHARED_ATTEMPT - 1, -1)
    return (*attempts, *outside_attempts(read.turns(task.task), read.actor))


def _recorded_answer(
    command: RecordTurn, task: Receipt, attempts: Iterable[int], read: Read
) -> Decision | None:
    """Answer that a turn had under one of these attempts, if it was the very same (S-IDEM)."""
    for attempt in attempts:
        receipt = replace(task, attempt=attempt)
        known = read.logged(_turn_key(command, receipt))
        if known is not None and known.digest == command.digest:
            return original_decision(
                replace(receipt, record_key=_turn_key(command, receipt)), known
            )
    return None


# --- status changes ---------------------------------------------------------------------------


def decide_request_transition(
    command: RequestTransition, read: Read, now: int
) -> Decision | Refusal:
    """Make the transition that an event requests, under the same rules as any other (S-SAOP-11)."""
    refusal = check_write(read.actor) or limits.check_text(
        "commit", command.commit, limits.MAX_REASON
    )
    if refusal:
        return refusal
    found = find_or_adopt_task(command, read, now)
    if isinstance(found, Refusal):
        return found
    _, receipt_now, adopted = found
    if adopted is not None:
        if receipt_now.status == command.to:
            return replace(adopted, events=_with_cause(adopted, command))
        return not_found.task(command.task, f", and a new one cannot begin as {command.to}")
    known = read.logged(f"event:{command.caused_by}")
    if known is not None and known.position > 0:
        # An event moves a task once, whatever its status is meanwhile.
        if receipt_now.status == command.to:
            return Decision(receipt_now)
        return Refusal(
            "invalid_transition",
            f"the event {command.caused_by} was recorded before; {receipt_now.task} is "
            f"{receipt_now.status} now",
        )
    if command.to == "in-progress":
        decision = claim.decide_claim_task(
            ClaimTask(
                receipt_now.task,
                read.actor.name,
                command.session,
                command.ttl_ms,
                renew_if_held=True,
            ),
            read,
            now,
        )
    else:
        decision = decide_move_task(
            MoveTask(receipt_now.task, command.to, "trace", command.fence), read, now
        )
    if isinstance(decision, Refusal):
        return decision
    return replace(decision, events=_with_cause(decision, command))


def _with_cause(decision: Decision, command: RequestTransition) -> tuple[tuple[str, Event], ...]:
    """The events, where a status change names the trace event that caused it."""

    def stamped(event: Any) -> Event:
        if type(event) not in STATUS_CHANGES:
            return event
        return replace(event, commit=command.commit, caused_by=command.caused_by)

    return tuple((stream, stamped(event)) for stream, event in decision.events)


# --- entropy ----------------------------------------------------------------------------------


def decide_escalate_entropy(command: EscalateEntropy, read: Read, _: int) -> Decision | Refusal:
    """Record a sign of entropy once, until it has settled; it moves nothing (S-SAOP-9)."""
    task = _find_judged_task(command.task, read)
    if isinstance(task, Refusal):
        return task
    refusal = (
        limits.check_text("kind", command.kind, limits.MAX_TITLE, minimum=1)
        or limits.check_text("detail", command.detail, limits.MAX_REASON)
        or limits.check_count("turns", command.turns, 1_000)
    )
    if refusal:
        return refusal
    log = read.turns(task.id)
    if log is None or command.kind in log.raised:
        return Decision(task_receipt(task, task.status))
    escalated = EntropyEscalated(
        task.id,
        command.kind,
        command.detail,
        task.attempts,
        command.turns,
        command.measured,
        command.threshold,
    )
    return Decision(task_receipt(task, task.status), ((turns_stream(task.id), escalated),))


def decide_settle_entropy(command: SettleEntropy, read: Read, _: int) -> Decision | Refusal:
    """Record that a raised sign has settled."""
    task = _find_judged_task(command.task, read)
    if isinstance(task, Refusal):
        return task
    log = read.turns(task.id)
    if log is None or command.kind not in log.raised:
        return Decision(task_receipt(task, task.status))
    settled = EntropySettled(task.id, command.kind, command.measured)
    return Decision(task_receipt(task, task.status), ((turns_stream(task.id), settled),))


def _find_judged_task(name: str, read: Read) -> Task | Refusal:
    if read.actor.role not in MAY_DISPATCH:
        return Refusal("not_authorized", f"{read.actor.label} may not judge the turns of others")
    return read.task(name)
