"""Queries of intents and of the causal chain, by plan, agent, type, time and cause (S-CCOS-8)."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import msgspec

from dragoman.core.errors import Refusal
from dragoman.core.ids import intent_stream
from dragoman.core.intent.state import Intent, intent_list_keys
from dragoman.core.timestamps import parse_rfc3339, to_rfc3339
from dragoman.engine.operation import Facts, Fault, fault_from_refusal
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.queries.intents import IntentItem, find_intent, is_cancelled, list_intents
from dragoman.engine.queries.streams import stream_entries
from dragoman.protocols.ccos.render import (
    ACTION_TYPES,
    Action,
    action_tree,
    iter_actions,
    parse_action_id,
    payload_bytes,
    render_entry,
    summarize_action,
)
from dragoman.protocols.ccos.task_request import find_open_request
from dragoman.protocols.ccos.wire import ActionsQuery, IntentQuery, IntentsQuery, WhyQuery, as_value

_PAGE = 100
_MAX_SCANNED = 20_000
"""Number of Actions, or intents, that are scanned for one page."""
_MAX_PAGE_BYTES = 4 * 1024 * 1024
"""Size of chunks and outputs after which a page ends."""
_REQUESTED_AGENT_TYPES: Final = frozenset(
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


def query_why(args: WhyQuery, facts: Facts) -> Any:
    """Answer `ccos.why`: the causal chain as a tree; long chunks only by their size."""
    intent = find_intent(facts.store, args.intent_id)
    if isinstance(intent, Refusal):
        return fault_from_refusal(intent, "intent_id")
    count = _chain_length(facts.store, intent.id)
    answer = {
        "intent_id": intent.id,
        "goal": intent.goal,
        "state": intent.state,
        **({"cancelled": True} if is_cancelled(facts.store, intent) else {}),
        "count": count,
        "actions": action_tree(islice(_intent_actions(facts.store, intent.id), args.limit)),
    }
    return answer | ({"more": True} if count > args.limit else {})


def query_intent(args: IntentQuery, facts: Facts) -> Any:
    """Answer `ccos.intent`: the state of an intent, and its history."""
    intent = find_intent(facts.store, args.intent_id)
    if isinstance(intent, Refusal):
        return fault_from_refusal(intent, "intent_id")
    page = list(islice(_intent_actions(facts.store, intent.id, args.after), args.limit))
    end = args.after + len(page)
    more = {"next": end} if end < _chain_length(facts.store, intent.id) else {}
    view = intent_view(facts.store, intent) | _last_result(facts.store, intent)
    return view | {"history": [_history_row(one) for one in page]} | more


def _last_result(store: Store, intent: Intent) -> dict[str, Any]:
    """Result of the last request, with its output if policy stores it."""
    if not any(not one.is_superseded for one in intent.closed):
        return {}
    action = next(one for one in _iter_backwards(store, intent.id) if one.type == "TaskCompleted")
    completed: dict[str, Any] = msgspec.to_builtins(action)
    fields = ("agent_id", "request_id", "success", "error", "duration_ms", "at")
    result = {name: completed[name] for name in fields if name in completed}
    details = completed.get("details", {})
    # What the agent adds stands apart, so that it is not taken for the hub's own word.
    fields = ("output", "synthetic", "left_out", "digest", "extra_fields")
    return {"result": result | {name: details[name] for name in fields if name in details}}


def _iter_backwards(store: Store, intent: str) -> Iterator[Action]:
    """Actions of an intent from the last one on, without their parents."""
    stream, after = intent_stream(intent), _chain_length(store, intent)
    while after > 0:
        after, until = max(after - _PAGE, 0), after
        yield from map(render_entry, reversed(store.history(stream, after, until - after)))


def query_intents(args: IntentsQuery, facts: Facts) -> Any:
    """Answer `ccos.intents`: a page of the intents that match all filters, the oldest first."""
    filters = (("follows", args.follows), ("plan", args.plan_id), ("delegated", args.agent_id))
    lists = [f"{kind}:{name}" for kind, name in filters if name]
    wanted = lists + ["intents:open"] * args.open or ["intents"]
    rows: list[dict[str, Any]] = []
    last = args.after
    # Go through the list that is probably the shortest.
    for looked_at, placed in enumerate(_iter_list(facts.store, wanted[0], args.after)):
        fits = set(wanted) <= set(intent_list_keys(placed.intent))
        if looked_at == _MAX_SCANNED or (fits and len(rows) == args.limit):
            return {"intents": rows, "next": last}
        if fits:
            rows.append(intent_view(facts.store, placed.intent))
        last = placed.position
    return {"intents": rows}


def _iter_list(store: Store, list_: str, after: int) -> Iterator[IntentItem]:
    """All intents on a list, page by page."""
    while page := list_intents(store, ListQuery(list_, after, limit=_PAGE)):
        yield from page
        after = page[-1].position


def intent_view(store: Store, intent: Intent) -> dict[str, Any]:
    """State of an intent, for a reply."""
    request = find_open_request(store, intent)
    view: dict[str, Any] = {
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
    return view | {name: value for name, value in optional.items() if value}


def _history_row(action: Action) -> dict[str, Any]:
    """An Action as a row of a history: named by the state that it led to."""
    row = summarize_action(action)
    row["state"] = row["type"]
    for known in ("intent_id", "hash"):
        row.pop(known)
    return row


def query_actions(args: ActionsQuery, facts: Facts) -> Any:
    """Answer `ccos.actions`: a page of the matching Actions."""
    if args.type and args.type not in ACTION_TYPES.values():
        known = ", ".join(ACTION_TYPES.values())
        return Fault("invalid_field", f"{args.type[:40]!a} is no type; known: {known}", "type")
    span = _parse_time_range(args)
    if isinstance(span, Fault):
        return span
    at, number = _parse_cursor(args.cursor)
    found: list[dict[str, Any]] = []
    looked_at, size, cursor = 0, 0, args.cursor
    for placed in _candidate_intents(args, facts.store, at):
        seen = number if placed.position == at else 0
        chain = _intent_actions(facts.store, placed.intent.id, seen)
        for one, action in enumerate(chain, start=seen + 1):
            fits = _action_matches(action, args, *span)
            is_full = len(found) == args.limit or size >= _MAX_PAGE_BYTES
            if looked_at == _MAX_SCANNED or (fits and is_full):
                return {"actions": found, "cursor": cursor, "more": True}
            if fits:
                found.append(msgspec.to_builtins(action))
                size += payload_bytes(action)
            looked_at += 1
            cursor = f"{placed.position}.{one}"
    return {"actions": found, "cursor": cursor, "more": False}


def _intent_actions(store: Store, intent: str, after: int = 0) -> Iterator[Action]:
    return iter_actions(intent, stream_entries(store, intent_stream(intent)), after)


def _chain_length(store: Store, intent: str) -> int:
    """Number of entries in its chain."""
    row = store.stream(intent_stream(intent))
    return 0 if row is None else row.version


def _parse_time_range(args: ActionsQuery) -> tuple[str, str] | Fault:
    """Bounds of the time range, in the form that Actions have, which sorts by time."""
    bounds: list[str] = []
    for name, text in (("since", args.since), ("until", args.until)):
        try:
            bounds.append(to_rfc3339(parse_rfc3339(text)) if text else "")
        except ValueError as error:
            return Fault("invalid_field", str(error), name)
    return bounds[0], bounds[1]


def _action_matches(action: Action, args: ActionsQuery, since: str, until: str) -> bool:
    return (
        args.type in ("", action.type)
        and args.agent_id in ("", action.agent_id)
        and args.parent_id in ("", action.parent_id)
        and (not args.plan_id or action.plan_id == args.plan_id)
        and since <= action.at
        and (not until or action.at < until)
    )


def _candidate_intents(args: ActionsQuery, store: Store, at: int) -> Iterator[IntentItem]:
    """Intents that may have matching Actions, by the shortest list that holds them all."""
    one = args.intent_id or parse_action_id(args.parent_id)[0]
    if one:
        intent = find_intent(store, one)
        if isinstance(intent, Intent):
            yield IntentItem(at, intent)
        return
    name = "intents"
    if args.plan_id:
        name = f"plan:{args.plan_id}"
    elif args.agent_id and args.type in _REQUESTED_AGENT_TYPES:
        name = f"delegated:{args.agent_id}"
    yield from _iter_list(store, name, max(at - 1, 0))


def _parse_cursor(text: str) -> tuple[int, int]:
    """Position of an intent and number of an Action; (0, 0) without a cursor."""
    position, _, number = text.partition(".")
    return int(position or 0), int(number or 0)
