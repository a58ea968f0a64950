"""Decisions about attempts: heartbeat, release, checkpoint, report, end, expiry (S-RUN)."""

from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core import limits
from dragoman.core.actor import HUB_NAME, HUB_NAME_TAKEN, Actor
from dragoman.core.agent import AgentPaused, AgentRecord, AgentRegistered
from dragoman.core.attempt_state import (
    ESCALATED_QUIET,
    FLAGGED_QUIET,
    FORCED_CHECKPOINT_REASONS,
    NOT_QUIET,
    OUTCOME_STATUSES,
    AttemptEscalated,
    AttemptQuiet,
    Checkpoint,
    Lease,
    TaskCheckpointed,
    TaskClaimed,
    TaskReported,
    TaskRequeued,
    renew_lease,
)
from dragoman.core.authority import (
    MAY_DISPATCH,
    MAY_WRITE,
    check_fence,
    check_holds,
    holder_objection,
)
from dragoman.core.backoff import Backoff, backoff_delay
from dragoman.core.base import DEFAULT_LEASE_MS, Command, Outcome, Status, TaskCommand
from dragoman.core.errors import Refusal
from dragoman.core.ids import agent_stream, check_agent, check_session, task_stream
from dragoman.core.read import Decision, LeaseChange, Read, StreamEvents, task_receipt
from dragoman.core.task import check_repeat, transition_events, unblock_events
from dragoman.core.task_state import (
    CLAIMABLE_STATUSES,
    LAST_FAILURE,
    REPORTED_PREFIX,
    STALE_HEARTBEAT_PREFIX,
    STALE_HEARTBEAT_REASON,
    TASK_FOLDS,
    TOO_LONG_REASON,
    UNREPORTED_PREFIX,
    Task,
    TaskEdited,
)
from dragoman.core.task_state import (
    TaskTransitioned as Transitioned,
)
from dragoman.core.timestamps import TIMESTAMP_RANGE, clamp_timestamp, to_rfc3339


class ClaimTask(TaskCommand, frozen=True, tag="task.claim"):
    """Start an attempt for an agent, on this task or, if empty, on the next ready one."""

    agent: str
    session: str = ""
    ttl_ms: int = DEFAULT_LEASE_MS
    queues: tuple[str, ...] = ()
    """Queues to take the next task from, for callers that may claim for others: names that tasks
    are reserved for, and "" for those of anyone; none: anyone's, and the agent's own."""
    renew_if_held: bool = False
    """Renew the lease of an agent that holds the task already, instead of refusing."""
    checks: tuple[str, ...] = ()
    """Commands of the agent's settings that the hub runs before a completion counts."""


class RenewLease(TaskCommand, frozen=True, tag="task.heartbeat"):
    """A heartbeat: the holder is alive."""

    fence: int | None = None
    has_progress: bool = False
    """It was seen to work: a program that the hub supervises has written output."""


class ReleaseTask(TaskCommand, frozen=True, tag="task.release"):
    """Return the task to its queue without counting a failure."""

    free_text = ("reason",)

    reason: str = "released"
    fence: int | None = None
    failed_to_start: bool = False
    """Its worker could not be started or reached."""


class LimitAttempt(TaskCommand, frozen=True, tag="attempt.limit"):
    """End an attempt because the usage limit of its agent's vendor is reached: the task returns to
    its queue without counting a failure, and the agent is paused until then."""

    free_text = ("reason",)

    until: int = 0
    """End of the limit; 0: unknown."""
    reason: str = ""
    fence: int | None = None
    pauses: bool = True
    """False: the settings leave the agent alone."""


class CheckpointTask(TaskCommand, frozen=True, tag="task.checkpoint"):
    """Return the task to its queue with what a successor needs to go on."""

    free_text = ("reason", "description", "next_steps")

    reason: str
    commit: str = ""
    description: str = ""
    next_steps: str = ""
    fence: int | None = None
    backoff: Backoff = Backoff()
    """Backoff that applies if nothing was achieved."""
    replaces_earlier: bool = False
    """Replace an earlier checkpoint instead of completing it; for a task without attempt."""


