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
from dragoman.client.wire import Transport
from dragoman.core.errors import DragomanError, Refused

DEFAULT_HEARTBEAT_MS: Final = 10_000
MIN_HEARTBEAT_MS: Final = 100
"""With a shorter interval, heartbeats would be most of what the hub has to do."""
_heartbeat_log = logging.getLogger("dragoman.client")


class LeaseTiming(Struct, frozen=True):
    """Duration of a lease without a heartbeat, and interval of heartbeats."""

    ttl_ms: int
    beat_ms: int
    """A lost lease, taken away by a person for example, is noticed after so long at most."""

    def __post_init__(self) -> None:
        if self.beat_ms < MIN_HEARTBEAT_MS:
            raise ValueError(f"beat_ms is {self.beat_ms}: it must be at least {MIN_HEARTBEAT_MS}")

    @property
    def ttl_s(self) -> float:
        """In seconds."""
        return self.ttl_ms / 1_000

    @property
    def interval_s(self) -> float:
        """Seconds between two heartbeats: two may be lost."""
        return min(self.ttl_ms / 3, self.beat_ms) / 1_000


class HeldClaim(Struct, frozen=True):
    """A claimed task, and the timing of its lease."""

    claim: Claim
    timing: LeaseTiming
    earliest_start: float
    """Its lease did not begin before then, by the clock of the event loop."""

    def is_heartbeat_due(self, now: float) -> bool:
        """Return whether the lease may be so old already that the first heartbeat must not wait."""
        return now - self.earliest_start + 2 * self.timing.interval_s > self.timing.ttl_s


class Heartbeat:
    """Renews a lease; `on_lost` is called once, with the reason, if it could not."""

    def __init__(
        self, transport: Transport, held: HeldClaim, on_lost: Callable[[LeaseLost], None]
    ) -> None:
        self._transport = transport
        self._held = held
        self._claim = held.claim
        self._timing = held.timing
        self._on_lost = on_lost
        self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        """Stop sending heartbeats."""
        self._task.cancel()

    async def _run(self) -> None:
        claim, loop = self._claim, asyncio.get_running_loop()
        request = requests.renew_lease(claim.task.id, claim.fence)
        lease_end = loop.time() + self._timing.ttl_s
        if not self._held.is_heartbeat_due(loop.time()):
            # A short task needs no heartbeat, and one that comes after the report is refused, which
            # the ledger records.
            lease_end = self._held.earliest_start + self._timing.ttl_s
            await asyncio.sleep(self._timing.interval_s)
        while True:
            asked_at = loop.time()
            try:
                async with asyncio.timeout_at(lease_end):
                    await self._transport.send(request, token=claim.token or "", patience=inf)
            except TimeoutError:
                self._on_lost(self._unreachable())
                return
            except LeaseLost as lost:
                self._on_lost(lost)
                return
            except Refused as refused:
                self._on_lost(LeaseLost(str(refused)))
                return
            except DragomanError as error:
                # Something between us and the hub has answered: it may be better next time.
                _heartbeat_log.warning("%s: a heartbeat was lost: %s", claim.task.id, error)
                if loop.time() + self._timing.interval_s >= lease_end:
                    self._on_lost(self._unreachable())
                    return
            else:
                lease_end = asked_at + self._timing.ttl_s
            await asyncio.sleep(self._timing.interval_s)

    def _unreachable(self) -> LeaseLost:
        return LeaseLost(
            f"the hub could not be reached for {self._timing.ttl_s:g} s, so that the lease on "
            f"{self._claim.task.id} (fence {self._claim.fence}) has ended: stop working on it"
        )
