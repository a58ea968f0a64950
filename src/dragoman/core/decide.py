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
    KeepLease,
    KeyAgent,
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
from dragoman.core.deciding.handoffs.common import done_already
from dragoman.core.deciding.handoffs.following import with_handoff
from dragoman.core.deciding.handoffs.lateness import LEAVING, with_lateness
from dragoman.core.deciding.handoffs.repeat import done_before
from dragoman.core.deciding.handoffs.ways import with_ways
from dragoman.core.deciding.intents import cancelling, delegating, following, results
from dragoman.core.deciding.mail import mailing, reserving, waving
from dragoman.core.deciding.scope import bound
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
from dragoman.core.states.lease import renewed
from dragoman.core.states.task import Task

DECIDERS: dict[type[AnyCommand], Callable[[Any, Read, int], Decision | Refusal]] = {
    CreateTask: lifecycle.create,
    AdoptTask: adoption.adopt,
    MoveTask: lifecycle.move,
    AliasTask: lifecycle.name,
    NoteTask: lifecycle.note,
    LinkTask: links.link,
    ClaimTask: claims.claim,
    RenewLease: attempts.renew,
    ReleaseTask: attempts.release,
    ReportOutcome: attempts.report,
    EndAttempt: attempts.end,
    KeepLease: attempts.keep,
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
    DraftHandoff: drafting.draft,
    DiscardDraft: drafting.discard,
    ProposeHandoff: offer.propose,
    AcceptHandoff: gate.accept,
    RejectHandoff: ways_out.reject,
    WithdrawHandoff: ways_out.withdraw,
    ActivateHandoff: work.activate,
    CompleteHandoff: work.complete,
    CloseHandoff: work.close,
    ApproveHandoff: gate.approve,
    EscalateHandoff: watch.escalate,
    ExtendHandoff: watch.extend,
    ReassignHandoff: offer.reassign,
    NoteHandoff: watch.note,
    AddWorkItem: workq.add,
    ClaimWorkItem: workq.claim,
    ReleaseWorkItem: workq.release,
    StartWave: waving.start,
    AdvanceWave: waving.advance,
    ReserveFiles: reserving.take,
    RenewReservations: reserving.renew,
    ReleaseReservations: reserving.release,
    DescribeAgent: describing.describe,
    DelegateIntent: delegating.delegate,
    ReceiveResult: results.receive,
    UpdateIntent: results.update,
    ExpireRequest: results.expire,
    CancelIntent: cancelling.cancel,
    RecordTurn: turns.record_turn,
    RecordTrace: tracing.record_trace,
    RequestTransition: tracing.transition,
    EscalateEntropy: tracing.escalate,
    SettleEntropy: tracing.settle,
    RewindTask: rewinding.rewind,
}

_INTENTS_OWN: frozenset[type[AnyCommand]] = frozenset(
    {DelegateIntent, ReceiveResult, UpdateIntent, ExpireRequest}
)
"""Commands that update their intent themselves, without the sync."""


def decide(command: AnyCommand, read: Read, now: int) -> Decision | Refusal:
    """Decide a command; a refusal about a handoff suggests what its caller can do instead."""
    decision = _decided(command, read, now)
    if isinstance(decision, Decision):
        return decision
    return with_ways(decision, command, read, lambda other: _decided(other, read, now))


def _decided(command: AnyCommand, read: Read, now: int) -> Decision | Refusal:
    """Decide a command and its reactions; what the holder sends also renews its lease (S-RUN)."""
    if read.actor.task:
        within = bound(command, read, now)
        if isinstance(within, Refusal):
            return within
        command = within
    kind = type(command)
    is_of_handoff = isinstance(command, HandoffCommand)
    repeated = _repeated(command, read, now) if is_of_handoff else None
    decision = repeated or DECIDERS[kind](command, read, now)
    if isinstance(decision, Refusal):
        return decision
    happens = {type(event) for _, event in decision.events}
    if not happens.isdisjoint(waving.MAY_FAIL):
        decision = waving.kept_to_limits(decision, read, now)
    is_followed = not happens.isdisjoint(following.TOLD) and _has_followers(decision, read)
    if is_followed:
        own = decision.receipt.task if kind in _INTENTS_OWN else ""
        decision = following.followed(decision, read, now, own, gives=_gives(command))
        if isinstance(decision, Refusal):
            return decision
        if decision.refusal or not (is_of_handoff or kind is ProposeHandoff):
            decision = with_handoff(command, decision, read, now)
    if is_followed or not happens.isdisjoint(LEAVING):
        decision = with_lateness(decision, read, now)
    if decision.refusal is not None or decision.lease is not None:
        return decision
    lease = renewal(command, read, now)
    return decision if lease is None else replace(decision, lease=lease)


def _gives(command: AnyCommand) -> bool:
    """True if the command says who gets the task."""
    if isinstance(command, EditTask):
        return command.assignee is not None
    return isinstance(command, ClaimTask)


def _has_followers(decision: Decision, read: Read) -> bool:
    """True if a task that it moves may have an intent or a handoff; most have neither."""
    for stream, event in decision.events:
        task = read.task(stream.partition(":")[2]) if type(event) in following.TOLD else None
        if isinstance(task, Task) and (task.aliases or task.handoff):
            return True
    return False


def _repeated(command: HandoffCommand, read: Read, now: int) -> Decision | None:
    """Repeat of a handoff command that was done before."""
    done = done_before(command, read, now)
    return done_already(done) if done else None


def _held(command: AnyCommand, read: Read) -> str:
    """Task whose holder shows that it is alive; for a handoff, the task handed over."""
    if not isinstance(command, HandoffCommand):
        return command.held
    handoff = read.handoff(command.handoff)
    return handoff.task if handoff else ""


def renewal(command: AnyCommand, read: Read, now: int) -> LeaseChange | None:
    """Lease renewal by a sign of life from a task's holder."""
    held = _held(command, read)
    if not held:
        return None
    task = read.task(held)
    if isinstance(task, Refusal):
        return None
    lease = read.lease(task)
    if lease is None or not holds(read.actor, lease, now):
        return None
    if command.token not in (None, lease.fence) or read.actor.fence not in (0, lease.fence):
        return None
    return LeaseChange(task.id, renewed(lease, now))
