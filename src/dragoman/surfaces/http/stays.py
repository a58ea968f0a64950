"""Who stays: only so many streams and waits of one caller, and only while its token is good."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from functools import partial

from dragoman.core.errors import Refusal
from dragoman.engine.hints import Hints
from dragoman.engine.identity import Identity, Principal
from dragoman.surfaces.http.problems import stop
from dragoman.surfaces.http.seat import soon

MOST_STAYS = 256
"""Streams and long polls of one caller that may be open at a time; the owner is not limited."""
VIA = "http"

_log = logging.getLogger("dragoman.http")
Leave = Callable[[], None]


def _look_at_nobody() -> None:
    """Check nothing, while no stream is open."""


class Stays:
    """Counts open streams per caller, and closes them when their token ends.

    Tokens are checked when something happened to an agent (`on_commit`), and at an interval,
    because a token may expire.
    """

    def __init__(self, identity: Identity, hints: Hints, look: float) -> None:
        self._identity = identity
        self._hints = hints
        self._look = look
        self._counted: Counter[str] = Counter()
        self._leaving: dict[object, tuple[str, Leave]] = {}
        """Open stream -> its token, and how to close it."""
        self._watch: asyncio.Task[None] | None = None
        self._look_soon: Callable[[], None] = _look_at_nobody

    def hear(self, streams: Collection[str]) -> None:
        """Check tokens soon, if an agent is among these streams of the ledger. (An `OnCommit`.)"""
        if any(stream.startswith("agent:") for stream in streams):
            self._look_soon()

    @contextmanager
    def stay(self, principal: Principal, token: str, leave: Leave) -> Generator[None]:
        """Count a stream inside the block; `close` is called in the loop when its token ends.

        HttpProblem if the caller has too many already.
        """
        if principal.is_owner:
            yield
            return
        label, me = principal.actor.label, object()
        if self._counted[label] >= MOST_STAYS:
            raise stop(
                "too_many_waiting",
                f"{label} has {MOST_STAYS} streams and waits open, which is the most: end some of "
                "them, or share one stream",
            )
        self._counted[label] += 1
        self._leaving[me] = (token, leave)
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._rounds())
        try:
            yield
        finally:
            del self._leaving[me]
            self._counted[label] -= 1
            if not self._counted[label]:
                del self._counted[label]
            if not self._leaving:
                self._watch.cancel()
                self._watch = None

    async def _rounds(self) -> None:
        wake = asyncio.Event()
        self._look_soon = partial(soon, asyncio.get_running_loop(), wake.set)
        silence = self._hints.listen(self.hear)
        try:
            while True:
                try:
                    async with asyncio.timeout(self._look):
                        await wake.wait()
                except TimeoutError:
                    pass
                wake.clear()
                await self._round()
        finally:
            silence()

    async def _round(self) -> None:
        tokens = {token for token, _ in self._leaving.values()}
        try:
            ended = await asyncio.to_thread(self._ended, tokens)
        except Exception:  # noqa: BLE001  a store that does not answer closes no streams
            _log.exception("the tokens of open streams cannot be checked; trying again")
            return
        for token, leave in tuple(self._leaving.values()):
            if token in ended:
                leave()

    def _ended(self, tokens: Collection[str]) -> set[str]:
        return {token for token in tokens if isinstance(self._identity.who(token, VIA), Refusal)}
