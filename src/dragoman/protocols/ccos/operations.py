"""The CCOS dialect: operations that register, rank, delegate, deliver results, and explain."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from dragoman.core.actor import Actor
from dragoman.core.authority import MAY_DELEGATE, MAY_WRITE
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_agent
from dragoman.core.task_state import INTENT_ALIAS_KIND
from dragoman.engine.delivered_messages import inbox_operation
from dragoman.engine.operation import (
    Dialect,
    Facts,
    Fault,
    Linter,
    LongPoll,
    MessageLimits,
    Operation,
    ParsedMessage,
    Plan,
    RawMessage,
    always,
    fault_from_refusal,
    query_operation,
    require_id,
)
from dragoman.engine.ports import ListQuery
from dragoman.engine.queries.agents import find_agent, find_reputation
from dragoman.engine.queries.intents import awaited_agent, find_intent, is_cancelled, list_intents
from dragoman.engine.request import Commands, Committed
from dragoman.protocols.ccos import queries, translate, wire
from dragoman.protocols.ccos.lint import lint
from dragoman.protocols.ccos.notice import from_notice, to_notice
from dragoman.protocols.ccos.parse import (
    DetectedMessage,
    InvalidResult,
    argument_parser,
    detect_message,
    parse_message,
    parse_result,
    parse_shape,
    stored_text,
    stored_text_of_call,
)
from dragoman.protocols.ccos.render import ACTION_TYPES
from dragoman.protocols.ccos.settings import DEFAULTS, Choices
from dragoman.protocols.ccos.task_request import find_open_request
from dragoman.protocols.ccos.wire import (
    MAX_RESULT_BYTES,
    MESSAGE_SHAPES,
    TaskRequest,
    TaskResult,
    TaskUpdate,
    as_value,
)

_GOAL_FIELDS: Final[Mapping[str, str]] = {
    "id": "intent_id",
    "goal": "goal",
    "params": "params",
    "constraints": "constraints",
    "skills": "skills",
    "request_id": "request_id",
    "due_by": "deadline",
    "plan": "plan_id",
    "follows": "follows",
}
"""Field of the core's command -> field of the message."""
_AGENT_FIELDS: Final[Mapping[str, str]] = {
    **{name: name for name in ("constraints", "locality", "cost", "latency_ms", "capacity")},
    "name": "agent_id",
    "skills": "skills",
    "reach": "reach",
}
"""The same for what an agent registers."""


def dialect(choices: Choices = DEFAULTS) -> Dialect:
    """The CCOS 019 dialect with these settings."""
    operations = (
        *_message_operations(choices),
        *_write_operations(choices),
        *_query_operations(choices),
        inbox_operation(translate.NAME, "ccos.inbox"),
    )
    by_kind = dict(zip(MESSAGE_SHAPES, operations, strict=False))
    return Dialect(
        name=translate.NAME,
        operations=operations,
        parse=lambda incoming: _parse_incoming(incoming, by_kind, choices),
        lint=Linter(lint, tuple(MESSAGE_SHAPES), by_kind),
        events=frozenset(ACTION_TYPES),
        to_notice=to_notice,
        from_notice=from_notice,
        answer_offer=translate.answer_request,
        hint="an object with intent_id, agent_id and success, goal or progress",
    )


def _parse_incoming(
    raw: RawMessage, by_kind: dict[str, Operation], choices: Choices
) -> ParsedMessage | None:
    """Parse one of the three messages, bare or wrapped."""
    found = detect_message(raw)
    if isinstance(found, Fault):
        return ParsedMessage(
            "TaskResult", stored_text_of_call(raw, choices.max_output_bytes), fault=found
        )
    return None if found is None else _to_parsed_message(found, by_kind[found.kind], choices)


def _to_parsed_message(
    found: DetectedMessage, operation: Operation, choices: Choices
) -> ParsedMessage:
    message = parse_message(found.kind, found.value)
    # A request comes from an orchestrator, and its intent may be new.
    is_request = found.kind == "TaskRequest"
    whole = msgspec.Raw(msgspec.json.encode(found.value))
    # The whole request is stored: it must be possible to send it out again.
    original_text = whole if is_request else stored_text(found.value, choices.max_output_bytes)
    sender = "" if is_request else found.value["agent_id"]
    target = "" if is_request else f"{INTENT_ALIAS_KIND}:{found.value['intent_id']}"
    is_named = sender and check_agent(sender) is None
    return ParsedMessage(
        kind=found.kind,
        original_text=original_text,
        sender=sender if is_named else "",
        target=target,
        operation=operation,
        message=None if isinstance(message, Fault) else message,
        dedup_content=_content_key(message),
        fault=message if isinstance(message, Fault) else None,
    )


