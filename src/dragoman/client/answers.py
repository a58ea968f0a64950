"""What an answer of the hub means: a value, a refusal, or that it is worth asking again. Pure."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Struct

from dragoman.client.errors import BadAnswer, LeaseLost
from dragoman.client.requests import Request
from dragoman.client.shapes import NotSent, Problem, Sent
from dragoman.core.deadlines import Backoff, backoff_delay
from dragoman.core.errors import Refusal, Refused

RETRYABLE_STATUSES: Final = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""
PERMANENT_CODES: Final = frozenset({"store_corrupt", "ledger_broken"})
"""Codes of errors that do not pass by waiting."""

_BACKOFF: Final = Backoff(base_ms=100, cap_ms=5_000)
_MAX_SHOWN: Final = 200
_JSON: Final = "application/json"
"""Media type of a dialect's own refusal; problems of the hub have another."""


class RawResponse(Struct, frozen=True):
    """A response as it came."""

    status: int
    body: bytes
    retry_after: str = ""
    media_type: str = ""


class _BatchLine(Struct, frozen=True):
    """The flag of a line in the response to a batch."""

    ok: bool


class RetryAfter(Struct, frozen=True):
    """The request may succeed later."""

    reason: str
    min_seconds: float = 0.0
    """The minimum that the hub asks for."""


class NoResponse(RetryAfter, frozen=True):
    """There was no complete response: there may be no hub."""


def parse_response(request: Request, response: RawResponse) -> Any:
    """Return the value of a response, or `RetryAfter`; a refusal is raised."""
    if response.status in (200, 201):
        return _decode(request, response)
    if response.status == 204:  # nothing, where that is an answer
        return _decode(request, RawResponse(response.status, b"null"))
    problem = _parse_problem(response)
    if response.status in RETRYABLE_STATUSES and (
        problem is None or problem.code not in PERMANENT_CODES
    ):
        reason = (
            f"{problem.code}: {problem.detail}" if problem else f"HTTP status {response.status}"
        )
        return RetryAfter(reason, _parse_retry_after(response.retry_after))
    if problem is None and response.media_type == _JSON and request.response_type is Any:
        # A dialect that formats refusals itself.
        return _decode(request, response)
    if problem is None:
        raise BadAnswer(
            f"{request.method} {request.path} was answered with HTTP status {response.status} and "
            f"{response.body[:_MAX_SHOWN]!r}: this is no dragoman hub; check its url"
        )
    raise refusal_error(problem)


def refusal_error(problem: Problem) -> Refused:
    """Build the exception of a problem."""
    if problem.code == LeaseLost.code:
        return LeaseLost(problem.detail)
    return Refused(Refusal(problem.code, problem.detail))


def parse_batch(lines: bytes) -> list[Sent | NotSent]:
    """Parse the response to a batch, one result for each of its lines."""
    try:
        return [_parse_batch_line(line) for line in lines.splitlines()]
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadAnswer(
            f"the answer to a batch is not what this client knows ({error}): its version and the "
            "hub's are too far apart"
        ) from None


def backoff_delays(seed: str) -> Iterator[float]:
    """Yield the seconds to wait after each failure, without end: doubling, bounded, with jitter.

    The jitter is derived from the request, so that many who lost the same hub do not come back at
    once.
    """
    failures = 0
    while True:
        failures += 1
        jitter = sha256(f"{seed}:{failures}".encode()).digest()[0] / 255
        yield backoff_delay(failures, _BACKOFF) / 1_000 * (0.5 + jitter / 2)


def _decode(request: Request, response: RawResponse) -> Any:
    if request.response_type is bytes:
        return response.body
    try:
        return msgspec.json.decode(response.body, type=request.response_type)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadAnswer(
            f"the answer to {request.method} {request.path} is not what this client knows "
            f"({error}): this is no dragoman hub, so check its url, or its version and this "
            "client's are too far apart"
        ) from None


def _parse_problem(response: RawResponse) -> Problem | None:
    try:
        return msgspec.json.decode(response.body, type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _parse_retry_after(retry_after: str) -> float:
    return float(retry_after) if retry_after.isascii() and retry_after.isdigit() else 0.0


def _parse_batch_line(line: bytes) -> Sent | NotSent:
    is_taken = msgspec.json.decode(line, type=_BatchLine).ok
    return msgspec.json.decode(line, type=Sent if is_taken else NotSent)
