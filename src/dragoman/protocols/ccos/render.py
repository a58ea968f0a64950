"""Render entries of an intent as Actions of the causal chain, each with its parent.

Nothing is stored twice: an Action is an entry of the stream `intent:ID` as it is read, and its
parent follows from the entries before it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType

from dragoman.core.base import Event
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.intent import state as intent_state
from dragoman.core.timestamps import to_rfc3339
from dragoman.ledger.entry import CODEC, Entry, Line, read_line

ACTION_TYPES: Final[Mapping[type[Event], str]] = {
    intent_state.IntentCreated: "New",
    intent_state.IntentProposed: "DelegationProposed",
    intent_state.IntentApproved: "DelegationApproved",
    intent_state.IntentRejected: "DelegationRejected",
    intent_state.IntentDispatched: "TaskDispatched",
    intent_state.IntentUpdated: "TaskUpdated",
    intent_state.IntentCompleted: "TaskCompleted",
    intent_state.IntentFeedbackApplied: "FeedbackApplied",
    intent_state.IntentSatisfied: "Satisfied",
    intent_state.IntentNeedsFollowUp: "NeedsFollowUp",
    intent_state.IntentSuperseded: "RequestSuperseded",
    intent_state.IntentAnomaly: "Anomaly",
}
"""Event -> type of its Action: those of the specification, and further ones."""

_SEPARATOR: Final = "#"

_FIRST_ENTRY: Final = 1

_ACTION_FIELDS: Final = frozenset(
    {"intent", "agent", "request_id", "success", "duration_ms", "error", "id", "plan", "number"}
)
"""Fields of events that are fields of an Action."""

_TIME_FIELDS: Final = frozenset({"deadline", "due_by"})

_PAYLOAD_FIELDS: Final = frozenset({"partial", "output", "extra_fields"})

MAX_SHOWN_PAYLOAD_BYTES: Final = 1_024
"""Largest chunk or output that is included where a whole chain is shown."""


class Action(Struct, frozen=True, gc=False):
    """One step, with the telemetry that the specification asks for (section 14)."""

    action_id: str
    """Intent and number of the entry in its chain: i-1#3."""
    type: str
    intent_id: str
    at: str
    actor: str
    parent_id: str | UnsetType = UNSET
    """Action that caused it; the first one has no parent."""
    plan_id: str | UnsetType = UNSET
    agent_id: str | UnsetType = UNSET
    request_id: str | UnsetType = UNSET
    attempt: int | UnsetType = UNSET
    dispatched_at: str | UnsetType = UNSET
    duration_ms: int | UnsetType = UNSET
    success: bool | UnsetType = UNSET
    error: str | UnsetType = UNSET
    details: dict[str, Any] | UnsetType = UNSET
    """Other fields of the entry."""
    hash: str | UnsetType = UNSET
    """Hash of the entry, which covers all entries before it in the chain."""


_CAUSES_OF_PROPOSAL: Final = (
    intent_state.IntentCreated,
    intent_state.IntentCompleted,
    intent_state.IntentSuperseded,
)

_CAUSES_OF_END: Final = (
    intent_state.IntentRejected,
    intent_state.IntentCompleted,
    intent_state.IntentFeedbackApplied,
    intent_state.IntentSuperseded,
)

_CAUSES: Final[Mapping[type[Event], tuple[type[Event], ...]]] = {
    intent_state.IntentCreated: (),
    intent_state.IntentProposed: _CAUSES_OF_PROPOSAL,
    intent_state.IntentApproved: (intent_state.IntentProposed,),
    intent_state.IntentRejected: (intent_state.IntentProposed,),
    intent_state.IntentDispatched: (intent_state.IntentApproved, intent_state.IntentSuperseded),
    intent_state.IntentFeedbackApplied: (intent_state.IntentCompleted,),
    intent_state.IntentSatisfied: _CAUSES_OF_END,
    intent_state.IntentNeedsFollowUp: _CAUSES_OF_END,
}
"""Event -> events of which the latest is its parent; other events belong to a request, and follow
from its dispatch.
"""

_ENDS: Final = (intent_state.IntentSatisfied, intent_state.IntentNeedsFollowUp)

_NEVER_PARENTS: Final = frozenset(
    {EVENT_NAMES[intent_state.IntentUpdated], EVENT_NAMES[intent_state.IntentAnomaly]}
)


