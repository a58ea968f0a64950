"""The SAOP dialect: operations that record turns and events, and those that query them."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Raw, Struct
from msgspec.structs import asdict

from dragoman.core import trace
from dragoman.core.actor import Actor
from dragoman.core.authority import MAY_WRITE
from dragoman.core.errors import Refusal
from dragoman.core.ids import TASK_NAME_PATTERN
from dragoman.core.limits import MAX_PAGE
from dragoman.core.read import Receipt
from dragoman.core.task_state import STATUS_CHANGES
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.delivered_messages import inbox_operation
from dragoman.engine.help_case import help_commands
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
    candidate_messages,
    fault_from_refusal,
    query_operation,
    truncated_text,
)
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.queries.traces import (
    OPTIONAL_CURSOR_DESCRIPTION,
    OPTIONAL_CURSOR_PATTERN,
    trace_page,
    turn_page,
)
from dragoman.engine.request import Commands, Committed
from dragoman.engine.work_answers import report_commands
from dragoman.protocols.saop import masking, translate
from dragoman.protocols.saop.lint import KINDS, detect_kind, lint
from dragoman.protocols.saop.notice import from_notice, to_notice
from dragoman.protocols.saop.parse import Parsed
from dragoman.protocols.saop.settings import Choices
from dragoman.protocols.saop.translate import SentEvent, SentTurn
from dragoman.protocols.saop.wire import NoticePayload, TurnEnvelope

# --- arguments --------------------------------------------------------------------------------

NAME: Final = "saop"


_EVENTS: Final = frozenset(
    {
        trace.TurnRecorded,
        trace.TraceRecorded,
        trace.TraceAnomaly,
        trace.EntropyEscalated,
        trace.EntropySettled,
        *STATUS_CHANGES,
    }
)
"""Turns, traces, entropy, and every transition of a task."""

_MAX_INLINE_BYTES: Final = 4_096

_MAX_SHOWN_ISSUES: Final = 3
"""Limit of issues named in one sentence."""

PageSize = Annotated[int, Meta(ge=1, le=MAX_PAGE)]


class TurnQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """A page of turns of a task."""

    task_id: Annotated[str, Meta(extra_json_schema={"pattern": f"^{TASK_NAME_PATTERN}$"})]
    attempt: Annotated[int, Meta(ge=-(2**53) + 1, le=2**53 - 1)] | None = None
    after: Annotated[int, Meta(ge=-1)] = -1
    limit: PageSize = 500
    cursor: Annotated[
        str, Meta(pattern=OPTIONAL_CURSOR_PATTERN, extra={"reason": OPTIONAL_CURSOR_DESCRIPTION})
    ] = ""


class EventQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """A page of events of a task or a session."""

    task_id: Annotated[str, Meta(extra_json_schema={"pattern": f"^({TASK_NAME_PATTERN})?$"})] = ""
    session_id: str = ""
    after: Annotated[int, Meta(ge=0)] = 0
    limit: PageSize = 500


# --- the dialect and its messages -------------------------------------------------------------


def dialect(choices: Choices | None = None) -> Dialect:
    """Build the SAOP dialect."""
    choices = choices or Choices()
    turn, event, *queries = operations = (
        *_operations(choices),
        inbox_operation(NAME, "saop.inbox"),
    )
    del queries
    return Dialect(
        name=NAME,
        version="1.0.0",
        operations=operations,
        parse=lambda incoming: _parse_message(incoming, turn, event),
        lint=Linter(lint, KINDS, {"turn": turn, "event": event, "payload": event}),
        events=_EVENTS,
        to_notice=to_notice,
        from_notice=from_notice,
        hint="an object with turn_index, or with event_id and payload",
    )


def _parse_message(incoming: RawMessage, turn: Operation, event: Operation) -> ParsedMessage | None:
    """Recognize a turn or an event, bare or wrapped like any message."""
    bounds = turn.limits
    if b'"turn_index"' not in incoming.text and b'"event_id"' not in incoming.text:
        return None
    if len(incoming.text) > bounds.max_bytes:
        return _too_large(incoming, bounds)
    for value in candidate_messages(_decode_value(incoming, bounds)):
        kind = detect_kind(value)
        if kind in ("turn", "event"):
            return _parse_with(incoming.text, value, turn if kind == "turn" else event)
    return None


def _decode_value(incoming: RawMessage, bounds: MessageLimits) -> Any:
    """Decode the JSON value within SAOP's bounds, which may be wider than those of the surface."""
    if incoming.allow_big_integers and not incoming.is_too_large:
        return incoming.value
    return RawMessage(
        incoming.text, bounds.max_bytes, allow_big_integers=bounds.allow_big_integers
    ).value


