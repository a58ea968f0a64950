"""Who stays: only so many streams and waits of one caller, and only while its token is good."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from functools import partial

from dragoman.core.errors import Refusal
from dragoman.engine.hints import CommitHints
from dragoman.engine.identity import Authenticator, Principal
from dragoman.surfaces.http.problems import problem_error
from dragoman.surfaces.http.seat import call_in_loop

MAX_STREAMS = 256
"""Streams and long polls of one caller that may be open at a time; the owner is not limited."""
VIA = "http"

_log = logging.getLogger("dragoman.http")
CloseStream = Callable[[], None]


def _no_check() -> None:
    """Check nothing, while no stream is open."""


class StreamLimits:
    """Counts open streams per caller, and closes them when their token ends.

    Tokens are checked when something happened to an agent (`on_commit`), and at an interval,
    because a token may expire.
    """

    def __init__(self, identity: Authenticator, hints: CommitHints, interval_s: float) -> None:
        self._identity = identity
        self._hints = hints
        self._interval_s = interval_s
        self._open_streams: Counter[str] = Counter()
        self._closers: dict[object, tuple[str, CloseStream]] = {}
        """Open stream -> its token, and how to close it."""
        self._watcher: asyncio.Task[None] | None = None
        self._check_soon: Callable[[], None] = _no_check

    def on_commit(self, streams: Collection[str]) -> None:
        """Check tokens soon, if an agent is among these streams of the ledger. (An `OnCommit`.)"""
        if any(stream.startswith("agent:") for stream in streams):
            self._check_soon()

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
        wake = asyncio.Event()
        self._check_soon = partial(call_in_loop, asyncio.get_running_loop(), wake.set)
        unsubscribe = self._hints.subscribe(self.on_commit)
        try:
            while True:
                try:
                    async with asyncio.timeout(self._interval_s):
                        await wake.wait()
                except TimeoutError:
                    pass
                wake.clear()
                await self._close_expired()
        finally:
            unsubscribe()

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
