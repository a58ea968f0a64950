"""Limits of callers: request rate (token buckets), bodies in flight, speed of a body, streams."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from math import ceil
from time import monotonic

from starlette.types import Receive, Scope

from dragoman.core.errors import Refusal
from dragoman.engine.auth import Authenticator, Principal
from dragoman.surfaces.http.deps import Timeouts
from dragoman.surfaces.http.errors import problem_error
from dragoman.text.strict_json import MAX_BYTES

# --- rates ------------------------------------------------------------------------------------

MAX_BUCKETS = 10_000

_MAX_DEBT_S = 60.0

_TURN_S = 0.001
"""Time after which a batch leaves the event loop to others."""


class RateLimiter:
    """Token buckets, one for each caller: they fill with time, and every request takes something
    out.

    Taking out more than there is leaves a debt, so that a large batch is never impossible; the next
    request waits until the debt is paid. That takes a minute at most: a mistake in one batch is not
    to silence an agent for longer.
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

    def acquire(self, caller: str, amount: int = 1, *, required: float = 1.0) -> int:
        """Take out an amount; return 0, or the seconds that the caller has to wait because there is
        less than what is required: 0.0 for a request that turned out to count as several."""
        if not self._per_second or amount <= 0:
            return 0
        left, now = self._available(caller)
        if left < required:
            return max(1, ceil((1 - left) / self._per_second))
        if len(self._buckets) >= MAX_BUCKETS and caller not in self._buckets:
            self._drop_full_buckets(now)
        self._buckets[caller] = (max(left - amount, -_MAX_DEBT_S * self._per_second), now)
        return 0

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


