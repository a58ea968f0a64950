"""Everything that can be asked for in SAOP: keep a turn, keep an event, read both back."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final, get_args

import msgspec
from msgspec import Meta, Raw, Struct
from msgspec.structs import asdict

from dragoman.core.actors import Actor
from dragoman.core.authority import MAY_WRITE
from dragoman.core.errors import Refusal
from dragoman.core.events import Role
from dragoman.core.ids import TASK_NAME_FORM
from dragoman.core.limits import PAGE
from dragoman.core.moments import to_rfc3339
from dragoman.engine.faults import Fault, fault_of, in_shape
from dragoman.engine.incoming import Incoming, beginning, layers
from dragoman.engine.operation import Bounds, Commands, Dialect, Facts, Heard, Operation
from dragoman.engine.reads.ask import find_task
from dragoman.engine.reads.traces import events_of
from dragoman.engine.reads.turns import CURSOR, CURSOR_WORDS, turns_of
from dragoman.engine.request import Accepted
from dragoman.engine.rests import Shelf
from dragoman.protocols.saop import translate
from dragoman.protocols.saop.errors import CODES
from dragoman.protocols.saop.lint import KINDS, kind_of, lint
from dragoman.protocols.saop.render import RENDER
from dragoman.protocols.saop.schema import Parsed
from dragoman.protocols.saop.settings import Choices
from dragoman.protocols.saop.shapes import TurnEnvelope
from dragoman.protocols.saop.translate import SentEvent, SentTurn

NAME: Final = "saop"
_EVERYONE: Final[frozenset[Role]] = frozenset(get_args(Role))
_SHORT: Final = 4_096
_SHOWN: Final = 3
"""Limit of issues named in one sentence."""

Page = Annotated[int, Meta(ge=1, le=PAGE)]


class AskTurns(Struct, frozen=True, forbid_unknown_fields=True):
    """A page of turns of a task."""

    task_id: Annotated[str, Meta(extra_json_schema={"pattern": f"^{TASK_NAME_FORM}$"})]
    attempt: Annotated[int, Meta(ge=-(2**53) + 1, le=2**53 - 1)] | None = None
    after: Annotated[int, Meta(ge=-1)] = -1
    limit: Page = 500
    cursor: Annotated[str, Meta(pattern=CURSOR, extra={"reason": CURSOR_WORDS})] = ""


class AskEvents(Struct, frozen=True, forbid_unknown_fields=True):
    """A page of events of a task or a session."""

    task_id: Annotated[str, Meta(extra_json_schema={"pattern": f"^({TASK_NAME_FORM})?$"})] = ""
    session_id: str = ""
    after: Annotated[int, Meta(ge=0)] = 0
    limit: Page = 500


def dialect(choices: Choices | None = None) -> Dialect:
    """Build the SAOP dialect."""
    choices = choices or Choices()
    turn, event, *reading = operations = tuple(_operations(choices))
    del reading
    return Dialect(
        name=NAME,
        operations=operations,
        hear=lambda incoming: _hear(incoming, turn, event),
        lint=lint,
        refusals=CODES,
        render=RENDER,
        kinds=KINDS,
        carriers={"turn": turn, "event": event, "payload": event},
        bounds=Bounds(choices.most_bytes, any_whole=True),
        known_by="an object with turn_index, or with event_id and payload",
    )


def _hear(incoming: Incoming, turn: Operation, event: Operation) -> Heard | None:
    """Recognize a turn or an event, bare or wrapped like any message."""
    bounds = turn.bounds
    if b'"turn_index"' not in incoming.text and b'"event_id"' not in incoming.text:
        return None
    if len(incoming.text) > bounds.most_bytes:
        return _too_large(incoming, bounds)
    for value in layers(_value(incoming, bounds)):
        kind = kind_of(value)
        if kind in ("turn", "event"):
            return _heard(incoming.text, value, turn if kind == "turn" else event)
    return None


def _value(incoming: Incoming, bounds: Bounds) -> Any:
    """Decode the JSON value within SAOP's bounds, which may be wider than those of the surface."""
    if incoming.any_whole and not incoming.is_too_large:
        return incoming.value
    return Incoming(incoming.text, bounds.most_bytes, any_whole=bounds.any_whole).value