class CausalChain:
    """Follows the entries of one intent and finds the parent of each."""

    def __init__(self, intent: str) -> None:
        self._intent = intent
        self._plan = ""
        self._latest: dict[type[Event], int] = {}
        """Kind of event -> number of its latest entry, since the last new start."""
        self._sent: dict[str, tuple[int, str]] = {}
        """Request -> number of the entry that dispatched it, and the time."""
        self._last_sent: dict[str, int] = {}
        """Agent -> number of the entry that last dispatched a request to it."""

    def skip(self, entry: Entry) -> None:
        """Skip an entry that is not rendered; later ones may still follow from it, but never from
        an update or an anomaly.
        """
        line = read_line(entry.line)
        if line.event not in _NEVER_PARENTS:
            self._find_parent(line, CODEC.decode(line.event, line.v, line.body))

    def _find_parent(self, line: Line[Any], event: Any) -> int:
        """Number of the parent; the entry is remembered as a possible parent of later ones."""
        kind = cast(type[Event], type(event))
        causes = _CAUSES.get(kind, (intent_state.IntentDispatched,))
        is_for_all = kind is intent_state.IntentRejected and not event.agent
        if is_for_all:
            causes = _CAUSES_OF_PROPOSAL
        parent = max((self._latest.get(cause, 0) for cause in causes), default=0)
        if kind not in _CAUSES:
            last = self._last_sent.get(event.agent, parent or _FIRST_ENTRY)
            parent, _ = self._sent.get(event.request_id, (last, ""))
        if kind is intent_state.IntentCreated:
            self._plan = event.plan
        if kind is intent_state.IntentDispatched:
            self._sent[event.request_id] = (line.version, to_rfc3339(line.at))
            self._last_sent[event.agent] = line.version
        self._latest[kind] = line.version
        if is_for_all or kind in _ENDS:
            # What follows is a new start.
            for cause in _CAUSES_OF_PROPOSAL[1:]:
                self._latest.pop(cause, None)
        return parent

    def to_action(self, entry: Entry) -> Action:
        """Render the next entry as an Action."""
        line = read_line(entry.line)
        event: Any = CODEC.decode(line.event, line.v, line.body)
        number, at = line.version, to_rfc3339(line.at)
        parent = self._find_parent(line, event)
        fields: dict[str, Any] = msgspec.to_builtins(event)
        fields |= fields.pop("terms", None) or {}
        request = fields.get("request_id", "")
        sent = self._sent.get(request)
        details = {name: value for name, value in fields.items() if name not in _ACTION_FIELDS}
        for moment in _TIME_FIELDS & details.keys():
            details[moment] = to_rfc3339(details[moment])
        return Action(
            action_id=f"{self._intent}{_SEPARATOR}{number}",
            type=ACTION_TYPES[type(event)],
            intent_id=self._intent,
            at=at,
            actor=line.actor,
            parent_id=f"{self._intent}{_SEPARATOR}{parent}" if parent else UNSET,
            plan_id=self._plan or UNSET,
            agent_id=fields.get("agent") or UNSET,
            request_id=request or UNSET,
            attempt=fields.get("number", UNSET),
            dispatched_at=sent[1] if sent else UNSET,
            duration_ms=fields.get("duration_ms", UNSET),
            success=fields.get("success", UNSET),
            error=fields.get("error") or UNSET,
            details=details or UNSET,
            hash=entry.hash.hex(),
        )


def iter_actions(intent: str, entries: Iterable[Entry], after: int = 0) -> Iterator[Action]:
    """Actions of an intent's entries, which are given from the first one on, after a number."""
    chain = CausalChain(intent)
    for entry in entries:
        if entry.version <= after:
            chain.skip(entry)
        else:
            yield chain.to_action(entry)


def summarize_action(action: Action) -> dict[str, Any]:
    """The Action as a value; long chunks and outputs are replaced by their size."""
    summary: dict[str, Any] = msgspec.to_builtins(action)
    details: dict[str, Any] = summary.get("details", {})
    if _PAYLOAD_FIELDS.isdisjoint(details):
        return summary
    for name, size in _payload_sizes(details).items():
        if size > MAX_SHOWN_PAYLOAD_BYTES:
            del details[name]
            details[f"{name}_bytes"] = size
    return summary


def _payload_sizes(details: Mapping[str, Any]) -> dict[str, int]:
    return {
        name: len(msgspec.json.encode(details[name])) for name in _PAYLOAD_FIELDS if name in details
    }


def action_tree(chain: Iterable[Action]) -> dict[str, Any] | None:
    """The Actions as a tree: each with its children, in order."""
    root: dict[str, Any] | None = None
    nodes: dict[str, dict[str, Any]] = {}
    for action in chain:
        node = summarize_action(action)
        nodes[action.action_id] = node
        parent = None if action.parent_id is UNSET else nodes.get(action.parent_id)
        if parent is None:
            root = root or node
        else:
            parent.setdefault("children", []).append(node)
    return root


def render_entry(entry: Entry) -> Action:
    """Render one entry by itself as an Action, without searching for its parent."""
    return CausalChain(entry.stream.partition(":")[2]).to_action(entry)
