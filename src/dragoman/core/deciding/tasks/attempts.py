"""Deciders of an attempt that has begun: heartbeat, release, report, end, expiry (S-RUN)."""

from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.authority import MAY_DISPATCH, check_fence, check_hold
from dragoman.core.commands import (
    CheckpointTask,
    EndAttempt,
    ExpireLease,
    KeepLease,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
)
from dragoman.core.deadlines import Backoff, rest_after
from dragoman.core.deciding.tasks.lifecycle import check_token, moved, unblocked
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    Outcome,
    Status,
    TaskCheckpointed,
    TaskReported,
    TaskRequeued,
)
from dragoman.core.events import TaskTransitioned as Transitioned
from dragoman.core.ids import task_stream
from dragoman.core.limits import (
    REASON,
    TEXT,
    TTL_MS,
    check_duration,
    check_json,
    check_text,
    check_texts,
)
from dragoman.core.moments import within_span
from dragoman.core.reading import Decision, LeaseChange, Read, StreamEvents, receipt
from dragoman.core.states.lease import Lease, kept, renewed
from dragoman.core.states.moves import REPORTED, STALE, UNREPORTED
from dragoman.core.states.task import FORCED, STATUS_AFTER, Checkpoint, Task


def renew(command: RenewLease, read: Read, now: int) -> Decision | Refusal:
    """Renew the lease by a heartbeat: no entry."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    lease = read.lease(task)
    refusal = check_hold(read.actor, task, lease, command.fence, now)
    if refusal or lease is None:
        return refusal or Refusal("lease_lost", f"nobody holds {task.id}")
    lease = renewed(lease, now)
    return Decision(receipt(task, task.status, lease), (), LeaseChange(task.id, lease))


def release(command: ReleaseTask, read: Read, now: int) -> Decision | Refusal:
    """Return the task to its queue, without counting a failure; the hub may for what it started."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    lease = read.lease(task)
    holder = _in_whose_place(read.actor, lease)
    refusal = check_hold(holder, task, lease, command.fence, now) or check_text(
        "reason", command.reason, REASON
    )
    if refusal:
        return refusal
    given_back = Transitioned(task.status, "ready", command.reason, unstarted=command.unstarted)
    events = ((task_stream(task.id), given_back),)
    return Decision(receipt(task, "ready"), events, LeaseChange(task.id, None))


def checkpoint(command: CheckpointTask, read: Read, now: int) -> Decision | Refusal:
    """Return the task to its queue half done, with a checkpoint for the successor (S-MAIL-9).

    While nobody works on the task, roles that may dispatch can set where to continue. A worker that
    had to stop and has no commit to show has achieved nothing: that counts as a failure.
    """
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    runs_the_show = read.actor.role in MAY_DISPATCH and command.fence is None
    is_at_rest = task.status != "in-progress" and runs_the_show
    if is_at_rest and task.is_final:
        return Refusal("invalid_transition", f"{task.id} is {task.status}: it cannot be continued")
    refusal = (
        (None if is_at_rest else check_hold(read.actor, task, read.lease(task), command.fence, now))
        or check_text("reason", command.reason, REASON, least=1)
        or check_text("commit", command.commit, REASON)
        or check_text("description", command.description, TEXT)
        or check_text("next_steps", command.next_steps, TEXT)
    )
    if refusal:
        return refusal
    left = TaskCheckpointed(command.reason, command.commit, command.description, command.next_steps)
    if is_at_rest:
        said = replace(left, by=read.actor.name)
        return _said_at_rest(task, said if command.anew else _beside_known(task, said))
    if command.reason in FORCED and not command.commit:
        ended = _requeued(task, f"checkpoint: {command.reason}", command.backoff, now)
        return replace(ended, events=((task_stream(task.id), left), *ended.events))
    released = moved(task, "ready", f"checkpoint: {command.reason}", read)
    return Decision(
        receipt(task, "ready"),
        ((task_stream(task.id), left), *released),
        LeaseChange(task.id, None),
    )


def _beside_known(task: Task, left: TaskCheckpointed) -> TaskCheckpointed:
    """Complete a checkpoint with what the last one has said."""
    known = task.checkpoint
    if known is None:
        return left
    return replace(
        left,
        commit=left.commit or known.commit,
        description=left.description or known.description,
        next_steps=left.next_steps or known.next_steps,
    )


