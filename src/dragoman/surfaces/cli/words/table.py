"""What happened, in words: each event as the rest of a sentence that its actor begins."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from dragoman.core.errors import LedgerError
from dragoman.core.events import (
    AgentKeySet,
    AgentPaused,
    AgentRegistered,
    AgentResumed,
    CommandRefused,
    DelegationAccepted,
    DelegationEscalated,
    DelegationRejected,
    DelegationRequested,
    Event,
    LinkKind,
    MailAcked,
    MailAnswered,
    MailEscalated,
    MailPosted,
    MailRead,
    MessageReceived,
    ReservationRenewed,
    ReservationsEnded,
    ReservationTaken,
    TaskAliased,
    TaskBacklinked,
    TaskCheckpointed,
    TaskClaimed,
    TaskCreated,
    TaskEdited,
    TaskLinked,
    TaskNoted,
    TaskProgressed,
    TaskReported,
    TaskRequeued,
    TaskRewound,
    TaskTransitioned,
    TaskUnblocked,
    TaskWarned,
    TokenIssued,
    TokenRevoked,
    WaveBeadReleased,
    WaveCompleted,
    WaveStarted,
    WorkItemAdded,
    WorkItemOwnerChanged,
)
from dragoman.core.moments import format_duration, to_rfc3339
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import Entry, read_line
from dragoman.surfaces.cli.words.handoffs import HANDOFF_EVENT_TEXT
from dragoman.surfaces.cli.words.intents import INTENT_EVENT_TEXT
from dragoman.surfaces.cli.words.phrases import in_parentheses, truncate
from dragoman.surfaces.cli.words.traces import TRACE_EVENT_TEXT

_SUBJECT_KINDS = (
    "task",
    "agent",
    "mail",
    "wave",
    "handoff",
    "workq",
    "intent",
    "standing",
    "turns",
)
"""Kinds of streams whose name says what an entry is about."""

_LINK_TEXT: dict[LinkKind, str] = {
    "blocked-by": "waits for",
    "parent": "is part of",
    "discovered-from": "was found while doing",
}
_BACKLINK_TEXT: dict[LinkKind, str] = {
    "blocked-by": "blocks",
    "parent": "has the part",
    "discovered-from": "led to",
}


class EntryText(Struct, frozen=True):
    """A ledger entry as text."""

    at: str
    actor: str
    via: str
    subject: str
    """Task, agent or wave that it is about; empty for refusals."""
    text: str


def describe_entry(entry: Entry) -> EntryText:
    """Describe an entry; one that this release cannot decode has only its event name."""
    line = read_line(entry.line)
    try:
        event = CODEC.decode(line.event, line.v, line.body)
        text = EVENT_TEXT[type(event)](event)
    except LedgerError as error:
        text = f"{line.event} ({error.detail})"
    kind, _, name = line.stream.partition(":")
    subject = name if kind in _SUBJECT_KINDS else ""
    return EntryText(to_rfc3339(line.at), line.actor, line.via, subject, truncate(text))


def _task_created(event: TaskCreated) -> str:
    parts = [f'created, {event.status}: "{event.title}"']
    if event.reserved_for:
        parts.append(f"for {event.reserved_for}")
    if event.open_blockers:
        parts.append(f"waits for {', '.join(event.open_blockers)}")
    if event.parent:
        parts.append(f"part of {event.parent}")
    return "; ".join(parts)


def _task_claimed(event: TaskClaimed) -> str:
    return (
        f"claimed by {event.agent}: attempt {event.attempt}, fence {event.fence}, "
        f"lease {format_duration(event.ttl_ms)}"
    )


def _task_transitioned(event: TaskTransitioned) -> str:
    beside = f": {event.beside}" if event.beside else ""
    return f"{event.from_} → {event.to}{in_parentheses(event.reason)}{beside}"


def _task_requeued(event: TaskRequeued) -> str:
    return (
        f"attempt {event.attempt} is over{in_parentheses(event.reason)}: ready again, "
        f"not before {to_rfc3339(event.not_before)}; failures in a row: {event.failures}"
    )


def _task_reported(event: TaskReported) -> str:
    notes = f": {event.notes}" if event.notes else ""
    blockers = f"; blocked by {', '.join(event.blockers)}" if event.blockers else ""
    if event.by:
        return f"{event.agent} reported nothing, the {event.by} says {event.outcome}{notes}"
    return f"{event.agent} reported {event.outcome}{notes}{blockers}"


def _task_noted(event: TaskNoted) -> str:
    return f"noted: {event.text}"


def _task_aliased(event: TaskAliased) -> str:
    return f"also called {event.alias}"


def _task_linked(event: TaskLinked) -> str:
    return f"{_LINK_TEXT[event.kind]} {event.target}"


def _task_backlinked(event: TaskBacklinked) -> str:
    return f"{_BACKLINK_TEXT[event.kind]} {event.source}"


def _task_unblocked(event: TaskUnblocked) -> str:
    return f"no longer waits for {event.blocker}: it is {event.status}"


def _task_progressed(event: TaskProgressed) -> str:
    parts = (
        event.progress,
        event.notes,
        f"blocked by {', '.join(event.blockers)}" if event.blockers else "",
    )
    return f"says: {'; '.join(filter(None, parts))}"


def _task_edited(event: TaskEdited) -> str:
    changes = {
        "title": event.title,
        "body": None if event.body is None else f"{len(event.body)} characters",
        "priority": event.priority,
        "review required": event.review_required,
        "reserved for": "anyone" if event.reserved_for == "" else event.reserved_for,
    }
    return "edited: " + ", ".join(f"{k} {v!s}" for k, v in changes.items() if v is not None)


def _task_warned(event: TaskWarned) -> str:
    return f"warning: {event.reason}{f', {event.detail}' if event.detail else ''}"


def _delegation_requested(event: DelegationRequested) -> str:
    return (
        f"{event.from_agent} hands it to {event.to_agent} as a part of {event.parent}, "
        f"due by {to_rfc3339(event.due_by)}"
    )


def _delegation_accepted(event: DelegationAccepted) -> str:
    return f"{event.agent} accepted the handoff"


def _delegation_rejected(event: DelegationRejected) -> str:
    return f"{event.agent} rejected the handoff{in_parentheses(event.reason)}"


def _delegation_escalated(event: DelegationEscalated) -> str:
    return f"escalated: the handoff was due by {to_rfc3339(event.due_by)} and is not finished"


def _message_received(event: MessageReceived) -> str:
    about = f" about {event.target}" if event.target else ""
    return f"sent {event.kind}{about}: nothing was left to change"


def _agent_registered(event: AgentRegistered) -> str:
    dialects = f", speaks {', '.join(event.speaks)}" if event.speaks else ""
    return f"registered: {event.role}{dialects}"


def _agent_keyed(event: AgentKeySet) -> str:
    if not event.key:
        return "signing key ended"
    until = event.former_until
    former = "" if until is None else f"; the one before is good until {to_rfc3339(until)}"
    return f"signing key {event.key}{former}"


def _token_issued(event: TokenIssued) -> str:
    return f"token {event.id} issued, good until {to_rfc3339(event.expires_at)}"


def _token_revoked(event: TokenRevoked) -> str:
    return f"token {event.id} revoked" if event.id else "all tokens revoked"


def _agent_paused(event: AgentPaused) -> str:
    until = f" until {to_rfc3339(event.until)}" if event.until is not None else ""
    return f"paused{until}: {event.reason}"


def _agent_resumed(_: AgentResumed) -> str:
    return "resumed"


def _wave_started(event: WaveStarted) -> str:
    beads = ", ".join(bead.task for bead in event.beads)
    return f"started, at most {event.parallel} at a time: {beads}"


def _bead_released(event: WaveBeadReleased) -> str:
    return f"made {event.task} ready"


def _wave_completed(event: WaveCompleted) -> str:
    return f"complete: {', '.join(f'{count} {status}' for status, count in event.counts.items())}"


def _reservation_taken(event: ReservationTaken) -> str:
    until = "" if event.until is None else f" until {to_rfc3339(event.until)}"
    holder = event.holder or f"wave {event.wave} for {event.task}"
    sharing = "" if event.exclusive else ", shared"
    return (
        f"reserved for {holder}{until}{sharing}: "
        f"{' '.join(event.patterns)}{in_parentheses(event.reason)}"
    )


def _reservation_renewed(event: ReservationRenewed) -> str:
    return f"reserved until {to_rfc3339(event.until)}: {event.id}"


def _reservations_ended(event: ReservationsEnded) -> str:
    return f"reservations {event.why}: {', '.join(event.ids)}"


def _command_refused(event: CommandRefused) -> str:
    target = f" {event.target}" if event.target else ""
    return f"refused {event.kind or event.command}{target}: {event.code}, {event.detail}"


def _task_checkpointed(event: TaskCheckpointed) -> str:
    commit = f" at {event.commit}" if event.commit else ""
    details = "; ".join(filter(None, (event.description, event.next_steps)))
    return f"checkpoint{commit}{in_parentheses(event.reason)}{f': {details}' if details else ''}"


def _mail_posted(event: MailPosted) -> str:
    kind = "" if event.kind == "UNKNOWN" else f"{event.kind} "
    return f'{kind}letter to {", ".join(event.to)} in {event.thread}: "{event.subject}"'


def _mail_read(event: MailRead) -> str:
    return f"read by {event.reader}"


def _mail_acked(event: MailAcked) -> str:
    return f"acked by {event.agent}"


def _mail_answered(event: MailAnswered) -> str:
    return f"answered by {event.by} with {event.answer}"


def _mail_escalated(event: MailEscalated) -> str:
    notified = f"; told to {', '.join(event.told)}" if event.told else ""
    missed = "answer" if event.only_answer else "ack or answer"
    return f"escalated: {', '.join(event.waiting_for)} did not {missed} in time{notified}"


def _work_item_added(event: WorkItemAdded) -> str:
    return f"put into the work queue{in_parentheses(event.title)}"


def _work_item_passed(event: WorkItemOwnerChanged) -> str:
    return f"{event.status} by {event.owner}" if event.owner else event.status


def _task_rewound(event: TaskRewound) -> str:
    files = f", its files on the branch {event.branch}" if event.branch else ""
    to = f"{event.to}, as of its entry {event.version}"
    return f"rewound from {event.from_} to {to}{files}{in_parentheses(event.reason)}"


EVENT_TEXT: dict[type[Event], Callable[[Any], str]] = {
    TaskCreated: _task_created,
    TaskAliased: _task_aliased,
    TaskLinked: _task_linked,
    TaskBacklinked: _task_backlinked,
    TaskUnblocked: _task_unblocked,
    TaskClaimed: _task_claimed,
    TaskTransitioned: _task_transitioned,
    TaskRequeued: _task_requeued,
    TaskReported: _task_reported,
    TaskNoted: _task_noted,
    TaskProgressed: _task_progressed,
    TaskEdited: _task_edited,
    TaskWarned: _task_warned,
    TaskCheckpointed: _task_checkpointed,
    DelegationRequested: _delegation_requested,
    DelegationAccepted: _delegation_accepted,
    DelegationRejected: _delegation_rejected,
    DelegationEscalated: _delegation_escalated,
    CommandRefused: _command_refused,
    MessageReceived: _message_received,
    AgentRegistered: _agent_registered,
    AgentKeySet: _agent_keyed,
    TokenIssued: _token_issued,
    TokenRevoked: _token_revoked,
    WaveStarted: _wave_started,
    WaveBeadReleased: _bead_released,
    WaveCompleted: _wave_completed,
    ReservationTaken: _reservation_taken,
    ReservationRenewed: _reservation_renewed,
    ReservationsEnded: _reservations_ended,
    MailPosted: _mail_posted,
    MailRead: _mail_read,
    MailAcked: _mail_acked,
    MailAnswered: _mail_answered,
    MailEscalated: _mail_escalated,
    AgentPaused: _agent_paused,
    AgentResumed: _agent_resumed,
    **HANDOFF_EVENT_TEXT,
    WorkItemAdded: _work_item_added,
    WorkItemOwnerChanged: _work_item_passed,
    **INTENT_EVENT_TEXT,
    TaskRewound: _task_rewound,
    **TRACE_EVENT_TEXT,
}
"""Event -> its text; a test checks that every event has one."""
