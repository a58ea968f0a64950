"""The todo dialect: agents that can write one line take tasks and report what became of them.

A message is a line of text, `todo: ada take fix-login`, or the same as JSON,
`{"todo": "take", "agent": "ada", "task": "fix-login"}`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from msgspec import Struct

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.attempt_state import TaskClaimed, TaskReported
from dragoman.core.base import Role
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
_LINE: Final = re.compile(rb"todo: *(\S+) +(take|done|stuck) +(\S+)(?: +(.+?))?\s*", re.DOTALL)


class TodoArguments(Struct, frozen=True):
    """What an agent says about a task."""

    task: str
    note: str = ""
    """What was done, or what is in the way."""


# --- operations -------------------------------------------------------------------------------


def _take(said: TodoArguments, actor: Actor, facts: Facts) -> Plan:
    del facts
    return Plan((ClaimTask(said.task, actor.name),))


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
    name: str, plan: Callable[[TodoArguments, Actor, Facts], Any], summary: str
) -> Operation:
    return Operation(
        name=f"{NAME}.{name}",
        input=TodoArguments,
        roles=_AGENTS,
        plan=plan,
        reply=_reply,
        target=lambda said: said.task,
        summary=summary,
    )


_OPERATIONS: Final = {
    "take": _operation("take", _take, "Take a task."),
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
        fault = Fault("unknown_type", "todo is take, done or stuck, and agent a name", "todo")
        return ParsedMessage(NAME, text, fault=fault)
    arguments = {name: fields[name] for name in ("task", "note") if name in fields}
    said = validate_shape(arguments, TodoArguments)
    if isinstance(said, Fault):
        return ParsedMessage(operation.name, text, sender, fault=said)
    return ParsedMessage(
        operation.name, text, sender, said.task, operation, said, dedup_content=raw.text
    )


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


# --- dialect ----------------------------------------------------------------------------------


def dialect() -> Dialect:
    """Build the dialect; the entry point `todo` names this function."""
    return Dialect(
        name=NAME,
        operations=tuple(_OPERATIONS.values()),
        parse=_parse,
        hint='a line "todo: NAME take|done|stuck TASK", or an object with todo',
        errors=Errors({"task_not_found": "no_such_task"}),
        events=frozenset({TaskClaimed, TaskReported}),
    )
