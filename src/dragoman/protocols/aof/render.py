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
from dragoman.core.ids import bare, is_aof_id
from dragoman.core.moments import to_rfc3339
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import Entry, read_line
from dragoman.protocols.aof.detect import is_claimed, is_ours
from dragoman.protocols.aof.errors import REASONS
from dragoman.protocols.aof.read import text_of
from dragoman.protocols.aof.wire import UNREADABLE
from dragoman.text.safe_text import harmless_line

LINES_PER_ENTRY: Final = 10
"""Lines of an entry are numbered from ten times its position on, so that numbers always rise."""

AofIdOf = Callable[[str], str]
"""Primary id of a task -> its AOF id."""
Told = tuple[str, Mapping[str, Any]]
"""Type and payload of one line."""

_DELEGATION_ONLY: Final = frozenset({"parent_not_found", "nested_delegation"})


def render_lines(entry: Entry, aof_id_of: AofIdOf) -> list[bytes]:
    """Render the lines of an entry, without line feeds."""
    line = read_line(entry.line)
    event = CODEC.decode(line.event, line.v, line.body)
    envelope = _envelope(line.said)
    if isinstance(event, events.CommandRefused):
        told = list(_refused(event, envelope))
        task = event.target if is_aof_id(event.target) else ""
    else:
        told = [*_received(envelope), *_told(event, aof_id_of)]
        about = entry.stream[5:] if entry.stream.startswith("task:") else _task_of(event)
        task = aof_id_of(about) if about else (envelope or {}).get("taskId", "")
    about_handoff = {"handoff": entry.stream[8:]} if entry.stream.startswith("handoff:") else {}
    head = {"timestamp": to_rfc3339(line.at), "actor": line.actor.partition(":")[2]}
    named = {"taskId": task} if task else {}
    return [
        harmless_line(
            {
                "eventId": entry.position * LINES_PER_ENTRY + index,
                "type": kind,
                **head,
                **named,
                "payload": {**about_handoff, **payload},
            }
        )
        for index, (kind, payload) in enumerate(told)
    ]


def _task_of(event: AnyEvent) -> str:
    """Task named by an event of another stream."""
    if isinstance(event, events.IntentCreated):
        return event.task
    if isinstance(event, events.IntentEvent):
        return f"intent:{event.intent}"
    return event.task if isinstance(event, _NAME_A_TASK) else ""


_NAME_A_TASK: Final = (
    events.MailEscalated,
    events.ReservationTaken,
    events.HandoffProposed,
    events.HandoffEscalated,
    events.TraceAnomaly,
    events.EntropyEscalated,
    events.EntropySettled,
)


def _envelope(said: Raw | UnsetType) -> Mapping[str, Any] | None:
    """Decode the envelope in an entry's original text; empty if it is AOF but unreadable."""
    if isinstance(said, UnsetType):
        return None
    value: Any = msgspec.json.decode(said)
    if is_ours(value):
        return value
    return {} if isinstance(value, str) and is_claimed(value) else None


def _received(envelope: Mapping[str, Any] | None) -> Iterator[Told]:
    if envelope:
        fields = ("type", "toAgent", "sentAt", "projectId")
        yield (
            "protocol.message.received",
            {field: envelope[field] for field in fields if field in envelope},
        )


def _refused(event: events.CommandRefused, envelope: Mapping[str, Any] | None) -> Iterator[Told]:
    if event.code == "anomaly":
        yield "intent.anomaly", {"intent": bare(event.target), "reason": event.detail}
        return
    if envelope is None and event.kind != UNREADABLE:
        return
    kind = text_of(envelope, "type") or event.kind
    if event.code == "unknown_type":
        yield "protocol.message.unknown", {"type": kind, "detail": event.detail}
        return
    why = {"reason": REASONS.get(event.code, event.code), "detail": event.detail}
    if kind != UNREADABLE:
        why["type"] = kind
    is_handoff = kind.startswith("handoff.")
    if not (is_handoff and event.code in _DELEGATION_ONLY):
        yield "protocol.message.rejected", why
    if is_handoff and (event.code in _DELEGATION_ONLY or event.code == "task_not_found"):
        yield "delegation.rejected", why


def _told(event: AnyEvent, aof_id_of: AofIdOf) -> Iterator[Told]:
    renderer = RENDER[type(event)]
    if renderer is not None:
        yield renderer(event, aof_id_of)


