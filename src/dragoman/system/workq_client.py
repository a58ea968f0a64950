"""Client of an external work queue, JSON-RPC 2.0 over HTTP.

`workq.claim {item_id, from_agent, to_agent}` and `workq.get {item_id}` answer with the item
`{item_id, status, owner}`; an error whose `data.code` is `not_found` means that there is none.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import msgspec

from dragoman.engine.workq import ItemState, TransferResult

Post = Callable[[Mapping[str, str], bytes, int], tuple[int, bytes]]
"""Posts to the work queue; returns the status, and the beginning of the answer."""

_OK: Final = 200
_MAX_REPLY_BYTES: Final = 65_536
_REQUEST_ID: Final = 1
"""The same for every request: each has a connection of its own."""


class WorkqUnavailable(Exception):
    """The work queue does not answer, or its answer cannot be decoded."""


class NoSuchItem(Exception):
    """The work queue has no such item."""


class WorkqDenied(Exception):
    """The work queue has refused the request."""


class WorkqClient:
    """Work queue at a URL of the settings."""

    def __init__(self, post: Post, token: str = "") -> None:
        self._post = post
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def transfer_ownership(self, item: str, sender: str, recipient: str) -> TransferResult:
        """Transfer an item to another owner."""
        params = {"item_id": item, "from_agent": sender, "to_agent": recipient}
        try:
            owner = self._call("workq.claim", params).owner
        except NoSuchItem as error:
            return TransferResult("missing", str(error))
        except WorkqDenied as error:
            return TransferResult("refused", str(error))
        except WorkqUnavailable as error:
            return TransferResult("unavailable", str(error))
        if owner != recipient:
            return TransferResult("refused", f"after the claim its owner is {owner!a}")
        return TransferResult("transferred")

    def item_exists(self, item: str) -> bool | None:
        """True when there is such an item; None when the queue cannot say."""
        try:
            self._call("workq.get", {"item_id": item})
        except NoSuchItem:
            return False
        except (WorkqDenied, WorkqUnavailable):
            return None
        return True

    def item_status(self, item: str) -> ItemState | None:
        """State of an item; None when there is none, or the queue cannot say."""
        try:
            return self._call("workq.get", {"item_id": item})
        except (NoSuchItem, WorkqDenied, WorkqUnavailable):
            return None

    def _call(self, method: str, params: Mapping[str, str]) -> ItemState:
        request = {"jsonrpc": "2.0", "id": _REQUEST_ID, "method": method, "params": params}
        body = msgspec.json.encode(request)
        try:
            status, answer = self._post(self._headers, body, _MAX_REPLY_BYTES)
        except OSError as error:
            raise WorkqUnavailable(f"the work queue does not answer: {error}") from error
        if status != _OK:
            raise WorkqUnavailable(f"the work queue answered with HTTP status {status}")
        try:
            reply = msgspec.json.decode(answer, type=dict[str, Any])
            error, id = reply.get("error"), reply.get("id")
            # An error without an id answers a request that could not be parsed.
            if id != _REQUEST_ID and not (error and id is None):
                raise WorkqUnavailable(
                    f"the work queue answered request {id!a:.40} instead of {_REQUEST_ID}"
                )
            if error:
                raise _parse_error(cast(Mapping[str, Any], error))
            return msgspec.convert(reply.get("result"), ItemState)
        except (msgspec.DecodeError, UnicodeDecodeError, AttributeError) as error:
            raise WorkqUnavailable(
                f"the answer of the work queue is not an item: {error}"
            ) from error


def _parse_error(error: Mapping[str, Any]) -> Exception:
    data = error.get("data")
    code = cast(Mapping[str, Any], data).get("code") if isinstance(data, dict) else ""
    message = str(error.get("message", ""))[:200]
    return NoSuchItem(message) if code == "not_found" else WorkqDenied(message)