def _too_large(incoming: RawMessage, bounds: MessageLimits) -> ParsedMessage | None:
    """Refuse a text that is too large to parse, if its beginning looks like a turn."""
    if b'"turn_index"' not in incoming.text[:1_000]:
        return None
    reason = _size_detail("the turn", bounds.max_bytes)
    return ParsedMessage(
        "saop.turn", truncated_text(incoming.text), fault=Fault("message_too_large", reason)
    )


def _size_detail(what: str, limit: int) -> str:
    setting = " (saop.max_turn_bytes)" if what == "the turn" else ""
    return f"{what} has more than {limit} bytes, and no more are taken{setting}"


def _parse_with(text: bytes, value: Any, operation: Operation) -> ParsedMessage:
    limit = operation.limits.max_bytes
    if len(text) > limit:
        is_turn = operation.name == "saop.turn"
        reason = _size_detail("the turn" if is_turn else "the event", limit)
        return ParsedMessage(
            operation.name, truncated_text(text), fault=Fault("message_too_large", reason)
        )
    sent = operation.read(value)
    if isinstance(sent, Fault):
        return ParsedMessage(operation.name, truncated_text(text), fault=sent)
    return ParsedMessage(
        operation.name,
        Raw(text),
        sender=_sender(sent),
        operation=operation,
        message=sent,
        ordering_key=_ordering_key(sent),
    )


def _ordering_key(sent: SentTurn | SentEvent) -> str:
    """Key of messages that keep their order: turns of a task, events of a session."""
    if isinstance(sent, SentTurn):
        return f"turns {sent.turn.metadata.task_id}"
    return f"session {sent.event.session_id}"


def _sender(sent: SentTurn | SentEvent) -> str:
    if isinstance(sent, SentTurn):
        return sent.turn.agent_id
    return sent.event.payload.context().agent


# --- recording --------------------------------------------------------------------------------


def _operations(choices: Choices) -> Iterator[Operation]:
    def plan_event(sent: SentEvent, actor: Actor, facts: Facts) -> Plan:
        command, chunk = translate.event_command(sent, actor.name, choices)
        effect: Commands = translate.transition_commands(sent, choices)
        if isinstance(sent.event.payload, NoticePayload):
            notice = to_notice(sent)
            effect = report_commands(notice, actor, facts) or help_commands(
                notice, actor, facts.store
            )
        return Plan(
            (command,),
            effect=effect,
            carry_over=chunk,
            warnings=sent.masking_notes,
            stored_text=UNSET,
        )

    yield Operation(
        name="saop.turn",
        input=TurnEnvelope,
        parse=_argument_parser(choices.turns.safe_parse, SentTurn),
        roles=MAY_WRITE,
        plan=partial(_plan_turn, choices),
        # A turn may have megabytes: masking it must not block the event loop.
        needs_io=always,
        answer_place="before",
        reply=_recorded_reply,
        limits=MessageLimits(choices.max_turn_bytes, allow_big_integers=True),
        summary="Send a turn of your work on a task: thought, action, observation, confidence.",
    )
    yield Operation(
        name="saop.event",
        input=choices.types.event.shape,
        parse=_argument_parser(choices.types.event.safe_parse, SentEvent),
        roles=MAY_WRITE,
        plan=plan_event,
        needs_io=lambda sent, actor: translate.names_task(sent) or _is_large(sent, actor),
        answer_place="before",
        reply=_event_reply,
        limits=MessageLimits(allow_big_integers=True),
        summary=(
            "Send an event of your work: THOUGHT_STREAM, TOOL_LIFECYCLE_INVOKED and "
            "_COMPLETED, SANDBOX_PULSE, TASK_TRANSITION."
        ),
    )
    yield query_operation(
        "saop.turns", TurnQuery, _query_turns, "Read the turns of a task in order."
    )
    yield query_operation(
        "saop.events",
        EventQuery,
        _query_events,
        "Read events by task or session, from a position on.",
        LongPoll(lambda answer: not answer["events"]),
    )


def _argument_parser(
    safe_parse: Callable[[Any], Parsed[Any]], make: Callable[[Any, Any], Any]
) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        parsed = safe_parse(value)
        return make(parsed.data, value) if parsed.ok else _to_fault(parsed)

    return parse


