"""Ledger entries as text: each event as the rest of a sentence that its actor begins."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from dragoman.core.actor import CommandRefused, MessageReceived
from dragoman.core.agent import (
    AgentAssigned,
    AgentDescribed,
    AgentKeySet,
    AgentPaused,
    AgentRated,
    AgentRegistered,
    AgentRelieved,
    AgentResumed,
    TokenIssued,
    TokenRevoked,
)
from dragoman.core.attempt_state import TaskCheckpointed, TaskClaimed, TaskReported, TaskRequeued
from dragoman.core.base import Event, LinkKind
from dragoman.core.errors import LedgerError
from dragoman.core.handoff.state import (
    HandoffApproved,
    HandoffDiscarded,
    HandoffDrafted,
    HandoffEscalated,
    HandoffExtended,
    HandoffNoted,
    HandoffProposed,
    HandoffRejected,
    HandoffTransitioned,
    HandoffVerified,
)
from dragoman.core.intent.request_workflow import NO_FEEDBACK_REASONS
from dragoman.core.intent.state import (
    IntentAnomaly,
    IntentApproved,
    IntentCompleted,
    IntentCreated,
    IntentDispatched,
    IntentFeedbackApplied,
    IntentFollowedUp,
    IntentNeedsFollowUp,
    IntentProposed,
    IntentRejected,
    IntentSatisfied,
    IntentSuperseded,
    IntentUpdated,
)
from dragoman.core.mail import MailAcked, MailAnswered, MailEscalated, MailPosted, MailRead
from dragoman.core.reservation import ReservationRenewed, ReservationsEnded, ReservationTaken
from dragoman.core.task_state import (
    DelegationAccepted,
    DelegationEscalated,
    DelegationRejected,
    DelegationRequested,
    TaskAliased,
    TaskBacklinked,
    TaskCreated,
    TaskEdited,
    TaskHandedOver,
    TaskLinked,
    TaskNoted,
    TaskProgressed,
    TaskRewound,
    TaskTransitioned,
    TaskUnblocked,
    TaskWarned,
)
from dragoman.core.timestamps import format_duration, format_hours, to_rfc3339
from dragoman.core.trace import (
    EntropyEscalated,
    EntropySettled,
    TraceAnomaly,
    TraceRecorded,
    TurnRecorded,
)
from dragoman.core.wave import WaveBeadReleased, WaveCompleted, WaveStarted
from dragoman.core.work_queue import WorkItemAdded, WorkItemOwnerChanged
from dragoman.engine.schemas.tasks import encode, entry_resource
from dragoman.ledger.entry import CODEC, Entry, read_line
from dragoman.surfaces.cli.context import CommandResult
from dragoman.surfaces.cli.render import (
    Screen,
    StyledText,
    format_pairs,
    in_parentheses,
    pluralize,
    truncate,
)

# --- entries ----------------------------------------------------------------------------------


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


_SUBJECT_KINDS = (
    "task",
    "agent",
    "mail",
    "wave",
    "handoff",
    "workq",
    "intent",
    "reputation",
    "turns",
)
"""Kinds of streams whose name says what an entry is about."""

_POSITION_WIDTH = 6
"""Width of positions, so that lines are aligned."""


def entry_to_dict(entry: Entry) -> dict[str, object]:
    """JSON object of an entry, with all its fields."""
    return json.loads(encode(entry_resource(entry)))


def print_entry(entry: Entry, screen: Screen, *, names_task: bool = True) -> None:
    """Print position, time, actor, task and description of an entry on one line."""
    text = describe_entry(entry)
    # `via` is printed only when it says more than that somebody typed a command.
    via = f" (via {text.via})" if text.via not in ("", "cli") else ""
    parts: list[StyledText] = [
        (f"{entry.position:>{_POSITION_WIDTH}}", "dim"),
        f"  {text.at}  ",
        (text.actor, "bold"),
        f"{via}  ",
    ]
    if names_task and text.subject:
        parts += [(text.subject, "cyan"), "  "]
    screen.line(*parts, text.text)


def history_result(owner: Mapping[str, str], entries: Sequence[Entry], limit: int) -> CommandResult:
    """Result with at most `limit` entries of one thing; `owner` names it in the JSON object."""
    page = entries[:limit]
    next_version = page[-1].version if len(entries) > limit else None
    data = {**owner, "entries": [entry_to_dict(entry) for entry in page], "next": next_version}

    def print_entries(screen: Screen) -> None:
        for entry in page:
            print_entry(entry, screen, names_task=False)
        if next_version is not None:
            screen.line(f"There are more: add --after {next_version}")

    return CommandResult(data, print_entries)


# --- tasks ------------------------------------------------------------------------------------

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
    beside = f": {event.other_text}" if event.other_text else ""
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


def _task_checkpointed(event: TaskCheckpointed) -> str:
    commit = f" at {event.commit}" if event.commit else ""
    details = "; ".join(filter(None, (event.description, event.next_steps)))
    return f"checkpoint{commit}{in_parentheses(event.reason)}{f': {details}' if details else ''}"


def _task_rewound(event: TaskRewound) -> str:
    files = f", its files on the branch {event.branch}" if event.branch else ""
    to = f"{event.to}, as of its entry {event.version}"
    return f"rewound from {event.from_} to {to}{files}{in_parentheses(event.reason)}"


# --- delegations and messages -----------------------------------------------------------------


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


def _command_refused(event: CommandRefused) -> str:
    target = f" {event.target}" if event.target else ""
    return f"refused {event.kind or event.command}{target}: {event.code}, {event.detail}"


def _message_received(event: MessageReceived) -> str:
    about = f" about {event.target}" if event.target else ""
    return f"sent {event.kind}{about}: nothing was left to change"


# --- agents -----------------------------------------------------------------------------------


def _agent_registered(event: AgentRegistered) -> str:
    dialects = f", speaks {', '.join(event.speaks)}" if event.speaks else ""
    return f"registered: {event.role}{dialects}"


def _agent_key_set(event: AgentKeySet) -> str:
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


# --- waves, reservations, work items ----------------------------------------------------------


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


def _work_item_added(event: WorkItemAdded) -> str:
    return f"put into the work queue{in_parentheses(event.title)}"


def _work_item_passed(event: WorkItemOwnerChanged) -> str:
    return f"{event.status} by {event.owner}" if event.owner else event.status


# --- mail -------------------------------------------------------------------------------------


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
    notified = f"; told to {', '.join(event.notified)}" if event.notified else ""
    missed = "answer" if event.only_answer else "ack or answer"
    return f"escalated: {', '.join(event.waiting_for)} did not {missed} in time{notified}"


# --- handoffs ---------------------------------------------------------------------------------


def _handoff_drafted(event: HandoffDrafted) -> str:
    return f"drafts a handoff to {event.recipient or 'nobody yet'}"


def _handoff_discarded(event: HandoffDiscarded) -> str:
    return f"draft discarded by {event.by}"


def _handoff_proposed(event: HandoffProposed) -> str:
    instead = f", in the place of {event.supersedes}" if event.supersedes else ""
    return (
        f'offers {event.task} to {event.recipient}: "{event.title}"{in_parentheses(event.reason)}'
        f"{instead}; package {event.package_hash[:12]}"
    )


def _handoff_transitioned(event: HandoffTransitioned) -> str:
    instead = f"; {event.superseded_by} takes its place" if event.superseded_by else ""
    return f"{event.from_} → {event.to}{in_parentheses(event.note)}{instead}"


def _handoff_verified(event: HandoffVerified) -> str:
    failed = f"; failed: {'; '.join(event.failed)}" if event.failed else ""
    skipped = f"; left out: {', '.join(event.left_out)}" if event.left_out else ""
    return f"checked: {', '.join(event.passed) or 'nothing'} passed{failed}{skipped}"


def _handoff_rejected(event: HandoffRejected) -> str:
    fix = f"; suggested fix: {event.suggested_fix}" if event.suggested_fix else ""
    return f"rejected by {event.by}: {event.reason}, {event.detail}{fix}"


def _handoff_approved(event: HandoffApproved) -> str:
    word = "approved" if event.approved else "denied"
    return f"{word} by {event.by}, package {event.package_hash[:12]}{in_parentheses(event.note)}"


def _handoff_escalated(event: HandoffEscalated) -> str:
    after = f" after {format_hours(event.elapsed_ms)}" if event.elapsed_ms else ""
    advice = f"; recommended: {event.recommended}" if event.recommended else ""
    recipient = f"escalated to {event.to}" if event.to else "escalated to nobody, as it was over"
    return f"{recipient}: {event.trigger} in {event.stage}{after}{advice}"


def _handoff_extended(event: HandoffExtended) -> str:
    return f"has more time, until {to_rfc3339(event.until)}"


def _handoff_noted(event: HandoffNoted) -> str:
    if not event.text and not event.data:
        return f"no {event.kind}"
    return f"{event.kind}: {', '.join(filter(None, (event.text, format_pairs(event.data))))}"


def _task_handoff_changed(event: TaskHandedOver) -> str:
    owners = f"; owners: {' → '.join(event.chain)}" if event.chain else ""
    if not event.recipient:
        return f"no longer on its way by {event.handoff}{owners}"
    relation = "taken over by" if event.is_taken else "on its way to"
    return f"{relation} {event.recipient} by {event.handoff}{owners}"


HANDOFF_EVENT_TEXT: dict[type[Event], Callable[[Any], str]] = {
    HandoffDrafted: _handoff_drafted,
    HandoffDiscarded: _handoff_discarded,
    HandoffProposed: _handoff_proposed,
    HandoffTransitioned: _handoff_transitioned,
    HandoffVerified: _handoff_verified,
    HandoffRejected: _handoff_rejected,
    HandoffApproved: _handoff_approved,
    HandoffEscalated: _handoff_escalated,
    HandoffExtended: _handoff_extended,
    HandoffNoted: _handoff_noted,
    TaskHandedOver: _task_handoff_changed,
}
"""Event -> its text."""


# --- intents and capabilities -----------------------------------------------------------------


def _agent_described(event: AgentDescribed) -> str:
    cost = f", costs {event.cost:g}" if event.cost else ""
    return f"can {', '.join(event.skills)}; trust {event.trust}{cost}"


def _agent_assigned(event: AgentAssigned) -> str:
    return f"assigned {event.request_id}"


def _agent_relieved(event: AgentRelieved) -> str:
    return f"relieved of {event.request_id}"


def _agent_rated(event: AgentRated) -> str:
    outcome = "succeeded" if event.success else "failed"
    return f"{outcome} with {event.request_id} after {format_duration(event.duration_ms)}"


def _intent_created(event: IntentCreated) -> str:
    follows = f"; follows {event.follows}" if event.follows else ""
    plan = f"; part of plan {event.plan}" if event.plan else ""
    return f'requested by {event.by}: "{event.goal}"{plan}{follows}'


def _intent_proposed(event: IntentProposed) -> str:
    among = f", of {len(event.candidates)}" if event.candidates else ""
    if not (event.score or event.threshold):
        return f"{event.agent} proposed, not by a score{among}"
    return f"{event.agent} proposed with {event.score:g} (needs {event.threshold:g}){among}"


def _intent_approved(event: IntentApproved) -> str:
    return f"{event.agent} approved"


def _intent_rejected(event: IntentRejected) -> str:
    return f"{event.agent or 'rejected'}: {'; '.join(event.reasons)}"


def _intent_dispatched(event: IntentDispatched) -> str:
    until = "" if event.deadline is None else f", due by {to_rfc3339(event.deadline)}"
    return f"{event.request_id} sent to {event.agent}{until}"


def _intent_updated(event: IntentUpdated) -> str:
    share = "" if event.progress is None else f"{event.progress:g} %"
    piece = f"piece {event.sequence}" if event.sequence else ""
    details = "; ".join(filter(None, (share, event.message, piece)))
    return f"{event.agent}: {details or 'a piece of the output'}"


def _intent_completed(event: IntentCompleted) -> str:
    if event.synthetic in NO_FEEDBACK_REASONS:
        return f"{event.request_id} taken back from {event.agent}: {event.error}"
    outcome = "succeeded" if event.success else "failed"
    by_hub = f" ({event.synthetic})" if event.synthetic else ""
    error = f": {event.error}" if event.error else ""
    return f"{event.agent} {outcome}{by_hub} after {format_duration(event.duration_ms)}{error}"


def _intent_feedback_applied(event: IntentFeedbackApplied) -> str:
    successes = pluralize(event.successes, "success", "successes")
    return f"counted for {event.agent}: {successes}, {pluralize(event.failures, 'failure')}"


def _intent_satisfied(_: IntentSatisfied) -> str:
    return "satisfied"


def _intent_needs_follow_up(event: IntentNeedsFollowUp) -> str:
    return event.reason if event.cancelled else f"needs a follow-up: {event.reason}"


def _intent_superseded(event: IntentSuperseded) -> str:
    then = f": the task is {event.owner}'s now" if event.owner else ""
    if event.owner == event.agent:
        then = ": it is asked anew"
    return f"{event.request_id} of {event.agent} is void{then}"


def _intent_followed_up(event: IntentFollowedUp) -> str:
    return f"followed up by {event.by}"


def _intent_anomaly(event: IntentAnomaly) -> str:
    return f"anomaly: {event.reason}"


INTENT_EVENT_TEXT: dict[type[Event], Callable[[Any], str]] = {
    AgentDescribed: _agent_described,
    AgentAssigned: _agent_assigned,
    AgentRelieved: _agent_relieved,
    AgentRated: _agent_rated,
    IntentCreated: _intent_created,
    IntentProposed: _intent_proposed,
    IntentApproved: _intent_approved,
    IntentRejected: _intent_rejected,
    IntentDispatched: _intent_dispatched,
    IntentUpdated: _intent_updated,
    IntentCompleted: _intent_completed,
    IntentFeedbackApplied: _intent_feedback_applied,
    IntentSatisfied: _intent_satisfied,
    IntentNeedsFollowUp: _intent_needs_follow_up,
    IntentSuperseded: _intent_superseded,
    IntentFollowedUp: _intent_followed_up,
    IntentAnomaly: _intent_anomaly,
}
"""Event -> its text."""


# --- turns and traces -------------------------------------------------------------------------

TRANSITION_REQUEST = "TASK_TRANSITION"
"""Type of the trace events that request a transition."""

_MASKED = {True: ", with secrets masked", False: ""}


def _turn_recorded(event: TurnRecorded) -> str:
    confidence = f"{event.confidence:.0%} sure"
    return f"turn {event.turn_index} of the {event.agent}, {confidence}{_MASKED[event.masked]}"


def _trace_recorded(event: TraceRecorded) -> str:
    about = f" about {event.task}" if event.task else ""
    where = f"in session {event.session}{about}{_MASKED[event.masked]}"
    # An agent's transition event is a request: an actual transition is an entry of its own.
    request_note = " asked for" if event.type == TRANSITION_REQUEST else ""
    return f"{event.type}{request_note} {where}{_payload_summary(event)}"


def _payload_summary(event: TraceRecorded) -> str:
    """Summary of the payload in a few words; empty for unknown types."""
    payload: Any = event.envelope.get("payload")
    fields = _SUMMARY_FIELDS.get(event.type, ())
    values = [str(payload[name]) for name in fields if name in payload] if payload else []
    between = " → " if event.type == TRANSITION_REQUEST else " "
    return f": {truncate(between.join(values), _MAX_SUMMARY)}" if values else ""


_MAX_SUMMARY = 100

_SUMMARY_FIELDS: dict[str, tuple[str, ...]] = {
    "THOUGHT_STREAM": ("chunk",),
    "TOOL_LIFECYCLE_INVOKED": ("tool",),
    "TOOL_LIFECYCLE_COMPLETED": ("tool", "status"),
    TRANSITION_REQUEST: ("from_state", "to_state"),
    "SANDBOX_PULSE": ("line",),
}
"""Type of trace event -> payload fields for its summary."""


def _trace_anomaly(event: TraceAnomaly) -> str:
    return f"anomaly ({event.kind}) in session {event.session}: {event.detail}"


def _entropy_escalated(event: EntropyEscalated) -> str:
    turns = ", ".join(map(str, event.turns))
    return f"escalated: {event.kind}, {event.detail} (turns {turns})"


def _entropy_settled(event: EntropySettled) -> str:
    return f"settled: {event.kind} is over"


TRACE_EVENT_TEXT: dict[type[Event], Callable[[Any], str]] = {
    TurnRecorded: _turn_recorded,
    TraceRecorded: _trace_recorded,
    TraceAnomaly: _trace_anomaly,
    EntropyEscalated: _entropy_escalated,
    EntropySettled: _entropy_settled,
}


# --- table of all events ----------------------------------------------------------------------

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
    AgentKeySet: _agent_key_set,
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
