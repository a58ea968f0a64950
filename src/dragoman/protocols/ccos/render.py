"""Render entries of an intent as Actions of the causal chain, each with its parent.

Nothing is stored twice: an Action is an entry of the stream `intent:ID` as it is read, and its
parent follows from the entries before it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from dragoman.core.event_table import EVENT_NAMES, AnyEvent
from dragoman.core.intent import state as intent_state
from dragoman.core.timestamps import to_rfc3339
from dragoman.ledger.entry import CODEC, Entry, Line, read_line

ACTION_TYPES: Final[Mapping[type[AnyEvent], str]] = {
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
    intent_state.IntentFollowedUp: "FollowedUp",
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


class CausalChain:
    """Follows the entries of one intent and finds the parent of each."""

    def __init__(self, intent: str) -> None:
        self._intent = intent
        self._plan = ""
        self._next_proposal_parent = 0
        """Parent of the next proposal: the creation, or a request that failed."""
        self._end_parent = 0
        """Parent of the end of the intent."""
        self._state_entry = 0
        """Entry of the present state: created, dispatched, or ended."""
        self._proposed: dict[str, int] = {}
        self._approved: dict[str, int] = {}
        self._sent: dict[str, tuple[int, str]] = {}
        """Request -> number of the entry that dispatched it, and the time."""
        self._last_request_of: dict[str, int] = {}
        """Agent -> number of the entry that last dispatched a request to it."""
        self._completed: dict[str, int] = {}
        self._superseded_entry = 0

    def skip(self, entry: Entry) -> None:
        """Skip an entry that is not rendered; later ones may still follow from it, but never from
        an update or an anomaly.
        """
        line = read_line(entry.line)
        if line.event not in _NEVER_PARENTS:
            self._find_parent(line, CODEC.decode(line.event, line.v, line.body))

    def _find_parent(self, line: Line[Any], event: Any) -> int:
        """Number of the parent; the entry is remembered as a possible parent of later ones."""
        parent = _PARENTS[type(event)](self, event, line.version)
        if isinstance(event, intent_state.IntentDispatched):
            self._sent[event.request_id] = (line.version, to_rfc3339(line.at))
            self._last_request_of.pop(event.agent, None)  # so that the latest entry comes last
            self._last_request_of[event.agent] = line.version
        return parent

    def to_action(self, entry: Entry) -> Action:
        """Render the next entry as an Action."""
        line = read_line(entry.line)
        event: Any = CODEC.decode(line.event, line.v, line.body)
        number, at = line.version, to_rfc3339(line.at)
        parent = self._find_parent(line, event)
        fields: dict[str, Any] = msgspec.to_builtins(event)
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

    # Parent of each kind of entry

    def parent_of_created(self, event: intent_state.IntentCreated, number: int) -> int:
        """None: it starts the chain."""
        self._plan = event.plan
        self._next_proposal_parent = self._end_parent = self._state_entry = number
        return 0

    def parent_of_proposed(self, event: intent_state.IntentProposed, number: int) -> int:
        """Creation, or the failure of an agent."""
        self._proposed[event.agent] = number
        return self._next_proposal_parent

    def parent_of_approved(self, event: intent_state.IntentApproved, number: int) -> int:
        """Proposal of the agent."""
        self._approved[event.agent] = number
        return self._proposed.get(event.agent, self._next_proposal_parent)

    def parent_of_rejected(self, event: intent_state.IntentRejected, number: int) -> int:
        """Proposal of the agent; if no agent is left, what the proposals follow from."""
        if event.agent:
            self._end_parent = number  # in case no candidate follows
            return self._proposed.get(event.agent, self._next_proposal_parent)
        cause, self._next_proposal_parent, self._end_parent = self._next_proposal_parent, 1, number
        return cause

    def parent_of_dispatched(self, event: intent_state.IntentDispatched, number: int) -> int:
        """Approval of the agent, or its superseded request, whichever is later."""
        self._state_entry = number
        cause, self._superseded_entry = (
            max(self._superseded_entry, self._approved.get(event.agent, 0)),
            0,
        )
        return cause or self._next_proposal_parent

    def parent_of_request_event(self, event: Any, number: int) -> int:
        """Dispatch of the request; for an unknown request, the last dispatch to the agent, or to
        anybody.
        """
        del number
        sent = self._sent.get(event.request_id)
        if sent is not None:
            return sent[0]
        return self._last_request_of.get(
            event.agent, next(reversed(self._last_request_of.values()), _FIRST_ENTRY)
        )

    def parent_of_completed(self, event: intent_state.IntentCompleted, number: int) -> int:
        """Dispatch of the request."""
        self._completed[event.request_id] = self._next_proposal_parent = self._end_parent = number
        return self.parent_of_request_event(event, number)

    def parent_of_feedback(self, event: intent_state.IntentFeedbackApplied, number: int) -> int:
        """Completion of the request."""
        self._end_parent = number
        return self._completed.get(event.request_id, 1)

    def parent_of_superseded(self, event: intent_state.IntentSuperseded, number: int) -> int:
        """Dispatch of the request, whose task went to another agent or has to be begun anew."""
        self._superseded_entry = self._next_proposal_parent = self._end_parent = number
        return self.parent_of_request_event(event, number)

    def parent_of_ended(self, _: Any, number: int) -> int:
        """End of the last request; what follows is a new start."""
        self._next_proposal_parent, self._state_entry = 1, number
        return self._end_parent

    def parent_of_followed_up(self, _: Any, number: int) -> int:
        """Last state of the intent when it was followed up."""
        del number
        return self._state_entry


_PARENTS: Final[Mapping[type[AnyEvent], Callable[[CausalChain, Any, int], int]]] = {
    intent_state.IntentCreated: CausalChain.parent_of_created,
    intent_state.IntentProposed: CausalChain.parent_of_proposed,
    intent_state.IntentApproved: CausalChain.parent_of_approved,
    intent_state.IntentRejected: CausalChain.parent_of_rejected,
    intent_state.IntentDispatched: CausalChain.parent_of_dispatched,
    intent_state.IntentUpdated: CausalChain.parent_of_request_event,
    intent_state.IntentCompleted: CausalChain.parent_of_completed,
    intent_state.IntentFeedbackApplied: CausalChain.parent_of_feedback,
    intent_state.IntentSatisfied: CausalChain.parent_of_ended,
    intent_state.IntentNeedsFollowUp: CausalChain.parent_of_ended,
    intent_state.IntentSuperseded: CausalChain.parent_of_superseded,
    intent_state.IntentFollowedUp: CausalChain.parent_of_followed_up,
    intent_state.IntentAnomaly: CausalChain.parent_of_request_event,
}
"""Event -> function that returns the number of its parent."""

_NEVER_PARENTS: Final = frozenset(
    {EVENT_NAMES[intent_state.IntentUpdated], EVENT_NAMES[intent_state.IntentAnomaly]}
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