class ReportOutcome(TaskCommand, frozen=True, tag="task.report"):
    """Report the outcome of an attempt; applied at once, or when the attempt ends.

    From the hub itself: the outcome it observed of a holder that ended without a report.
    """

    free_text = ("notes", "blockers", "details")

    outcome: Outcome
    notes: str = ""
    blockers: tuple[str, ...] = ()
    details: dict[str, object] = {}
    fence: int | None = None
    apply: bool = False
    backoff: Backoff = Backoff()
    apply_unnamed: bool = False
    """Apply at once if the claim has no session whose end would apply it."""
    once: bool = False
    """Final result of the attempt: the same again is a repeat, another one an anomaly."""
    attempt: int = 0
    """Number of the attempt that a final result is about, where it is stated."""
    is_own: bool = False
    """Refuse a report that has taken effect already unless its agent repeats it."""


def returns_attempt(command: Command) -> bool:
    """True for what ends an attempt and makes its task ready: once in an attempt, and nothing in
    the task's status tells a repeat."""
    return isinstance(command, ReleaseTask | LimitAttempt) or (
        isinstance(command, ReportOutcome)
        and command.outcome == "failed"
        and command.apply
        and command.is_own
    )


class EndAttempt(TaskCommand, frozen=True, tag="attempt.end"):
    """End the holder's session: apply what it reported, if it did."""

    session: str = ""
    backoff: Backoff = Backoff()
    fence: int | None = None


class ExpireLease(TaskCommand, frozen=True, tag="lease.expire"):
    """Recover a task whose holder has gone silent, or has taken too long; else a no-op."""

    backoff: Backoff = Backoff()
    max_ms: int = 0
    """Longest time that an attempt may take; 0: any."""
    notify: tuple[str, ...] = ()
    """Recipients of a notice where the silent holder had accepted the task by a handoff."""


class FlagAttempt(TaskCommand, frozen=True, tag="attempt.flag"):
    """Record that a task's holder shows no progress, and later that it still does not.

    No-op while it has shown some in time, and where that is on record.
    """

    quiet_ms: int
    """Time without progress after which the attempt is flagged."""
    escalate_ms: int = 0
    """Further time after which it is escalated; 0: never."""


# --- who may claim what -----------------------------------------------------------------------


def check_may_claim(command: ClaimTask, read: Read) -> Refusal | None:
    """Refuse unless the caller may claim a task for this agent, with these arguments."""
    actor = read.actor
    malformed = check_agent(command.agent, "agent")
    if malformed:
        return malformed
    if command.agent == HUB_NAME and actor.role != "system":
        return Refusal("not_authorized", HUB_NAME_TAKEN, path="agent")
    if command.checks and actor.role != "system":
        return Refusal("not_authorized", "checks come with the task, or from the hub's settings")
    if actor.role == "agent":
        if command.agent != actor.name:
            return Refusal("identity_mismatch", f"{actor.name} cannot claim for {command.agent}")
        if command.queues:
            return Refusal("not_authorized", f"{actor.label} may not choose its queues")
    elif actor.role not in MAY_DISPATCH and not _has_taken_over(command, read):
        return Refusal("not_authorized", f"{actor.label} may not claim tasks")
    cannot_hold = holder_objection(read.agent(command.agent))
    if cannot_hold:
        return Refusal("not_authorized", cannot_hold)
    return (
        (check_session(command.session, "session") if command.session else None)
        or limits.check_duration("the lease", command.ttl_ms, *limits.LEASE_RANGE_MS)
        or limits.check_count("queues", command.queues, limits.MAX_QUEUES)
        or next(filter(None, map(check_agent, filter(None, command.queues))), None)
    )


def _has_taken_over(command: ClaimTask, read: Read) -> bool:
    """True if the caller claims, for itself, what was handed over to it."""
    task = read.task(command.task) if command.task else None
    if not isinstance(task, Task) or task.handoff is None or command.queues:
        return False
    return (
        read.actor.role in MAY_WRITE and task.handoff.claimant == command.agent == read.actor.name
    )


