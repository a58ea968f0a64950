"""Limits of callers: request rate (token buckets), size and speed of a body, open streams."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from math import ceil

from starlette.types import Receive

from dragoman.core.errors import Refusal
from dragoman.engine.auth import Authenticator, Principal
from dragoman.surfaces.http.deps import Timeouts
from dragoman.surfaces.http.errors import problem_error

# --- rates and bodies -------------------------------------------------------------------------

MAX_BUCKETS = 10_000


class RateLimiter:
    """Token buckets, one for each caller: they fill with time, and every request takes something
    out.

    Taking out more than there is leaves a debt, so that a large batch is never impossible; the next
    request waits until the debt is paid.
    """

    def __init__(self, per_second: float, burst: int, monotonic: Callable[[], float]) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._monotonic = monotonic
        self._buckets: dict[str, tuple[float, float]] = {}
        """Caller -> the level of its bucket, and when that was."""

    def __len__(self) -> int:
        """Return how many callers are remembered."""
        return len(self._buckets)

    def acquire(self, caller: str, amount: int = 1) -> int:
        """Take out an amount; return 0 if the caller may go on, else the seconds that it has to
        wait."""
        if not self._per_second:
            return 0
        left, now = self._available(caller)
        if left < 1:
            return max(1, ceil((1 - left) / self._per_second))
        if len(self._buckets) >= MAX_BUCKETS and caller not in self._buckets:
            self._drop_full_buckets(now)
        self._buckets[caller] = (left - amount, now)
        return 0

    def charge(self, caller: str, amount: int) -> None:
        """Take out an amount in any case, for a request that turned out to count as several."""
        if self._per_second and amount > 0:
            left, now = self._available(caller)
            self._buckets[caller] = (left - amount, now)

    def _available(self, caller: str) -> tuple[float, float]:
        """Return the level of a caller's bucket, and the time."""
        now = self._monotonic()
        left, at = self._buckets.get(caller, (self._burst, now))
        return min(self._burst, left + (now - at) * self._per_second), now

    def _drop_full_buckets(self, now: float) -> None:
        self._buckets = {
            caller: (left, at)
            for caller, (left, at) in self._buckets.items()
            if left + (now - at) * self._per_second < self._burst
        }
        if len(self._buckets) >= MAX_BUCKETS:
            self._buckets.clear()


async def read_body(
    receive: Receive, headers: Mapping[bytes, bytes], max_bytes: int, timeouts: Timeouts
) -> bytes:
    """Read the whole body of a request; HttpProblem if it is too long or comes too slowly."""
    declared = headers.get(b"content-length", b"")
    if declared.isdigit() and int(declared) > max_bytes:
        raise _too_large(int(declared), max_bytes)
    parts: list[bytes] = []
    size = 0
    loop = asyncio.get_running_loop()
    end = loop.time() + timeouts.body
    try:
        async with asyncio.timeout(timeouts.body_idle) as limit:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise problem_error(
                        "request_timeout", "the connection ended before the request did"
                    )
                part = message.get("body", b"")
                size += len(part)
                if size > max_bytes:
                    raise _too_large(size, max_bytes)
                if not message.get("more_body", False):
                    return part if not parts else b"".join((*parts, part))
                parts.append(part)
                limit.reschedule(min(end, loop.time() + timeouts.body_idle))
    except TimeoutError:
        raise problem_error(
            "request_timeout",
            f"the body of the request did not come within {timeouts.body:g} seconds, or there was "
            f"a pause of {timeouts.body_idle:g} seconds in it",
        ) from None


def _too_large(size: int, max_bytes: int) -> Exception:
    return problem_error(
        "message_too_large",
        f"the request has {size} bytes or more; at most {max_bytes} are taken (http.max_body)",
    )


# --- open streams -----------------------------------------------------------------------------

MAX_STREAMS = 256
"""Streams and long polls of one caller that may be open at a time; the owner is not limited."""

VIA = "http"

_log = logging.getLogger("dragoman.http")

CloseStream = Callable[[], None]


class StreamLimits:
    """Counts open streams per caller, and closes them when their token ends."""

    def __init__(self, identity: Authenticator, interval_s: float) -> None:
        self._identity = identity
        self._interval_s = interval_s
        self._open_streams: Counter[str] = Counter()
        self._closers: dict[object, tuple[str, CloseStream]] = {}
        """Open stream -> its token, and how to close it."""
        self._watcher: asyncio.Task[None] | None = None

    @contextmanager
    def admit(self, principal: Principal, token: str, close: CloseStream) -> Generator[None]:
        """Count a stream inside the block; `close` is called in the loop when its token ends.

        HttpProblem if the caller has too many already.
        """
        if principal.is_owner:
            yield
            return
        label, stream = principal.actor.label, object()
        if self._open_streams[label] >= MAX_STREAMS:
            raise problem_error(
                "too_many_waiting",
                f"{label} has {MAX_STREAMS} streams and waits open, which is the most: end some of "
                "them, or share one stream",
            )
        self._open_streams[label] += 1
        self._closers[stream] = (token, close)
        if self._watcher is None or self._watcher.done():
            self._watcher = asyncio.create_task(self._watch_tokens())
        try:
            yield
        finally:
            del self._closers[stream]
            self._open_streams[label] -= 1
            if not self._open_streams[label]:
                del self._open_streams[label]
            if not self._closers:
                self._watcher.cancel()
                self._watcher = None

    async def _watch_tokens(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            await self._close_expired()

    async def _close_expired(self) -> None:
        tokens = {token for token, _ in self._closers.values()}
        try:
            expired = await asyncio.to_thread(self._expired_tokens, tokens)
        except Exception:  # noqa: BLE001  a store that does not answer closes no streams
            _log.exception("the tokens of open streams cannot be checked; trying again")
            return
        for token, close in tuple(self._closers.values()):
            if token in expired:
                close()

    def _expired_tokens(self, tokens: Collection[str]) -> set[str]:
        return {
            token
            for token in tokens
            if isinstance(self._identity.authenticate(token, VIA), Refusal)
        }