def _under(kind: str) -> Callable[[Any, AofIdOf], Told]:
    """Build a renderer whose payload is the whole event, in AOF's spelling."""

    def render(event: AnyEvent, aof_id_of: AofIdOf) -> Told:
        body: dict[str, Any] = msgspec.to_builtins(event)
        return kind, dict(_spelled(name, value, aof_id_of) for name, value in body.items())

    return render


def _spelled(name: str, value: Any, aof_id_of: AofIdOf) -> tuple[str, Any]:
    if name in _TASKS:
        return _TASKS[name], aof_id_of(value)
    if name in _LISTS_OF_TASKS:
        return _camel(name), [aof_id_of(task) for task in value]
    return _camel(name), to_rfc3339(value) if name in _MOMENTS else value


_TASKS: Final = {
    "parent": "parentTaskId",
    "target": "target",
    "source": "source",
    "blocker": "blocker",
    "discovered_from": "discoveredFrom",
}
"""Fields that hold a primary task id -> their AOF names."""
_LISTS_OF_TASKS: Final = frozenset({"blocked_by", "open_blockers"})
_MOMENTS: Final = frozenset({"due_by", "sent_at", "not_before", "until", "deadline"})


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


def _claimed(event: events.TaskClaimed, _: AofIdOf) -> Told:
    return _transitioned(
        event.from_, "in-progress", "claimed", agent=event.agent, attempt=event.attempt
    )


def _moved(event: events.TaskTransitioned, _: AofIdOf) -> Told:
    return _transitioned(event.from_, event.to, event.reason)


def _requeued(event: events.TaskRequeued, _: AofIdOf) -> Told:
    return _transitioned(
        "in-progress",
        "ready",
        event.reason,
        attempt=event.attempt,
        failures=event.failures,
        notBefore=to_rfc3339(event.not_before),
    )


def _rewound(event: events.TaskRewound, _: AofIdOf) -> Told:
    return _transitioned(
        event.from_,
        event.to,
        event.reason or "rewound",
        rewoundTo=event.version,
        commit=event.commit,
        branch=event.branch,
    )


def _transitioned(from_: str, to: str, reason: str, **more: Any) -> Told:
    return "task.transitioned", {"from": from_, "to": to, "reason": reason, **more}


def _completed(event: events.TaskReported, _: AofIdOf) -> Told:
    if event.by:  # its agent has not reported it complete
        return "task.updated", {"notes": event.notes, "attempt": event.attempt}
    said = {"outcome": event.outcome, "attempt": event.attempt}
    return "task.completed", {
        **said,
        **event.details,
        **said,  # the details cannot override these
        "blockers": event.blockers,
        "notes": event.notes,
    }


def _noted(event: events.TaskNoted, _: AofIdOf) -> Told:
    return "task.updated", {"notes": event.text}


def _posted(event: events.MailPosted, _: AofIdOf) -> Told:
    """Sender, recipients and subject; the text of a letter is in its own file."""
    return "mail.posted", {
        "mail": event.id,
        "mailType": event.kind,
        "to": event.to,
        "thread": event.thread,
        "subject": event.subject,
    }


def _late(event: events.MailEscalated, _: AofIdOf) -> Told:
    return "mail.escalated", {
        "mail": event.mail,
        "waitingFor": event.waiting_for,
        "told": event.told,
    }


def _reserved(event: events.ReservationTaken, _: AofIdOf) -> Told:
    return "reservation.taken", {
        "id": event.id,
        "patterns": event.patterns,
        "holder": event.holder,
        "exclusive": event.exclusive,
        "wave": event.wave,
        "until": None if event.until is None else to_rfc3339(event.until),
    }


def _wave_started(event: events.WaveStarted, aof_id_of: AofIdOf) -> Told:
    return "wave.started", {
        "wave": event.id,
        "beads": [aof_id_of(bead.task) for bead in event.beads],
        "parallel": event.parallel,
        "told": event.told,
    }


def _offered(event: events.HandoffProposed, _: AofIdOf) -> Told:
    return "handoff.proposed", {
        "from": event.sender,
        "to": event.recipient,
        "packageHash": event.package_hash,
    }


def _without(kind: str, *fields: str) -> Callable[[Any, AofIdOf], Told]:
    """Build a renderer that omits fields too large for a line; the ledger has them."""
    whole = _under(kind)

    def render(event: AnyEvent, aof_id_of: AofIdOf) -> Told:
        _, payload = whole(event, aof_id_of)
        return kind, {name: value for name, value in payload.items() if name not in fields}

    return render