def check_claimable(
    task: Task, command: ClaimTask, lease: Lease | None, now: int
) -> Refusal | None:
    """Refuse unless this agent can start on the task as it stands."""
    if lease is not None:
        until = to_rfc3339(lease.expires_at)
        holder_text = f"{lease.holder} holds {task.id} (attempt {task.attempts})"
        if lease.is_valid(now):
            return Refusal("already_claimed", f"{holder_text} until {until}")
        return Refusal(
            "already_claimed", f"{holder_text}; its lease ended at {until} and awaits recovery"
        )
    if task.status not in CLAIMABLE_STATUSES:
        return Refusal(
            "not_ready",
            f"{task.id} is {task.status}; only a ready task can be claimed, or one in review by "
            "the agent that had it last",
        )
    if task.status == "review" and task.assignee != command.agent:
        return Refusal(
            "unauthorized_agent",
            f"{task.id} is in review; only {task.assignee or 'its owner'} can rework it",
        )
    if task.handoff is not None and command.agent != task.handoff.claimant:
        return Refusal(
            "reserved_for_other",
            f"{task.id} is handed over by {task.handoff.id}: only {task.handoff.claimant} can "
            "claim it",
        )
    if task.reserved_for not in ("", command.agent, *command.queues):
        return Refusal("reserved_for_other", f"{task.id} is reserved for {task.reserved_for}")
    if task.open_blockers:
        return Refusal(
            "blocked_by_dependency", f"{task.id} waits for {', '.join(task.open_blockers)}"
        )
    return None


class Wait(Struct, frozen=True):
    """Reason why a ready task is not there for anybody to claim now."""

    kind: Literal["dependency", "backoff", "handoff", "reserved"]
    reason: str
    agent: str = ""
    """The only agent that can claim it; empty: no single one."""
    until: int | None = None
    """End of its backoff."""


def explain_wait(task: Task, now: int) -> Wait | None:
    """Explain why not anybody can claim a ready task now; None: anybody can, or it is not ready."""
    if task.status != "ready":
        return None
    if task.open_blockers:
        return Wait("dependency", f"waits for {', '.join(task.open_blockers)}")
    if task.not_before > now:
        until = f"backoff until {to_rfc3339(task.not_before)}"
        return Wait("backoff", until, task.reserved_for, task.not_before)
    if task.handoff is not None:
        claimant = task.handoff.claimant
        return Wait("handoff", f"handoff {task.handoff.id}: only {claimant} can claim it", claimant)
    if task.reserved_for:
        return Wait("reserved", f"reserved for {task.reserved_for}", task.reserved_for)
    return None


# --- heartbeat and release --------------------------------------------------------------------


def decide_renew_lease(command: RenewLease, read: Read, now: int) -> Decision | Refusal:
    """Renew the lease by a heartbeat: no entry."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    lease = read.lease(task)
    refusal = check_holds(read.actor, task, lease, command.fence, now)
    if refusal or lease is None:
        return refusal or Refusal("lease_lost", f"nobody holds {task.id}")
    lease = renew_lease(lease, now, has_progress=command.has_progress)
    return Decision(task_receipt(task, task.status, lease), (), LeaseChange(task.id, lease))


def decide_release_task(command: ReleaseTask, read: Read, now: int) -> Decision | Refusal:
    """Return the task to its queue, without counting a failure; the hub may for what it started."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    lease = read.lease(task)
    holder = _acting_holder(read.actor, lease)
    refusal = check_holds(holder, task, lease, command.fence, now) or limits.check_text(
        "reason", command.reason, limits.MAX_REASON
    )
    if refusal:
        return refusal
    released = Transitioned(
        task.status,
        "ready",
        command.reason,
        failed_to_start=command.failed_to_start,
        is_taken=holder != read.actor,
    )
    events = ((task_stream(task.id), released),)
    return Decision(task_receipt(task, "ready"), events, LeaseChange(task.id, None))


# --- usage limit ------------------------------------------------------------------------------

LIMIT_MARGIN_MS: Final = 60_000
"""Time that an agent is paused beyond the end of its limit, and after a limit that has ended."""