def _content_key(message: Any) -> bytes:
    """Content key of a numbered update; other messages are identified by their intent."""
    if not isinstance(message, TaskUpdate) or not isinstance(message.sequence, int):
        return b""
    return msgspec.json.encode(as_value(message), order="deterministic")


# The three messages, in the order of their types


def _message_operations(choices: Choices) -> Iterator[Operation]:
    yield Operation(
        name="ccos.request",
        input=TaskRequest,
        parse=lambda value: parse_shape(value, TaskRequest, "invalid_envelope"),
        roles=MAY_DELEGATE,
        plan=lambda message, _, facts: _plan(
            translate.request_commands(message, facts, choices),
            partial(_delegation_reply, choices, facts),
            _GOAL_FIELDS,
        ),
        needs_io=always,
    )
    yield Operation(
        name="ccos.result",
        input=TaskResult,
        parse=parse_result,
        roles=MAY_WRITE,
        plan=lambda message, _, facts: _plan(
            translate.result_commands(message, facts, choices),
            partial(_result_reply, message, facts),
        ),
        needs_io=always,
        answer_place="commands",
        target=_intent_alias,
        limits=MessageLimits(MAX_RESULT_BYTES, stores_arguments=False),
        summary=(
            "Hand in the result of a request that you were given: success with output, or failure "
            "with error. It ends the request."
        ),
    )
    yield Operation(
        name="ccos.update",
        input=TaskUpdate,
        parse=lambda value: parse_shape(value, TaskUpdate, "invalid_envelope"),
        roles=MAY_WRITE,
        plan=lambda message, actor, facts: Plan(
            translate.update_commands(message, actor, facts, choices),
            stored_text=stored_text(as_value(message), choices.max_output_bytes),
        ),
        needs_io=always,
        answer_place="commands",
        reply=lambda message, _, __: {"intent_id": message.intent_id, "noted": True},
        target=_intent_alias,
        limits=MessageLimits(stores_arguments=False),
        summary="Say how far you are with a request: progress in percent, a message.",
    )


def _plan(
    commands: Commands | Fault,
    reply: Callable[[Committed], Any],
    field_names: Mapping[str, str] = {},
) -> Plan | Fault:
    """Plan commands whose reply is read after the commit."""
    if isinstance(commands, Fault):
        return commands
    return Plan(commands, follow_up=reply, field_names=field_names)


def _intent_alias(message: TaskResult | TaskUpdate | InvalidResult) -> str:
    return f"{INTENT_ALIAS_KIND}:{message.intent_id}"


def _delegation_reply(choices: Choices, facts: Facts, accepted: Committed) -> Any:
    """Reply with the state of the intent, its open request, and whether the request reaches
    anybody.
    """
    reply = _intent_reply(accepted, facts)
    assert not isinstance(reply, Refusal), "it was delegated in the same breath"
    remarks = list(accepted.warnings)
    if "request" in reply:
        remarks.append(queries.reachability_warning(reply["request"]["agent_id"], facts, choices))
    remark = "; ".join(filter(None, remarks))
    return reply | ({"remark": remark} if remark else {})


def _result_reply(message: Any, facts: Facts, accepted: Committed) -> Any:
    """Reply with the state of the intent; for a task without an intent, its status."""
    found = _intent_reply(accepted, facts)
    last = accepted.receipts[-1]
    state = {"status": last.status} if isinstance(found, Refusal) else {"state": found["state"]}
    again = {"repeated": True} if accepted.repeated else {}
    return {"intent_id": message.intent_id, "agent_id": message.agent_id, **state, **again}


def _intent_reply(accepted: Committed, facts: Facts) -> dict[str, Any] | Refusal:
    """State of the intent; for a repeated idempotency key, its state at the first time."""
    last = accepted.receipts[-1]
    intent = find_intent(facts.store, accepted.subject_id, last.stream_version)
    if isinstance(intent, Refusal):
        return intent
    request = find_open_request(facts.store, intent, last.version)
    reply: dict[str, Any] = {
        "intent_id": intent.id,
        "state": intent.state,
        "task_id": intent.task,
    }
    if request is not None:
        reply["request"] = as_value(request)
    if is_cancelled(facts.store, intent, last.version):
        reply["cancelled"] = True
    if intent.reasons:
        reply["reasons"] = list(intent.reasons)
    return reply


# Operations that write


_parse_goal: Final = argument_parser(wire.Delegate)


