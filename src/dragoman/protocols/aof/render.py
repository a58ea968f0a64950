"""AOF/1's event lines: what stands in events/YYYY-MM-DD.jsonl about an entry of the ledger.

An entry gives no line, one or several. A message that was understood begins with
`protocol.message.received`; a refused one gives the lines of the specification's error tables.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, UnsetType

from dragoman.core import events
from dragoman.core.events import AnyEvent
from dragoman.core.ids import bare_name, is_aof_id
from dragoman.core.moments import to_rfc3339
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import Entry, read_line
from dragoman.protocols.aof.detect import has_aof_marker, is_aof
from dragoman.protocols.aof.errors import REFUSAL_CODES
from dragoman.protocols.aof.read import text_field
from dragoman.protocols.aof.wire import UNREADABLE_KIND
from dragoman.text.safe_text import harmless_line

LINES_PER_ENTRY: Final = 10
"""Lines of an entry are numbered from ten times its position on, so that numbers always rise."""

AofIdOf = Callable[[str], str]
"""Primary id of a task -> its AOF id."""
EventLine = tuple[str, Mapping[str, Any]]
"""Type and payload of one line."""

_DELEGATION_REFUSALS: Final = frozenset({"parent_not_found", "nested_delegation"})


def render_lines(entry: Entry, aof_id_of: AofIdOf) -> list[bytes]:
    """Render the lines of an entry, without line feeds."""
    line = read_line(entry.line)
    event = CODEC.decode(line.event, line.v, line.body)
    envelope = _decode_envelope(line.said)
    if isinstance(event, events.CommandRefused):
        event_lines = list(_refused_lines(event, envelope))
        task = event.target if is_aof_id(event.target) else ""
    else:
        event_lines = [*_received_lines(envelope), *_event_lines(event, aof_id_of)]
        task_id = entry.stream[5:] if entry.stream.startswith("task:") else _task_named_by(event)
        task = aof_id_of(task_id) if task_id else (envelope or {}).get("taskId", "")
    handoff_field = {"handoff": entry.stream[8:]} if entry.stream.startswith("handoff:") else {}
    head = {"timestamp": to_rfc3339(line.at), "actor": line.actor.partition(":")[2]}
    task_field = {"taskId": task} if task else {}
    return [
        harmless_line(
            {
                "eventId": entry.position * LINES_PER_ENTRY + index,
                "type": kind,
                **head,
                **task_field,
                "payload": {**handoff_field, **payload},
            }
        )
        for index, (kind, payload) in enumerate(event_lines)
    ]


def _task_named_by(event: AnyEvent) -> str:
    """Task named by an event of another stream."""
    if isinstance(event, events.IntentCreated):
        return event.task
    if isinstance(event, events.IntentEvent):
        return f"intent:{event.intent}"
    return event.task if isinstance(event, _EVENTS_WITH_TASK) else ""


_EVENTS_WITH_TASK: Final = (
    events.MailEscalated,
    events.ReservationTaken,
    events.HandoffProposed,
    events.HandoffEscalated,
    events.TraceAnomaly,
    events.EntropyEscalated,
    events.EntropySettled,
)


def _decode_envelope(original_text: Raw | UnsetType) -> Mapping[str, Any] | None:
    """Decode the envelope in an entry's original text; empty if it is AOF but unreadable."""
    if isinstance(original_text, UnsetType):
        return None
    value: Any = msgspec.json.decode(original_text)
    if is_aof(value):
        return value
    return {} if isinstance(value, str) and has_aof_marker(value) else None


def _received_lines(envelope: Mapping[str, Any] | None) -> Iterator[EventLine]:
    if envelope:
        fields = ("type", "toAgent", "sentAt", "projectId")
        yield (
            "protocol.message.received",
            {field: envelope[field] for field in fields if field in envelope},
        )


def _refused_lines(
    event: events.CommandRefused, envelope: Mapping[str, Any] | None
) -> Iterator[EventLine]:
    if event.code == "anomaly":
        yield "intent.anomaly", {"intent": bare_name(event.target), "reason": event.detail}
        return
    if envelope is None and event.kind != UNREADABLE_KIND:
        return
    kind = text_field(envelope, "type") or event.kind
    if event.code == "unknown_type":
        yield "protocol.message.unknown", {"type": kind, "detail": event.detail}
        return
    payload = {"reason": REFUSAL_CODES.get(event.code, event.code), "detail": event.detail}
    if kind != UNREADABLE_KIND:
        payload["type"] = kind
    is_handoff = kind.startswith("handoff.")
    if not (is_handoff and event.code in _DELEGATION_REFUSALS):
        yield "protocol.message.rejected", payload
    if is_handoff and (event.code in _DELEGATION_REFUSALS or event.code == "task_not_found"):
        yield "delegation.rejected", payload


