"""A work queue outside of the hub, spoken to by JSON-RPC 2.0 over HTTP.

`workq.claim {item_id, from_agent, to_agent}` and `workq.get {item_id}` answer with the item
`{item_id, status, owner}`; an error whose `data.code` is `not_found` means that there is none.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import msgspec

from dragoman.engine.workq import ItemState, Moved

Ask = Callable[[Mapping[str, str], bytes, int], tuple[int, bytes]]
"""Posts to the work queue; returns the status, and the beginning of the answer."""

_OK: Final = 200
_MOST_BYTES: Final = 65_536
_ID: Final = 1
"""The same for every request: each has a connection of its own."""


class Unavailable(Exception):
    """The work queue does not answer, or its answer cannot be decoded."""


class NoSuchItem(Exception):
    """The work queue has no such item."""


class Denied(Exception):
    """The work queue has refused the request."""


class WorkqRpc:
    """Work queue at a URL of the settings."""

    def __init__(self, ask: Ask, token: str = "") -> None:
        self._ask = ask
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def transfer_ownership(self, item: str, sender: str, recipient: str) -> Moved:
        """Transfer an item to another owner."""
        asked = {"item_id": item, "from_agent": sender, "to_agent": recipient}
        try:
            owner = self._call("workq.claim", asked).owner
        except NoSuchItem as error:
            return Moved("missing", str(error))
        except Denied as error:
            return Moved("refused", str(error))
        except Unavailable as error:
            return Moved("unavailable", str(error))
        if owner != recipient:
            return Moved("refused", f"after the claim its owner is {owner!a}")
        return Moved("transferred")

    def item_exists(self, item: str) -> bool | None:
        """True when there is such an item; None when the queue cannot say."""
        try:
            self._call("workq.get", {"item_id": item})
        except NoSuchItem:
            return False
        except (Denied, Unavailable):
            return None
        return True

    def item_status(self, item: str) -> ItemState | None:
        """State of an item; None when there is none, or the queue cannot say."""
        try:
            return self._call("workq.get", {"item_id": item})
        except (NoSuchItem, Denied, Unavailable):
            return None

    def _call(self, method: str, params: Mapping[str, str]) -> ItemState:
        asked = {"jsonrpc": "2.0", "id": _ID, "method": method, "params": params}
        body = msgspec.json.encode(asked)
        try:
            status, answer = self._ask(self._headers, body, _MOST_BYTES)
        except OSError as error:
            raise Unavailable(f"the work queue does not answer: {error}") from error
        if status != _OK:
            raise Unavailable(f"the work queue answered with HTTP status {status}")
        try:
            said = msgspec.json.decode(answer, type=dict[str, Any])
            error, id = said.get("error"), said.get("id")
            # An error without an id answers a request that could not be parsed.
            if id != _ID and not (error and id is None):
                raise Unavailable(f"the work queue answered request {id!a:.40} instead of {_ID}")
            if error:
                raise _denied(cast(Mapping[str, Any], error))
            return msgspec.convert(said.get("result"), ItemState)
        except (msgspec.DecodeError, UnicodeDecodeError, AttributeError) as error:
            raise Unavailable(f"the answer of the work queue is not an item: {error}") from error


def _denied(error: Mapping[str, Any]) -> Exception:
    data = error.get("data")
    code = cast(Mapping[str, Any], data).get("code") if isinstance(data, dict) else ""
    message = str(error.get("message", ""))[:200]
    return NoSuchItem(message) if code == "not_found" else Denied(message)
