"""The tool `send`, and the tools that dialects bring along."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, cast

from msgspec import Meta

from dragoman.core.errors import Refusal, Refused
from dragoman.engine.nobodys import explain_unrecognized
from dragoman.engine.operation import Dialect, Operation
from dragoman.engine.plan import Accepted, Rejected, Reply
from dragoman.surfaces.mcp.desk import HubContext
from dragoman.surfaces.mcp.tool import (
    Arguments,
    DialectRefused,
    Tool,
    ToolCall,
    argument_schema,
    make_tool,
    run_handler,
)


class SendArguments(Arguments, frozen=True):
    """A message."""

    message: Annotated[
        dict[str, Any] | str, Meta(description="The message, as an object or as text")
    ]


def send_message(context: HubContext, arguments: SendArguments) -> dict[str, Any]:
    """Send a message, in whatever dialect it is."""
    reply = context.router.send(arguments.message, speaker=context.actor)
    if reply is None:
        error = explain_unrecognized(arguments.message, context.router.dialects)
        raise Refused(Refusal(error.code, error.detail, path=error.path))
    answer = _accepted_or_raise(reply, context)
    shown = {"dialect": answer.dialect, "type": answer.kind, "reply": answer.reply}
    return shown | ({"repeated": True} if answer.repeated else {})


def dialect_tools(dialects: Sequence[Dialect]) -> Iterator[Tool]:
    """Yield the tool for messages, and one for every operation with a summary."""
    names = ", ".join(dialect.name for dialect in dialects)
    yield make_tool(
        "send",
        f"Send a whole message in one of the dialects that are spoken here ({names}), e.g. to "
        "hand a task on, to answer an offer, or a letter. You must be its sender.",
        SendArguments,
        send_message,
    )
    for dialect in dialects:
        for operation in dialect.operations:
            if operation.summary:
                yield _operation_tool(dialect, operation)


def _operation_tool(dialect: Dialect, operation: Operation) -> Tool:
    reads = operation.query is not None

    async def run(call: ToolCall) -> Any:
        return await run_handler(
            call, lambda context: _call_operation(context, operation.name, call), reads=reads
        )

    schema = argument_schema(operation.input_type)
    # Some clients accept only letters, digits, _ and - in the name of a tool.
    name = operation.name.replace(".", "_")
    return Tool(name, operation.summary, schema, run, dialect.name, reads)


def _call_operation(context: HubContext, name: str, call: ToolCall) -> dict[str, Any]:
    outcome = context.router.call(name, call.arguments, context.actor)
    answer = _accepted_or_raise(outcome, context)
    reply = answer.reply
    return cast(dict[str, Any], reply) if isinstance(reply, dict) else {"reply": reply}


def _accepted_or_raise(answer: Reply, context: HubContext) -> Accepted:
    """Return an accepted outcome; raise a rejected one."""
    if isinstance(answer, Rejected):
        raise DialectRefused(Refusal(answer.code, answer.detail, path=answer.path), answer.reply)
    context.warnings.extend(answer.warnings)
    return answer