def _event_lines(event: AnyEvent, aof_id_of: AofIdOf) -> Iterator[EventLine]:
    renderer = RENDERERS[type(event)]
    if renderer is not None:
        yield renderer(event, aof_id_of)


def _render_as(kind: str) -> Callable[[Any, AofIdOf], EventLine]:
    """Build a renderer whose payload is the whole event, in AOF's spelling."""

    def render(event: AnyEvent, aof_id_of: AofIdOf) -> EventLine:
        body: dict[str, Any] = msgspec.to_builtins(event)
        return kind, dict(_format_field(name, value, aof_id_of) for name, value in body.items())

    return render


def _format_field(name: str, value: Any, aof_id_of: AofIdOf) -> tuple[str, Any]:
    if name in _TASK_FIELDS:
        return _TASK_FIELDS[name], aof_id_of(value)
    if name in _TASK_LIST_FIELDS:
        return _camel_case(name), [aof_id_of(task) for task in value]
    return _camel_case(name), to_rfc3339(value) if name in _TIMESTAMP_FIELDS else value


_TASK_FIELDS: Final = {
    "parent": "parentTaskId",
    "target": "target",
    "source": "source",
    "blocker": "blocker",
    "discovered_from": "discoveredFrom",
}
"""Fields that hold a primary task id -> their AOF names."""
_TASK_LIST_FIELDS: Final = frozenset({"blocked_by", "open_blockers"})
_TIMESTAMP_FIELDS: Final = frozenset({"due_by", "sent_at", "not_before", "until", "deadline"})


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.title, rest))


def _render_claimed(event: events.TaskClaimed, _: AofIdOf) -> EventLine:
    return _transition_line(
        event.from_, "in-progress", "claimed", agent=event.agent, attempt=event.attempt
    )


def _render_transitioned(event: events.TaskTransitioned, _: AofIdOf) -> EventLine:
    return _transition_line(event.from_, event.to, event.reason)


def _render_requeued(event: events.TaskRequeued, _: AofIdOf) -> EventLine:
    return _transition_line(
        "in-progress",
        "ready",
        event.reason,
        attempt=event.attempt,
        failures=event.failures,
        notBefore=to_rfc3339(event.not_before),
    )


def _render_rewound(event: events.TaskRewound, _: AofIdOf) -> EventLine:
    return _transition_line(
        event.from_,
        event.to,
        event.reason or "rewound",
        rewoundTo=event.version,
        commit=event.commit,
        branch=event.branch,
    )


def _transition_line(from_: str, to: str, reason: str, **extra: Any) -> EventLine:
    return "task.transitioned", {"from": from_, "to": to, "reason": reason, **extra}


def _render_reported(event: events.TaskReported, _: AofIdOf) -> EventLine:
    if event.by:  # its agent has not reported it complete
        return "task.updated", {"notes": event.notes, "attempt": event.attempt}
    fixed_fields = {"outcome": event.outcome, "attempt": event.attempt}
    return "task.completed", {
        **fixed_fields,
        **event.details,
        **fixed_fields,  # the details cannot override these
        "blockers": event.blockers,
        "notes": event.notes,
    }


def _render_noted(event: events.TaskNoted, _: AofIdOf) -> EventLine:
    return "task.updated", {"notes": event.text}


def _render_mail_posted(event: events.MailPosted, _: AofIdOf) -> EventLine:
    """Sender, recipients and subject; the text of a letter is in its own file."""
    return "mail.posted", {
        "mail": event.id,
        "mailType": event.kind,
        "to": event.to,
        "thread": event.thread,
        "subject": event.subject,
    }


def _render_mail_escalated(event: events.MailEscalated, _: AofIdOf) -> EventLine:
    return "mail.escalated", {
        "mail": event.mail,
        "waitingFor": event.waiting_for,
        "told": event.told,
    }


def _render_reservation(event: events.ReservationTaken, _: AofIdOf) -> EventLine:
    return "reservation.taken", {
        "id": event.id,
        "patterns": event.patterns,
        "holder": event.holder,
        "exclusive": event.exclusive,
        "wave": event.wave,
        "until": None if event.until is None else to_rfc3339(event.until),
    }


def _render_wave_started(event: events.WaveStarted, aof_id_of: AofIdOf) -> EventLine:
    return "wave.started", {
        "wave": event.id,
        "beads": [aof_id_of(bead.task) for bead in event.beads],
        "parallel": event.parallel,
        "told": event.told,
    }


def _render_proposed(event: events.HandoffProposed, _: AofIdOf) -> EventLine:
    return "handoff.proposed", {
        "from": event.sender,
        "to": event.recipient,
        "packageHash": event.package_hash,
    }


