"""What an answer of the hub means: a value, a refusal, or that it is worth asking again. Pure."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Struct

from dragoman.client.errors import BadAnswer, LeaseLost
from dragoman.client.requests import Request
from dragoman.client.shapes import NotSent, Problem, Sent
from dragoman.core.deadlines import Backoff, rest_after
from dragoman.core.errors import Refusal, Refused

AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""
FOR_GOOD: Final = frozenset({"store_corrupt", "ledger_broken"})
"""Codes of errors that do not pass by waiting."""

_BACKOFF: Final = Backoff(base_ms=100, cap_ms=5_000)
_SHOWN: Final = 200
_OWN_FORM: Final = "application/json"
"""Media type of a dialect's own refusal; problems of the hub have another."""


class Reply(Struct, frozen=True):
    """A response as it came."""

    status: int
    body: bytes
    retry_after: str = ""
    media: str = ""


class _Answered(Struct, frozen=True):
    """The flag of a line in the response to a batch."""

    ok: bool


class Later(Struct, frozen=True):
    """The request may succeed later."""

    why: str
    least_seconds: float = 0.0
    """The minimum that the hub asks for."""


class Silence(Later, frozen=True):
    """There was no complete response: there may be no hub."""


def read_reply(request: Request, reply: Reply) -> Any:
    """Return the value of a response, or `RetryAfter`; a refusal is raised."""
    if reply.status in (200, 201):
        return _decoded(request, reply)
    if reply.status == 204:  # nothing, where that is an answer
        return _decoded(request, Reply(reply.status, b"null"))
    problem = _problem(reply)
    if reply.status in AGAIN and (problem is None or problem.code not in FOR_GOOD):
        why = f"{problem.code}: {problem.detail}" if problem else f"HTTP status {reply.status}"
        return Later(why, _seconds(reply.retry_after))
    if problem is None and reply.media == _OWN_FORM and request.answer is Any:
        # A dialect that formats refusals itself.
        return _decoded(request, reply)
    if problem is None:
        raise BadAnswer(
            f"{request.method} {request.path} was answered with HTTP status {reply.status} and "
            f"{reply.body[:_SHOWN]!r}: this is no dragoman hub; check its url"
        )
    raise refused(problem)


def refused(problem: Problem) -> Refused:
    """Build the exception of a problem."""
    if problem.code == LeaseLost.code:
        return LeaseLost(problem.detail)
    return Refused(Refusal(problem.code, problem.detail))


def read_batch(lines: bytes) -> list[Sent | NotSent]:
    """Parse the response to a batch, one result for each of its lines."""
    try:
        return [_line(line) for line in lines.splitlines()]
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadAnswer(
            f"the answer to a batch is not what this client knows ({error}): its version and the "
            "hub's are too far apart"
        ) from None


def pauses(seed: str) -> Iterator[float]:
    """Yield the seconds to wait after each failure, without end: doubling, bounded, with jitter.

    The jitter is derived from the request, so that many who lost the same hub do not come back at
    once.
    """
    failures = 0
    while True:
        failures += 1
        drawn = sha256(f"{seed}:{failures}".encode()).digest()[0] / 255
        yield rest_after(failures, _BACKOFF) / 1_000 * (0.5 + drawn / 2)


def _decoded(request: Request, reply: Reply) -> Any:
    if request.answer is bytes:
        return reply.body
    try:
        return msgspec.json.decode(reply.body, type=request.answer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadAnswer(
            f"the answer to {request.method} {request.path} is not what this client knows "
            f"({error}): this is no dragoman hub, so check its url, or its version and this "
            "client's are too far apart"
        ) from None


def _problem(reply: Reply) -> Problem | None:
    try:
        return msgspec.json.decode(reply.body, type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _seconds(retry_after: str) -> float:
    return float(retry_after) if retry_after.isascii() and retry_after.isdigit() else 0.0


def _line(line: bytes) -> Sent | NotSent:
    is_taken = msgspec.json.decode(line, type=_Answered).ok
    return msgspec.json.decode(line, type=Sent if is_taken else NotSent)