UNKNOWN_LIMIT_MS: Final = 15 * 60_000
"""Pause of an agent whose limit ends at an unknown time."""


def decide_limit_attempt(command: LimitAttempt, read: Read, now: int) -> Decision | Refusal:
    """Return the task to its queue, and pause its holder while its vendor refuses it."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    lease = read.lease(task)
    holder = _acting_holder(read.actor, lease)
    refusal = (
        check_holds(holder, task, lease, command.fence, now)
        or limits.check_text("reason", command.reason, limits.MAX_REASON)
        or (limits.check_range("until", command.until, *TIMESTAMP_RANGE) if command.until else None)
    )
    if refusal:
        return refusal
    pause_end = _limit_end(command.until, now)
    if command.until:
        reason = f"usage limit of {holder.name} until {to_rfc3339(command.until)}"
    else:
        again = f", tried again at {to_rfc3339(pause_end)}" if command.pauses else ""
        reason = f"usage limit of {holder.name}, its end unknown{again}"
    text = f"{reason}: {command.reason}"[: limits.MAX_REASON] if command.reason else reason
    released = Transitioned(task.status, "ready", text, is_taken=holder != read.actor)
    events: StreamEvents = ((task_stream(task.id), released),)
    record, stream = read.agent(holder.name), agent_stream(holder.name)
    pause = AgentPaused(reason, pause_end)
    if command.pauses and record is None and holder.role == "agent":
        events = (*events, (stream, AgentRegistered(holder.name, "agent")), (stream, pause))
    elif command.pauses and record is not None and not _is_paused_as_long(record, pause, now):
        events = (*events, (stream, pause))
    return Decision(task_receipt(task, "ready"), events, LeaseChange(task.id, None))


def _limit_end(until: int, now: int) -> int:
    """End of the pause: a little after the limit's, and never at once."""
    end = until or now + UNKNOWN_LIMIT_MS - LIMIT_MARGIN_MS
    return clamp_timestamp(max(end, now) + LIMIT_MARGIN_MS)


def _is_paused_as_long(record: AgentRecord, pause: AgentPaused, now: int) -> bool:
    """True if a pause that is in force lasts as long, as one by hand does."""
    current = record.active_pause(now)
    if current is None or pause.until is None:
        return False
    return current.until is None or current.until >= pause.until


# --- checkpoint -------------------------------------------------------------------------------


def decide_checkpoint_task(command: CheckpointTask, read: Read, now: int) -> Decision | Refusal:
    """Return the task to its queue half done, with a checkpoint for the successor (S-MAIL-9).

    While nobody works on the task, roles that may dispatch can set where to continue. A worker that
    had to stop and has no commit to show has achieved nothing: that counts as a failure.
    """
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    may_direct = read.actor.role in MAY_DISPATCH and command.fence is None
    is_without_attempt = task.status != "in-progress" and may_direct
    if is_without_attempt and task.is_final:
        return Refusal("invalid_transition", f"{task.id} is {task.status}: it cannot be continued")
    refusal = (
        (
            None
            if is_without_attempt
            else check_holds(read.actor, task, read.lease(task), command.fence, now)
        )
        or limits.check_text("reason", command.reason, limits.MAX_REASON, minimum=1)
        or limits.check_text("commit", command.commit, limits.MAX_REASON)
        or limits.check_text("description", command.description, limits.MAX_TEXT)
        or limits.check_text("next_steps", command.next_steps, limits.MAX_TEXT)
    )
    if refusal:
        return refusal
    checkpointed = TaskCheckpointed(
        command.reason, command.commit, command.description, command.next_steps
    )
    if is_without_attempt:
        checkpointed_by_actor = replace(checkpointed, by=read.actor.name)
        return _checkpoint_without_attempt(
            task,
            checkpointed_by_actor
            if command.replaces_earlier
            else _complete_from_known(task, checkpointed_by_actor),
        )
    events: StreamEvents = ((task_stream(task.id), checkpointed),)
    if task.handoff and task.handoff.is_taken and not task.names_intent:
        # Its recipient leaves it to any successor; a task of an intent is requested again.
        events += ((task_stream(task.id), TaskEdited(reserved_for="")),)
    if command.reason in FORCED_CHECKPOINT_REASONS and not command.commit:
        ended = _requeue(task, f"checkpoint: {command.reason}", command.backoff, now)
        return replace(ended, events=(*events, *ended.events))
    released = transition_events(task, "ready", f"checkpoint: {command.reason}", read)
    return Decision(task_receipt(task, "ready"), (*events, *released), LeaseChange(task.id, None))