def _to_fault(parsed: Parsed[Any]) -> Fault:
    """Turn issues into one fault: the first one, with a few more in its sentence."""
    first, *others = parsed.issues
    more = [f"; {issue}" for issue in others[: _MAX_SHOWN_ISSUES - 1]]
    remaining = len(others) - len(more)
    suffix = f"; and {remaining} more" if remaining > 0 else ""
    return Fault("invalid_envelope", f"{first.reason}{''.join(more)}{suffix}", first.path)


def _plan_turn(choices: Choices, sent: SentTurn, actor: Actor, _: Facts) -> Plan | Fault:
    """Plan a turn; agent_id and role agree, and are the sender's registered SAOP role (S-ROLE)."""
    turn = sent.turn
    if turn.role != turn.agent_id:
        detail = (
            f"agent_id is {turn.agent_id} and role is {turn.role}: both must be the part that "
            f"{actor.name} plays"
        )
        return Fault("identity_mismatch", detail, "role")
    commands = translate.turn_commands(sent, choices)
    return Plan(commands, warnings=sent.masking_notes, stored_text=UNSET)


def _is_large(sent: SentEvent, _: Actor) -> bool:
    """Tell whether masking would block the event loop for too long."""
    return len(msgspec.json.encode(sent.event.payload)) > _MAX_INLINE_BYTES


def _recorded_reply(_: Any, __: Commands, accepted: Committed) -> Any:
    receipt = _own_receipt(accepted)
    return {"ok": True, "position": receipt.position, "masked": receipt.masked}


def _own_receipt(accepted: Committed) -> Receipt:
    """The receipt of the turn or event itself, which an answer to an offer may precede."""
    return next(one for one in accepted.receipts if one.record_key)


def _event_reply(sent: SentEvent, commands: Commands, accepted: Committed) -> Any:
    reply = _recorded_reply(sent, commands, accepted)
    receipt = _own_receipt(accepted)
    if receipt.warning:
        reply["anomaly"] = receipt.warning
    if translate.is_transition(sent):
        declined = (
            accepted.declined if translate.requests_transition(sent) else _unknown_status(sent)
        )
        if declined is not None and declined.code == "nothing_changed":
            declined = None  # the task already has that status
        reply["applied"] = declined is None
        if declined is not None:
            reply["reason"] = {"code": declined.code, "detail": declined.detail}
    # A task that is created by the requested transition does not exist yet when the event is
    # recorded.
    if not receipt.task and not reply.get("applied"):
        reply["task_id"] = None
    return reply


def _unknown_status(sent: SentEvent) -> Refusal:
    state = sent.event.payload.context().to_state[:40]
    known = ", ".join(sorted(masking.STATUSES))
    return Refusal(
        "invalid_transition",
        f"{state!a} is no status of a task: the event is only recorded. Statuses are: {known}",
    )


# --- queries ----------------------------------------------------------------------------------


def _query_turns(arguments: TurnQuery, _: Actor, facts: Facts) -> Any:
    task = _find_task_id(arguments.task_id, facts)
    if isinstance(task, Fault):
        return task
    if arguments.after >= 0 and arguments.attempt is None:
        detail = "after counts turns of one attempt: name it, or go on with the cursor of a page"
        return Fault("invalid_field", detail, "attempt")
    page = turn_page(
        facts.store, task, arguments.attempt, arguments.after, arguments.limit, arguments.cursor
    )
    return {
        "task_id": task,
        "turns": [
            {
                **turn.envelope,
                "position": turn.position,
                **turn.attempt_fields,
                "masked": turn.masked,
                "recorded_at": to_rfc3339(turn.at),
            }
            for turn in page.turns
        ],
        "gaps": page.gaps,
        "missing": [asdict(one) for one in page.missing],
        "more": page.more,
        "cursor": page.cursor,
    }


def _query_events(arguments: EventQuery, _: Actor, facts: Facts) -> Any:
    task = _find_task_id(arguments.task_id, facts) if arguments.task_id else ""
    if isinstance(task, Fault):
        return task
    page = trace_page(
        facts.store,
        task=task,
        session=arguments.session_id,
        after=arguments.after,
        limit=arguments.limit,
    )
    events = [
        {**one.event, "position": one.position, "task_id": one.task or None, "masked": one.masked}
        for one in page.events
    ]
    gap = {} if page.gap is None else {"gap": asdict(page.gap)}
    return {"events": events, "cursor": page.next, **gap}


def _find_task_id(name: str, facts: Facts) -> str | Fault:
    found = find_task(facts.store, name)
    return fault_from_refusal(found, "task_id") if isinstance(found, Refusal) else found.task.id