def _too_large(incoming: Incoming, bounds: Bounds) -> Heard | None:
    """Refuse a text that is too large to parse, if its beginning looks like a turn."""
    if b'"turn_index"' not in incoming.text[:1_000]:
        return None
    reason = _too_long("the turn", bounds.most_bytes)
    return Heard("saop.turn", beginning(incoming.text), fault=Fault("message_too_large", reason))


def _too_long(what: str, most: int) -> str:
    setting = " (saop.turn_bytes)" if what == "the turn" else ""
    return f"{what} has more than {most} bytes, and no more are taken{setting}"


def _heard(text: bytes, value: Any, operation: Operation) -> Heard:
    most = operation.bounds.most_bytes
    if len(text) > most:
        is_turn = operation.name == "saop.turn"
        reason = _too_long("the turn" if is_turn else "the event", most)
        return Heard(operation.name, beginning(text), fault=Fault("message_too_large", reason))
    read = operation.read(value)
    if isinstance(read, Fault):
        return Heard(operation.name, beginning(text), fault=read)
    return Heard(
        operation.name,
        Raw(text),
        sender=_sender(read),
        operation=operation,
        message=read,
        line_up=_line_up(read),
    )


def _line_up(read: SentTurn | SentEvent) -> str:
    """Key of messages that keep their order: turns of a task, events of a session."""
    if isinstance(read, SentTurn):
        return f"turns {read.turn.metadata.task_id}"
    return f"session {read.event.session_id}"


def _sender(read: SentTurn | SentEvent) -> str:
    if isinstance(read, SentTurn):
        return read.turn.agent_id
    return read.event.payload.footing().agent


def _operations(choices: Choices) -> Iterator[Operation]:
    shelf = Shelf(choices.tails)
    yield Operation(
        name="saop.turn",
        shape=TurnEnvelope,
        read=_reader(choices.turns.safe_parse, SentTurn),
        commands=lambda _: (),
        # A turn may have megabytes: masking it must not block the event loop.
        gather=lambda sent, _actor, _facts: translate.turn_commands(sent, choices),
        is_for_hub=True,
        masked=lambda sent: sent.masked,
        reply=_recorded,
        roles=MAY_WRITE,
        identity=_two_parts,
        bounds=Bounds(choices.most_bytes, any_whole=True),
        keeps_words=False,
        summary="Send a turn of your work on a task: thought, action, observation, confidence.",
    )
    yield Operation(
        name="saop.event",
        shape=choices.types.event.shape,
        read=_reader(choices.types.event.safe_parse, SentEvent),
        commands=lambda _: (),
        gather=lambda sent, actor, _facts: translate.event_commands(
            sent, actor.name, choices, shelf
        ),
        is_for_hub=True,
        masked=lambda sent: sent.masked,
        rest=lambda sent: sent.rests[0] if sent.rests else None,
        effect=lambda sent, _actor, _facts: translate.event_effect(sent, choices),
        looks=_takes_time,
        reply=_event_recorded,
        roles=MAY_WRITE,
        bounds=Bounds(any_whole=True),
        keeps_words=False,
        summary=(
            "Send an event of your work: THOUGHT_STREAM, TOOL_LIFECYCLE_INVOKED and "
            "_COMPLETED, SANDBOX_PULSE, TASK_TRANSITION."
        ),
    )
    yield _asking("saop.turns", AskTurns, _turns, "Read the turns of a task in order.")
    yield _asking(
        "saop.events",
        AskEvents,
        _events,
        "Read events by task or session, from a position on.",
        is_empty=lambda answer: not answer["events"],
    )


def _reader(
    safe_parse: Callable[[Any], Parsed[Any]], sent: Callable[[Any, Any], Any]
) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        parsed = safe_parse(value)
        return sent(parsed.data, value) if parsed.ok else _fault(parsed)

    return read