def _complete_from_known(task: Task, checkpointed: TaskCheckpointed) -> TaskCheckpointed:
    """Complete a checkpoint with what the last one has said."""
    known = task.checkpoint
    if known is None:
        return checkpointed
    return replace(
        checkpointed,
        commit=checkpointed.commit or known.commit,
        description=checkpointed.description or known.description,
        next_steps=checkpointed.next_steps or known.next_steps,
    )


def _checkpoint_without_attempt(task: Task, checkpointed: TaskCheckpointed) -> Decision:
    is_known = _checkpoint_contents(checkpointed) == _checkpoint_contents(task.checkpoint)
    events = () if is_known else ((task_stream(task.id), checkpointed),)
    return Decision(task_receipt(task, task.status), events)


def _checkpoint_contents(checkpoint: TaskCheckpointed | Checkpoint | None) -> tuple[str, str, str]:
    return (
        ("", "", "")
        if checkpoint is None
        else (checkpoint.commit, checkpoint.description, checkpoint.next_steps)
    )


# --- report and end ---------------------------------------------------------------------------


def decide_report_outcome(command: ReportOutcome, read: Read, now: int) -> Decision | Refusal:
    """Record the outcome of an attempt; a later report of it replaces an earlier one until applied.

    A report that has taken effect already is a no-op, whoever repeats it (S-AOF-2), unless the
    command wants it to be the caller's own.
    """
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    refusal = (
        _check_outcome(command.outcome)
        or limits.check_text("notes", command.notes, limits.MAX_TEXT)
        or limits.check_texts("blockers", command.blockers, limits.MAX_REASON)
        or _check_blockers(command)
        or limits.check_json("details", command.details)
    )
    if refusal:
        return refusal
    if command.once:
        repeat = _check_single_result(command, task, read)
        if repeat:
            return repeat
    elif _has_taken_effect(task, command.outcome):
        no_op_receipt = replace(task_receipt(task, task.status), is_no_op=True)
        return (
            check_repeat(command.fence, task, read, now)
            or (_check_own_work(task, read, now) if command.is_own else None)
            or Decision(no_op_receipt)
        )
    lease = read.lease(task)
    is_by_hub = read.actor.role == "system"
    holder = _acting_holder(read.actor, lease)
    claimed = _implied_claim(command, task, read)
    if claimed is not None:
        task = TASK_FOLDS[TaskClaimed](task, claimed, now)
    else:
        refusal = check_holds(holder, task, lease, command.fence, now)
        if refusal:
            return refusal
    event = TaskReported(
        task.attempts,
        holder.name,
        command.outcome,
        command.notes,
        command.blockers,
        command.details,
        read.actor.name if is_by_hub else "",
    )
    reported: StreamEvents = ((task_stream(task.id), event),)
    if claimed is not None:
        reported = ((task_stream(task.id), claimed), *reported)
    is_unnamed = claimed is not None or (lease is not None and not lease.session)
    if not (command.apply or (command.apply_unnamed and is_unnamed)):
        return Decision(task_receipt(task, task.status), reported)
    reason = f"{UNREPORTED_PREFIX if is_by_hub else REPORTED_PREFIX}{command.outcome}"
    applied = _apply_outcome(task, command.outcome, reason, command.backoff, read, now)
    return Decision(applied.receipt, reported + applied.events, applied.lease)


def _implied_claim(command: ReportOutcome, task: Task, read: Read) -> TaskClaimed | None:
    """The claim that a report begins with: of the agent to which the request of an intent went,
    and which answers it in whatever dialect without a claim before."""
    is_asked = task.names_intent and task.status == "ready" and not task.open_blockers
    if not is_asked or task.reserved_for != read.actor.name or command.fence is not None:
        return None
    agent = read.actor.name
    return TaskClaimed("ready", task.attempts + 1, task.fence + 1, agent, DEFAULT_LEASE_MS)


