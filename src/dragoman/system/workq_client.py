"""Client of an external work queue, JSON-RPC 2.0 over HTTP.

`workq.claim {item_id, from_agent, to_agent}` and `workq.get {item_id}` answer with the item
`{item_id, status, owner}`; an error whose `data.code` is `not_found` means that there is none.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from dragoman.engine.workq import ItemState, TransferResult

Post = Callable[[Mapping[str, str], bytes, int], tuple[int, bytes]]
"""Posts to the work queue; returns the status, and the beginning of the answer."""

_OK: Final = 200
_MAX_REPLY_BYTES: Final = 65_536
_REQUEST_ID: Final = 1
"""The same for every request: each has a connection of its own."""


class _Error(Struct):
    message: str = ""
    data: Any = None


class _Reply(Struct):
    id: int | None = None
    result: ItemState | None = None
    error: _Error | None = None


class WorkqClient:
    """Work queue at a URL of the settings; every failure is a result."""

    def __init__(self, post: Post, token: str = "") -> None:
        self._post = post
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def transfer_ownership(self, item: str, sender: str, recipient: str) -> TransferResult:
        """Transfer an item to another owner."""
        params = {"item_id": item, "from_agent": sender, "to_agent": recipient}
        answer = self._call("workq.claim", params)
        if isinstance(answer, TransferResult):
            return answer
        if answer.owner != recipient:
            return TransferResult("refused", f"after the claim its owner is {answer.owner!a}")
        return TransferResult("transferred")

    def item_exists(self, item: str) -> bool | None:
        """True when there is such an item; None when the queue cannot say."""
        answer = self._call("workq.get", {"item_id": item})
        if isinstance(answer, ItemState):
            return True
        return False if answer.outcome == "missing" else None

    def item_status(self, item: str) -> ItemState | None:
        """State of an item; None when there is none, or the queue cannot say."""
        answer = self._call("workq.get", {"item_id": item})
        return answer if isinstance(answer, ItemState) else None

    def _call(self, method: str, params: Mapping[str, str]) -> ItemState | TransferResult:
        request = {"jsonrpc": "2.0", "id": _REQUEST_ID, "method": method, "params": params}
        try:
            status, body = self._post(self._headers, msgspec.json.encode(request), _MAX_REPLY_BYTES)
            reply = msgspec.json.decode(body, type=_Reply) if status == _OK else _Reply()
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            return TransferResult("unavailable", f"the work queue does not answer: {error}")
        # An error without an id answers a request that could not be parsed.
        if reply.error is not None and reply.id in (None, _REQUEST_ID):
            data: Any = reply.error.data
            code = cast(dict[str, Any], data).get("code") if isinstance(data, dict) else ""
            outcome = "missing" if code == "not_found" else "refused"
            return TransferResult(outcome, reply.error.message[:200])
        if reply.result is None or reply.id != _REQUEST_ID:
            detail = f"the work queue gave no answer to the request (HTTP status {status})"
            return TransferResult("unavailable", detail)
        return reply.result
