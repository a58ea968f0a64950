"""HTTP client for the hub that runs on this machine, with the owner's token."""

import http.client
from collections.abc import Mapping
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from dragoman.core.errors import SettingsError, StoreUnavailable
from dragoman.system.hub_lock import HubAddress
from dragoman.system.tls import unverified_context
from dragoman.text.error_messages import describe_exception

# --- requests ---------------------------------------------------------------------------------

T = TypeVar("T")

_MAX_REPLY_BYTES: Final = 64 * 1024 * 1024

_READ_TIMEOUT_SECONDS: Final = 3.0
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
        all_headers = {"Authorization": f"Bearer {hub.token}", **(headers or {})}
        connection.request(method, path, body, all_headers)
        response = connection.getresponse()
        return response.status, response.read(_MAX_REPLY_BYTES)
    finally:
        connection.close()


def ask_hub(
    hub: HubAddress,
    method: str,
    path: str,
    reply_type: type[T],
    seconds: float = _READ_TIMEOUT_SECONDS,
) -> T:
    """Send a request without a body, and decode the answer; one try, and StoreUnavailable says what
    failed."""
    try:
        status, answer = call_hub(hub, method, path, seconds)
    except TimeoutError as error:
        raise StoreUnavailable(
            f"the hub at {hub.url} did not answer within {seconds:g} s"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise StoreUnavailable(
            f"the hub at {hub.url} cannot be asked ({describe_exception(error)})"
        ) from error
    if status != http.client.OK:
        problem = parse_problem(answer)
        if problem.code == SettingsError.code:
            raise SettingsError(problem.detail)
        raise unexpected_answer(hub.url, status, problem)
    try:
        return msgspec.json.decode(answer, type=reply_type)
    except msgspec.MsgspecError as error:
        raise StoreUnavailable(
            f"the hub at {hub.url} sent an answer that this version cannot read ({error})"
        ) from error


def parse_problem(answer: bytes) -> Problem:
    """Decode an error answer; an empty Problem when it is none of a hub's."""
    try:
        return msgspec.json.decode(answer, type=Problem)
    except msgspec.MsgspecError:
        return Problem()


def unexpected_answer(url: str, status: int, problem: Problem) -> StoreUnavailable:
    """Error for an answer of the hub that has no meaning here."""
    return StoreUnavailable(
        f"the hub at {url} answered {status} "
        f"({problem.code or 'no code'}: {problem.detail or 'no reason'})"
    )


def _connect(url: str, seconds: float) -> Any:
    parts = urlsplit(url)
    if parts.scheme == "https":
        return http.client.HTTPSConnection(
            parts.hostname or "", parts.port, timeout=seconds, context=unverified_context()
        )
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=seconds)
