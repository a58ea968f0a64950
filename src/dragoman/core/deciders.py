"""Deciders: one function for each command; the engine calls only `decide`.

After a decision, the concepts that depend on a task follow in the same transaction: waves,
intents, handoffs; and whatever the holder of a task sends renews its lease (S-RUN).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Union

from msgspec.structs import replace

from dragoman.core import (
    adopt,
    agent,
    attempt,
    check,
    check_state,
    claim,
    delegation,
    mail,
    presence,
    question,
    question_state,
    reservation,
    task,
    task_state,
    trace,
    wave,
    work_queue,
)
from dragoman.core.actor import RejectMessage
from dragoman.core.attempt_state import renew_lease
from dragoman.core.authority import holds
from dragoman.core.base import Command
from dragoman.core.credential_scope import bind_to_attempt
from dragoman.core.errors import REFUSALS, Refusal
from dragoman.core.handoff import accept, activate, complete, propose, reject, sla
from dragoman.core.handoff import state as handoff_state
from dragoman.core.handoff.common import repeat_decision
from dragoman.core.handoff.duplicates import find_applied
from dragoman.core.intent import delegate, results
from dragoman.core.intent import state as intent_state
from dragoman.core.limits import MAX_REASON, check_text
from dragoman.core.reactions import react
from dragoman.core.read import Decision, LeaseChange, Read

# --- messages that are no command -------------------------------------------------------------

_MAX_SHOWN_DETAIL = 1_000


def decide_reject_message(command: RejectMessage, _: Read, __: int) -> Refusal:
    """Refuse with what a dialect found wrong."""
    if command.code not in REFUSALS:
        return Refusal("invalid_field", f"{command.code[:40]!a} is not the code of a refusal")
    detail = command.detail
    if check_text("detail", detail, MAX_REASON):
        # It quotes text from outside that cannot be written as it is.
        detail = ascii(detail[:_MAX_SHOWN_DETAIL]) + "…"
    return Refusal(command.code, detail, command.kind)


# --- table ------------------------------------------------------------------------------------

DECIDERS: dict[type[Command], Callable[[Any, Read, int], Decision | Refusal]] = {
    task_state.CreateTask: delegation.decide_create_or_delegate,
    task_state.AdoptTask: adopt.decide_adopt_task,
    task_state.MoveTask: task.decide_move_task,
    task_state.AliasTask: task.decide_alias_task,
    task_state.NoteTask: task.decide_note_task,
    task_state.LinkTask: task.decide_link_tasks,
    task_state.UnlinkTask: task.decide_unlink_task,
    attempt.ClaimTask: claim.decide_claim_task,
    attempt.RenewLease: attempt.decide_renew_lease,
    attempt.ReleaseTask: attempt.decide_release_task,
    attempt.LimitAttempt: attempt.decide_limit_attempt,
    attempt.ReportOutcome: attempt.decide_report_outcome,
    attempt.EndAttempt: attempt.decide_end_attempt,
    attempt.ExpireLease: attempt.decide_expire_lease,
    attempt.FlagAttempt: attempt.decide_flag_attempt,
    task_state.UpdateTask: task.decide_update_task,
    task_state.EditTask: task.decide_edit_task,
    task_state.WarnTask: task.decide_warn_task,
    delegation.RequestDelegation: delegation.decide_request_delegation,
    delegation.AcceptDelegation: delegation.decide_accept_delegation,
    delegation.RejectDelegation: delegation.decide_reject_delegation,
    delegation.EscalateDelegation: delegation.decide_escalate_delegation,
    agent.RegisterAgent: agent.decide_register_agent,
    agent.SetAgentKey: agent.decide_set_key,
    agent.IssueToken: agent.decide_issue_token,
    agent.RevokeToken: agent.decide_revoke_token,
    agent.PauseAgent: agent.decide_pause_agent,
    agent.ResumeAgent: agent.decide_resume_agent,
    presence.ReportPresence: presence.decide_report_presence,
    RejectMessage: decide_reject_message,
    attempt.CheckpointTask: attempt.decide_checkpoint_task,
    mail.PostMail: mail.decide_post_mail,
    mail.ReadMail: mail.decide_read_mail,
    mail.AckMail: mail.decide_ack_mail,
    mail.AnswerMail: question.decide_answer_letter,
    mail.EscalateMail: mail.decide_escalate_mail,
    handoff_state.ProposeHandoff: propose.decide_propose,
    handoff_state.AcceptHandoff: accept.decide_accept,
    handoff_state.RejectHandoff: reject.decide_reject,
    handoff_state.WithdrawHandoff: reject.decide_withdraw,
    handoff_state.ActivateHandoff: activate.decide_activate,
    handoff_state.CompleteHandoff: complete.decide_complete,
    handoff_state.CloseHandoff: complete.decide_close,
    handoff_state.ApproveHandoff: accept.decide_approve,
    handoff_state.EscalateHandoff: sla.decide_escalate,
    handoff_state.ExtendHandoff: sla.decide_extend,
    handoff_state.ReassignHandoff: propose.decide_reassign,
    handoff_state.NoteHandoff: complete.decide_note,
    work_queue.AddWorkItem: work_queue.decide_add_item,
    work_queue.ClaimWorkItem: work_queue.decide_claim_item,
    work_queue.ReleaseWorkItem: work_queue.decide_release_item,
    wave.StartWave: wave.decide_start_wave,
    wave.AdvanceWave: wave.decide_advance_wave,
    reservation.ReserveFiles: reservation.decide_reserve_files,
    reservation.ReleaseReservations: reservation.decide_release_reservations,
    agent.DescribeAgent: agent.decide_describe_agent,
    intent_state.DelegateIntent: delegate.decide_delegate,
    intent_state.ReceiveResult: results.decide_result,
    intent_state.UpdateIntent: results.decide_update,
    intent_state.ExpireRequest: results.decide_expire,
    intent_state.CancelIntent: delegate.decide_cancel,
    trace.RecordTurn: trace.decide_record_turn,
    trace.RecordTrace: trace.decide_record_trace,
    trace.RequestTransition: trace.decide_request_transition,
    trace.EscalateEntropy: trace.decide_escalate_entropy,
    trace.SettleEntropy: trace.decide_settle_entropy,
    task_state.RewindTask: task.decide_rewind_task,
    task_state.SendBackTask: task.decide_send_back,
    check_state.RecordChecks: check.decide_record_checks,
    question_state.AskQuestion: question.decide_ask_question,
    question_state.AnswerQuestion: question.decide_answer_question,
    question_state.WithdrawQuestion: question.decide_withdraw_question,
}

if TYPE_CHECKING:
    AnyCommand = Command
else:
    AnyCommand = Union[tuple(DECIDERS)]  # noqa: UP007  the members are known at run time only
    """All commands, for decoders, which know each by its tag."""


def decide(command: Command, read: Read, now: int) -> Decision | Refusal:
    """Decide a command and its reactions; what the holder sends also renews its lease (S-RUN)."""
    if read.actor.task:
        bound_command = bind_to_attempt(command, read, now)
        if isinstance(bound_command, Refusal):
            return bound_command
        command = bound_command
    decision = DECIDERS[type(command)](command, read, now)
    if isinstance(decision, Refusal):
        repeated = _decide_again(command, decision, read)
        if repeated is None:
            return decision
        decision = repeated
    decision = react(command, decision, read, now)
    if isinstance(decision, Refusal):
        return decision
    decision = _warn_of_dropped_report(decision, read)
    if decision.refusal is not None or decision.lease is not None:
        return decision
    lease = renewal_by_activity(command, read, now, has_progress=bool(decision.events))
    return decision if lease is None else replace(decision, lease=lease)


def _decide_again(command: Command, refusal: Refusal, read: Read) -> Decision | None:
    """Answer to a repeated handoff command, whose handoff has moved on because of the first."""
    if (
        not isinstance(command, handoff_state.HandoffCommand)
        or refusal.code != "invalid_transition"
    ):
        return None
    applied = find_applied(command, read)
    return repeat_decision(applied) if applied else None


def _warn_of_dropped_report(decision: Decision, read: Read) -> Decision:
    """Say in the receipt that the change drops a pending report, whoever takes the work away."""
    for stream, event in decision.events:
        change = task_state.status_change_of(event)
        if change is None or change.from_ != "in-progress":
            continue
        task = read.task(stream.partition(":")[2])
        report = (
            task.reported
            if isinstance(task, task_state.Task) and task_state.drops_report(task, event)
            else None
        )
        if report is not None:
            receipt = decision.receipt
            dropped = (
                f"the report of {report.agent} on attempt {report.attempt} ({report.outcome}) was "
                "still pending and is dropped"
            )
            warning = "; ".join(filter(None, (receipt.warning, dropped)))
            return replace(decision, receipt=replace(receipt, warning=warning))
    return decision


def _heartbeat_task(command: Command, read: Read) -> str:
    """Task whose holder shows that it is alive; for a handoff, the task handed over."""
    if not isinstance(command, handoff_state.HandoffCommand):
        return command.heartbeat_task
    handoff = read.handoff(command.handoff)
    return handoff.task if handoff else ""


def renewal_by_activity(
    command: Command, read: Read, now: int, *, has_progress: bool = False
) -> LeaseChange | None:
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
    return LeaseChange(task.id, renew_lease(lease, now, has_progress=has_progress))
