"""What happened, in words: each event as the rest of a sentence that its actor begins."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from dragoman.core.errors import LedgerError
from dragoman.core.events import (
    AgentKeyed,
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
    WorkItemPassed,
)
from dragoman.core.moments import duration, to_rfc3339
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import Entry, read_line
from dragoman.surfaces.cli.words.handoffs import HANDOFF_WORDS
from dragoman.surfaces.cli.words.intents import INTENT_WORDS
from dragoman.surfaces.cli.words.phrases import because, cut
from dragoman.surfaces.cli.words.traces import TRACE_WORDS

_SUBJECTS = ("task", "agent", "mail", "wave", "handoff", "workq", "intent", "standing", "turns")
"""Kinds of streams whose name says what an entry is about."""

_FORWARD: dict[LinkKind, str] = {
    "blocked-by": "waits for",
    "parent": "is part of",
    "discovered-from": "was found while doing",
}
_BACKWARD: dict[LinkKind, str] = {
    "blocked-by": "blocks",
    "parent": "has the part",
    "discovered-from": "led to",
}


class Told(Struct, frozen=True):
    """A ledger entry as text."""

    at: str
    actor: str
    via: str
    subject: str
    """Task, agent or wave that it is about; empty for refusals."""
    words: str


def tell(entry: Entry) -> Told:
    """Describe an entry; one that this release cannot decode has only its event name."""
    line = read_line(entry.line)
    try:
        event = CODEC.decode(line.event, line.v, line.body)
        words = WORDS[type(event)](event)
    except LedgerError as error:
        words = f"{line.event} ({error.detail})"
    kind, _, name = line.stream.partition(":")
    subject = name if kind in _SUBJECTS else ""
    return Told(to_rfc3339(line.at), line.actor, line.via, subject, cut(words))


def _created(event: TaskCreated) -> str:
    parts = [f'created, {event.status}: "{event.title}"']
    if event.reserved_for:
        parts.append(f"for {event.reserved_for}")
    if event.open_blockers:
        parts.append(f"waits for {', '.join(event.open_blockers)}")
    if event.parent:
        parts.append(f"part of {event.parent}")
    return "; ".join(parts)


def _claimed(event: TaskClaimed) -> str:
    return (
        f"claimed by {event.agent}: attempt {event.attempt}, fence {event.fence}, "
        f"lease {duration(event.ttl_ms)}"
    )


def _transitioned(event: TaskTransitioned) -> str:
    beside = f": {event.beside}" if event.beside else ""
    return f"{event.from_} → {event.to}{because(event.reason)}{beside}"


def _requeued(event: TaskRequeued) -> str:
    return (
        f"attempt {event.attempt} is over{because(event.reason)}: ready again, "
        f"not before {to_rfc3339(event.not_before)}; failures in a row: {event.failures}"
    )


def _reported(event: TaskReported) -> str:
    notes = f": {event.notes}" if event.notes else ""
    blockers = f"; blocked by {', '.join(event.blockers)}" if event.blockers else ""
    if event.by:
        return f"{event.agent} reported nothing, the {event.by} says {event.outcome}{notes}"
    return f"{event.agent} reported {event.outcome}{notes}{blockers}"


def _noted(event: TaskNoted) -> str:
    return f"noted: {event.text}"


def _aliased(event: TaskAliased) -> str:
    return f"also called {event.alias}"


def _linked(event: TaskLinked) -> str:
    return f"{_FORWARD[event.kind]} {event.target}"


def _backlinked(event: TaskBacklinked) -> str:
    return f"{_BACKWARD[event.kind]} {event.source}"


def _unblocked(event: TaskUnblocked) -> str:
    return f"no longer waits for {event.blocker}: it is {event.status}"


def _progressed(event: TaskProgressed) -> str:
    parts = (
        event.progress,
        event.notes,
        f"blocked by {', '.join(event.blockers)}" if event.blockers else "",
    )
    return f"says: {'; '.join(filter(None, parts))}"


def _edited(event: TaskEdited) -> str:
    changes = {
        "title": event.title,
        "body": None if event.body is None else f"{len(event.body)} characters",
        "priority": event.priority,
        "review required": event.review_required,
        "reserved for": "anyone" if event.reserved_for == "" else event.reserved_for,
    }
    return "edited: " + ", ".join(f"{k} {v!s}" for k, v in changes.items() if v is not None)


def _warned(event: TaskWarned) -> str:
    return f"warning: {event.reason}{f', {event.detail}' if event.detail else ''}"


def _requested(event: DelegationRequested) -> str:
    return (
        f"{event.from_agent} hands it to {event.to_agent} as a part of {event.parent}, "
        f"due by {to_rfc3339(event.due_by)}"
    )


def _accepted(event: DelegationAccepted) -> str:
    return f"{event.agent} accepted the handoff"


def _rejected(event: DelegationRejected) -> str:
    return f"{event.agent} rejected the handoff{because(event.reason)}"


def _escalated(event: DelegationEscalated) -> str:
    return f"escalated: the handoff was due by {to_rfc3339(event.due_by)} and is not finished"


def _received(event: MessageReceived) -> str:
    about = f" about {event.target}" if event.target else ""
    return f"sent {event.kind}{about}: nothing was left to change"


def _registered(event: AgentRegistered) -> str:
    spoken = f", speaks {', '.join(event.speaks)}" if event.speaks else ""
    return f"registered: {event.role}{spoken}"


def _keyed(event: AgentKeyed) -> str:
    if not event.key:
        return "signing key ended"
    until = event.former_until
    former = "" if until is None else f"; the one before is good until {to_rfc3339(until)}"
    return f"signing key {event.key}{former}"


def _issued(event: TokenIssued) -> str:
    return f"token {event.id} issued, good until {to_rfc3339(event.expires_at)}"


def _revoked(event: TokenRevoked) -> str:
    return f"token {event.id} revoked" if event.id else "all tokens revoked"


def _paused(event: AgentPaused) -> str:
    until = f" until {to_rfc3339(event.until)}" if event.until is not None else ""
    return f"paused{until}: {event.reason}"


def _resumed(_: AgentResumed) -> str:
    return "resumed"


def _wave_started(event: WaveStarted) -> str:
    beads = ", ".join(bead.task for bead in event.beads)
    return f"started, at most {event.parallel} at a time: {beads}"


def _bead_released(event: WaveBeadReleased) -> str:
    return f"made {event.task} ready"


def _wave_completed(event: WaveCompleted) -> str:
    return f"complete: {', '.join(f'{count} {status}' for status, count in event.counts.items())}"


def _reserved(event: ReservationTaken) -> str:
    until = "" if event.until is None else f" until {to_rfc3339(event.until)}"
    who = event.holder or f"wave {event.wave} for {event.task}"
    how = "" if event.exclusive else ", shared"
    return f"reserved for {who}{until}{how}: {' '.join(event.patterns)}{because(event.reason)}"


def _reserved_longer(event: ReservationRenewed) -> str:
    return f"reserved until {to_rfc3339(event.until)}: {event.id}"


def _reservations_ended(event: ReservationsEnded) -> str:
    return f"reservations {event.why}: {', '.join(event.ids)}"


def _refused(event: CommandRefused) -> str:
    target = f" {event.target}" if event.target else ""
    return f"refused {event.kind or event.command}{target}: {event.code}, {event.detail}"


def _checkpointed(event: TaskCheckpointed) -> str:
    commit = f" at {event.commit}" if event.commit else ""
    said = "; ".join(filter(None, (event.description, event.next_steps)))
    return f"checkpoint{commit}{because(event.reason)}{f': {said}' if said else ''}"


def _posted(event: MailPosted) -> str:
    kind = "" if event.kind == "UNKNOWN" else f"{event.kind} "
    return f'{kind}letter to {", ".join(event.to)} in {event.thread}: "{event.subject}"'


def _read(event: MailRead) -> str:
    return f"read by {event.reader}"


def _acked(event: MailAcked) -> str:
    return f"acked by {event.agent}"


def _answered(event: MailAnswered) -> str:
    return f"answered by {event.by} with {event.answer}"


def _late(event: MailEscalated) -> str:
    told = f"; told to {', '.join(event.told)}" if event.told else ""
    missed = "answer" if event.only_answer else "ack or answer"
    return f"escalated: {', '.join(event.waiting_for)} did not {missed} in time{told}"


def _item_added(event: WorkItemAdded) -> str:
    return f"put into the work queue{because(event.title)}"


def _item_passed(event: WorkItemPassed) -> str:
    return f"{event.status} by {event.owner}" if event.owner else event.status


def _rewound(event: TaskRewound) -> str:
    files = f", its files on the branch {event.branch}" if event.branch else ""
    to = f"{event.to}, as of its entry {event.version}"
    return f"rewound from {event.from_} to {to}{files}{because(event.reason)}"


WORDS: dict[type[Event], Callable[[Any], str]] = {
    TaskCreated: _created,
    TaskAliased: _aliased,
    TaskLinked: _linked,
    TaskBacklinked: _backlinked,
    TaskUnblocked: _unblocked,
    TaskClaimed: _claimed,
    TaskTransitioned: _transitioned,
    TaskRequeued: _requeued,
    TaskReported: _reported,
    TaskNoted: _noted,
    TaskProgressed: _progressed,
    TaskEdited: _edited,
    TaskWarned: _warned,
    TaskCheckpointed: _checkpointed,
    DelegationRequested: _requested,
    DelegationAccepted: _accepted,
    DelegationRejected: _rejected,
    DelegationEscalated: _escalated,
    CommandRefused: _refused,
    MessageReceived: _received,
    AgentRegistered: _registered,
    AgentKeyed: _keyed,
    TokenIssued: _issued,
    TokenRevoked: _revoked,
    WaveStarted: _wave_started,
    WaveBeadReleased: _bead_released,
    WaveCompleted: _wave_completed,
    ReservationTaken: _reserved,
    ReservationRenewed: _reserved_longer,
    ReservationsEnded: _reservations_ended,
    MailPosted: _posted,
    MailRead: _read,
    MailAcked: _acked,
    MailAnswered: _answered,
    MailEscalated: _late,
    AgentPaused: _paused,
    AgentResumed: _resumed,
    **HANDOFF_WORDS,
    WorkItemAdded: _item_added,
    WorkItemPassed: _item_passed,
    **INTENT_WORDS,
    TaskRewound: _rewound,
    **TRACE_WORDS,
}
"""Event -> its text; a test checks that every event has one."""
