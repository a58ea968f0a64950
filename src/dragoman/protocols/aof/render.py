"""Render ledger entries as AOF/1 event lines, the content of events/YYYY-MM-DD.jsonl.

An entry gives no line, one or several. A message that was accepted begins with
`protocol.message.received`; a refused one gives the lines of the specification's error tables.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, UnsetType

from dragoman.core import (
    actor,
    agent,
    attempt_state,
    check_state,
    mail,
    presence,
    question_state,
    reservation,
    task_state,
    trace,
    wave,
    work_queue,
)
from dragoman.core.base import Event
from dragoman.core.handoff import state as handoff_state
from dragoman.core.ids import bare_name, is_aof_id
from dragoman.core.intent import state as intent_state
from dragoman.core.timestamps import to_rfc3339
from dragoman.ledger.entry import CODEC, Entry, read_line
from dragoman.protocols.aof.errors import REFUSAL_CODES
from dragoman.protocols.aof.parse import has_aof_marker, is_aof, text_field
from dragoman.protocols.aof.wire import UNREADABLE_KIND
from dragoman.text.safe_text import harmless_line

# --- lines of an entry ------------------------------------------------------------------------

LINES_PER_ENTRY: Final = 10
"""Lines of an entry are numbered from ten times its position on, so that numbers always rise."""

AofIdOf = Callable[[str], str]
"""Primary id of a task -> its AOF id."""

TaskOf = Callable[[Entry], str]
"""Entry of a letter or a handoff -> primary id of its task; empty: it has none."""

EventLine = tuple[str, Mapping[str, Any]]
"""Type and payload of one line."""

_DELEGATION_REFUSALS: Final = frozenset({"parent_not_found", "nested_delegation"})


def _no_task(_: Entry) -> str:
    return ""


def render_lines(entry: Entry, aof_id_of: AofIdOf, task_of: TaskOf = _no_task) -> list[bytes]:
    """Render the lines of an entry, without line feeds; each about a task has its `taskId`."""
    line = read_line(entry.line)
    event = CODEC.decode(line.event, line.v, line.body)
    envelope = _decode_envelope(line.original_text)
    if isinstance(event, actor.CommandRefused):
        event_lines = list(_refused_lines(event, envelope))
        task = event.target if is_aof_id(event.target) else ""
    else:
        event_lines = [*_received_lines(envelope), *_event_lines(event, aof_id_of)]
        task_id = entry.stream[5:] if entry.stream.startswith("task:") else _task_named_by(event)
        task_id = task_id or (task_of(entry) if event_lines else "")
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


def _task_named_by(event: Any) -> str:
    """Task named by an event of another stream."""
    if isinstance(event, _EVENTS_WITH_TASK):
        return event.task
    return f"intent:{event.intent}" if type(event) in intent_state.INTENT_FOLDS else ""


_EVENTS_WITH_TASK: Final = (
    intent_state.IntentCreated,
    mail.MailEscalated,
    handoff_state.HandoffProposed,
    handoff_state.HandoffEscalated,
    trace.TraceAnomaly,
    trace.EntropyEscalated,
    trace.EntropySettled,
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
    event: actor.CommandRefused, envelope: Mapping[str, Any] | None
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


def _event_lines(event: Event, aof_id_of: AofIdOf) -> Iterator[EventLine]:
    renderer = RENDERERS.get(type(event))
    if renderer is not None:
        yield renderer(event, aof_id_of)


# --- one renderer for each event --------------------------------------------------------------


def _render_as(kind: str) -> Callable[[Any, AofIdOf], EventLine]:
    """Build a renderer whose payload is the whole event, in AOF's spelling."""

    def render(event: Event, aof_id_of: AofIdOf) -> EventLine:
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

_TIMESTAMP_FIELDS: Final = frozenset(
    {"due_by", "sent_at", "not_before", "until", "deadline", "since"}
)


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.title, rest))


