"""One table: command -> decider. `decide(command, read, now)` is all that the engine calls."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from dragoman.core.authority import holds
from dragoman.core.commands import (
    AcceptDelegation,
    AcceptHandoff,
    AckMail,
    ActivateHandoff,
    AddWorkItem,
    AdoptTask,
    AdvanceWave,
    AliasTask,
    AnswerMail,
    AnyCommand,
    ApproveHandoff,
    CancelIntent,
    CheckpointTask,
    ClaimTask,
    ClaimWorkItem,
    CloseHandoff,
    CompleteHandoff,
    CreateTask,
    DelegateIntent,
    DescribeAgent,
    DiscardDraft,
    DraftHandoff,
    EditTask,
    EndAttempt,
    EscalateDelegation,
    EscalateEntropy,
    EscalateHandoff,
    EscalateMail,
    ExpireLease,
    ExpireRequest,
    ExtendHandoff,
    HandoffCommand,
    IssueToken,
    LinkTask,
    MoveTask,
    NoteHandoff,
    NoteTask,
    PauseAgent,
    PostMail,
    ProposeHandoff,
    ReadMail,
    ReassignHandoff,
    ReceiveResult,
    RecordTrace,
    RecordTurn,
    RegisterAgent,
    RejectDelegation,
    RejectHandoff,
    RejectMessage,
    ReleaseReservations,
    ReleaseTask,
    ReleaseWorkItem,
    RenewLease,
    RenewReservations,
    ReportOutcome,
    RequestDelegation,
    RequestTransition,
    ReserveFiles,
    ResumeAgent,
    RevokeToken,
    RewindTask,
    SetAgentKey,
    SetLeaseDuration,
    SettleEntropy,
    StartWave,
    UpdateIntent,
    UpdateTask,
    WarnTask,
    WithdrawHandoff,
)
from dragoman.core.deciding import messages, tracing, turns
from dragoman.core.deciding.agents import credentials, describing, pausing, registry
from dragoman.core.deciding.handoffs import drafting, gate, offer, watch, ways_out, work, workq
from dragoman.core.deciding.handoffs.common import repeat_decision
from dragoman.core.deciding.handoffs.following import sync_handoff
from dragoman.core.deciding.handoffs.lateness import STAGE_ENDING_EVENTS, record_sla_breaches
from dragoman.core.deciding.handoffs.repeat import find_applied
from dragoman.core.deciding.handoffs.ways import suggest_actions
from dragoman.core.deciding.intents import cancelling, delegating, following, results
from dragoman.core.deciding.mail import mailing, reserving, waving
from dragoman.core.deciding.scope import bind_to_attempt
from dragoman.core.deciding.tasks import (
    adoption,
    attempts,
    claims,
    delegation,
    lifecycle,
    links,
    rewinding,
    updates,
)
from dragoman.core.errors import Refusal
from dragoman.core.reading import Decision, LeaseChange, Read
from dragoman.core.states.lease import renew_lease
from dragoman.core.states.task import Task

DECIDERS: dict[type[AnyCommand], Callable[[Any, Read, int], Decision | Refusal]] = {
    CreateTask: lifecycle.decide_create_task,
    AdoptTask: adoption.decide_adopt_task,
    MoveTask: lifecycle.decide_move_task,
    AliasTask: lifecycle.decide_alias_task,
    NoteTask: lifecycle.decide_note_task,
    LinkTask: links.decide_link_tasks,
    ClaimTask: claims.decide_claim_task,
    RenewLease: attempts.decide_renew_lease,
    ReleaseTask: attempts.decide_release_task,
    ReportOutcome: attempts.decide_report_outcome,
    EndAttempt: attempts.decide_end_attempt,
    SetLeaseDuration: attempts.decide_set_lease_duration,
    ExpireLease: attempts.decide_expire_lease,
    UpdateTask: updates.decide_update_task,
    EditTask: updates.decide_edit_task,
    WarnTask: updates.decide_warn_task,
    RequestDelegation: delegation.decide_request_delegation,
    AcceptDelegation: delegation.decide_accept_delegation,
    RejectDelegation: delegation.decide_reject_delegation,
    EscalateDelegation: delegation.decide_escalate_delegation,
    RegisterAgent: registry.decide_register_agent,
    SetAgentKey: credentials.decide_set_key,
    IssueToken: credentials.decide_issue_token,
    RevokeToken: credentials.decide_revoke_token,
    PauseAgent: pausing.decide_pause_agent,
    ResumeAgent: pausing.decide_resume_agent,
    RejectMessage: messages.decide_reject_message,
    CheckpointTask: attempts.decide_checkpoint_task,
    PostMail: mailing.decide_post_mail,
    ReadMail: mailing.decide_read_mail,
    AckMail: mailing.decide_ack_mail,
    AnswerMail: mailing.decide_answer_mail,
    EscalateMail: mailing.decide_escalate_mail,
    DraftHandoff: drafting.decide_draft,
    DiscardDraft: drafting.decide_discard,
    ProposeHandoff: offer.decide_propose,
    AcceptHandoff: gate.decide_accept,
    RejectHandoff: ways_out.decide_reject,
    WithdrawHandoff: ways_out.decide_withdraw,
    ActivateHandoff: work.decide_activate,
    CompleteHandoff: work.decide_complete,
    CloseHandoff: work.decide_close,
    ApproveHandoff: gate.decide_approve,
    EscalateHandoff: watch.decide_escalate,
    ExtendHandoff: watch.decide_extend,
    ReassignHandoff: offer.decide_reassign,
    NoteHandoff: watch.decide_note,
    AddWorkItem: workq.decide_add_item,
    ClaimWorkItem: workq.decide_claim_item,
    ReleaseWorkItem: workq.decide_release_item,
    StartWave: waving.decide_start_wave,
    AdvanceWave: waving.decide_advance_wave,
    ReserveFiles: reserving.decide_reserve_files,
    RenewReservations: reserving.decide_renew_reservations,
    ReleaseReservations: reserving.decide_release_reservations,
    DescribeAgent: describing.decide_describe_agent,
    DelegateIntent: delegating.decide_delegate,
    ReceiveResult: results.decide_result,
    UpdateIntent: results.decide_update,
    ExpireRequest: results.decide_expire,
    CancelIntent: cancelling.decide_cancel,
    RecordTurn: turns.decide_record_turn,
    RecordTrace: tracing.decide_record_trace,
    RequestTransition: tracing.decide_request_transition,
    EscalateEntropy: tracing.decide_escalate_entropy,
    SettleEntropy: tracing.decide_settle_entropy,
    RewindTask: rewinding.decide_rewind_task,
}

_INTENT_COMMANDS: frozenset[type[AnyCommand]] = frozenset(
    {DelegateIntent, ReceiveResult, UpdateIntent, ExpireRequest}
)
"""Commands that update their intent themselves, without the sync."""


def decide(command: AnyCommand, read: Read, now: int) -> Decision | Refusal:
    """Decide a command; a refusal about a handoff suggests what its caller can do instead."""
    decision = _decide(command, read, now)
    if isinstance(decision, Decision):
        return decision
    return suggest_actions(decision, command, read, lambda other: _decide(other, read, now))


def _decide(command: AnyCommand, read: Read, now: int) -> Decision | Refusal:
    """Decide a command and its reactions; what the holder sends also renews its lease (S-RUN)."""
    if read.actor.task:
        bound_command = bind_to_attempt(command, read, now)
        if isinstance(bound_command, Refusal):
            return bound_command
        command = bound_command
    kind = type(command)
    is_of_handoff = isinstance(command, HandoffCommand)
    repeated = _known_repeat(command, read, now) if is_of_handoff else None
    decision = repeated or DECIDERS[kind](command, read, now)
    if isinstance(decision, Refusal):
        return decision
    event_types = {type(event) for _, event in decision.events}
    if not event_types.isdisjoint(waving.ATTEMPT_FAILURE_EVENTS):
        decision = waving.block_beads_over_retry_limit(decision, read, now)
    is_followed = not event_types.isdisjoint(following.SYNCED_EVENTS) and _may_have_followers(
        decision, read
    )
    if is_followed:
        own = decision.receipt.task if kind in _INTENT_COMMANDS else ""
        decision = following.sync_intents(
            decision, read, now, own, is_assignment=_assigns_task(command)
        )
        if isinstance(decision, Refusal):
            return decision
        if decision.refusal or not (is_of_handoff or kind is ProposeHandoff):
            decision = sync_handoff(command, decision, read, now)
    if is_followed or not event_types.isdisjoint(STAGE_ENDING_EVENTS):
        decision = record_sla_breaches(decision, read, now)
    if decision.refusal is not None or decision.lease is not None:
        return decision
    lease = renewal_by_activity(command, read, now)
    return decision if lease is None else replace(decision, lease=lease)


def _assigns_task(command: AnyCommand) -> bool:
    """True if the command says who gets the task."""
    if isinstance(command, EditTask):
        return command.assignee is not None
    return isinstance(command, ClaimTask)


def _may_have_followers(decision: Decision, read: Read) -> bool:
    """True if a task that it moves may have an intent or a handoff; most have neither."""
    for stream, event in decision.events:
        task = (
            read.task(stream.partition(":")[2]) if type(event) in following.SYNCED_EVENTS else None
        )
        if isinstance(task, Task) and (task.aliases or task.handoff):
            return True
    return False


def _known_repeat(command: HandoffCommand, read: Read, now: int) -> Decision | None:
    """Repeat of a handoff command that was done before."""
    done = find_applied(command, read, now)
    return repeat_decision(done) if done else None


def _heartbeat_task(command: AnyCommand, read: Read) -> str:
    """Task whose holder shows that it is alive; for a handoff, the task handed over."""
    if not isinstance(command, HandoffCommand):
        return command.heartbeat_task
    handoff = read.handoff(command.handoff)
    return handoff.task if handoff else ""


def renewal_by_activity(command: AnyCommand, read: Read, now: int) -> LeaseChange | None:
    """Lease renewal by a sign of life from a task's holder."""
    held = _heartbeat_task(command, read)
    if not held:
        return None
    task = read.task(held)
    if isinstance(task, Refusal):
        return None
    lease = read.lease(task)
    if lease is None or not holds(read.actor, lease, now):
        return None
    if command.named_fence not in (None, lease.fence) or read.actor.fence not in (0, lease.fence):
        return None
    return LeaseChange(task.id, renew_lease(lease, now))