def _write_operations(choices: Choices) -> Iterator[Operation]:
    yield Operation(
        name="ccos.delegate",
        input=wire.Delegate,
        parse=lambda value: require_id(_parse_goal(value), "intent_id", "intent id"),
        roles=MAY_WRITE,
        plan=lambda message, _, facts: _plan(
            translate.delegate_commands(message, facts, choices),
            partial(_delegation_reply, choices, facts),
            _GOAL_FIELDS,
        ),
        needs_io=always,
        summary=(
            "Give a goal to the agent that is most likely to reach it. Say what is to be done in "
            "words that name the skills it takes."
        ),
    )
    yield Operation(
        name="ccos.register",
        input=wire.Register,
        parse=argument_parser(wire.Register),
        roles=MAY_WRITE,
        plan=lambda message, _, facts: _plan(
            translate.register_commands(message, facts),
            partial(_registration_reply, choices, facts),
            _AGENT_FIELDS,
        ),
        needs_io=always,
        summary="Say what you can do, so that goals are given to you.",
    )
    yield Operation(
        name="ccos.cancel",
        input=wire.Cancel,
        parse=argument_parser(wire.Cancel),
        roles=MAY_WRITE,
        plan=_plan_cancel,
        needs_io=always,
        reply=lambda message, _, __: {"intent_id": message.intent_id, "cancelled": True},
        summary="Take back an intent that you wanted; nothing is held against its agent.",
    )


def _plan_cancel(message: wire.Cancel, actor: Actor, facts: Facts) -> Plan | Fault:
    commands = translate.cancel_commands(message, actor, facts)
    return commands if isinstance(commands, Fault) else Plan(commands)


def _registration_reply(choices: Choices, facts: Facts, accepted: Committed) -> Any:
    """Reply with the terms that count: an agent cannot loosen what others vouch for."""
    name = accepted.subject_id
    reputation, record = find_reputation(facts.store, name), find_agent(facts.store, name)
    descriptor = reputation.descriptor if reputation else None
    assert descriptor is not None, "it was described in the same breath"
    assert record is not None, "who is described is known"
    terms = {**queries.agent_terms(descriptor), "speaks": list(record.speaks)}
    reply = {"agent_id": name, **terms, "registered": True}
    remark = queries.reachability_warning(name, facts, choices)
    return reply | ({"remark": remark} if remark else {})


# Operations that only read


def _query_operations(choices: Choices) -> Iterator[Operation]:
    yield _query_operation(
        "ccos.requests",
        wire.RequestsQuery,
        _query_requests,
        "See what you were asked to do: your open requests, oldest first.",
        LongPoll(lambda answer: not answer["requests"], "intent"),
    )
    yield _query_operation(
        "ccos.rank",
        wire.RankQuery,
        lambda message, _, facts: queries.query_ranking(message, facts, choices),
        "See who would be given a goal, and why, before you delegate it.",
    )
    yield _query_operation(
        "ccos.intent",
        wire.IntentQuery,
        lambda message, _, facts: queries.query_intent(message, facts),
        "See how an intent stands, and its history.",
    )
    yield _query_operation(
        "ccos.intents",
        wire.IntentsQuery,
        lambda message, _, facts: queries.query_intents(message, facts),
    )
    yield _query_operation(
        "ccos.why",
        wire.WhyQuery,
        lambda message, _, facts: queries.query_why(message, facts),
        "See why an intent went to whom, and what came of it: each Action with what it caused.",
    )
    yield _query_operation(
        "ccos.agents",
        wire.AgentsQuery,
        lambda message, _, facts: queries.query_agents(message, facts),
    )


def _query_operation(
    name: str,
    shape: Any,
    query: Callable[[Any, Actor, Facts], Any],
    summary: str = "",
    wait: LongPoll | None = None,
) -> Operation:
    return query_operation(name, shape, query, summary, wait, argument_parser(shape))


def _query_requests(args: wire.RequestsQuery, actor: Actor, facts: Facts) -> Any:
    """Open requests of an agent: what it was assigned and has not answered."""
    agent = args.agent_id or actor.name
    malformed = check_agent(agent)
    if malformed is not None:
        return fault_from_refusal(malformed, "agent_id")
    page = list_intents(facts.store, ListQuery(f"requests:{agent}", limit=args.limit))
    # While its task is in review, nobody is asked for anything.
    awaited = (item.intent for item in page if awaited_agent(facts.store, item.intent.id))
    found = (find_open_request(facts.store, intent) for intent in awaited)
    return {"requests": [as_value(request) for request in found if request is not None]}
