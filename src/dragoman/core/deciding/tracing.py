"""Deciders of traces: record, move because of one, escalate (S-SAOP-6, 9, 11)."""

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dragoman.core import missing
from dragoman.core.authority import MAY_DISPATCH, check_write, holds
from dragoman.core.commands import (
    AdoptTask,
    ClaimTask,
    EscalateEntropy,
    MoveTask,
    RecordTrace,
    RecordTurn,
    RequestTransition,
    SettleEntropy,
)
from dragoman.core.deciding.tasks import adoption, claims, lifecycle
from dragoman.core.errors import Refusal
from dragoman.core.events import EntropyEscalated, EntropySettled, TraceAnomaly, TraceRecorded
from dragoman.core.ids import (
    check_event_id,
    check_session,
    trace_stream,
    turns_stream,
)
from dragoman.core.limits import MAX_REASON, MAX_TITLE, check_count, check_text
from dragoman.core.reading import Decision, LeaseChange, Read, Receipt, task_receipt
from dragoman.core.states.lease import renew_lease
from dragoman.core.states.moves import STATUS_CHANGES
from dragoman.core.states.task import Task
from dragoman.core.states.trace import (
    MAX_CALL_ID_LENGTH,
    SAOP_ROLES,
    RecordedEntry,
    Trace,
    find_anomalies,
)

if TYPE_CHECKING:
    from dragoman.core.events import AnyEvent

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
    adopted = adoption.decide_adopt_task(
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


def decide_record_trace(command: RecordTrace, read: Read, now: int) -> Decision | Refusal:
    """Record an event of a session once, and anomalies against the events before it."""
    refusal = (
        check_write(read.actor)
        or check_event_id(command.event_id)
        or check_session(command.session)
        or check_text("type", command.kind, MAX_TITLE, minimum=1)
        or check_text("call_id", command.call, MAX_CALL_ID_LENGTH)
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
            replace(receipt_now, log=key), known, command.digest, f"the event {id}"
        )
        if isinstance(repeat, Refusal):
            return repeat
        return replace(repeat, lease=_renew_if_held(task, read, now))
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
        replace(receipt_now, log=key, remark=remark, masked=command.masked),
        events,
        _renew_if_held(task, read, now),
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


def _renew_if_held(task: Task | None, read: Read, now: int) -> LeaseChange | None:
    lease = None if task is None else read.lease(task)
    if task is None or lease is None or not holds(read.actor, lease, now):
        return None
    if read.actor.fence not in (0, lease.fence):
        return None
    return LeaseChange(task.id, renew_lease(lease, now))


def repeat_decision(
    receipt: Receipt, known: RecordedEntry, digest: str, what: str
) -> Decision | Refusal:
    """Answer a repeat as it was answered then; refuse other content under the same key."""
    if known.digest == digest:
        return original_decision(receipt, known)
    return Refusal("key_reused", f"{what} was recorded before with other content, which stays")


def original_decision(receipt: Receipt, known: RecordedEntry) -> Decision:
    """Receipt as it was when the event was recorded."""
    return Decision(replace(receipt, position=known.position, masked=known.masked, before=True))


def _saop_role_of(name: str, read: Read) -> str:
    """Registered SAOP role; else the agent's name."""
    record = read.agent(name)
    return record.plays if record is not None and record.plays else name


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


def decide_request_transition(
    command: RequestTransition, read: Read, now: int
) -> Decision | Refusal:
    """Make the transition that an event requests, under the same rules as any other (S-SAOP-11)."""
    refusal = check_write(read.actor) or check_text("commit", command.commit, MAX_REASON)
    if refusal:
        return refusal
    found = find_or_adopt_task(command, read, now)
    if isinstance(found, Refusal):
        return found
    _, receipt_now, adopted = found
    if adopted is not None:
        if receipt_now.status == command.to:
            return replace(adopted, events=_with_cause(adopted, command))
        return missing.task(command.task, f", and a new one cannot begin as {command.to}")
    known = read.logged(f"event:{command.asked_by}")
    if known is not None and known.position > 0:
        # An event moves a task once, whatever its status is meanwhile.
        if receipt_now.status == command.to:
            return Decision(receipt_now)
        return Refusal(
            "invalid_transition",
            f"the event {command.asked_by} was recorded before; {receipt_now.task} is "
            f"{receipt_now.status} now",
        )
    if command.to == "in-progress":
        decision = claims.decide_claim_task(
            ClaimTask(
                receipt_now.task, read.actor.name, command.session, command.ttl_ms, or_renew=True
            ),
            read,
            now,
        )
    else:
        decision = lifecycle.decide_move_task(
            MoveTask(receipt_now.task, command.to, "trace", command.fence), read, now
        )
    if isinstance(decision, Refusal):
        return decision
    return replace(decision, events=_with_cause(decision, command))


def _with_cause(
    decision: Decision, command: RequestTransition
) -> "tuple[tuple[str, AnyEvent], ...]":
    """The events, where a status change names the trace event that caused it."""

    def stamped(event: Any) -> "AnyEvent":
        if type(event) not in STATUS_CHANGES:
            return event
        return replace(event, commit=command.commit, asked_by=command.asked_by)

    return tuple((stream, stamped(event)) for stream, event in decision.events)


def decide_escalate_entropy(command: EscalateEntropy, read: Read, now: int) -> Decision | Refusal:
    """Record a sign of entropy once, until it has settled; it moves nothing (S-SAOP-9)."""
    del now
    task = _find_judged_task(command.task, read)
    if isinstance(task, Refusal):
        return task
    refusal = (
        check_text("kind", command.kind, MAX_TITLE, minimum=1)
        or check_text("detail", command.detail, MAX_REASON)
        or check_count("turns", command.turns, 1_000)
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


def decide_settle_entropy(command: SettleEntropy, read: Read, now: int) -> Decision | Refusal:
    """Record that a raised sign has settled."""
    del now
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
