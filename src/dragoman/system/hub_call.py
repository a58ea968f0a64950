"""One call of a hub that runs in another process of this machine, as its owner."""

import http.client
from collections.abc import Mapping
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from dragoman.core.errors import StoreUnavailable
from dragoman.system.hub_address import HubAddress
from dragoman.system.trust import unchecked
from dragoman.text.fault_words import in_words

T = TypeVar("T")

_MOST_BYTES: Final = 64 * 1024 * 1024
_LOOK_SECONDS: Final = 3.0
"""Timeout for callers that can do without the answer."""


class Problem(Struct, frozen=True):
    """Error answer of a hub."""

    code: str = ""
    detail: str = ""


def call_hub(
    hub: HubAddress,
    method: str,
    path: str,
    seconds: float,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, bytes]:
    """Send one request and return status and body; OSError or HTTPException without an answer."""
    connection = _connect(hub.url, seconds)
    try:
        shown = {"Authorization": f"Bearer {hub.token}", **(headers or {})}
        connection.request(method, path, body, shown)
        response = connection.getresponse()
        return response.status, response.read(_MOST_BYTES)
    finally:
        connection.close()


def read_hub(hub: HubAddress, path: str, shape: type[T], seconds: float = _LOOK_SECONDS) -> T:
    """Get a resource of the hub, decoded; one try, and StoreUnavailable says what failed."""
    try:
        status, answer = call_hub(hub, "GET", path, seconds)
    except TimeoutError as error:
        raise StoreUnavailable(
            f"the hub at {hub.url} did not answer within {seconds:g} s"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise StoreUnavailable(
            f"the hub at {hub.url} cannot be asked ({in_words(error)})"
        ) from error
    if status != http.client.OK:
        raise unexpected(hub.url, status, problem_in(answer))
    try:
        return msgspec.json.decode(answer, type=shape)
    except msgspec.MsgspecError as error:
        raise StoreUnavailable(
            f"the hub at {hub.url} sent an answer that this version cannot read ({error})"
        ) from error


def problem_in(answer: bytes) -> Problem:
    """Decode an error answer; an empty Problem when it is none of a hub's."""
    try:
        return msgspec.json.decode(answer, type=Problem)
    except msgspec.MsgspecError:
        return Problem()


def unexpected(url: str, status: int, problem: Problem) -> StoreUnavailable:
    """Error for an answer of the hub that has no meaning here."""
    return StoreUnavailable(
        f"the hub at {url} answered {status} "
        f"({problem.code or 'no code'}: {problem.detail or 'no reason'})"
    )


def _connect(url: str, seconds: float) -> Any:
    parts = urlsplit(url)
    if parts.scheme == "https":
        return http.client.HTTPSConnection(
            parts.hostname or "", parts.port, timeout=seconds, context=unchecked()
        )
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=seconds)
