"""The audit lines of handoffs: what `handoffs.jsonl` says about an entry of the ledger.

There are seven types of line. A line says in plain keys what it is about; the first line of an
entry also carries the event itself under `entry`, so that the file alone gives every handoff back
(`handoff_replay`). Drafts are nobody's business; notes and more time for a state stand in `events/`
only.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from dragoman.core.events import (
    AnyEvent,
    HandoffApproved,
    HandoffEscalated,
    HandoffEvent,
    HandoffMoved,
    HandoffProposed,
    HandoffRejected,
    HandoffStatus,
    HandoffVerified,
)
from dragoman.core.moments import in_hours, to_rfc3339
from dragoman.core.states.handoff import Handoff
from dragoman.files.line_log import LINES_PER_ENTRY
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import Entry, Line, read_line
from dragoman.text.safe_text import harmless_line

_HUB: Final = "hub"
_SYSTEM: Final = "system"

Keys = Mapping[str, Any]
_NO_KEYS: Final[Keys] = {}

Told = tuple[str, Keys]
"""Type of a line, and its keys."""


class Source(Struct, frozen=True):
    """Context of an event: its actor, and the handoff after it."""

    actor: str
    after: Handoff


def lines_of(entry: Entry, after: Handoff) -> list[bytes]:
    """Render the lines of an entry, without line feeds; `after` is the handoff after it."""
    line = read_line(entry.line)
    event = CODEC.decode(line.event, line.v, line.body)
    told = told_by(event, line.at, Source(_actor(line.actor), after))
    return [
        harmless_line(
            {
                "event": keys["event"],
                "event_id": entry.position * LINES_PER_ENTRY + number,
                **keys,
                **(_origin(entry, line) if number == 0 else {}),
            }
        )
        for number, keys in enumerate(told)
    ]


def told_by(event: AnyEvent, at: int, source: Source) -> list[Keys]:
    """Render the keys of an event's lines, without event ids and without the event itself."""
    tell = _TELL.get(type(event))
    if tell is None:
        return []
    after = source.after
    common = {"handoff_id": after.id, "task_id": after.task, "timestamp": to_rfc3339(at)}
    return [{"event": kind, **common, **keys} for kind, keys in tell(event, source)]


def _origin(entry: Entry, line: Line[msgspec.Raw]) -> Keys:
    """The event as the ledger has it, and the hash of its entry."""
    return {
        "entry": {
            "position": entry.position,
            "version": line.version,
            "event": line.event,
            "v": line.v,
            "at": line.at,
            "body": line.body,
            "hash": entry.hash.hex(),
        }
    }


def _proposed(event: HandoffProposed, source: Source) -> Iterator[Told]:
    yield (
        "handoff_created",
        {
            "from": event.sender,
            "to": event.recipient,
            "actor": source.actor,
            "teamspace_id": event.teamspace,
            "title": event.title,
            "reason": event.reason,
            "thread_id": event.thread,
            "package_hash": event.package_hash,
            **_offered(source.after),
            **({"supersedes": event.supersedes} if event.supersedes else {}),
        },
    )
    yield _transition("draft", "proposed", source.actor)


def _moved(event: HandoffMoved, source: Source) -> Iterator[Told]:
    actor = _actor_of(event, source)
    more = {"note": event.note, "superseded_by": event.superseded_by}
    kept = {key: value for key, value in more.items() if value}
    yield _transition(event.from_, event.to, actor, {**_owner(event, source.after), **kept})
    if event.to in _ENDS:
        kind, notes = _ENDS[event.to]
        yield kind, {"actor": actor, notes: event.note}


def _actor_of(event: HandoffMoved, source: Source) -> str:
    """Actor of a transition: the recipient, even if somebody else has ended its session."""
    if event.by == _HUB:
        return _SYSTEM
    is_own_word = event.by in ("", source.actor.partition(":")[2])
    return source.actor if is_own_word else f"agent:{event.by}"


