"""Asking the causal chain: by intent, plan, agent, type, time and cause (S-CCOS-8)."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import msgspec

from dragoman.core.errors import Refusal
from dragoman.core.ids import intent_stream
from dragoman.core.moments import parse_rfc3339, to_rfc3339
from dragoman.core.states.intent import Intent, lists_of_intent
from dragoman.engine.faults import Fault, fault_of
from dragoman.engine.operation import Facts
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.reads.ask import history
from dragoman.engine.reads.intents import Placed, find_intent, intents_on, is_cancelled
from dragoman.protocols.ccos.actions import (
    TYPES,
    Action,
    actions,
    as_tree,
    in_short,
    number_of,
    render,
    weight,
)
from dragoman.protocols.ccos.arguments import History, Intents, Story, WantedActions
from dragoman.protocols.ccos.requests import open_request
from dragoman.protocols.ccos.wire import as_value

_PAGE = 100
_MOST_LOOKED_AT = 20_000
"""Number of Actions, or intents, that are scanned for one page."""
_MOST_BYTES = 4 * 1024 * 1024
"""Size of chunks and outputs after which a page ends."""
_OF_WHO_WAS_ASKED: Final = frozenset(
    {
        "DelegationApproved",
        "TaskDispatched",
        "TaskUpdated",
        "TaskCompleted",
        "FeedbackApplied",
        "RequestSuperseded",
    }
)
"""Types that only concern agents that had a request; not proposals and anomalies."""


def why(asked: Story, facts: Facts) -> Any:
    """Answer `ccos.why`: the causal chain as a tree; long chunks only by their size."""
    intent = find_intent(facts.store, asked.intent_id)
    if isinstance(intent, Refusal):
        return fault_of(intent, "intent_id")
    count = _length(facts.store, intent.id)
    told = {
        "intent_id": intent.id,
        "goal": intent.goal,
        "state": intent.state,
        **({"cancelled": True} if is_cancelled(facts.store, intent) else {}),
        "count": count,
        "actions": as_tree(islice(_chain(facts.store, intent.id), asked.limit)),
    }
    return told | ({"more": True} if count > asked.limit else {})


def look(asked: History, facts: Facts) -> Any:
    """Answer `ccos.intent`: the state of an intent, and its history."""
    intent = find_intent(facts.store, asked.intent_id)
    if isinstance(intent, Refusal):
        return fault_of(intent, "intent_id")
    page = list(islice(_chain(facts.store, intent.id, asked.after), asked.limit))
    end = asked.after + len(page)
    more = {"next": end} if end < _length(facts.store, intent.id) else {}
    told = shown(facts.store, intent) | _result(facts.store, intent)
    return told | {"history": [_brief(one) for one in page]} | more


def _result(store: Store, intent: Intent) -> dict[str, Any]:
    """Result of the last request, with its output if policy stores it."""
    if not any(not one.is_superseded for one in intent.closed):
        return {}
    action = next(one for one in _backwards(store, intent.id) if one.type == "TaskCompleted")
    told: dict[str, Any] = msgspec.to_builtins(action)
    fields = ("agent_id", "request_id", "success", "error", "duration_ms", "at")
    result = {name: told[name] for name in fields if name in told}
    details = told.get("details", {})
    # What the agent adds stands apart, so that it is not taken for the hub's own word.
    fields = ("output", "synthetic", "left_out", "digest", "passed_on")
    return {"result": result | {name: details[name] for name in fields if name in details}}


def _backwards(store: Store, intent: str) -> Iterator[Action]:
    """Actions of an intent from the last one on, without their parents."""
    stream, after = intent_stream(intent), _length(store, intent)
    while after > 0:
        after, until = max(after - _PAGE, 0), after
        yield from map(render, reversed(store.history(stream, after, until - after)))


def listed(asked: Intents, facts: Facts) -> Any:
    """Answer `ccos.intents`: a page of the intents that match all filters, the oldest first."""
    named = (("follows", asked.follows), ("plan", asked.plan_id), ("delegated", asked.agent_id))
    said = [f"{kind}:{name}" for kind, name in named if name]
    wanted = said + ["intents:open"] * asked.open or ["intents"]
    rows: list[dict[str, Any]] = []
    last = asked.after
    # Go through the list that is probably the shortest.
    for looked_at, placed in enumerate(_on(facts.store, wanted[0], asked.after)):
        fits = set(wanted) <= set(lists_of_intent(placed.intent))
        if looked_at == _MOST_LOOKED_AT or (fits and len(rows) == asked.limit):
            return {"intents": rows, "next": last}
        if fits:
            rows.append(shown(facts.store, placed.intent))
        last = placed.position
    return {"intents": rows}


def _on(store: Store, list_: str, after: int) -> Iterator[Placed]:
    """All intents on a list, page by page."""
    while page := intents_on(store, ListQuery(list_, after, limit=_PAGE)):
        yield from page
        after = page[-1].position


def shown(store: Store, intent: Intent) -> dict[str, Any]:
    """State of an intent, for a reply."""
    request = open_request(store, intent)
    told: dict[str, Any] = {
        "intent_id": intent.id,
        "state": intent.state,
        "goal": intent.goal,
        "task_id": intent.task,
        "by": intent.by,
        "created_at": to_rfc3339(intent.created_at),
        "requests": intent.requests,
        "tried": list(intent.agents),
        "updates": intent.updates,
        "anomalies": intent.anomalies,
    }
    optional = {
        "cancelled": is_cancelled(store, intent),
        "request": None if request is None else as_value(request),
        "plan_id": intent.plan,
        "follows": intent.follows,
        "followed_by": list(intent.followed_by),
        "reasons": list(intent.reasons),
    }
    return told | {name: value for name, value in optional.items() if value}


def _brief(action: Action) -> dict[str, Any]:
    """An Action as a row of a history: named by the state that it led to."""
    told = in_short(action)
    told["state"] = told["type"]
    for known in ("intent_id", "hash"):
        told.pop(known)
    return told


def ask(asked: WantedActions, facts: Facts) -> Any:
    """Answer `ccos.actions`: a page of the matching Actions."""
    if asked.type and asked.type not in TYPES.values():
        known = ", ".join(TYPES.values())
        return Fault("invalid_field", f"{asked.type[:40]!a} is no type; known: {known}", "type")
    span = _span(asked)
    if isinstance(span, Fault):
        return span
    at, number = _cursor(asked.cursor)
    found: list[dict[str, Any]] = []
    looked_at, size, cursor = 0, 0, asked.cursor
    for placed in _intents(asked, facts.store, at):
        seen = number if placed.position == at else 0
        chain = _chain(facts.store, placed.intent.id, seen)
        for one, action in enumerate(chain, start=seen + 1):
            fits = _fits(action, asked, *span)
            is_full = len(found) == asked.limit or size >= _MOST_BYTES
            if looked_at == _MOST_LOOKED_AT or (fits and is_full):
                return {"actions": found, "cursor": cursor, "more": True}
            if fits:
                found.append(msgspec.to_builtins(action))
                size += weight(action)
            looked_at += 1
            cursor = f"{placed.position}.{one}"
    return {"actions": found, "cursor": cursor, "more": False}


def _chain(store: Store, intent: str, after: int = 0) -> Iterator[Action]:
    return actions(intent, history(store, intent_stream(intent)), after)


def _length(store: Store, intent: str) -> int:
    """Number of entries in its chain."""
    row = store.stream(intent_stream(intent))
    return 0 if row is None else row.version


def _span(asked: WantedActions) -> tuple[str, str] | Fault:
    """Bounds of the time range, in the form that Actions have, which sorts by time."""
    told: list[str] = []
    for name, given in (("since", asked.since), ("until", asked.until)):
        try:
            told.append(to_rfc3339(parse_rfc3339(given)) if given else "")
        except ValueError as error:
            return Fault("invalid_field", str(error), name)
    return told[0], told[1]


def _fits(action: Action, asked: WantedActions, since: str, until: str) -> bool:
    return (
        asked.type in ("", action.type)
        and asked.agent_id in ("", action.agent_id)
        and asked.parent_id in ("", action.parent_id)
        and (not asked.plan_id or action.plan_id == asked.plan_id)
        and since <= action.at
        and (not until or action.at < until)
    )


def _intents(asked: WantedActions, store: Store, at: int) -> Iterator[Placed]:
    """Intents that may have matching Actions, by the shortest list that holds them all."""
    one = asked.intent_id or number_of(asked.parent_id)[0]
    if one:
        intent = find_intent(store, one)
        if isinstance(intent, Intent):
            yield Placed(at, intent)
        return
    name = "intents"
    if asked.plan_id:
        name = f"plan:{asked.plan_id}"
    elif asked.agent_id and asked.type in _OF_WHO_WAS_ASKED:
        name = f"delegated:{asked.agent_id}"
    yield from _on(store, name, max(at - 1, 0))


def _cursor(given: str) -> tuple[int, int]:
    """Position of an intent and number of an Action; (0, 0) without a cursor."""
    place, _, number = given.partition(".")
    return int(place or 0), int(number or 0)
