"""The tool `send`, and the tools that dialects bring along."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, cast

from msgspec import Meta

from dragoman.core.errors import Refusal, Refused
from dragoman.engine.nobodys import why_nobodys
from dragoman.engine.operation import Dialect, Operation
from dragoman.engine.plan import Answer, Taken, Turned
from dragoman.surfaces.mcp.desk import Desk
from dragoman.surfaces.mcp.tool import Arguments, Tool, TurnedDown, Visit, answered, schema_of, tool


class Send(Arguments, frozen=True):
    """A message."""

    message: Annotated[
        dict[str, Any] | str, Meta(description="The message, as an object or as text")
    ]


def send(desk: Desk, asked: Send) -> dict[str, Any]:
    """Send a message, in whatever dialect it is."""
    said = desk.interpreter.send(asked.message, speaker=desk.actor)
    if said is None:
        fault = why_nobodys(asked.message, desk.interpreter.dialects)
        raise Refused(Refusal(fault.code, fault.detail, path=fault.path))
    answer = _taken(said, desk)
    shown = {"dialect": answer.dialect, "type": answer.kind, "reply": answer.reply}
    return shown | ({"repeated": True} if answer.repeated else {})


def tools(dialects: Sequence[Dialect]) -> Iterator[Tool]:
    """Yield the tool for messages, and one for every operation with a summary."""
    spoken = ", ".join(dialect.name for dialect in dialects)
    yield tool(
        "send",
        f"Send a whole message in one of the dialects that are spoken here ({spoken}), e.g. to "
        "hand a task on, to answer an offer, or a letter. You must be its sender.",
        Send,
        send,
    )
    for dialect in dialects:
        for operation in dialect.operations:
            if operation.summary:
                yield _operation_tool(dialect, operation)


def _operation_tool(dialect: Dialect, operation: Operation) -> Tool:
    reads = operation.ask is not None

    async def run(visit: Visit) -> Any:
        return await answered(visit, lambda desk: _called(desk, operation.name, visit), reads=reads)

    schema = schema_of(operation.shape)
    # Some clients accept only letters, digits, _ and - in the name of a tool.
    name = operation.name.replace(".", "_")
    return Tool(name, operation.summary, schema, run, dialect.name, reads)


def _called(desk: Desk, name: str, visit: Visit) -> dict[str, Any]:
    said = desk.interpreter.call(name, visit.arguments, desk.actor)
    answer = _taken(said, desk)
    reply = answer.reply
    return cast(dict[str, Any], reply) if isinstance(reply, dict) else {"reply": reply}


def _taken(answer: Answer, desk: Desk) -> Taken:
    """Return an accepted outcome; raise a rejected one."""
    if isinstance(answer, Turned):
        raise TurnedDown(Refusal(answer.code, answer.detail, path=answer.path), answer.reply)
    desk.remarks.extend(answer.warnings)
    return answer