class DecodingTurns:
    """Turns of batches in the event loop, whose lines may be anything: one of them decodes at a
    time, and after a while the loop is left to other requests for as long as that took."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._started_at = 0.0
        self._spent_s = 0.0

    async def __aenter__(self) -> None:
        """Wait for the turn."""
        await self._lock.acquire()
        self._started_at = asyncio.get_running_loop().time()

    async def __aexit__(self, *_: object) -> None:
        """End it; another one begins when others had theirs."""
        try:
            self._spent_s += asyncio.get_running_loop().time() - self._started_at
            if self._spent_s >= _TURN_S:
                pause_s, self._spent_s = self._spent_s, 0.0
                await asyncio.sleep(pause_s)
        finally:
            self._lock.release()


# --- bodies -----------------------------------------------------------------------------------

OPEN_BYTES_OF_ADDRESS = 4 * MAX_BYTES
"""Bytes of bodies in flight from one address at endpoints that need no token."""

OPEN_BYTES = 16 * OPEN_BYTES_OF_ADDRESS

_LARGEST_OF_CALLER = 2
"""Bodies of the largest size (`http.max_body`) of one caller in flight."""

_LARGEST_OF_ALL = 8

_PARTS = _LARGEST_OF_ALL + 1
"""Parts of a budget, one of which is for small bodies alone."""

_SLOW_CALLER_S = 60.0
"""For so long a caller counts as slow."""


class BodyBudget:
    """Bytes of request bodies in flight: a limit for each caller, and one for all together.

    Large bodies leave a share to small ones. One that is slow to come loses its place when others
    need it, and its caller then gets one only while half of the budget is free: a few callers would
    otherwise keep all others out for as long as a body may take.
    """

    def __init__(self, per_caller: int, total: int) -> None:
        self._per_caller = per_caller
        self._total = total
        self._held = 0
        self._held_by_caller: Counter[str] = Counter()
        self._slow: dict[BodyReservation, Callable[[], None]] = {}
        """Requests whose bodies are slow to come, the slowest first -> stops the reading of it."""
        self._slow_callers: dict[str, float] = {}
        """Caller whose body has lost its place -> until when that counts."""

    def __len__(self) -> int:
        """Return how many bytes are in flight."""
        return self._held

    def acquire(self, caller: str, size: int, *, held: int = 0) -> None:
        """Take bytes for a caller's request that holds some already; HttpProblem if too many are in
        flight."""
        if self._held_by_caller[caller] + size > self._per_caller:
            raise problem_error(
                "overloaded",
                f"at most {self._per_caller} bytes of requests of one caller are handled at a "
                f"time, and {self._held_by_caller[caller]} are: try again when those are answered",
            )
        is_slow = self._slow_callers.get(caller, 0.0) > monotonic()
        limit = self._total // 2 if is_slow else self._limit_for(held + size)
        if self._held + size > limit and not is_slow:
            self._evict_slow(self._held + size - limit)
        if self._held + size > limit:
            raise problem_error(
                "overloaded",
                f"at most {limit} bytes of requests of all callers are handled at a time, "
                f"and {self._held} are: try again",
            )
        self._held += size
        self._held_by_caller[caller] += size

    def add_slow(self, reservation: "BodyReservation", stop_reading: Callable[[], None]) -> None:
        """Note that the body of this request is slow to come."""
        self._slow[reservation] = stop_reading

    def remove_slow(self, reservation: "BodyReservation") -> None:
        """Note that it has come."""
        self._slow.pop(reservation, None)

    def _limit_for(self, size: int) -> int:
        """Bytes of all callers up to which a request of this size gets its place."""
        return self._total if size <= MAX_BYTES else self._total - self._total // _PARTS

    def _evict_slow(self, needed: int) -> None:
        """Take their places from slow bodies, if that gives as many bytes."""
        if sum(one.size for one in self._slow) < needed:
            return
        for reservation in tuple(self._slow):
            if needed > 0:
                needed -= reservation.size
                stop_reading = self._slow.pop(reservation)
                reservation.is_evicted = True
                now = monotonic()
                lately = {name: end for name, end in self._slow_callers.items() if end > now}
                self._slow_callers = {**lately, reservation.caller: now + _SLOW_CALLER_S}
                reservation.release()
                stop_reading()

    def release(self, caller: str, size: int) -> None:
        """Give bytes of a caller back."""
        self._held -= size
        self._held_by_caller[caller] -= size
        if not self._held_by_caller[caller]:
            del self._held_by_caller[caller]


def token_budget(max_body: int) -> BodyBudget:
    """Build the budget of callers with a token, for this size of the largest body."""
    return BodyBudget(_LARGEST_OF_CALLER * max_body, _PARTS * max_body)


def open_budget() -> BodyBudget:
    """Build the budget of callers without a token, by their address."""
    return BodyBudget(OPEN_BYTES_OF_ADDRESS, OPEN_BYTES)


class BodyReservation:
    """The share of one request in a budget, from before its body is read until it is answered."""

    def __init__(self, budget: BodyBudget | None = None, caller: str = "") -> None:
        """`budget`: None for the owner, who is not limited."""
        self._budget = budget
        self.caller = caller
        self.size = 0
        self.is_evicted = False
        """True if others have got its place."""

    def extend_to(self, size: int) -> None:
        """Reserve this many bytes in all; HttpProblem if too many are in flight."""
        if self._budget is not None and size > self.size:
            self._budget.acquire(self.caller, size - self.size, held=self.size)
            self.size = size

    @contextmanager
    def reading(self, stop_reading: Callable[[], None], grace_s: float) -> Generator[None]:
        """Read the body: one that has not come after the grace loses its place if others need it,
        and `stop_reading` is called."""
        if self._budget is None:
            yield
            return
        loop, budget = asyncio.get_running_loop(), self._budget
        timer = loop.call_later(grace_s, budget.add_slow, self, stop_reading)
        try:
            yield
        finally:
            timer.cancel()
            budget.remove_slow(self)

    def release(self) -> None:
        """Give everything back."""
        if self._budget is not None and self.size:
            self._budget.release(self.caller, self.size)
            self.size = 0


async def read_body(receive: Receive, scope: Scope, max_bytes: int, timeouts: Timeouts) -> bytes:
    """Read the whole body of a request within the budget of its caller; HttpProblem if it is too
    long, comes too slowly, or if too many are in flight.

    A declared length is reserved before the first byte is read, that of a body in chunks with each.
    """
    reservation: BodyReservation = scope["body_reservation"]
    declared = scope["by_name"].get(b"content-length", b"")
    if declared.isdigit():
        if int(declared) > max_bytes:
            raise _too_large(int(declared), max_bytes)
        reservation.extend_to(int(declared))
    parts: list[bytes] = []
    size = 0
    loop = asyncio.get_running_loop()
    end = loop.time() + timeouts.body
    try:
        async with asyncio.timeout(timeouts.body_idle) as limit:
            with reservation.reading(lambda: limit.reschedule(loop.time()), timeouts.slow_body):
                while True:
                    message = await receive()
                    if reservation.is_evicted:
                        raise TimeoutError
                    if message["type"] == "http.disconnect":
                        raise problem_error(
                            "request_timeout", "the connection ended before the request did"
                        )
                    part = message.get("body", b"")
                    size += len(part)
                    if size > max_bytes:
                        raise _too_large(size, max_bytes)
                    reservation.extend_to(size)
                    if not message.get("more_body", False):
                        return part if not parts else b"".join((*parts, part))
                    parts.append(part)
                    limit.reschedule(min(end, loop.time() + timeouts.body_idle))
    except TimeoutError:
        if reservation.is_evicted:
            raise problem_error(
                "overloaded",
                f"the body had not come after {timeouts.slow_body:g} seconds, and others needed "
                "its place: try again",
            ) from None
        raise problem_error(
            "request_timeout",
            f"the body of the request did not come within {timeouts.body:g} seconds, or there was "
            f"a pause of {timeouts.body_idle:g} seconds in it",
        ) from None


def _too_large(size: int, max_bytes: int) -> Exception:
    return problem_error(
        "message_too_large",
        f"the request has {size} bytes or more; at most {max_bytes} are taken here",
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