def _check_single_result(
    command: ReportOutcome, task: Task, read: Read
) -> Decision | Refusal | None:
    """Answer to a second final result of an attempt; None: there is none yet."""
    report = None if task.status == "in-progress" else task.reported
    if report and report.agent == read.actor.name and command.attempt in (0, report.attempt):
        if (report.outcome, report.notes, report.details) == _report_contents(command):
            return Decision(replace(task_receipt(task, task.status), is_repeat=True))
        return Refusal(
            "anomaly",
            f"attempt {report.attempt} of {task.id} has another result already ({report.outcome}): "
            "that one counts",
        )
    if command.attempt in (0, task.attempts):
        return None
    return Refusal("anomaly", f"{task.id} is in attempt {task.attempts}, not in {command.attempt}")


def _report_contents(command: ReportOutcome) -> tuple[Outcome, str, dict[str, object]]:
    return command.outcome, command.notes, command.details


def _check_blockers(command: ReportOutcome) -> Refusal | None:
    """Refuse "blocked" without a blocker (S-AOF-5)."""
    if command.outcome != "blocked" or any(map(str.strip, command.blockers)):
        return None
    detail = "blockers: say what blocks the work, or report another outcome"
    return Refusal("invalid_field", detail, path="blockers")


def decide_end_attempt(command: EndAttempt, read: Read, now: int) -> Decision | Refusal:
    """End the session: apply its report; without one nothing moves."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    lease = read.lease(task)
    check = check_fence if read.actor.role in MAY_DISPATCH else check_holds
    refusal = check(read.actor, task, lease, command.fence, now)
    if refusal and _has_nothing_to_end(command, refusal):
        return Decision(replace(task_receipt(task, task.status), warning=refusal.detail))
    if refusal:
        return refusal
    outcome = _reported_outcome(task)
    if lease is None or outcome is None or command.session not in ("", lease.session):
        return Decision(task_receipt(task, task.status, lease))
    return _apply_outcome(task, outcome, f"{REPORTED_PREFIX}{outcome}", command.backoff, read, now)


def decide_expire_lease(command: ExpireLease, read: Read, now: int) -> Decision | Refusal:
    """Recover the task of a silent or slow holder: by its report if there is one, else to ready."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    if read.actor.role not in MAY_DISPATCH:
        return Refusal("not_authorized", f"{read.actor.label} may not expire leases")
    lease = read.lease(task)
    is_too_long = (
        lease is not None and command.max_ms > 0 and now - lease.started_at >= command.max_ms
    )
    if lease is None or (lease.is_valid(now) and not is_too_long):
        return Decision(task_receipt(task, task.status, lease))
    outcome = _reported_outcome(task)
    if outcome is None:
        reason = TOO_LONG_REASON if lease.is_valid(now) else STALE_HEARTBEAT_REASON
        return _requeue(task, reason, command.backoff, now)
    prefix = REPORTED_PREFIX if lease.is_valid(now) else STALE_HEARTBEAT_PREFIX
    return _apply_outcome(task, outcome, f"{prefix}{outcome}", command.backoff, read, now)


