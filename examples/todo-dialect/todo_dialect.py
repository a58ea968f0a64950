"""The todo dialect: agents that can write one line take tasks and report what became of them.

A message is a line of text, `todo: ada take fix-login`, or the same as JSON,
`{"todo": "take", "agent": "ada", "task": "fix-login"}`. As JSON an agent also offers a task to
another one: `{"todo": "offer", "agent": "ada", "task": "fix-login", "to": "bob"}`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import asdict

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.attempt_state import TaskClaimed, TaskReported
from dragoman.core.base import Role
from dragoman.core.notice import Notice, NoticeKind, NoticeReader, Translation, present
from dragoman.core.task_state import CreateTask, UpdateTask
from dragoman.engine.delivered_messages import inbox_operation
from dragoman.engine.operation import (
    Dialect,
    Errors,
    Facts,
    Fault,
    Operation,
    ParsedMessage,
    Plan,
    RawMessage,
    stored_text,
    validate_shape,
)
from dragoman.engine.request import Commands, Committed

NAME: Final = "todo"

_AGENTS: Final[frozenset[Role]] = frozenset({"agent"})
_LINE: Final = re.compile(rb"todo: *(\S+) +(take|say|done|stuck) +(\S+)(?: +(.+?))?\s*", re.DOTALL)


class TodoArguments(Struct, frozen=True):
    """What an agent says about a task."""

    task: str
    note: str = ""
    """What is done, or what is in the way."""
    more: str = ""
    """Further words."""
    to: str = ""
    """Whom it is said to."""


class TodoMessage(TodoArguments, frozen=True, kw_only=True):
    """A message: its verb and its sender, too."""

    verb: str
    agent: str


# --- operations -------------------------------------------------------------------------------


def _take(said: TodoArguments, actor: Actor, facts: Facts) -> Plan:
    del facts
    return Plan((ClaimTask(said.task, actor.name),))


def _offer(said: TodoArguments, actor: Actor, facts: Facts) -> Plan | Fault:
    del actor, facts
    if not said.to:
        return Fault("invalid_field", "say to whom it is offered", "to")
    return Plan((CreateTask(said.note or said.task, said.task, ready=True, assignee=said.to),))


def _say(said: TodoArguments, actor: Actor, facts: Facts) -> Plan:
    del actor, facts
    return Plan((UpdateTask(said.task, progress=said.note),))


def _done(said: TodoArguments, actor: Actor, facts: Facts) -> Plan:
    del actor, facts
    return Plan((ReportOutcome(said.task, "done", said.note, apply=True),))


def _stuck(said: TodoArguments, actor: Actor, facts: Facts) -> Plan | Fault:
    del actor, facts
    if not said.note:
        return Fault("invalid_field", "say what is in the way", "note")
    return Plan((ReportOutcome(said.task, "blocked", said.note, (said.note,), apply=True),))


def _reply(said: TodoArguments, commands: Commands, committed: Committed) -> str:
    del commands
    return f"{said.task} is {committed.receipts[-1].status}"


def _operation(
    name: str,
    plan: Callable[[TodoArguments, Actor, Facts], Any],
    summary: str,
    target: Callable[[TodoArguments], str] = lambda said: said.task,
) -> Operation:
    return Operation(
        name=f"{NAME}.{name}",
        input=TodoArguments,
        roles=_AGENTS,
        plan=plan,
        reply=_reply,
        target=target,
        summary=summary,
    )


_OPERATIONS: Final = {
    "offer": _operation("offer", _offer, "Make a task for another agent.", lambda _: ""),
    "take": _operation("take", _take, "Take a task."),
    "say": _operation("say", _say, "Say how far your task is."),
    "done": _operation("done", _done, "Say that your task is done."),
    "stuck": _operation("stuck", _stuck, "Say what is in the way of your task."),
}


# --- messages ---------------------------------------------------------------------------------


def _parse(raw: RawMessage) -> ParsedMessage | None:
    """Parse a line or an object; None if it is not of this dialect."""
    fields = _line_fields(raw.text) or _object_fields(raw)
    if fields is None:
        return None
    verb, sender = fields.get("todo"), fields.get("agent", "")
    operation, text = _OPERATIONS.get(str(verb)), stored_text(raw)
    if operation is None or not isinstance(sender, str):
        detail = f"todo is one of {', '.join(_OPERATIONS)}, and agent a name"
        fault = Fault("unknown_type", detail, "todo")
        return ParsedMessage(NAME, text, fault=fault)
    arguments = {name: fields[name] for name in _FIELDS if name in fields}
    said = validate_shape(arguments, TodoArguments)
    if isinstance(said, Fault):
        return ParsedMessage(operation.name, text, sender, fault=said)
    message = TodoMessage(**asdict(said), verb=str(verb), agent=sender)
    return ParsedMessage(
        operation.name, text, sender, said.task, operation, message, dedup_content=raw.text
    )


_FIELDS: Final = TodoArguments.__struct_fields__


def _line_fields(text: bytes) -> Mapping[str, Any] | None:
    line = _LINE.fullmatch(text)
    if line is None:
        return None
    agent, verb, task, note = (part.decode(errors="replace") for part in line.groups(b""))
    return {"todo": verb, "agent": agent, "task": task, "note": note}


def _object_fields(raw: RawMessage) -> Mapping[str, Any] | None:
    value = raw.value
    if not isinstance(value, dict) or "todo" not in value:
        return None
    return cast(Mapping[str, Any], value)


# --- notices ----------------------------------------------------------------------------------

_KINDS: Final[Mapping[str, tuple[NoticeKind, str]]] = {
    "offer": ("offer", "title"),
    "take": ("accepted", "text"),
    "say": ("progress", "text"),
    "done": ("result", "text"),
    "stuck": ("failed", "text"),
}
"""Verb -> the kind of its notice, and the field that its note is."""

_VERBS: Final = {kind: (verb, field) for verb, (kind, field) in _KINDS.items()}


def _to_notice(said: TodoMessage) -> Notice:
    kind, field = _KINDS[said.verb]
    own: dict[str, Any] = {field: said.note, "outcome": "done" if said.verb == "done" else ""}
    head = {"task": said.task, "sender": said.agent, "recipient": said.to, "notes": said.more}
    return Notice(kind=kind, **head, **own)


def _from_notice(notice: Notice) -> Translation:
    """Write a notice as a message; what has no field stands in `more`."""
    if not notice.task:
        return Translation(None, reason="it names no task, and todo speaks of nothing else")
    reader = NoticeReader(notice)
    verb, field = _VERBS.get(notice.kind, ("say", "text"))
    is_notice = notice.kind not in _VERBS
    if is_notice:
        reader.lose("kind")
    if verb == "done" and notice.outcome == "done":
        reader.take("outcome")
    message = {
        "todo": verb,
        "agent": reader.take("sender") or reader.fill("todo.agent", "unknown"),
        "task": reader.take("task"),
        **present(to=reader.take("recipient"), note=reader.take(field)),
    }
    required, neutral = _REQUIRED.get(verb, ("todo", ""))
    if required not in message:
        message[required] = reader.fill(f"todo.{required}", neutral)
    more = "\n".join(filter(None, (reader.take("notes"), *reader.lost_lines())))
    return reader.finish({**message, **present(more=more)}, is_notice=is_notice)


_REQUIRED: Final = {"offer": ("to", "anybody"), "stuck": ("note", "not stated")}
"""Verb -> the field that it needs, and its neutral value."""


# --- dialect ----------------------------------------------------------------------------------


def dialect() -> Dialect:
    """Build the dialect; the entry point `todo` names this function."""
    return Dialect(
        name=NAME,
        operations=(*_OPERATIONS.values(), inbox_operation(NAME, "todo.inbox")),
        parse=_parse,
        hint='a line "todo: NAME take|say|done|stuck TASK", or an object with todo',
        errors=Errors({"task_not_found": "no_such_task"}),
        events=frozenset({TaskClaimed, TaskReported}),
        to_notice=_to_notice,
        from_notice=_from_notice,
    )
