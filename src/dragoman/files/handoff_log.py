"""Audit log of handoffs, `teamspaces/<teamspace>/handoffs/handoffs.jsonl`.

There are seven types of line. Notes and SLA extensions are in `events/` only.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from dragoman.core.base import Event
from dragoman.core.handoff.state import (
    Handoff,
    HandoffApproved,
    HandoffEscalated,
    HandoffProposed,
    HandoffRejected,
    HandoffStatus,
    HandoffTransitioned,
    HandoffVerified,
)
from dragoman.core.ids import handoff_stream
from dragoman.core.timestamps import format_hours, to_rfc3339
from dragoman.engine.ports import ListQuery, Store
from dragoman.files.errors import Warn
from dragoman.files.layout import TEAMSPACES, handoff_log_path
from dragoman.files.line_log import (
    LINES_PER_ENTRY,
    LineLog,
    LogFiles,
    RenderedLines,
    number_decoder,
)
from dragoman.ledger.entry import CODEC, Entry, read_line
from dragoman.ledger.stream_state import State, fold
from dragoman.system.safe_fs import SafeDisk
from dragoman.text.safe_text import harmless_line

# --- lines of an event ------------------------------------------------------------------------

_HUB: Final = "hub"

_SYSTEM: Final = "system"

Keys = Mapping[str, Any]

_NO_KEYS: Final[Keys] = {}

AuditLine = tuple[str, Keys]
"""Type of a line, and its keys."""


class EventContext(Struct, frozen=True):
    """Context of an event: its actor, and the handoff after it."""

    actor: str
    after: Handoff


def render_lines(entry: Entry, after: Handoff) -> list[bytes]:
    """Render the lines of an entry, without line feeds; `after` is the handoff after it."""
    line = read_line(entry.line)
    event = CODEC.decode(line.event, line.v, line.body)
    context = EventContext(_actor_of_label(line.actor), after)
    common = {"handoff_id": after.id, "task_id": after.task, "timestamp": to_rfc3339(line.at)}
    first_id = entry.position * LINES_PER_ENTRY
    return [
        harmless_line({"event": kind, "event_id": first_id + number, **common, **keys})
        for number, (kind, keys) in enumerate(render_event(event, context))
    ]


def render_event(event: Event, context: EventContext) -> Iterator[AuditLine]:
    """Render the lines of an event: the type of each, and its own keys."""
    render = _RENDERERS.get(type(event))
    return iter(()) if render is None else render(event, context)


def _render_proposed(event: HandoffProposed, context: EventContext) -> Iterator[AuditLine]:
    yield (
        "handoff_created",
        {
            "from": event.sender,
            "to": event.recipient,
            "actor": context.actor,
            "teamspace_id": event.teamspace,
            "title": event.title,
            "reason": event.reason,
            "thread_id": event.thread,
            "package_hash": event.package_hash,
            **_chain_keys(context.after),
            **({"supersedes": event.supersedes} if event.supersedes else {}),
        },
    )
    yield _transition_line("draft", "proposed", context.actor)


def _render_moved(event: HandoffTransitioned, context: EventContext) -> Iterator[AuditLine]:
    actor = _actor_of_move(event, context)
    optional = {"note": event.note, "superseded_by": event.superseded_by}
    present = {key: value for key, value in optional.items() if value}
    yield _transition_line(
        event.from_, event.to, actor, {**_owner_keys(event, context.after), **present}
    )
    if event.to in _END_LINES:
        kind, notes = _END_LINES[event.to]
        yield kind, {"actor": actor, notes: event.note}


def _actor_of_move(event: HandoffTransitioned, context: EventContext) -> str:
    """Actor of a transition: the recipient, even if somebody else has ended its session."""
    if event.by == _HUB:
        return _SYSTEM
    is_own_word = event.by in ("", context.actor.partition(":")[2])
    return context.actor if is_own_word else f"agent:{event.by}"


_END_LINES: Final[Mapping[HandoffStatus, tuple[str, str]]] = {
    "completed": ("handoff_completed", "completion_notes"),
    "closed": ("handoff_closed", "closure_notes"),
}
"""State -> type of the line that reports it, and the key for its notes."""


def _chain_keys(handoff: Handoff) -> Keys:
    return {"handoff_chain": handoff.chain, "owner": handoff.owner}


def _owner_keys(event: HandoffTransitioned, handoff: Handoff) -> Keys:
    """Owner and chain after a transition that changes them (S-OWN)."""
    if event.to == "activated":
        return {"owner": handoff.recipient, "handoff_chain": handoff.chain_after_activation}
    if event.releases_task:
        return {"owner": "", "handoff_chain": handoff.chain}
    if event.owner is not None:
        return {"owner": event.owner, "handoff_chain": handoff.owners}
    # Otherwise the hub rejects an activated handoff only when its task has ended: the owner stays.
    if event.from_ == "activated" and event.to == "rejected" and event.by != _HUB:
        return {"owner": handoff.owner, "handoff_chain": handoff.chain}
    return {}


def _render_verified(event: HandoffVerified, context: EventContext) -> Iterator[AuditLine]:
    optional = {"artifacts": event.artifacts, "left_out": event.left_out}
    present = {key: value for key, value in optional.items() if value}
    keys = {"passed": event.passed, "failed": event.failed, "actor": _SYSTEM, **present}
    yield "handoff_verification", {**keys, "asked_by": context.actor}


def _render_approved(event: HandoffApproved, context: EventContext) -> Iterator[AuditLine]:
    """An approval by a person counts as one check, for one package."""
    check = ["human_approval"]
    keys = {"passed": check if event.approved else [], "failed": [] if event.approved else check}
    note = {"note": event.note} if event.note else {}
    yield (
        "handoff_verification",
        {**keys, "actor": context.actor, "package_hash": event.package_hash, **note},
    )


def _render_rejected(event: HandoffRejected, context: EventContext) -> Iterator[AuditLine]:
    fix = {"suggested_fix": event.suggested_fix} if event.suggested_fix else {}
    actor = _SYSTEM if event.by == _HUB else context.actor
    keys = {"reason": event.reason, "detail": event.detail, "actor": actor}
    yield "handoff_rejected", {**keys, **fix}


def _render_escalated(event: HandoffEscalated, context: EventContext) -> Iterator[AuditLine]:
    yield (
        "handoff_escalation",
        {
            "trigger": event.trigger,
            "stage": event.stage,
            "sla_configured": format_hours(event.sla_ms),
            "sla_elapsed": format_hours(event.elapsed_ms),
            "escalated_to": event.to,
            "recommended_action": event.recommended,
            "actor": context.actor,
        },
    )


def _transition_line(
    from_: HandoffStatus, to: HandoffStatus, actor: str, more: Keys = _NO_KEYS
) -> AuditLine:
    keys = {"from_status": from_, "to_status": to, "actor": actor, **more}
    return "handoff_transition", keys


def _actor_of_label(label: str) -> str:
    """Actor of a line: an agent in any role, a person, or the hub itself."""
    role, _, name = label.partition(":")
    if role == _SYSTEM:
        return _SYSTEM
    return label if role == "human" else f"agent:{name}"


_RENDERERS: Final[Mapping[type[Event], Callable[[Any, EventContext], Iterator[AuditLine]]]] = {
    HandoffProposed: _render_proposed,
    HandoffTransitioned: _render_moved,
    HandoffVerified: _render_verified,
    HandoffApproved: _render_approved,
    HandoffRejected: _render_rejected,
    HandoffEscalated: _render_escalated,
}
"""Event -> its lines."""


# --- log --------------------------------------------------------------------------------------

_STREAM_PREFIX: Final = handoff_stream("")

_DEFAULT_TEAMSPACE: Final = "default"

_CACHE_SIZE: Final = 256

_PAGE: Final = 1_000

_NO_LINES: Final[RenderedLines] = ("", [])

event_id_of: Final = number_decoder("event_id")
"""Event id of an audit line; -1 when it has none."""


def open_handoff_log(store: Store, disk: SafeDisk, warn: Warn) -> LineLog:
    """Open the audit log of all teamspaces."""
    cache = _HandoffCache(store)

    def render_entry(entry: Entry) -> RenderedLines:
        if not entry.stream.startswith(_STREAM_PREFIX):
            return _NO_LINES
        after = cache.state_after(entry)
        return handoff_log_path(after.teamspace), render_lines(entry, after)

    def first_position(path: str) -> int | None:
        space = path.removeprefix(f"{TEAMSPACES}/").partition("/")[0]
        first = store.list_page(ListQuery(f"handoffs.space:{space}", limit=1))
        return first[0].position if first else None

    def list_growing() -> list[str]:
        spaces = [space.name for space in disk.list(TEAMSPACES) if space.kind == "folder"]
        paths = map(handoff_log_path, sorted({*spaces, _DEFAULT_TEAMSPACE}))
        return [path for path in paths if disk.stat(path) or first_position(path)]

    def list_existing() -> list[str]:
        return [path for path in list_growing() if disk.stat(path)]

    return LineLog(
        disk, render_entry, event_id_of, LogFiles(list_existing, list_growing, first_position), warn
    )


class _HandoffCache:
    """States of handoffs at each of their entries; the most recently used are cached."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last: dict[str, tuple[int, State]] = {}

    def state_after(self, entry: Entry) -> Handoff:
        """State of the handoff after an entry of its stream."""
        version, state = self._last.pop(entry.stream, (0, None))
        if version != entry.version - 1:
            state = self._refold(entry)
        after = _fold_entry(state, entry)
        self._last[entry.stream] = entry.version, after
        if len(self._last) > _CACHE_SIZE:
            del self._last[next(iter(self._last))]
        assert isinstance(after, Handoff), "a handoff stream has events of its handoff only"
        return after

    def _refold(self, until: Entry) -> State | None:
        state: State | None = None
        after = 0
        while page := self._store.history(until.stream, after, _PAGE, until=until.position - 1):
            for entry in page:
                state = _fold_entry(state, entry)
            after = page[-1].version
        return state


def _fold_entry(state: State | None, entry: Entry) -> State:
    line = read_line(entry.line)
    return fold(state, CODEC.decode(line.event, line.v, line.body), line.at)