RENDER: Final[Mapping[type[AnyEvent], Callable[[Any, AofIdOf], Told] | None]] = {
    events.TaskCreated: _under("task.created"),
    events.TaskAliased: _under("task.aliased"),
    events.TaskLinked: _under("task.linked"),
    events.TaskBacklinked: None,  # covered by the other end of the link
    events.TaskUnblocked: _under("task.unblocked"),
    events.TaskClaimed: _claimed,
    events.TaskTransitioned: _moved,
    events.TaskRequeued: _requeued,
    events.TaskReported: _completed,
    events.TaskNoted: _noted,
    events.TaskProgressed: _under("task.updated"),
    events.TaskEdited: _under("task.edited"),
    events.TaskWarned: _under("protocol.message.warning"),
    events.DelegationRequested: _under("delegation.requested"),
    events.DelegationAccepted: _under("delegation.accepted"),
    events.DelegationRejected: _under("delegation.rejected"),
    events.DelegationEscalated: _under("delegation.escalated"),
    events.CommandRefused: None,  # rendered by message: see _refused_lines
    events.MessageReceived: None,  # rendered from its original text: see _received_lines
    events.AgentRegistered: _under("agent.registered"),
    events.AgentKeyed: None,  # credentials are internal
    events.TokenIssued: None,
    events.TokenRevoked: None,
    events.AgentPaused: _under("agent.paused"),
    events.AgentResumed: _under("agent.resumed"),
    events.TaskCheckpointed: _under("task.checkpointed"),
    events.MailPosted: _posted,
    events.MailRead: None,  # reading a mailbox is private
    events.MailAcked: _under("mail.acked"),
    events.MailAnswered: _under("mail.answered"),
    events.MailEscalated: _late,
    events.TaskHandedOver: _under("task.handed_over"),
    events.HandoffDrafted: None,  # only its sender has seen it
    events.HandoffDiscarded: None,
    events.HandoffProposed: _offered,
    events.HandoffMoved: _under("handoff.transitioned"),
    events.HandoffVerified: _under("handoff.verified"),
    events.HandoffRejected: _under("handoff.rejected"),
    events.HandoffApproved: _under("handoff.approved"),
    events.HandoffEscalated: _without("handoff.escalated", "task"),
    events.HandoffExtended: _under("handoff.extended"),
    events.HandoffNoted: _under("handoff.noted"),
    events.WorkItemAdded: _under("workq.added"),
    events.WorkItemPassed: _under("workq.passed"),
    events.WaveStarted: _wave_started,
    events.WaveBeadReleased: None,  # covered by the line of its task
    events.WaveCompleted: _under("wave.completed"),
    events.ReservationTaken: _reserved,
    events.ReservationRenewed: None,  # it moves nothing
    events.ReservationsEnded: _under("reservation.ended"),
    events.AgentDescribed: _under("agent.described"),
    events.AgentAssigned: None,  # covered by lines of the intent
    events.AgentRelieved: None,
    events.AgentRated: None,
    events.IntentCreated: _without("intent.created", "params", "policy", "task"),
    events.IntentProposed: _without("intent.proposed", "candidates", "policy"),
    events.IntentApproved: _under("intent.approved"),
    events.IntentRejected: _under("intent.rejected"),
    events.IntentDispatched: _without("intent.dispatched", "after"),
    events.IntentUpdated: _without("intent.updated", "partial"),
    events.IntentCompleted: _without("intent.completed", "output"),
    events.IntentFedBack: _under("intent.fed_back"),
    events.IntentSatisfied: _under("intent.satisfied"),
    events.IntentNeedsFollowUp: _under("intent.needs_follow_up"),
    events.IntentSuperseded: _under("intent.superseded"),
    events.IntentFollowed: _under("intent.followed"),
    events.IntentAnomaly: _under("intent.anomaly"),
    events.TaskRewound: _rewound,
    events.TurnRecorded: None,  # traces have endpoints of their own
    events.TraceRecorded: None,
    events.TraceAnomaly: _under("trace.anomaly"),
    events.EntropyEscalated: _under("entropy.escalated"),
    events.EntropySettled: _under("entropy.settled"),
}
"""Event -> its renderer; None: deliberately not rendered."""