def _render_without(kind: str, *fields: str) -> Callable[[Any, AofIdOf], EventLine]:
    """Build a renderer that omits fields too large for a line; the ledger has them."""
    render_all = _render_as(kind)

    def render(event: AnyEvent, aof_id_of: AofIdOf) -> EventLine:
        _, payload = render_all(event, aof_id_of)
        return kind, {name: value for name, value in payload.items() if name not in fields}

    return render


RENDERERS: Final[Mapping[type[AnyEvent], Callable[[Any, AofIdOf], EventLine] | None]] = {
    events.TaskCreated: _render_as("task.created"),
    events.TaskAliased: _render_as("task.aliased"),
    events.TaskLinked: _render_as("task.linked"),
    events.TaskBacklinked: None,  # covered by the other end of the link
    events.TaskUnblocked: _render_as("task.unblocked"),
    events.TaskClaimed: _render_claimed,
    events.TaskTransitioned: _render_transitioned,
    events.TaskRequeued: _render_requeued,
    events.TaskReported: _render_reported,
    events.TaskNoted: _render_noted,
    events.TaskProgressed: _render_as("task.updated"),
    events.TaskEdited: _render_as("task.edited"),
    events.TaskWarned: _render_as("protocol.message.warning"),
    events.DelegationRequested: _render_as("delegation.requested"),
    events.DelegationAccepted: _render_as("delegation.accepted"),
    events.DelegationRejected: _render_as("delegation.rejected"),
    events.DelegationEscalated: _render_as("delegation.escalated"),
    events.CommandRefused: None,  # rendered by message: see _refused_lines
    events.MessageReceived: None,  # rendered from its original text: see _received_lines
    events.AgentRegistered: _render_as("agent.registered"),
    events.AgentKeySet: None,  # credentials are internal
    events.TokenIssued: None,
    events.TokenRevoked: None,
    events.AgentPaused: _render_as("agent.paused"),
    events.AgentResumed: _render_as("agent.resumed"),
    events.TaskCheckpointed: _render_as("task.checkpointed"),
    events.MailPosted: _render_mail_posted,
    events.MailRead: None,  # reading a mailbox is private
    events.MailAcked: _render_as("mail.acked"),
    events.MailAnswered: _render_as("mail.answered"),
    events.MailEscalated: _render_mail_escalated,
    events.TaskHandedOver: _render_as("task.handed_over"),
    events.HandoffDrafted: None,  # only its sender has seen it
    events.HandoffDiscarded: None,
    events.HandoffProposed: _render_proposed,
    events.HandoffTransitioned: _render_as("handoff.transitioned"),
    events.HandoffVerified: _render_as("handoff.verified"),
    events.HandoffRejected: _render_as("handoff.rejected"),
    events.HandoffApproved: _render_as("handoff.approved"),
    events.HandoffEscalated: _render_without("handoff.escalated", "task"),
    events.HandoffExtended: _render_as("handoff.extended"),
    events.HandoffNoted: _render_as("handoff.noted"),
    events.WorkItemAdded: _render_as("workq.added"),
    events.WorkItemOwnerChanged: _render_as("workq.passed"),
    events.WaveStarted: _render_wave_started,
    events.WaveBeadReleased: None,  # covered by the line of its task
    events.WaveCompleted: _render_as("wave.completed"),
    events.ReservationTaken: _render_reservation,
    events.ReservationRenewed: None,  # it moves nothing
    events.ReservationsEnded: _render_as("reservation.ended"),
    events.AgentDescribed: _render_as("agent.described"),
    events.AgentAssigned: None,  # covered by lines of the intent
    events.AgentRelieved: None,
    events.AgentRated: None,
    events.IntentCreated: _render_without("intent.created", "params", "policy", "task"),
    events.IntentProposed: _render_without("intent.proposed", "candidates", "policy"),
    events.IntentApproved: _render_as("intent.approved"),
    events.IntentRejected: _render_as("intent.rejected"),
    events.IntentDispatched: _render_without("intent.dispatched", "after"),
    events.IntentUpdated: _render_without("intent.updated", "partial"),
    events.IntentCompleted: _render_without("intent.completed", "output"),
    events.IntentFeedbackApplied: _render_as("intent.fed_back"),
    events.IntentSatisfied: _render_as("intent.satisfied"),
    events.IntentNeedsFollowUp: _render_as("intent.needs_follow_up"),
    events.IntentSuperseded: _render_as("intent.superseded"),
    events.IntentFollowedUp: _render_as("intent.followed"),
    events.IntentAnomaly: _render_as("intent.anomaly"),
    events.TaskRewound: _render_rewound,
    events.TurnRecorded: None,  # traces have endpoints of their own
    events.TraceRecorded: None,
    events.TraceAnomaly: _render_as("trace.anomaly"),
    events.EntropyEscalated: _render_as("entropy.escalated"),
    events.EntropySettled: _render_as("entropy.settled"),
}
"""Event -> its renderer; None: deliberately not rendered."""