_ENDS: Final[Mapping[HandoffStatus, tuple[str, str]]] = {
    "completed": ("handoff_completed", "completion_notes"),
    "closed": ("handoff_closed", "closure_notes"),
}
"""State -> type of the line that reports it, and the key for its notes."""


def ownership(event: HandoffEvent, after: Handoff) -> Keys:
    """Owner and chain that an event sets; empty when it does not change them."""
    if isinstance(event, HandoffProposed):
        return _offered(after)
    return _owner(event, after) if isinstance(event, HandoffMoved) else _NO_KEYS


def _offered(handoff: Handoff) -> Keys:
    return {"handoff_chain": handoff.chain, "owner": handoff.owner}


def _owner(event: HandoffMoved, handoff: Handoff) -> Keys:
    """Owner and chain after a transition that changes them (S-OWN)."""
    if event.to == "activated":
        return {"owner": handoff.recipient, "handoff_chain": handoff.chain_once_taken}
    if event.frees:
        return {"owner": "", "handoff_chain": handoff.chain}
    if event.owner is not None:
        return {"owner": event.owner, "handoff_chain": handoff.owners}
    # Otherwise the hub rejects an activated handoff only when its task has ended: the owner stays.
    if event.from_ == "activated" and event.to == "rejected" and event.by != _HUB:
        return {"owner": handoff.owner, "handoff_chain": handoff.chain}
    return {}


def _verified(event: HandoffVerified, source: Source) -> Iterator[Told]:
    more = {"artifacts": event.artifacts, "left_out": event.left_out}
    kept = {key: value for key, value in more.items() if value}
    keys = {"passed": event.passed, "failed": event.failed, "actor": _SYSTEM, **kept}
    yield "handoff_verification", {**keys, "asked_by": source.actor}


def _approved(event: HandoffApproved, source: Source) -> Iterator[Told]:
    """An approval by a person counts as one check, for one package."""
    check = ["human_approval"]
    keys = {"passed": check if event.is_yes else [], "failed": [] if event.is_yes else check}
    said = {"note": event.note} if event.note else {}
    yield (
        "handoff_verification",
        {**keys, "actor": source.actor, "package_hash": event.package_hash, **said},
    )


def _rejected(event: HandoffRejected, source: Source) -> Iterator[Told]:
    fix = {"suggested_fix": event.suggested_fix} if event.suggested_fix else {}
    actor = _SYSTEM if event.by == _HUB else source.actor
    keys = {"reason": event.reason, "detail": event.detail, "actor": actor}
    yield "handoff_rejected", {**keys, **fix}


def _escalated(event: HandoffEscalated, source: Source) -> Iterator[Told]:
    yield (
        "handoff_escalation",
        {
            "trigger": event.trigger,
            "stage": event.stage,
            "sla_configured": in_hours(event.sla_ms),
            "sla_elapsed": in_hours(event.elapsed_ms),
            "escalated_to": event.to,
            "recommended_action": event.recommended,
            "actor": source.actor,
        },
    )


def _transition(from_: HandoffStatus, to: HandoffStatus, actor: str, more: Keys = _NO_KEYS) -> Told:
    keys = {"from_status": from_, "to_status": to, "actor": actor, **more}
    return "handoff_transition", keys


def _actor(label: str) -> str:
    """Actor of a line: an agent in any role, a person, or the hub itself."""
    role, _, name = label.partition(":")
    if role == _SYSTEM:
        return _SYSTEM
    return label if role == "human" else f"agent:{name}"


_TELL: Final[Mapping[type[AnyEvent], Callable[[Any, Source], Iterator[Told]]]] = {
    HandoffProposed: _proposed,
    HandoffMoved: _moved,
    HandoffVerified: _verified,
    HandoffApproved: _approved,
    HandoffRejected: _rejected,
    HandoffEscalated: _escalated,
}
"""Event -> its lines."""
