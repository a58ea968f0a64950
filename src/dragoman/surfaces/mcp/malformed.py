"""What is no message of JSON-RPC 2.0: the error that says so, the same over either transport."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, cast

from mcp import types

from dragoman.text.strict_json import StrictJsonError, parse_json

_NO_MESSAGE: Final = (
    'this is no message of JSON-RPC 2.0: it has to be one object with "jsonrpc": "2.0" and, for a '
    'request, "id" and "method" (and "params", if any, as an object); several at once are not taken'
)


class Unreadable(Protocol):
    """The error with which the SDK does not read a message."""

    def errors(self) -> Sequence[Mapping[str, Any]]:
        """What is wrong; of what is no JSON, the one thing."""
        ...


def check(body: bytes) -> types.JSONRPCError | None:
    """The answer to what is no message; None: it is one."""
    try:
        types.jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValueError as error:
        return answer_to(cast(Unreadable, error))
    return None


def answer_to(error: Unreadable) -> types.JSONRPCError:
    """The answer to what the SDK could not read: nobody knows the id of such a request."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        fault = types.ErrorData(code=types.PARSE_ERROR, message=_why_no_json(first["input"]))
    else:
        fault = types.ErrorData(code=types.INVALID_REQUEST, message=_NO_MESSAGE)
    return types.JSONRPCError(jsonrpc="2.0", id=None, error=fault)


def _why_no_json(text: bytes | str) -> str:
    try:
        parse_json(text, most_bytes=len(text) * 4)
    except StrictJsonError as error:
        return str(error)
    return "this is not JSON"
