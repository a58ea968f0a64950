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
"""Event -> the type of its Action: those of the specification, and what else is told."""

_SEPARATOR: Final = "#"
_FIRST: Final = 1
_SHOWN_APART: Final = frozenset(
    {"intent", "agent", "request_id", "success", "duration_ms", "error", "id", "plan", "number"}
)
"""Fields of events that an Action has fields of its own for."""
_MOMENTS: Final = frozenset({"deadline", "due_by"})
_PAYLOADS: Final = frozenset({"partial", "output", "passed_on"})
SHOWN_BYTES: Final = 1_024
"""So much of a piece or an output is told where a whole story is."""


class Action(Struct, frozen=True, gc=False):
    """One step, with the telemetry that the specification asks for (section 14)."""

    action_id: str
    """The intent and the number of the entry in its chain: i-1#3."""
    type: str
    intent_id: str
    at: str
    actor: str
    parent_id: str | UnsetType = UNSET
    """What caused it; the first one has no parent."""
    plan_id: str | UnsetType = UNSET
    agent_id: str | UnsetType = UNSET
    request_id: str | UnsetType = UNSET
    attempt: int | UnsetType = UNSET
    dispatched_at: str | UnsetType = UNSET
    duration_ms: int | UnsetType = UNSET
    success: bool | UnsetType = UNSET
    error: str | UnsetType = UNSET
    details: dict[str, Any] | UnsetType = UNSET
    """Whatever else the entry says."""
    hash: str | UnsetType = UNSET
    """The hash of the entry, which covers all that stands before it in the chain."""


class Chain:
    """Follows the entries of one intent and knows the cause of each."""

    def __init__(self, intent: str) -> None:
        self._intent = intent
        self._plan = ""
        self._begin = 0
        """What the next proposal follows from: the creation, or a request that came to nothing."""
        self._ends = 0
        """What the end of the intent follows from."""
        self._stands = 0
        """Where the intent stands: created, asked of somebody, or ended."""
        self._proposed: dict[str, int] = {}
        self._approved: dict[str, int] = {}
        self._sent: dict[str, tuple[int, str]] = {}
        """Request -> the number of the entry that dispatched it, and when."""
        self._asked: dict[str, int] = {}
        """Agent -> the number of the entry that last sent it a request."""
        self._completed: dict[str, int] = {}
        self._replaced = 0

    def passed(self, entry: Entry) -> None:
        """The entry is not told, but what comes later may follow from it; nothing does from word
        of how it goes.
        """
        line = read_line(entry.line)
        if line.event not in _CAUSELESS:
            self._cause(line, CODEC.decode(line.event, line.v, line.body))

    def _cause(self, line: Line[Any], event: Any) -> int:
        """The number of the entry that it follows from; what follows from it is remembered."""
        parent = _PARENTS[type(event)](self, event, line.version)
        if isinstance(event, events.IntentDispatched):
            self._sent[event.request_id] = (line.version, to_rfc3339(line.at))
            self._asked.pop(event.agent, None)  # so that the last one is the last
            self._asked[event.agent] = line.version
        return parent

    def action(self, entry: Entry) -> Action:
        """The entry as an Action; entries come in their order."""
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

    # The cause of each kind of entry

    def created(self, event: events.IntentCreated, number: int) -> int:
        """Nothing in the chain caused it."""
        self._plan = event.plan
        self._begin = self._ends = self._stands = number
        return 0

    def proposed(self, event: events.IntentProposed, number: int) -> int:
        """It was created, or an agent has failed."""
        self._proposed[event.agent] = number
        return self._begin

    def approved(self, event: events.IntentApproved, number: int) -> int:
        """The agent was proposed."""
        self._approved[event.agent] = number
        return self._proposed.get(event.agent, self._begin)

    def rejected(self, event: events.IntentRejected, number: int) -> int:
        """The agent was proposed, or nobody is left."""
        if event.agent:
            self._ends = number  # if it was the last one
            return self._proposed.get(event.agent, self._begin)
        cause, self._begin, self._ends = self._begin, 1, number
        return cause

    def dispatched(self, event: events.IntentDispatched, number: int) -> int:
        """The agent was approved, or had the request before: whichever was the last."""
        self._stands = number
        cause, self._replaced = max(self._replaced, self._approved.get(event.agent, 0)), 0
        return cause or self._begin

    def of_request(self, event: Any, number: int) -> int:
        """The request was sent; of one that is unknown here: the agent's last one, or anybody's."""
        del number
        sent = self._sent.get(event.request_id)
        if sent is not None:
            return sent[0]
        return self._asked.get(event.agent, next(reversed(self._asked.values()), _FIRST))

    def completed(self, event: events.IntentCompleted, number: int) -> int:
        """The request was sent."""
        self._completed[event.request_id] = self._begin = self._ends = number
        return self.of_request(event, number)

    def fed_back(self, event: events.IntentFedBack, number: int) -> int:
        """The request was completed."""
        self._ends = number
        return self._completed.get(event.request_id, 1)

    def superseded(self, event: events.IntentSuperseded, number: int) -> int:
        """The request was sent, and the task went to another, or has to be begun anew."""
        self._replaced = self._begin = self._ends = number
        return self.of_request(event, number)

    def ended(self, _: Any, number: int) -> int:
        """The last request has come to its end; what may follow is a new beginning."""
        self._begin, self._stands = 1, number
        return self._ends

    def followed(self, _: Any, number: int) -> int:
        """Where the intent stood when somebody wanted more."""
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
"""Event -> the number of the entry that caused it."""


_CAUSELESS: Final = frozenset(
    {EVENT_NAMES[events.IntentUpdated], EVENT_NAMES[events.IntentAnomaly]}
)


def actions(intent: str, entries: Iterable[Entry], after: int = 0) -> Iterator[Action]:
    """The entries of an intent's stream, given from the first one on, as Actions after a number."""
    chain = Chain(intent)
    for entry in entries:
        if entry.version <= after:
            chain.passed(entry)
        else:
            yield chain.action(entry)


def in_short(action: Action) -> dict[str, Any]:
    """The Action as a value, without long pieces and outputs: of these only their size."""
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
    """How many bytes of pieces and outputs it has."""
    return sum(_sizes(action.details or {}).values())


def _sizes(details: Mapping[str, Any]) -> dict[str, int]:
    return {name: len(msgspec.json.encode(details[name])) for name in _PAYLOADS if name in details}


def as_tree(chain: Iterable[Action]) -> dict[str, Any] | None:
    """The Actions as a tree: each with those that it caused, in their order."""
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
    """The intent of an Action and its number in the chain; ("", 0): this is no Action's id."""
    intent, found, number = action_id.rpartition(_SEPARATOR)
    is_number = bool(found) and number.isascii() and number.isdigit() and len(number) < 16
    return (intent, int(number)) if is_number else ("", 0)


def render(entry: Entry) -> Action:
    """One entry by itself, as an Action whose cause is not looked for."""
    return Chain(entry.stream.partition(":")[2]).action(entry)