def _fault(parsed: Parsed[Any]) -> Fault:
    """Turn issues into one fault: the first one, with a few more in its sentence."""
    first, *others = parsed.issues
    more = [f"; {issue}" for issue in others[: _SHOWN - 1]]
    left = len(others) - len(more)
    rest = f"; and {left} more" if left > 0 else ""
    return Fault("invalid_envelope", f"{first.reason}{''.join(more)}{rest}", first.path)


def _two_parts(sent: SentTurn, speaker: str) -> Fault | None:
    """Check that agent_id and role agree; both are the sender's registered SAOP role (S-ROLE)."""
    turn = sent.turn
    if turn.role == turn.agent_id:
        return None
    detail = (
        f"agent_id is {turn.agent_id} and role is {turn.role}: both must be the part that "
        f"{speaker} plays"
    )
    return Fault("identity_mismatch", detail, "role")


def _takes_time(sent: SentEvent) -> bool:
    """Tell whether masking would block the event loop for too long."""
    return len(msgspec.json.encode(sent.event.payload)) > _SHORT


def _recorded(_: Any, __: Commands, accepted: Accepted) -> Any:
    told = accepted.receipts[0]
    return {"ok": True, "position": told.position, "masked": told.masked}


def _event_recorded(sent: SentEvent, commands: Commands, accepted: Accepted) -> Any:
    reply = _recorded(sent, commands, accepted)
    told = accepted.receipts[0]
    if told.remark:
        reply["anomaly"] = told.remark
    if translate.tells_move(sent):
        declined = accepted.declined if translate.asks_for_move(sent) else _no_status(sent)
        if declined is not None and declined.code == "nothing_changed":
            declined = None  # the task already has that status
        reply["applied"] = declined is None
        if declined is not None:
            reply["reason"] = {"code": declined.code, "detail": declined.detail}
    # A task that is created by the requested transition does not exist yet when the event is
    # recorded.
    if not told.task and not reply.get("applied"):
        reply["task_id"] = None
    return reply


def _no_status(sent: SentEvent) -> Refusal:
    state = sent.event.payload.footing().to_state[:40]
    known = ", ".join(sorted(translate.STATUSES))
    return Refusal(
        "invalid_transition",
        f"{state!a} is no status of a task: the event is only recorded. Statuses are: {known}",
    )


def _asking(
    name: str,
    shape: Any,
    ask: Callable[[Any, Actor, Facts], Any],
    summary: str,
    is_empty: Callable[[Any], bool] | None = None,
) -> Operation:
    return Operation(
        name=name,
        shape=shape,
        read=lambda value: in_shape(value, shape),
        commands=lambda _: (),
        reply=lambda _, __, ___: None,
        roles=_EVERYONE,
        ask=ask,
        is_empty=is_empty,
        summary=summary,
    )


def _turns(asked: AskTurns, _: Actor, facts: Facts) -> Any:
    task = _task(asked.task_id, facts)
    if isinstance(task, Fault):
        return task
    if asked.after >= 0 and asked.attempt is None:
        detail = "after counts turns of one attempt: name it, or go on with the cursor of a page"
        return Fault("invalid_field", detail, "attempt")
    page = turns_of(facts.store, task, asked.attempt, asked.after, asked.limit, asked.cursor)
    return {
        "task_id": task,
        "turns": [
            {
                **turn.envelope,
                "position": turn.position,
                **turn.place,
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


def _events(asked: AskEvents, _: Actor, facts: Facts) -> Any:
    task = _task(asked.task_id, facts) if asked.task_id else ""
    if isinstance(task, Fault):
        return task
    page = events_of(
        facts.store, task=task, session=asked.session_id, after=asked.after, limit=asked.limit
    )
    events = [
        {**one.event, "position": one.position, "task_id": one.task or None, "masked": one.masked}
        for one in page.events
    ]
    gap = {} if page.gap is None else {"gap": asdict(page.gap)}
    return {"events": events, "cursor": page.next, **gap}


def _task(name: str, facts: Facts) -> str | Fault:
    found = find_task(facts.store, name)
    return fault_of(found, "task_id") if isinstance(found, Refusal) else found.task.id
