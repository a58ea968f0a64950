"""The causal chain as CCOS tells it: every entry about an intent is an Action, and has a parent.

Nothing is stored twice: an Action is an entry of the stream `intent:ID` as it is read, and which
one caused it follows from what stands before it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from dragoman.core import events
from dragoman.core.events import EVENT_NAMES, AnyEvent
from dragoman.core.moments import to_rfc3339
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import Entry, Line, read_line

TYPES: Final[Mapping[type[AnyEvent], str]] = {
    events.IntentCreated: "New",
    events.IntentProposed: "DelegationProposed",
    events.IntentApproved: "DelegationApproved",
    events.IntentRejected: "DelegationRejected",
    events.IntentDispatched: "TaskDispatched",
    events.IntentUpdated: "TaskUpdated",
    events.IntentCompleted: "TaskCompleted",
    events.IntentFedBack: "FeedbackApplied",
    events.IntentSatisfied: "Satisfied",
    events.IntentNeedsFollowUp: "NeedsFollowUp",
    events.IntentSuperseded: "RequestSuperseded",
    events.IntentFollowed: "FollowedUp",
    events.IntentAnomaly: "Anomaly",
}
"""Event -> type of its Action: those of the specification, and further ones."""

_SEPARATOR: Final = "#"
_FIRST: Final = 1
_SHOWN_APART: Final = frozenset(
    {"intent", "agent", "request_id", "success", "duration_ms", "error", "id", "plan", "number"}
)
"""Fields of events that are fields of an Action."""
_MOMENTS: Final = frozenset({"deadline", "due_by"})
_PAYLOADS: Final = frozenset({"partial", "output", "passed_on"})
SHOWN_BYTES: Final = 1_024
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


class Chain:
    """Follows the entries of one intent and finds the parent of each."""

    def __init__(self, intent: str) -> None:
        self._intent = intent
        self._plan = ""
        self._begin = 0
        """Parent of the next proposal: the creation, or a request that failed."""
        self._ends = 0
        """Parent of the end of the intent."""
        self._stands = 0
        """Entry of the present state: created, dispatched, or ended."""
        self._proposed: dict[str, int] = {}
        self._approved: dict[str, int] = {}
        self._sent: dict[str, tuple[int, str]] = {}
        """Request -> number of the entry that dispatched it, and the time."""
        self._asked: dict[str, int] = {}
        """Agent -> number of the entry that last dispatched a request to it."""
        self._completed: dict[str, int] = {}
        self._replaced = 0

    def passed(self, entry: Entry) -> None:
        """Skip an entry that is not rendered; later ones may still follow from it, but never from
        an update or an anomaly.
        """
        line = read_line(entry.line)
        if line.event not in _CAUSELESS:
            self._cause(line, CODEC.decode(line.event, line.v, line.body))

    def _cause(self, line: Line[Any], event: Any) -> int:
        """Number of the parent; the entry is remembered as a possible parent of later ones."""
        parent = _PARENTS[type(event)](self, event, line.version)
        if isinstance(event, events.IntentDispatched):
            self._sent[event.request_id] = (line.version, to_rfc3339(line.at))
            self._asked.pop(event.agent, None)  # so that the latest entry comes last
            self._asked[event.agent] = line.version
        return parent

    def action(self, entry: Entry) -> Action:
        """Render the next entry as an Action."""
        line = read_line(entry.line)
        event: Any = CODEC.decode(line.event, line.v, line.body)
        number, at = line.version, to_rfc3339(line.at)
        parent = self._cause(line, event)
        said: dict[str, Any] = msgspec.to_builtins(event)
        request = said.get("request_id", "")
        sent = self._sent.get(request)
        told = {name: value for name, value in said.items() if name not in _SHOWN_APART}
        for moment in _MOMENTS & told.keys():
            told[moment] = to_rfc3339(told[moment])
        return Action(
            action_id=f"{self._intent}{_SEPARATOR}{number}",
            type=TYPES[type(event)],
            intent_id=self._intent,
            at=at,
            actor=line.actor,
            parent_id=f"{self._intent}{_SEPARATOR}{parent}" if parent else UNSET,
            plan_id=self._plan or UNSET,
            agent_id=said.get("agent") or UNSET,
            request_id=request or UNSET,
            attempt=said.get("number", UNSET),
            dispatched_at=sent[1] if sent else UNSET,
            duration_ms=said.get("duration_ms", UNSET),
            success=said.get("success", UNSET),
            error=said.get("error") or UNSET,
            details=told or UNSET,
            hash=entry.hash.hex(),
        )

    # Parent of each kind of entry

    def created(self, event: events.IntentCreated, number: int) -> int:
        """None: it starts the chain."""
        self._plan = event.plan
        self._begin = self._ends = self._stands = number
        return 0

    def proposed(self, event: events.IntentProposed, number: int) -> int:
        """Creation, or the failure of an agent."""
        self._proposed[event.agent] = number
        return self._begin

    def approved(self, event: events.IntentApproved, number: int) -> int:
        """Proposal of the agent."""
        self._approved[event.agent] = number
        return self._proposed.get(event.agent, self._begin)

    def rejected(self, event: events.IntentRejected, number: int) -> int:
        """Proposal of the agent; if no agent is left, what the proposals follow from."""
        if event.agent:
            self._ends = number  # in case no candidate follows
            return self._proposed.get(event.agent, self._begin)
        cause, self._begin, self._ends = self._begin, 1, number
        return cause

    def dispatched(self, event: events.IntentDispatched, number: int) -> int:
        """Approval of the agent, or its superseded request, whichever is later."""
        self._stands = number
        cause, self._replaced = max(self._replaced, self._approved.get(event.agent, 0)), 0
        return cause or self._begin

    def of_request(self, event: Any, number: int) -> int:
        """Dispatch of the request; for an unknown request, the last dispatch to the agent, or to
        anybody.
        """
        del number
        sent = self._sent.get(event.request_id)
        if sent is not None:
            return sent[0]
        return self._asked.get(event.agent, next(reversed(self._asked.values()), _FIRST))

    def completed(self, event: events.IntentCompleted, number: int) -> int:
        """Dispatch of the request."""
        self._completed[event.request_id] = self._begin = self._ends = number
        return self.of_request(event, number)

    def fed_back(self, event: events.IntentFedBack, number: int) -> int:
        """Completion of the request."""
        self._ends = number
        return self._completed.get(event.request_id, 1)

    def superseded(self, event: events.IntentSuperseded, number: int) -> int:
        """Dispatch of the request, whose task went to another agent or has to be begun anew."""
        self._replaced = self._begin = self._ends = number
        return self.of_request(event, number)

    def ended(self, _: Any, number: int) -> int:
        """End of the last request; what follows is a new start."""
        self._begin, self._stands = 1, number
        return self._ends

    def followed(self, _: Any, number: int) -> int:
        """Last state of the intent when it was followed up."""
        del number
        return self._stands


_PARENTS: Final[Mapping[type[AnyEvent], Callable[[Chain, Any, int], int]]] = {
    events.IntentCreated: Chain.created,
    events.IntentProposed: Chain.proposed,
    events.IntentApproved: Chain.approved,
    events.IntentRejected: Chain.rejected,
    events.IntentDispatched: Chain.dispatched,
    events.IntentUpdated: Chain.of_request,
    events.IntentCompleted: Chain.completed,
    events.IntentFedBack: Chain.fed_back,
    events.IntentSatisfied: Chain.ended,
    events.IntentNeedsFollowUp: Chain.ended,
    events.IntentSuperseded: Chain.superseded,
    events.IntentFollowed: Chain.followed,
    events.IntentAnomaly: Chain.of_request,
}
"""Event -> function that returns the number of its parent."""


_CAUSELESS: Final = frozenset(
    {EVENT_NAMES[events.IntentUpdated], EVENT_NAMES[events.IntentAnomaly]}
)


def actions(intent: str, entries: Iterable[Entry], after: int = 0) -> Iterator[Action]:
    """Actions of an intent's entries, which are given from the first one on, after a number."""
    chain = Chain(intent)
    for entry in entries:
        if entry.version <= after:
            chain.passed(entry)
        else:
            yield chain.action(entry)


