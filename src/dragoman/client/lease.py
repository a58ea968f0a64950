"""The heartbeat of an attempt: in the background, until the work is done or the lease is lost."""

import asyncio
import logging
from collections.abc import Callable
from math import inf
from typing import Final

from msgspec import Struct

from dragoman.client import requests
from dragoman.client.errors import LeaseLost
from dragoman.client.shapes import Claim
from dragoman.client.wire import Wire
from dragoman.core.errors import DragomanError, Refused

DEFAULT_BEAT_MS: Final = 10_000
LEAST_BEAT_MS: Final = 100
"""With a shorter interval, heartbeats would be most of what the hub has to do."""
_log = logging.getLogger("dragoman.client")


class Pace(Struct, frozen=True):
    """Duration of a lease without a heartbeat, and interval of heartbeats."""

    ttl_ms: int
    beat_ms: int
    """A lost lease, taken away by a person for example, is noticed after so long at most."""

    def __post_init__(self) -> None:
        if self.beat_ms < LEAST_BEAT_MS:
            raise ValueError(f"beat_ms is {self.beat_ms}: it must be at least {LEAST_BEAT_MS}")

    @property
    def ttl(self) -> float:
        """In seconds."""
        return self.ttl_ms / 1_000

    @property
    def pause(self) -> float:
        """Seconds between two heartbeats: two may be lost."""
        return min(self.ttl_ms / 3, self.beat_ms) / 1_000


class Held(Struct, frozen=True):
    """A claimed task, and the timing of its lease."""

    claim: Claim
    pace: Pace
    since: float
    """Its lease did not begin before then, by the clock of the event loop."""

    def is_due(self, now: float) -> bool:
        """Return whether the lease may be so old already that the first heartbeat must not wait."""
        return now - self.since + 2 * self.pace.pause > self.pace.ttl


class Heartbeat:
    """Renews a lease; `on_lost` is called once, with the reason, if it could not."""

    def __init__(self, wire: Wire, held: Held, on_lost: Callable[[LeaseLost], None]) -> None:
        self._wire = wire
        self._held = held
        self._claim = held.claim
        self._pace = held.pace
        self._on_lost = on_lost
        self._task = asyncio.create_task(self._beat())

    def stop(self) -> None:
        """Stop sending heartbeats."""
        self._task.cancel()

    async def _beat(self) -> None:
        claim, loop = self._claim, asyncio.get_running_loop()
        request = requests.heartbeat(claim.task.id, claim.fence)
        end = loop.time() + self._pace.ttl
        if not self._held.is_due(loop.time()):
            # A short task needs no heartbeat, and one that comes after the report is refused, which
            # the ledger records.
            end = self._held.since + self._pace.ttl
            await asyncio.sleep(self._pace.pause)
        while True:
            asked_at = loop.time()
            try:
                async with asyncio.timeout_at(end):
                    await self._wire.ask(request, token=claim.token or "", patience=inf)
            except TimeoutError:
                self._on_lost(self._silent())
                return
            except LeaseLost as lost:
                self._on_lost(lost)
                return
            except Refused as refused:
                self._on_lost(LeaseLost(str(refused)))
                return
            except DragomanError as error:
                # Something between us and the hub has answered: it may be better next time.
                _log.warning("%s: a heartbeat was lost: %s", claim.task.id, error)
                if loop.time() + self._pace.pause >= end:
                    self._on_lost(self._silent())
                    return
            else:
                end = asked_at + self._pace.ttl
            await asyncio.sleep(self._pace.pause)

    def _silent(self) -> LeaseLost:
        return LeaseLost(
            f"the hub could not be reached for {self._pace.ttl:g} s, so that the lease on "
            f"{self._claim.task.id} (fence {self._claim.fence}) has ended: stop working on it"
        )
