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
    claim,
    delegation,
    mail,
    presence,
    question,
    reservation,
    trace,
    wave,
    work_queue,
)
from dragoman.core.actor import RejectMessage
from dragoman.core.agent import (
    DescribeAgent,
    IssueToken,
    PauseAgent,
    RegisterAgent,
    ResumeAgent,
    RevokeToken,
    SetAgentKey,
)
from dragoman.core.attempt import (
    CheckpointTask,
    ClaimTask,
    EndAttempt,
    ExpireLease,
    FlagAttempt,
    LimitAttempt,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
)
from dragoman.core.attempt_state import renew_lease
from dragoman.core.authority import holds
from dragoman.core.base import Command
from dragoman.core.check_state import RecordChecks
from dragoman.core.credential_scope import bind_to_attempt
from dragoman.core.delegation import (
    AcceptDelegation,
    EscalateDelegation,
    RejectDelegation,
    RequestDelegation,
)
from dragoman.core.errors import REFUSALS, Refusal
from dragoman.core.handoff import accept, activate, complete, propose, reject, sla
from dragoman.core.handoff.common import repeat_decision
from dragoman.core.handoff.duplicates import find_applied
from dragoman.core.handoff.state import (
    AcceptHandoff,
    ActivateHandoff,
    ApproveHandoff,
    CloseHandoff,
    CompleteHandoff,
    EscalateHandoff,
    ExtendHandoff,
    HandoffCommand,
    NoteHandoff,
    ProposeHandoff,
    ReassignHandoff,
    RejectHandoff,
    WithdrawHandoff,
)
from dragoman.core.intent import delegate, results
from dragoman.core.intent.state import (
    CancelIntent,
    DelegateIntent,
    ExpireRequest,
    ReceiveResult,
    UpdateIntent,
)
from dragoman.core.limits import MAX_REASON, check_text
from dragoman.core.mail import AckMail, AnswerMail, EscalateMail, PostMail, ReadMail
from dragoman.core.presence import ReportPresence
from dragoman.core.question_state import AnswerQuestion, AskQuestion, WithdrawQuestion
from dragoman.core.reactions import react
from dragoman.core.read import Decision, LeaseChange, Read
from dragoman.core.reservation import ReleaseReservations, ReserveFiles
from dragoman.core.task import (
    decide_alias_task,
    decide_edit_task,
    decide_link_tasks,
    decide_move_task,
    decide_note_task,
    decide_rewind_task,
    decide_send_back,
    decide_unlink_task,
    decide_update_task,
    decide_warn_task,
)
from dragoman.core.task_state import (
    AdoptTask,
    AliasTask,
    CreateTask,
    EditTask,
    LinkTask,
    MoveTask,
    NoteTask,
    RewindTask,
    SendBackTask,
    Task,
    UnlinkTask,
    UpdateTask,
    WarnTask,
    drops_report,
    status_change_of,
)
from dragoman.core.trace import (
    EscalateEntropy,
    RecordTrace,
    RecordTurn,
    RequestTransition,
    SettleEntropy,
)
from dragoman.core.wave import AdvanceWave, StartWave
from dragoman.core.work_queue import AddWorkItem, ClaimWorkItem, ReleaseWorkItem

# --- messages that are no command -------------------------------------------------------------

_MAX_SHOWN_DETAIL = 1_000


def decide_reject_message(command: RejectMessage, read: Read, now: int) -> Refusal:
    """Refuse with what a dialect found wrong."""
    del read, now
    if command.code not in REFUSALS:
        return Refusal("invalid_field", f"{command.code[:40]!a} is not the code of a refusal")
    detail = command.detail
    if check_text("detail", detail, MAX_REASON):
        # It quotes text from outside that cannot be written as it is.
        detail = ascii(detail[:_MAX_SHOWN_DETAIL]) + "…"
    return Refusal(command.code, detail, command.kind)


# --- table ------------------------------------------------------------------------------------