def _render_claimed(event: attempt_state.TaskClaimed, _: AofIdOf) -> EventLine:
    return _transition_line(
        event.from_, "in-progress", "claimed", agent=event.agent, attempt=event.attempt
    )


def _render_transitioned(event: task_state.TaskTransitioned, _: AofIdOf) -> EventLine:
    return _transition_line(event.from_, event.to, event.reason)


def _render_requeued(event: attempt_state.TaskRequeued, _: AofIdOf) -> EventLine:
    return _transition_line(
        "in-progress",
        "ready",
        event.reason,
        attempt=event.attempt,
        failures=event.failures,
        notBefore=to_rfc3339(event.not_before),
    )


def _render_rewound(event: task_state.TaskRewound, _: AofIdOf) -> EventLine:
    return _transition_line(
        event.from_,
        event.to,
        event.reason or "rewound",
        rewoundTo=event.version,
        assignee=event.restored.assignee,
        reservedFor=event.restored.reserved_for,
        commit=event.commit,
        branch=event.branch,
    )


def _transition_line(from_: str, to: str, reason: str, **extra: Any) -> EventLine:
    return "task.transitioned", {"from": from_, "to": to, "reason": reason, **extra}


def _render_reported(event: attempt_state.TaskReported, _: AofIdOf) -> EventLine:
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


def _render_noted(event: task_state.TaskNoted, _: AofIdOf) -> EventLine:
    return "task.updated", {"notes": event.text}


def _render_mail_posted(event: mail.MailPosted, _: AofIdOf) -> EventLine:
    """Sender, recipients and subject; the text of a letter is in its own file."""
    return "mail.posted", {
        "mail": event.id,
        "mailType": event.kind,
        "to": event.to,
        "thread": event.thread,
        "subject": event.subject,
    }


def _render_mail_escalated(event: mail.MailEscalated, _: AofIdOf) -> EventLine:
    return "mail.escalated", {
        "mail": event.mail,
        "waitingFor": event.waiting_for,
        "told": event.notified,
    }


def _render_reservation(event: reservation.ReservationTaken, _: AofIdOf) -> EventLine:
    return "reservation.taken", {
        "id": event.id,
        "patterns": event.patterns,
        "holder": event.holder,
        "until": to_rfc3339(event.until),
    }


def _render_wave_started(event: wave.WaveStarted, aof_id_of: AofIdOf) -> EventLine:
    return "wave.started", {
        "wave": event.id,
        "beads": [aof_id_of(bead.task) for bead in event.beads],
        "parallel": event.parallel,
        "told": event.report_to,
    }


def _render_proposed(event: handoff_state.HandoffProposed, _: AofIdOf) -> EventLine:
    return "handoff.proposed", {
        "from": event.sender,
        "to": event.recipient,
        "packageHash": event.package_hash,
    }


def _render_without(kind: str, *fields: str) -> Callable[[Any, AofIdOf], EventLine]:
    """Build a renderer that omits fields too large for a line; the ledger has them."""
    render_all = _render_as(kind)

    def render(event: Event, aof_id_of: AofIdOf) -> EventLine:
        _, payload = render_all(event, aof_id_of)
        return kind, {name: value for name, value in payload.items() if name not in fields}

    return render