def _said_at_rest(task: Task, left: TaskCheckpointed) -> Decision:
    is_known = _where_to_go_on(left) == _where_to_go_on(task.checkpoint)
    events = () if is_known else ((task_stream(task.id), left),)
    return Decision(receipt(task, task.status), events)


def _where_to_go_on(left: TaskCheckpointed | Checkpoint | None) -> tuple[str, str, str]:
    return ("", "", "") if left is None else (left.commit, left.description, left.next_steps)


def report(command: ReportOutcome, read: Read, now: int) -> Decision | Refusal:
    """Record the outcome of an attempt; a later report of it replaces an earlier one until applied.

    A report that has taken effect already is a no-op, whoever repeats it (S-AOF-2).
    """
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    refusal = (
        _check_outcome(command.outcome)
        or check_text("notes", command.notes, TEXT)
        or check_texts("blockers", command.blockers, REASON)
        or _check_blockers(command)
        or check_json("details", command.details)
    )
    if refusal:
        return refusal
    if command.once:
        answered = _answered_before(command, task, read)
        if answered:
            return answered
    elif _has_come_about(task, command.outcome):
        told = replace(receipt(task, task.status), idle=True)
        return check_token(command.fence, task, read, now) or Decision(told)
    lease = read.lease(task)
    is_hubs = read.actor.role == "system"
    holder = _in_whose_place(read.actor, lease)
    refusal = check_hold(holder, task, lease, command.fence, now)
    if refusal:
        return refusal
    event = TaskReported(
        task.attempts,
        holder.name,
        command.outcome,
        command.notes,
        command.blockers,
        command.details,
        read.actor.name if is_hubs else "",
    )
    reported: StreamEvents = ((task_stream(task.id), event),)
    is_unnamed = lease is not None and not lease.session
    if not (command.apply or (command.apply_unnamed and is_unnamed)):
        return Decision(receipt(task, task.status), reported)
    reason = f"{UNREPORTED if is_hubs else REPORTED}{command.outcome}"
    applied = _applied(task, command.outcome, reason, command.backoff, read, now)
    return Decision(applied.receipt, reported + applied.events, applied.lease)


def _answered_before(command: ReportOutcome, task: Task, read: Read) -> Decision | Refusal | None:
    """Answer to a second final result of an attempt; None: there is none yet."""
    said = None if task.status == "in-progress" else task.reported
    if said and said.agent == read.actor.name and command.attempt in (0, said.attempt):
        if (said.outcome, said.notes, said.details) == _words(command):
            return Decision(replace(receipt(task, task.status), before=True))
        return Refusal(
            "anomaly",
            f"attempt {said.attempt} of {task.id} has another result already ({said.outcome}): "
            "that one counts",
        )
    if command.attempt in (0, task.attempts):
        return None
    return Refusal("anomaly", f"{task.id} is in attempt {task.attempts}, not in {command.attempt}")


def _words(command: ReportOutcome) -> tuple[Outcome, str, dict[str, object]]:
    return command.outcome, command.notes, command.details


def _check_blockers(command: ReportOutcome) -> Refusal | None:
    """Refuse "blocked" without a blocker (S-AOF-5)."""
    if command.outcome != "blocked" or any(map(str.strip, command.blockers)):
        return None
    why = "blockers: say what blocks the work, or report another outcome"
    return Refusal("invalid_field", why, path="blockers")


