"""The AOF/1 dialect: operations for its five messages, two tools and the end of a session."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Raw

from dragoman.core import not_found
from dragoman.core.actor import Actor
from dragoman.core.authority import MAY_DISPATCH, MAY_WRITE
from dragoman.core.ids import check_agent
from dragoman.core.timestamps import parse_rfc3339
from dragoman.engine.delivered_messages import inbox_operation
from dragoman.engine.operation import (
    Dialect,
    Errors,
    Facts,
    Fault,
    Linter,
    Operation,
    ParsedMessage,
    Plan,
    RawMessage,
    always,
    fault_from_json_error,
    fault_from_refusal,
)
from dragoman.engine.request import Commands, Committed
from dragoman.protocols.aof import translate, validation
from dragoman.protocols.aof.errors import REFUSAL_CODES
from dragoman.protocols.aof.lint import lint
from dragoman.protocols.aof.notice import from_notice, to_notice
from dragoman.protocols.aof.parse import (
    PREFIX,
    ShapedMessage,
    detect,
    fast_parse,
    parse_envelope,
    text_field,
    validate,
)
from dragoman.protocols.aof.render import RENDERERS
from dragoman.protocols.aof.wire import (
    MESSAGES,
    UNREADABLE_KIND,
    CompleteTaskArguments,
    ReportFields,
    SessionEndArguments,
    UpdateTaskArguments,
    type_of,
)

NAME: Final = "aof"

_ANSWERS: Final = frozenset(
    {"handoff.accepted", "handoff.rejected", "completion.report", "aof_task_complete"}
)
"""Operations that may answer an offer; whoever was offered work accepts it before an update."""

_FIELD_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "handoff.request": {"parent": "payload.parentTaskId"}
}
"""Message type -> field of a core command -> field of the message, for refusals that name a field.
"""


def dialect(*, apply_immediately: bool = False) -> Dialect:
    """Build the AOF/1 dialect.

    With `apply_immediately` a report moves its task before its session ends.
    """
    operations = (
        *_message_operations(apply_immediately=apply_immediately),
        *_tool_operations(apply_immediately=apply_immediately),
        inbox_operation(NAME, "aof_inbox"),
    )
    by_name = {operation.name: operation for operation in operations}
    return Dialect(
        name=NAME,
        operations=operations,
        parse=lambda incoming: _parse_message(incoming, by_name),
        lint=Linter(lint, tuple(MESSAGES), prefix=PREFIX.encode()),
        errors=Errors(REFUSAL_CODES),
        events=frozenset(RENDERERS),
        to_notice=to_notice,
        from_notice=from_notice,
        answer_offer=translate.answer_delegation,
        hint='an object whose protocol is "aof", or text that begins with "AOF/1 "',
    )


def _parse_message(
    incoming: RawMessage, operations: Mapping[str, Operation]
) -> ParsedMessage | None:
    shaped_message = None if incoming.is_too_large else fast_parse(incoming.text)
    if shaped_message is not None:
        return _accepted_message(shaped_message, operations)
    detected = detect(incoming)
    if detected is None:
        return None
    shaped_message = (
        fault_from_json_error(detected.fault)
        if detected.fault
        else parse_envelope(detected.value, detected.original_text)
    )
    if isinstance(shaped_message, Fault):
        return _faulty_message(detected.value, detected.original_text, shaped_message)
    return _accepted_message(shaped_message, operations)


def _accepted_message(
    shaped_message: ShapedMessage, operations: Mapping[str, Operation]
) -> ParsedMessage:
    message, kind = shaped_message.message, type_of(shaped_message.message)
    faults = validation.message_faults(message)
    return ParsedMessage(
        kind=kind,
        original_text=shaped_message.original_text,
        sender="" if faults and check_agent(message.from_agent) else message.from_agent,
        target=message.task_id,
        operation=operations[kind],
        message=message,
        dedup_content=shaped_message.content,
        sent_at=None if faults else parse_rfc3339(message.sent_at),
        fault=faults[0] if faults else None,
    )


def _faulty_message(value: Any, original_text: Raw, fault: Fault) -> ParsedMessage:
    sender = text_field(value, "fromAgent")
    return ParsedMessage(
        kind=text_field(value, "type") or UNREADABLE_KIND,
        original_text=original_text,
        sender="" if check_agent(sender) else sender,
        target=text_field(value, "taskId"),
        fault=fault,
    )


def _message_operations(*, apply_immediately: bool) -> Iterator[Operation]:
    commands: Mapping[str, Callable[[Any], Commands]] = {
        "completion.report": lambda m: translate.report(
            m.task_id, m.payload, apply_immediately=apply_immediately
        ),
        "status.update": lambda m: translate.update(m.task_id, m.payload, m.sent_at),
        "handoff.request": translate.request,
        "handoff.accepted": translate.accept,
        "handoff.rejected": translate.reject,
    }
    for kind, shape in MESSAGES.items():
        yield _task_operation(
            kind,
            shape,
            validation.message_faults,
            commands[kind],
            report=(lambda m: m.payload) if kind == "completion.report" else None,
        )


def _tool_operations(*, apply_immediately: bool) -> Iterator[Operation]:
    yield _task_operation(
        "aof_task_complete",
        CompleteTaskArguments,
        validation.completion_faults,
        lambda tool: translate.report(tool.task_id, tool, apply_immediately=apply_immediately),
        report=lambda tool: tool,
        summary="AOF/1: report how your work on a task ended.",
    )
    yield _task_operation(
        "aof_task_update",
        UpdateTaskArguments,
        validation.update_faults,
        lambda tool: translate.update(tool.task_id, tool),
        summary="AOF/1: say how your work on a task goes, or move it to another status.",
    )
    yield Operation(
        name="session_end",
        input=SessionEndArguments,
        parse=_argument_parser(SessionEndArguments, validation.session_faults),
        roles=MAY_WRITE,
        plan=_end_session,
        needs_io=always,
        reply=_session_reply,
        summary="AOF/1: end a session: the reports of its attempts take effect.",
    )


def _task_operation(
    name: str,
    shape: type[Any],
    faults: Callable[[Any], list[Fault]],
    commands: Callable[[Any], Commands],
    *,
    report: Callable[[Any], ReportFields] | None = None,
    summary: str = "",
) -> Operation:
    """Build an operation about a task; `report`: the report in it, whose files are looked for."""

    def plan(message: Any, actor: Actor, facts: Facts) -> Plan | Fault:
        fault = _check_identity(message, actor.name)
        if fault is not None:
            # Existence of the task comes first (S-AOF-2).
            is_known = facts.task_exists(message.task_id)
            return fault if is_known else fault_from_refusal(not_found.task(message.task_id))
        warnings = (
            ()
            if report is None
            else translate.missing_file_warnings(message.task_id, report(message), facts)
        )
        answer = translate.answer_commands(message, actor, facts)
        return Plan(
            (answer or commands(message)) + warnings, field_names=_FIELD_NAMES.get(name, {})
        )

    return Operation(
        name=name,
        input=shape,
        parse=_argument_parser(shape, faults),
        roles=MAY_WRITE,
        plan=plan,
        needs_io=always if name in _ANSWERS else _needs_io,
        answer_place="commands" if name in _ANSWERS else "none",
        reply=_task_reply,
        target=lambda message: message.task_id,
        summary=summary,
    )


def _needs_io(message: Any, actor: Actor) -> bool:
    return translate.may_answer(message) or _check_identity(message, actor.name) is not None


def _check_identity(message: Any, speaker: str) -> Fault | None:
    if isinstance(message, CompleteTaskArguments | UpdateTaskArguments):
        return validation.check_tool_identity(message, speaker)
    return validation.check_identity(message, speaker)


def _argument_parser(
    shape: type[Any], faults: Callable[[Any], list[Fault]]
) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        arguments = validation.convert_shape(value, shape)
        return arguments if isinstance(arguments, Fault) else validate(arguments, faults)

    return parse


def _end_session(arguments: SessionEndArguments, actor: Actor, facts: Facts) -> Plan | Fault:
    if not arguments.session_id and actor.role not in MAY_DISPATCH:
        return Fault(
            "not_authorized",
            f"{actor.label} must name the session that it ends",
            "sessionId",
        )
    # A result that was never reported is set aside before the session's results apply (S-AOF-8).
    facts.scan_run_files()
    return Plan(translate.end_session(arguments, actor, facts))


def _task_reply(message: Any, _: Commands, accepted: Committed) -> Any:
    """Status of the task, under the name that the caller used."""
    # An answer to an offer takes several steps; a rejection may leave no task in its receipt.
    known = (one.status for one in reversed(accepted.receipts) if one.status)
    reply = {"taskId": message.task_id, "status": next(known, None)}
    return _with_warnings(reply, accepted)


def _session_reply(arguments: SessionEndArguments, commands: Commands, accepted: Committed) -> Any:
    """Status of each task of the session."""
    ended = [
        {"taskId": command.target_task, "status": receipt.status}
        for command, receipt in zip(commands, accepted.receipts, strict=True)
    ]
    return _with_warnings({"sessionId": arguments.session_id or "", "tasks": ended}, accepted)


def _with_warnings(reply: dict[str, Any], accepted: Committed) -> dict[str, Any]:
    return reply | {"warnings": [*accepted.warnings]} if accepted.warnings else reply
