"""JSON-RPC 2.0 messages: strict parsing, and the error that answers an invalid one.

It is the same for both transports. The SDK alone would accept NaN as JSON, and take a request with
an invalid id for a notification, which is never answered.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, cast

import msgspec
from mcp import types

from dragoman.text.strict_json import StrictJsonError, parse_json

_INVALID_MESSAGE: Final = (
    'this is no message of JSON-RPC 2.0: it has to be one object with "jsonrpc": "2.0" and, for a '
    'request, "id" and "method" (and "params", if any, as an object); several at once are not taken'
)
_INVALID_ID: Final = (
    'this request cannot be answered: its "id" has to be a text or a whole number (1, not 1.0), '
    "and not null; a notification has none at all"
)


class InvalidMessage(Exception):
    """The input is not a JSON-RPC message; the id of such a request is unknown."""

    def __init__(self, code: int, detail: str) -> None:
        super().__init__(detail)
        error = types.ErrorData(code=code, message=detail)
        self.response: Final = types.JSONRPCError(jsonrpc="2.0", id=None, error=error)


class _ValidationError(Protocol):
    """The validation error of the SDK."""

    def errors(self) -> Sequence[Mapping[str, Any]]:
        """Return the errors; for malformed JSON there is one."""
        ...


def parse_message(text: bytes) -> types.JSONRPCMessage:
    """Parse a message; raises InvalidMessage."""
    try:
        value: Any = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        raise _json_error(text) from None
    try:
        message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError as error:
        # The SDK accepts less nesting than msgspec does.
        is_json = cast(_ValidationError, error).errors()[0]["type"] != "json_invalid"
        raise (
            InvalidMessage(types.INVALID_REQUEST, _INVALID_MESSAGE)
            if is_json
            else _json_error(text)
        ) from None
    if isinstance(message, types.JSONRPCNotification) and "id" in value:
        raise InvalidMessage(types.INVALID_REQUEST, _INVALID_ID)
    return message


def _json_error(text: bytes) -> InvalidMessage:
    try:
        parse_json(text, max_bytes=len(text))
    except StrictJsonError as error:
        return InvalidMessage(types.PARSE_ERROR, str(error))
    raise AssertionError("both parsers refuse the same texts")
