"""One table: command -> decider. `decide(command, read, now)` is all that the engine calls."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from dragoman.core import (
    adoption,
    attempts,
    credentials,
    delegation,
    lifecycle,
    links,
    mailing,
    messages,
    pausing,
    registry,
    reserving,
    rewinding,
    tracing,
    updates,
    waving,
)
from dragoman.core.authority import holds
from dragoman.core.commands import (
    AcceptDelegation,
    AckMail,
    AdoptTask,
    AdvanceWave,
    AliasTask,
    AnswerMail,
    AnyCommand,
    CheckpointTask,
    ClaimTask,
    CreateTask,
    EditTask,
    EndAttempt,
    EscalateDelegation,
    EscalateEntropy,
    EscalateMail,
    ExpireLease,
    IssueToken,
    KeyAgent,
    LinkTask,
    MoveTask,
    NoteTask,
    PauseAgent,
    PostMail,
    ReadMail,
    RecordTrace,
    RecordTurn,
    RegisterAgent,
    RejectDelegation,
    RejectMessage,
    ReleaseReservations,
    ReleaseTask,
    RenewLease,
    RenewReservations,
    ReportOutcome,
    RequestDelegation,
    RequestTransition,
    ReserveFiles,
    ResumeAgent,
    RevokeToken,
    RewindTask,
    SettleEntropy,
    StartWave,
    UpdateTask,
    WarnTask,
)
from dragoman.core.errors import Refusal
from dragoman.core.lease import renewed
from dragoman.core.reading import Decision, LeaseChange, Read
from dragoman.core.scope import bound

DECIDERS: dict[type[AnyCommand], Callable[[Any, Read, int], Decision | Refusal]] = {
    CreateTask: lifecycle.create,
    AdoptTask: adoption.adopt,
    MoveTask: lifecycle.move,
    AliasTask: lifecycle.name,
    NoteTask: lifecycle.note,
    LinkTask: links.link,
    ClaimTask: attempts.claim,
    RenewLease: attempts.renew,
    ReleaseTask: attempts.release,
    ReportOutcome: attempts.report,
    EndAttempt: attempts.end,
    ExpireLease: attempts.expire,
    UpdateTask: updates.update,
    EditTask: updates.edit,
    WarnTask: updates.warn,
    RequestDelegation: delegation.request,
    AcceptDelegation: delegation.accept,
    RejectDelegation: delegation.reject,
    EscalateDelegation: delegation.escalate,
    RegisterAgent: registry.register,
    KeyAgent: credentials.key,
    IssueToken: credentials.issue,
    RevokeToken: credentials.revoke,
    PauseAgent: pausing.pause,
    ResumeAgent: pausing.resume,
    RejectMessage: messages.reject,
    CheckpointTask: attempts.checkpoint,
    PostMail: mailing.post,
    ReadMail: mailing.read_letter,
    AckMail: mailing.ack,
    AnswerMail: mailing.answer,
    EscalateMail: mailing.escalate,
    StartWave: waving.start,
    AdvanceWave: waving.advance,
    ReserveFiles: reserving.take,
    RenewReservations: reserving.renew,
    ReleaseReservations: reserving.release,
    RecordTurn: tracing.record_turn,
    RecordTrace: tracing.record_trace,
    RequestTransition: tracing.transition,
    EscalateEntropy: tracing.escalate,
    SettleEntropy: tracing.settle,
    RewindTask: rewinding.rewind,
}


def decide(command: AnyCommand, read: Read, now: int) -> Decision | Refusal:
    """What follows from a command; whatever its holder says also renews a task's lease (S-RUN)."""
    if read.actor.task:
        within = bound(command, read, now)
        if isinstance(within, Refusal):
            return within
        command = within
    decision = DECIDERS[type(command)](command, read, now)
    if isinstance(decision, Refusal) or decision.lease is not None:
        return decision
    lease = renewal(command, read, now)
    return decision if lease is None else replace(decision, lease=lease)


def renewal(command: AnyCommand, read: Read, now: int) -> LeaseChange | None:
    """The longer lease that a sign of life from a task's holder gives it."""
    if not command.held:
        return None
    task = read.task(command.held)
    if isinstance(task, Refusal):
        return None
    lease = read.lease(task)
    if lease is None or not holds(read.actor, lease, now):
        return None
    if command.token not in (None, lease.fence) or read.actor.fence not in (0, lease.fence):
        return None
    return LeaseChange(task.id, renewed(lease, now))