DECIDERS: dict[type[Command], Callable[[Any, Read, int], Decision | Refusal]] = {
    CreateTask: delegation.decide_create_or_delegate,
    AdoptTask: adopt.decide_adopt_task,
    MoveTask: decide_move_task,
    AliasTask: decide_alias_task,
    NoteTask: decide_note_task,
    LinkTask: decide_link_tasks,
    UnlinkTask: decide_unlink_task,
    ClaimTask: claim.decide_claim_task,
    RenewLease: attempt.decide_renew_lease,
    ReleaseTask: attempt.decide_release_task,
    LimitAttempt: attempt.decide_limit_attempt,
    ReportOutcome: attempt.decide_report_outcome,
    EndAttempt: attempt.decide_end_attempt,
    ExpireLease: attempt.decide_expire_lease,
    FlagAttempt: attempt.decide_flag_attempt,
    UpdateTask: decide_update_task,
    EditTask: decide_edit_task,
    WarnTask: decide_warn_task,
    RequestDelegation: delegation.decide_request_delegation,
    AcceptDelegation: delegation.decide_accept_delegation,
    RejectDelegation: delegation.decide_reject_delegation,
    EscalateDelegation: delegation.decide_escalate_delegation,
    RegisterAgent: agent.decide_register_agent,
    SetAgentKey: agent.decide_set_key,
    IssueToken: agent.decide_issue_token,
    RevokeToken: agent.decide_revoke_token,
    PauseAgent: agent.decide_pause_agent,
    ResumeAgent: agent.decide_resume_agent,
    ReportPresence: presence.decide_report_presence,
    RejectMessage: decide_reject_message,
    CheckpointTask: attempt.decide_checkpoint_task,
    PostMail: mail.decide_post_mail,
    ReadMail: mail.decide_read_mail,
    AckMail: mail.decide_ack_mail,
    AnswerMail: mail.decide_answer_mail,
    EscalateMail: mail.decide_escalate_mail,
    ProposeHandoff: propose.decide_propose,
    AcceptHandoff: accept.decide_accept,
    RejectHandoff: reject.decide_reject,
    WithdrawHandoff: reject.decide_withdraw,
    ActivateHandoff: activate.decide_activate,
    CompleteHandoff: complete.decide_complete,
    CloseHandoff: complete.decide_close,
    ApproveHandoff: accept.decide_approve,
    EscalateHandoff: sla.decide_escalate,
    ExtendHandoff: sla.decide_extend,
    ReassignHandoff: propose.decide_reassign,
    NoteHandoff: complete.decide_note,
    AddWorkItem: work_queue.decide_add_item,
    ClaimWorkItem: work_queue.decide_claim_item,
    ReleaseWorkItem: work_queue.decide_release_item,
    StartWave: wave.decide_start_wave,
    AdvanceWave: wave.decide_advance_wave,
    ReserveFiles: reservation.decide_reserve_files,
    ReleaseReservations: reservation.decide_release_reservations,
    DescribeAgent: agent.decide_describe_agent,
    DelegateIntent: delegate.decide_delegate,
    ReceiveResult: results.decide_result,
    UpdateIntent: results.decide_update,
    ExpireRequest: results.decide_expire,
    CancelIntent: delegate.decide_cancel,
    RecordTurn: trace.decide_record_turn,
    RecordTrace: trace.decide_record_trace,
    RequestTransition: trace.decide_request_transition,
    EscalateEntropy: trace.decide_escalate_entropy,
    SettleEntropy: trace.decide_settle_entropy,
    RewindTask: decide_rewind_task,
    SendBackTask: decide_send_back,
    RecordChecks: check.decide_record_checks,
    AskQuestion: question.decide_ask_question,
    AnswerQuestion: question.decide_answer_question,
    WithdrawQuestion: question.decide_withdraw_question,
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
    if not isinstance(command, HandoffCommand) or refusal.code != "invalid_transition":
        return None
    applied = find_applied(command, read)
    return repeat_decision(applied) if applied else None


def _warn_of_dropped_report(decision: Decision, read: Read) -> Decision:
    """Say in the receipt that the change drops a pending report, whoever takes the work away."""
    for stream, event in decision.events:
        change = status_change_of(event)
        if change is None or change.from_ != "in-progress":
            continue
        task = read.task(stream.partition(":")[2])
        report = task.reported if isinstance(task, Task) and drops_report(task, event) else None
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
    if not isinstance(command, HandoffCommand):
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