def decide_flag_attempt(command: FlagAttempt, read: Read, now: int) -> Decision | Refusal:
    """Record that the holder shows no progress: a flag, then once an escalation."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    if read.actor.role not in MAY_DISPATCH:
        return Refusal("not_authorized", f"{read.actor.label} may not flag attempts")
    lease = read.lease(task)
    receipt = task_receipt(task, task.status, lease)
    if lease is None or not lease.is_valid(now):
        return Decision(receipt)
    silent_ms, details = now - lease.progress_at, (task.attempts, lease.holder, lease.progress_at)
    stream = task_stream(task.id)
    if lease.quiet_level == NOT_QUIET and silent_ms >= command.quiet_ms:
        flagged = replace(lease, quiet_level=FLAGGED_QUIET)
        events: StreamEvents = ((stream, AttemptQuiet(*details)),)
        return Decision(receipt, events, LeaseChange(task.id, flagged))
    is_escalated = command.escalate_ms > 0 and silent_ms >= command.quiet_ms + command.escalate_ms
    if lease.quiet_level == FLAGGED_QUIET and is_escalated:
        escalated = replace(lease, quiet_level=ESCALATED_QUIET)
        events = ((stream, AttemptEscalated(*details)),)
        return Decision(receipt, events, LeaseChange(task.id, escalated))
    return Decision(receipt)


# --- outcomes ---------------------------------------------------------------------------------


def _acting_holder(actor: Actor, lease: Lease | None) -> Actor:
    """Actor whose lease counts: the hub acts in the place of the holder it observes."""
    return Actor("agent", lease.holder) if actor.role == "system" and lease else actor


def _reported_outcome(task: Task) -> Outcome | None:
    """Reported outcome of the current attempt; an older attempt's report never decides."""
    if task.status != "in-progress" or task.reported is None:
        return None
    return task.reported.outcome


def _has_nothing_to_end(command: EndAttempt, refusal: Refusal) -> bool:
    """True if the named session has lost the task already: there is nothing left to end.

    One task that its agent lost must not keep the others of its session from ending.
    """
    return bool(command.session) and command.fence is None and refusal.code == "lease_lost"


def outcome_path(task: Task, outcome: Outcome) -> tuple[Status, ...]:
    """Statuses that an outcome leads through; it stops at review where one, or a check, is
    required."""
    steps = OUTCOME_STATUSES[outcome]
    return steps[:1] if task.review_required or task.required_checks else steps


def _check_outcome(outcome: str) -> Refusal | None:
    if outcome in OUTCOME_STATUSES:
        return None
    return Refusal(
        "invalid_field", f"outcome {outcome!a} is not one of {', '.join(OUTCOME_STATUSES)}"
    )


def _has_taken_effect(task: Task, outcome: Outcome) -> bool:
    """True if the task is where this outcome leads; a failure leads to a new attempt each time."""
    if outcome == "failed":
        return False
    return task.status in ("done", outcome_path(task, outcome)[-1])


def _check_own_work(task: Task, read: Read, now: int) -> Refusal | None:
    """Refuse unless the caller did the work of the last attempt."""
    worker = task.reported.agent if task.reported else task.assignee
    is_own = read.actor.name in task.agents and read.actor.name == worker
    return None if is_own else check_holds(read.actor, task, read.lease(task), None, now)


def _apply_outcome(
    task: Task, outcome: Outcome, reason: str, backoff: Backoff, read: Read, now: int
) -> Decision:
    """Transitions that an outcome asks for, and the end of the lease."""
    if outcome == "failed":
        return _requeue(task, reason, backoff, now, by_report=True)
    stream, at, events = task_stream(task.id), task.status, list[tuple[str, Transitioned]]()
    for to in outcome_path(task, outcome):
        events.append((stream, Transitioned(at, to, reason, by_report=True)))
        at = to
    dependent_events = unblock_events(task, at, read) if at == "done" else ()
    return Decision(
        task_receipt(task, at), (*events, *dependent_events), LeaseChange(task.id, None)
    )


def _requeue(
    task: Task, reason: str, backoff: Backoff, now: int, *, by_report: bool = False
) -> Decision:
    """Ready again after its backoff; at the limit of attempts, deadletter."""
    stream, failures = task_stream(task.id), task.failures + 1
    not_before = clamp_timestamp(now + backoff_delay(failures, backoff))
    event = TaskRequeued(task.attempts, reason, failures, not_before, by_report=by_report)
    ended = LeaseChange(task.id, None)
    if failures < task.max_attempts:
        return Decision(task_receipt(task, "ready"), ((stream, event),), ended)
    dead: Status = "deadletter"
    deadlettered = Transitioned("ready", dead, f"{failures}{LAST_FAILURE}{reason}")
    return Decision(task_receipt(task, dead), ((stream, event), (stream, deadlettered)), ended)