RENDERERS: Final[Mapping[type[Event], Callable[[Any, AofIdOf], EventLine]]] = {
    task_state.TaskCreated: _render_as("task.created"),
    task_state.TaskAliased: _render_as("task.aliased"),
    task_state.TaskLinked: _render_as("task.linked"),
    task_state.TaskUnlinked: _render_as("task.unlinked"),
    task_state.TaskUnblocked: _render_as("task.unblocked"),
    attempt_state.TaskClaimed: _render_claimed,
    task_state.TaskTransitioned: _render_transitioned,
    attempt_state.TaskRequeued: _render_requeued,
    attempt_state.TaskReported: _render_reported,
    attempt_state.AttemptQuiet: _render_as("attempt.quiet"),
    attempt_state.AttemptEscalated: _render_as("attempt.escalated"),
    check_state.TaskChecked: _render_as("task.checked"),
    task_state.TaskNoted: _render_noted,
    task_state.TaskProgressed: _render_as("task.updated"),
    task_state.TaskEdited: _render_as("task.edited"),
    task_state.TaskWarned: _render_as("protocol.message.warning"),
    task_state.DelegationRequested: _render_as("delegation.requested"),
    task_state.DelegationAccepted: _render_as("delegation.accepted"),
    task_state.DelegationRejected: _render_as("delegation.rejected"),
    task_state.DelegationEscalated: _render_as("delegation.escalated"),
    agent.AgentRegistered: _render_as("agent.registered"),
    agent.AgentPaused: _render_as("agent.paused"),
    agent.AgentResumed: _render_as("agent.resumed"),
    presence.PresenceReported: _render_as("agent.presence"),
    attempt_state.TaskCheckpointed: _render_as("task.checkpointed"),
    question_state.QuestionAsked: _render_as("question.asked"),
    question_state.QuestionAnswered: _render_as("question.answered"),
    question_state.QuestionWithdrawn: _render_as("question.withdrawn"),
    mail.MailPosted: _render_mail_posted,
    mail.MailAcked: _render_as("mail.acked"),
    mail.MailAnswered: _render_as("mail.answered"),
    mail.MailEscalated: _render_mail_escalated,
    task_state.TaskHandedOver: _render_as("task.handoff_changed"),
    handoff_state.HandoffProposed: _render_proposed,
    handoff_state.HandoffTransitioned: _render_as("handoff.transitioned"),
    handoff_state.HandoffVerified: _render_as("handoff.verified"),
    handoff_state.HandoffRejected: _render_as("handoff.rejected"),
    handoff_state.HandoffApproved: _render_as("handoff.approved"),
    handoff_state.HandoffEscalated: _render_without("handoff.escalated", "task"),
    handoff_state.HandoffExtended: _render_as("handoff.extended"),
    handoff_state.HandoffNoted: _render_as("handoff.noted"),
    work_queue.WorkItemAdded: _render_as("workq.added"),
    work_queue.WorkItemOwnerChanged: _render_as("workq.owner_changed"),
    wave.WaveStarted: _render_wave_started,
    wave.WaveCompleted: _render_as("wave.completed"),
    reservation.ReservationTaken: _render_reservation,
    reservation.ReservationsEnded: _render_as("reservation.ended"),
    agent.AgentDescribed: _render_as("agent.described"),
    intent_state.IntentCreated: _render_without("intent.created", "params", "policy", "task"),
    intent_state.IntentProposed: _render_without("intent.proposed", "candidates", "policy"),
    intent_state.IntentApproved: _render_as("intent.approved"),
    intent_state.IntentRejected: _render_as("intent.rejected"),
    intent_state.IntentDispatched: _render_without("intent.dispatched", "after"),
    intent_state.IntentUpdated: _render_without("intent.updated", "partial"),
    intent_state.IntentCompleted: _render_without("intent.completed", "output"),
    intent_state.IntentFeedbackApplied: _render_as("intent.feedback_applied"),
    intent_state.IntentSatisfied: _render_as("intent.satisfied"),
    intent_state.IntentNeedsFollowUp: _render_as("intent.needs_follow_up"),
    intent_state.IntentSuperseded: _render_as("intent.superseded"),
    intent_state.IntentAnomaly: _render_as("intent.anomaly"),
    task_state.TaskRewound: _render_rewound,
    trace.TraceAnomaly: _render_as("trace.anomaly"),
    trace.EntropyEscalated: _render_as("entropy.escalated"),
    trace.EntropySettled: _render_as("entropy.settled"),
}
"""Event -> its renderer. Without one it has no line: it is internal or private, or the line of
another event tells it (a refused or received message: see `_refused_lines`)."""
