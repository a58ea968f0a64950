"""Everything that can be asked for in AOF/1: five messages, two tools and the end of a session."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Raw

from dragoman.core.actors import Actor
from dragoman.core.authority import MAY_DISPATCH, MAY_WRITE
from dragoman.core.ids import check_agent
from dragoman.core.moments import parse_rfc3339
from dragoman.engine.faults import Fault, json_fault
from dragoman.engine.incoming import Incoming
from dragoman.engine.operation import Commands, Dialect, Facts, Heard, Operation
from dragoman.engine.request import Accepted
from dragoman.protocols.aof import check, translate
from dragoman.protocols.aof.detect import PREFIX, detect
from dragoman.protocols.aof.errors import REASONS
from dragoman.protocols.aof.lint import lint
from dragoman.protocols.aof.read import Shaped, at_a_glance, flawless, shaped, text_of
from dragoman.protocols.aof.render import RENDER
from dragoman.protocols.aof.wire import (
    MESSAGES,
    UNREADABLE,
    CompleteTask,
    SessionEnd,
    UpdateTask,
    type_of,
)

NAME: Final = "aof"

_FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    "handoff.request": {"parent": "payload.parentTaskId"}
}
"""Message type -> field of a core command -> field of the message, for refusals that name a field.
"""


def dialect(*, at_once: bool = False) -> Dialect:
    """Build the AOF/1 dialect.

    With `apply_immediately` a report moves its task before its session ends.
    """
    operations = (*_messages(at_once=at_once), *_tools(at_once=at_once))
    by_name = {operation.name: operation for operation in operations}
    return Dialect(
        name=NAME,
        operations=operations,
        hear=lambda incoming: _hear(incoming, by_name),
        lint=lint,
        refusals=REASONS,
        render=RENDER,
        kinds=tuple(MESSAGES),
        prefix=PREFIX.encode(),
        known_by='an object whose protocol is "aof", or text that begins with "AOF/1 "',
    )


def _hear(incoming: Incoming, operations: Mapping[str, Operation]) -> Heard | None:
    read = None if incoming.is_too_large else at_a_glance(incoming.text)
    if read is not None:
        return _understood(read, operations)
    found = detect(incoming)
    if found is None:
        return None
    read = json_fault(found.fault) if found.fault else shaped(found.value, found.said)
    if isinstance(read, Fault):
        return _faulty(found.value, found.said, read)
    return _understood(read, operations)


def _understood(read: Shaped, operations: Mapping[str, Operation]) -> Heard:
    message, kind = read.message, type_of(read.message)
    faults = check.message_faults(message)
    return Heard(
        kind=kind,
        said=read.said,
        sender="" if faults and check_agent(message.from_agent) else message.from_agent,
        target=message.task_id,
        operation=operations[kind],
        message=message,
        content=read.content,
        sent_at=None if faults else parse_rfc3339(message.sent_at),
        fault=faults[0] if faults else None,
    )


def _faulty(value: Any, said: Raw, fault: Fault) -> Heard:
    sender = text_of(value, "fromAgent")
    return Heard(
        kind=text_of(value, "type") or UNREADABLE,
        said=said,
        sender="" if check_agent(sender) else sender,
        target=text_of(value, "taskId"),
        fault=fault,
    )


def _messages(*, at_once: bool) -> Iterator[Operation]:
    commands: Mapping[str, Callable[[Any], Commands]] = {
        "completion.report": lambda m: translate.report(m.task_id, m.payload, at_once=at_once),
        "status.update": lambda m: translate.update(m.task_id, m.payload, m.sent_at),
        "handoff.request": translate.request,
        "handoff.accepted": translate.accept,
        "handoff.rejected": translate.reject,
    }
    gather: Mapping[str, Callable[[Any, Actor, Facts], Commands | Fault]] = {
        "completion.report": lambda m, _, facts: translate.missing_files(
            m.task_id, m.payload, facts
        )
    }
    for kind, shape in MESSAGES.items():
        yield Operation(
            name=kind,
            shape=shape,
            read=_reader(shape, check.message_faults),
            commands=commands[kind],
            reply=_task_reply,
            roles=MAY_WRITE,
            about=_task_of,
            identity=check.impostor,
            gather=gather.get(kind),
            fields=_FIELDS.get(kind, {}),
        )


def _tools(*, at_once: bool) -> Iterator[Operation]:
    yield Operation(
        name="aof_task_complete",
        shape=CompleteTask,
        read=_reader(CompleteTask, check.completion_faults),
        commands=lambda tool: translate.report(tool.task_id, tool, at_once=at_once),
        reply=_task_reply,
        roles=MAY_WRITE,
        about=_task_of,
        identity=check.impostor_in_tool,
        gather=lambda tool, _, facts: translate.missing_files(tool.task_id, tool, facts),
        summary="AOF/1: report how your work on a task ended.",
    )
    yield Operation(
        name="aof_task_update",
        shape=UpdateTask,
        read=_reader(UpdateTask, check.update_faults),
        commands=lambda tool: translate.update(tool.task_id, tool),
        reply=_task_reply,
        roles=MAY_WRITE,
        about=_task_of,
        identity=check.impostor_in_tool,
        summary="AOF/1: say how your work on a task goes, or move it to another status.",
    )
    yield Operation(
        name="session_end",
        shape=SessionEnd,
        read=_reader(SessionEnd, check.session_faults),
        commands=lambda _: (),
        reply=_session_reply,
        roles=MAY_WRITE,
        gather=_end_session,
        summary="AOF/1: end a session: the reports of its attempts take effect.",
    )


def _reader(shape: type[Any], faults: Callable[[Any], list[Fault]]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        arguments = check.shaped(value, shape)
        return arguments if isinstance(arguments, Fault) else flawless(arguments, faults)

    return read


def _end_session(arguments: SessionEnd, actor: Actor, facts: Facts) -> Commands | Fault:
    if not arguments.session_id and actor.role not in MAY_DISPATCH:
        return Fault(
            "not_authorized",
            f"{actor.label} must name the session that it ends",
            "sessionId",
        )
    # A result that was never reported is set aside before the session's results apply (S-AOF-8).
    facts.look_at_runs()
    return translate.end_session(arguments, actor, facts)


def _task_of(message: Any) -> str:
    return message.task_id


def _task_reply(message: Any, commands: Commands, accepted: Accepted) -> Any:
    """Status of the task, under the name that the caller used."""
    del commands
    reply = {"taskId": message.task_id, "status": accepted.receipts[0].status}
    return _warned(reply, accepted)


def _session_reply(arguments: SessionEnd, commands: Commands, accepted: Accepted) -> Any:
    """Status of each task of the session."""
    ended = [
        {"taskId": command.about, "status": receipt.status}
        for command, receipt in zip(commands, accepted.receipts, strict=True)
    ]
    return _warned({"sessionId": arguments.session_id or "", "tasks": ended}, accepted)


def _warned(reply: dict[str, Any], accepted: Accepted) -> dict[str, Any]:
    return reply | {"warnings": [*accepted.warnings]} if accepted.warnings else reply
