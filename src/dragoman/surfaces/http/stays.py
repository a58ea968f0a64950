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
"""So many streams and waits of one caller are open at a time; the owner is not limited."""
VIA = "http"

_log = logging.getLogger("dragoman.http")
Leave = Callable[[], None]


def _look_at_nobody() -> None:
    """While nobody stays."""


class Stays:
    """Counts those who stay, and looks again at their tokens.

    When something happened to an agent (`hear`), and every so many seconds: a token may come to its
    end.
    """

    def __init__(self, identity: Identity, hints: Hints, look: float) -> None:
        self._identity = identity
        self._hints = hints
        self._look = look
        self._counted: Counter[str] = Counter()
        self._leaving: dict[object, tuple[str, Leave]] = {}
        """Each stay -> its token, and how it ends."""
        self._watch: asyncio.Task[None] | None = None
        self._look_soon: Callable[[], None] = _look_at_nobody

    def hear(self, streams: Collection[str]) -> None:
        """Something has happened to these streams. (An `OnCommit`.)"""
        if any(stream.startswith("agent:") for stream in streams):
            self._look_soon()

    @contextmanager
    def stay(self, principal: Principal, token: str, leave: Leave) -> Generator[None]:
        """Meanwhile it counts, and `leave` is called in the loop when the token is good no more.

        HttpProblem when the caller has too many already.
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
        except Exception:  # noqa: BLE001  a store that does not answer sends nobody away
            _log.exception("the tokens of those who wait cannot be looked at; trying again")
            return
        for token, leave in tuple(self._leaving.values()):
            if token in ended:
                leave()

    def _ended(self, tokens: Collection[str]) -> set[str]:
        return {token for token in tokens if isinstance(self._identity.who(token, VIA), Refusal)}