def end(command: EndAttempt, read: Read, now: int) -> Decision | Refusal:
    """End the session: apply its report; without one nothing moves."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    lease = read.lease(task)
    check = check_fence if read.actor.role in MAY_DISPATCH else check_hold
    refusal = check(read.actor, task, lease, command.fence, now)
    if refusal and _is_over(command, refusal):
        return Decision(replace(receipt(task, task.status), remark=refusal.detail))
    if refusal:
        return refusal
    reported = _report_of_attempt(task)
    if lease is None or reported is None or command.session not in ("", lease.session):
        return Decision(receipt(task, task.status, lease))
    return _applied(task, reported, f"{REPORTED}{reported}", command.backoff, read, now)


def keep(command: KeepLease, read: Read, now: int) -> Decision | Refusal:
    """Set how long an attempt waits for the hub, or from now on for its agent: no entry."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    if read.actor.role != "system":
        return Refusal("not_authorized", f"{read.actor.label} may not set the duration of leases")
    lease = read.lease(task)
    refusal = check_hold(
        _in_whose_place(read.actor, lease), task, lease, command.fence, now
    ) or check_duration("the lease", command.lasts_ms, *TTL_MS)
    if refusal or lease is None:
        return refusal or Refusal("lease_lost", f"nobody holds {task.id}")
    lease = kept(lease, command.lasts_ms, now)
    return Decision(receipt(task, task.status, lease), (), LeaseChange(task.id, lease))


def expire(command: ExpireLease, read: Read, now: int) -> Decision | Refusal:
    """Recover a silent holder's task: by its report if there is one, else back to ready."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    if read.actor.role not in MAY_DISPATCH:
        return Refusal("not_authorized", f"{read.actor.label} may not expire leases")
    lease = read.lease(task)
    if lease is None or lease.is_live(now):
        return Decision(receipt(task, task.status, lease))
    reported = _report_of_attempt(task)
    if reported is None:
        return _requeued(task, "stale_heartbeat_reclaim", command.backoff, now)
    return _applied(task, reported, f"{STALE}{reported}", command.backoff, read, now)


def _in_whose_place(actor: Actor, lease: Lease | None) -> Actor:
    """Actor whose lease counts: the hub acts in the place of the holder it observes."""
    return Actor("agent", lease.holder) if actor.role == "system" and lease else actor


def _report_of_attempt(task: Task) -> Outcome | None:
    """Reported outcome of the current attempt; an older attempt's report never decides."""
    if task.status != "in-progress" or task.reported is None:
        return None
    return task.reported.outcome


def _is_over(command: EndAttempt, refusal: Refusal) -> bool:
    """True if the named session has lost the task already: there is nothing left to end.

    One task that its agent lost must not keep the others of its session from ending.
    """
    return bool(command.session) and command.fence is None and refusal.code == "lease_lost"


def steps(task: Task, outcome: Outcome) -> tuple[Status, ...]:
    """Statuses that an outcome leads through; it stops at review where one is required."""
    steps = STATUS_AFTER[outcome]
    return steps[:1] if task.review_required else steps


def _check_outcome(outcome: str) -> Refusal | None:
    if outcome in STATUS_AFTER:
        return None
    return Refusal("invalid_field", f"outcome {outcome!a} is not one of {', '.join(STATUS_AFTER)}")


def _has_come_about(task: Task, outcome: Outcome) -> bool:
    """True if the task is where this outcome leads; a failure leads to a new attempt each time."""
    if outcome == "failed":
        return False
    return task.status in ("done", steps(task, outcome)[-1])


def _applied(
    task: Task, outcome: Outcome, reason: str, backoff: Backoff, read: Read, now: int
) -> Decision:
    """Transitions that an outcome asks for, and the end of the lease."""
    if outcome == "failed":
        return _requeued(task, reason, backoff, now)
    stream, at, events = task_stream(task.id), task.status, list[tuple[str, Transitioned]]()
    for to in steps(task, outcome):
        events.append((stream, Transitioned(at, to, reason)))
        at = to
    ending = unblocked(task, at, read) if at == "done" else ()
    return Decision(receipt(task, at), (*events, *ending), LeaseChange(task.id, None))


def _requeued(task: Task, reason: str, backoff: Backoff, now: int) -> Decision:
    """Ready again after its backoff; at the limit of attempts, deadletter."""
    stream, failures = task_stream(task.id), task.failures + 1
    rested = within_span(now + rest_after(failures, backoff))
    event = TaskRequeued(task.attempts, reason, failures, rested)
    ended = LeaseChange(task.id, None)
    if failures < task.max_attempts:
        return Decision(receipt(task, "ready"), ((stream, event),), ended)
    dead: Status = "deadletter"
    gave_up = Transitioned("ready", dead, f"{failures} attempts failed, the last: {reason}")
    return Decision(receipt(task, dead), ((stream, event), (stream, gave_up)), ended)