def in_short(action: Action) -> dict[str, Any]:
    """The Action as a value; long chunks and outputs are replaced by their size."""
    told: dict[str, Any] = msgspec.to_builtins(action)
    details: dict[str, Any] = told.get("details", {})
    if _PAYLOADS.isdisjoint(details):
        return told
    for name, size in _sizes(details).items():
        if size > SHOWN_BYTES:
            del details[name]
            details[f"{name}_bytes"] = size
    return told


def weight(action: Action) -> int:
    """Size of its chunks and outputs in bytes."""
    return sum(_sizes(action.details or {}).values())


def _sizes(details: Mapping[str, Any]) -> dict[str, int]:
    return {name: len(msgspec.json.encode(details[name])) for name in _PAYLOADS if name in details}


def as_tree(chain: Iterable[Action]) -> dict[str, Any] | None:
    """The Actions as a tree: each with its children, in order."""
    root: dict[str, Any] | None = None
    nodes: dict[str, dict[str, Any]] = {}
    for action in chain:
        node = in_short(action)
        nodes[action.action_id] = node
        parent = None if action.parent_id is UNSET else nodes.get(action.parent_id)
        if parent is None:
            root = root or node
        else:
            parent.setdefault("children", []).append(node)
    return root


def number_of(action_id: str) -> tuple[str, int]:
    """Intent and entry number of an Action id; ("", 0): it is none."""
    intent, found, number = action_id.rpartition(_SEPARATOR)
    is_number = bool(found) and number.isascii() and number.isdigit() and len(number) < 16
    return (intent, int(number)) if is_number else ("", 0)


def render(entry: Entry) -> Action:
    """Render one entry by itself as an Action, without searching for its parent."""
    return Chain(entry.stream.partition(":")[2]).action(entry)
