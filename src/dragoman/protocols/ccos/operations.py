"""Everything that can be asked for in CCOS: register, rank, delegate, deliver, and ask why."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, get_args

import msgspec

from dragoman.core.actors import Actor
from dragoman.core.authority import MAY_DELEGATE, MAY_WRITE
from dragoman.core.errors import Refusal
from dragoman.core.events import Role
from dragoman.core.ids import check_agent
from dragoman.core.states.intent import KIND, Intent
from dragoman.engine.faults import Fault, fault_of, not_empty
from dragoman.engine.incoming import Incoming
from dragoman.engine.operation import Bounds, Commands, Dialect, Facts, Heard, Operation
from dragoman.engine.ports import ListQuery
from dragoman.engine.reads.ask import find_agent
from dragoman.engine.reads.intents import find_intent, find_standing, intents_on, is_cancelled
from dragoman.engine.request import Accepted
from dragoman.protocols.ccos import arguments, query, ranking, registry, translate
from dragoman.protocols.ccos.errors import CODES
from dragoman.protocols.ccos.lint import lint
from dragoman.protocols.ccos.reading import (
    Broken,
    Spoken,
    detect,
    read_message,
    read_result,
    reader,
    shaped,
    words,
    words_of_call,
)
from dragoman.protocols.ccos.render import RENDER
from dragoman.protocols.ccos.requests import open_request
from dragoman.protocols.ccos.settings import DEFAULTS, Choices
from dragoman.protocols.ccos.wire import (
    KINDS,
    MOST_RESULT,
    TaskRequest,
    TaskResult,
    TaskUpdate,
    as_value,
)

EVERYONE: Final[frozenset[Role]] = frozenset(get_args(Role))
_GOAL: Final[Mapping[str, str]] = {
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
_TERMS: Final[Mapping[str, str]] = {
    name: name for name in ("constraints", "locality", "cost", "latency_ms", "capacity")
}
"""The same for the terms of an agent."""
_OFFER: Final[Mapping[str, str]] = {
    **_TERMS,
    "name": "agent_id",
    "skills": "skills",
    "reach": "reach",
}
"""The same for everything that an agent registers."""


def dialect(choices: Choices = DEFAULTS) -> Dialect:
    """The CCOS 019 dialect with these settings."""
    operations = (*_messages(choices), *_writing(choices), *_reading(choices))
    by_kind = dict(zip(KINDS, operations, strict=False))
    return Dialect(
        name=translate.NAME,
        operations=operations,
        hear=lambda incoming: _hear(incoming, by_kind, choices),
        lint=lint,
        refusals=CODES,
        render=RENDER,
        kinds=tuple(KINDS),
        carriers=by_kind,
        bounds=Bounds(MOST_RESULT),
        known_by="an object with intent_id, agent_id and success, goal or progress",
    )


def _hear(incoming: Incoming, by_kind: dict[str, Operation], choices: Choices) -> Heard | None:
    """Parse one of the three messages, bare or wrapped."""
    found = detect(incoming)
    if isinstance(found, Fault):
        return Heard("TaskResult", words_of_call(incoming, choices.kept_bytes), fault=found)
    return None if found is None else _heard(found, by_kind[found.kind], choices)


def _heard(found: Spoken, operation: Operation, choices: Choices) -> Heard:
    message = read_message(found.kind, found.value)
    # A request comes from an orchestrator, and its intent may be new.
    is_request = found.kind == "TaskRequest"
    whole = msgspec.Raw(msgspec.json.encode(found.value))
    # The whole request is stored: it must be possible to send it out again.
    said = whole if is_request else words(found.value, choices.kept_bytes)
    sender = "" if is_request else found.value["agent_id"]
    target = "" if is_request else f"{KIND}:{found.value['intent_id']}"
    is_named = sender and check_agent(sender) is None
    return Heard(
        kind=found.kind,
        said=said,
        sender=sender if is_named else "",
        target=target,
        operation=operation,
        message=None if isinstance(message, Fault) else message,
        content=_content(message),
        fault=message if isinstance(message, Fault) else None,
    )


def _content(message: Any) -> bytes:
    """Content key of a numbered update; other messages are identified by their intent."""
    if not isinstance(message, TaskUpdate) or not isinstance(message.sequence, int):
        return b""
    return msgspec.json.encode(as_value(message), order="deterministic")


# The three messages, in the order of their types


def _messages(choices: Choices) -> Iterator[Operation]:
    kept = partial(words_of_call, kept_bytes=choices.kept_bytes)
    yield Operation(
        name="ccos.request",
        shape=TaskRequest,
        fields=_GOAL,
        read=lambda value: shaped(value, TaskRequest, "invalid_envelope"),
        commands=lambda _: (),
        gather=lambda message, _, facts: translate.request(message, facts, choices),
        reply=_accepted,
        after=partial(_delegated, choices),
        roles=MAY_DELEGATE,
    )
    yield Operation(
        name="ccos.result",
        shape=TaskResult,
        read=read_result,
        commands=lambda _: (),
        gather=lambda message, _, facts: translate.result(message, facts, choices),
        reply=_accepted,
        after=_received,
        roles=MAY_WRITE,
        about=_intent_of,
        bounds=Bounds(MOST_RESULT),
        words=kept,
        summary=(
            "Hand in the result of a request that you were given: success with output, or failure "
            "with error. It ends the request."
        ),
    )
    yield Operation(
        name="ccos.update",
        shape=TaskUpdate,
        read=lambda value: shaped(value, TaskUpdate, "invalid_envelope"),
        commands=lambda _: (),
        gather=lambda message, _, facts: translate.update(message, facts, choices),
        reply=lambda message, _, __: {"intent_id": message.intent_id, "noted": True},
        roles=MAY_WRITE,
        about=_intent_of,
        words=kept,
        summary="Say how far you are with a request: progress in percent, a message.",
    )


def _accepted(_: Any, __: Commands, accepted: Accepted) -> Accepted:
    """Reply of an operation whose answer is read after the commit."""
    return accepted


def _intent_of(message: TaskResult | TaskUpdate | Broken) -> str:
    return f"{KIND}:{message.intent_id}"


def _delegated(
    choices: Choices, asked: Any, _: Actor, facts: Facts, accepted: Accepted
) -> tuple[Commands, Any]:
    """Reply with the state of the intent, its open request, and whether the request reaches
    anybody.
    """
    told = _state(accepted, facts)
    assert not isinstance(told, Refusal), "it was delegated in the same breath"
    remarks = [*accepted.warnings, _other_time(asked, facts, accepted)]
    if "request" in told:
        remarks.append(registry.remark(told["request"]["agent_id"], facts, choices))
    remark = "; ".join(filter(None, remarks))
    return (), told | ({"remark": remark} if remark else {})


def _other_time(asked: Any, facts: Facts, accepted: Accepted) -> str:
    """Remark that `within_ms` is ignored, because the intent exists with another time limit."""
    within = getattr(asked, "within_ms", None)
    intent = find_intent(facts.store, accepted.name) if within else None
    if not isinstance(intent, Intent) or intent.patience_ms == within:
        return ""
    before = f"{intent.id} was asked for before, and its requests keep their time"
    return f"{before}: within_ms counts for nothing"


def _received(
    message: TaskResult, _: Actor, facts: Facts, accepted: Accepted
) -> tuple[Commands, Any]:
    """Reply with the state of the intent; for a task without an intent, its status."""
    told = _state(accepted, facts)
    last = accepted.receipts[-1]
    state = {"status": last.status} if isinstance(told, Refusal) else {"state": told["state"]}
    again = {"repeated": True} if accepted.repeated else {}
    return (), {"intent_id": message.intent_id, "agent_id": message.agent_id, **state, **again}


def _state(accepted: Accepted, facts: Facts) -> dict[str, Any] | Refusal:
    """State of the intent; for a repeated idempotency key, its state at the first time."""
    last = accepted.receipts[-1]
    intent = find_intent(facts.store, accepted.name, last.reached)
    if isinstance(intent, Refusal):
        return intent
    request = open_request(facts.store, intent, last.version)
    told: dict[str, Any] = {
        "intent_id": intent.id,
        "state": intent.state,
        "task_id": intent.task,
    }
    if request is not None:
        told["request"] = as_value(request)
    if is_cancelled(facts.store, intent, last.version):
        told["cancelled"] = True
    if intent.reasons:
        told["reasons"] = list(intent.reasons)
    return told


# Operations that write


_read_goal: Final = reader(arguments.Delegate)


def _writing(choices: Choices) -> Iterator[Operation]:
    yield Operation(
        name="ccos.delegate",
        shape=arguments.Delegate,
        fields=_GOAL,
        read=lambda value: not_empty(_read_goal(value), "intent_id", "intent id"),
        commands=lambda _: (),
        gather=lambda asked, _, facts: translate.delegate(asked, facts, choices),
        reply=_accepted,
        after=partial(_delegated, choices),
        roles=MAY_WRITE,
        summary=(
            "Give a goal to the agent that is most likely to reach it. Say what is to be done in "
            "words that name the skills it takes."
        ),
    )
    yield Operation(
        name="ccos.register",
        shape=arguments.Register,
        fields=_OFFER,
        read=reader(arguments.Register),
        commands=lambda _: (),
        gather=lambda asked, _, facts: translate.register(asked, facts),
        reply=_accepted,
        after=partial(_registered, choices),
        roles=MAY_WRITE,
        summary="Say what you can do, so that goals are given to you.",
    )
    yield Operation(
        name="ccos.discover",
        shape=arguments.Discover,
        fields=_TERMS,
        read=reader(arguments.Discover),
        commands=lambda _: (),
        gather=lambda asked, _, facts: translate.discover(asked, facts),
        reply=_accepted,
        after=partial(_discovered, choices),
        roles=MAY_DELEGATE,
    )
    yield Operation(
        name="ccos.cancel",
        shape=arguments.Cancel,
        read=reader(arguments.Cancel),
        commands=lambda _: (),
        gather=translate.cancel,
        reply=lambda asked, _, __: {"intent_id": asked.intent_id, "cancelled": True},
        roles=MAY_WRITE,
        summary="Take back an intent that you wanted; nothing is held against its agent.",
    )


def _registered(
    choices: Choices, _: Any, __: Actor, facts: Facts, accepted: Accepted
) -> tuple[Commands, Any]:
    """Reply with the terms that count: an agent cannot loosen what others vouch for."""
    name = accepted.name
    standing, record = find_standing(facts.store, name), find_agent(facts.store, name)
    descriptor = standing.descriptor if standing else None
    assert descriptor is not None, "it was described in the same breath"
    assert record is not None, "who is described is known"
    terms = {**registry.terms(descriptor), "speaks": list(record.speaks)}
    told = {"agent_id": name, **terms, "registered": True}
    remark = registry.remark(name, facts, choices)
    return (), told | ({"remark": remark} if remark else {})


def _discovered(
    choices: Choices, asked: arguments.Discover, actor: Actor, facts: Facts, accepted: Accepted
) -> tuple[Commands, Any]:
    """The same, with the skills of the card that do not count."""
    more, told = _registered(choices, asked, actor, facts, accepted)
    remarks = (*translate.card_of(asked).left_out(), told.get("remark"))
    remark = "; ".join(filter(None, remarks))
    return more, told | ({"remark": remark} if remark else {})


# Operations that only read


def _reading(choices: Choices) -> Iterator[Operation]:
    yield _asking(
        "ccos.requests",
        arguments.Requests,
        _requests,
        "See what you were asked to do: your open requests, oldest first.",
        is_empty=lambda answer: not answer["requests"],
        wakes="intent",
    )
    yield _asking(
        "ccos.rank",
        arguments.Ranked,
        lambda asked, _, facts: ranking.rank(asked, facts, choices),
        "See who would be given a goal, and why, before you delegate it.",
    )
    yield _asking(
        "ccos.intent",
        arguments.History,
        lambda asked, _, facts: query.look(asked, facts),
        "See how an intent stands, and its history.",
    )
    yield _asking(
        "ccos.intents", arguments.Intents, lambda asked, _, facts: query.listed(asked, facts)
    )
    yield _asking(
        "ccos.why",
        arguments.Story,
        lambda asked, _, facts: query.why(asked, facts),
        "See why an intent went to whom, and what came of it: each Action with what it caused.",
    )
    yield _asking(
        "ccos.actions", arguments.WantedActions, lambda asked, _, facts: query.ask(asked, facts)
    )
    yield _asking(
        "ccos.agents", arguments.Agents, lambda asked, _, facts: registry.agents(asked, facts)
    )


def _asking(
    name: str,
    shape: Any,
    ask: Callable[[Any, Actor, Facts], Any],
    summary: str = "",
    *,
    is_empty: Callable[[Any], bool] | None = None,
    wakes: str = "",
) -> Operation:
    """A read-only operation for all roles; without a summary it is not offered as a tool."""
    return Operation(
        name=name,
        shape=shape,
        read=reader(shape),
        commands=lambda _: (),
        reply=_accepted,
        roles=EVERYONE,
        ask=ask,
        is_empty=is_empty,
        wakes=wakes,
        summary=summary,
    )


def _requests(asked: arguments.Requests, actor: Actor, facts: Facts) -> Any:
    """Open requests of an agent: what it was assigned and has not answered."""
    agent = asked.agent_id or actor.name
    malformed = check_agent(agent)
    if malformed is not None:
        return fault_of(malformed, "agent_id")
    page = intents_on(facts.store, ListQuery(f"requests:{agent}", limit=asked.limit))
    found = (open_request(facts.store, placed.intent) for placed in page)
    return {"requests": [as_value(request) for request in found if request is not None]}
