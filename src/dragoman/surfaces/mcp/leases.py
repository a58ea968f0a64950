"""Leases of a client, kept while it is connected: a model that runs tests sends no heartbeats."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from threading import Lock
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.attempt import RenewLease
from dragoman.core.authority import check_holds
from dragoman.core.errors import Refused
from dragoman.core.read import Receipt
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Clock, Store
from dragoman.engine.queries.tasks import TaskView, find_task

_RENEWALS_PER_LEASE: Final = 3

_LONGEST_PAUSE_S: Final = 5.0

_FORGOTTEN_AFTER_MS: Final = 86_400_000
"""Time after its last renewal at which a lease of a client that has gone is forgotten."""

Sleep = Callable[[float], Awaitable[None]]


class _HeldLease(Struct, frozen=True):
    fence: int
    ttl_ms: int
    renewed_at: int
    is_refused: bool = False
    """Its renewal was refused: it is lost, which the next answer tells."""


class HeldLeases:
    """Leases that one client has claimed, or written under as their holder.

    A renewal says that the client is alive, not that it makes progress: an attempt that shows none
    is flagged as quiet all the same.
    """

    def __init__(self, clock: Clock, *, is_shared: bool = False) -> None:
        """`is_shared`: several clients under one name may have claimed them."""
        self._clock = clock
        self._is_shared = is_shared
        self._held: dict[str, _HeldLease] = {}
        # Calls of one client run in several threads.
        self._lock = Lock()

    def note(self, store: Store, actor: Actor, receipts: Iterable[Receipt]) -> None:
        """Note what the client holds, or holds no more, after it has written."""
        for task in {receipt.task: None for receipt in receipts if receipt.task}:
            view = find_task(store, task)
            lease = view.lease if isinstance(view, TaskView) else None
            with self._lock:
                if lease is None or lease.holder != actor.name:
                    self._held.pop(task, None)
                else:
                    self._held[task] = _HeldLease(lease.fence, lease.ttl_ms, self._clock.now())

    def has_claimed(self, store: Store, task: str) -> bool:
        """True if this client, and no other under its name, holds the task by any of its names."""
        view = find_task(store, task)
        if self._is_shared or not isinstance(view, TaskView) or view.lease is None:
            return False
        held = self._held.get(view.task.id)
        return held is not None and held.fence == view.lease.fence

    def is_due(self) -> bool:
        """True if a lease is due for renewal."""
        return bool(self._due())

    def is_forgotten(self) -> bool:
        """True if nothing is held, or the client has gone long ago."""
        oldest = self._clock.now() - _FORGOTTEN_AFTER_MS
        return all(lease.renewed_at < oldest for lease in self._held.copy().values())

    def renew(self, hub: Hub, actor: Actor) -> None:
        """Renew those that are due; one that is lost is told with the next answer."""
        for task, lease in self._due().items():
            is_refused = False
            try:
                hub.submit(actor, RenewLease(task, lease.fence))
            except Refused:
                is_refused = True
            with self._lock:
                if self._held.get(task) is lease:
                    now = self._clock.now()
                    self._held[task] = replace(lease, renewed_at=now, is_refused=is_refused)

    def take_lost(self, store: Store, actor: Actor) -> list[str]:
        """Take out those that were lost, each with the reason; not those that the client ended."""
        lost: list[str] = []
        for task, lease in self._held.copy().items():
            view = find_task(store, task)
            assert isinstance(view, TaskView), "a task stays"
            refusal = check_holds(actor, view.task, view.lease, lease.fence, self._clock.now())
            if refusal is None:
                continue
            with self._lock:
                self._held.pop(task, None)
            if view.task.fence != lease.fence or view.task.ended_by != actor.name:
                lost.append(f"lease_lost: {refusal.detail}")
        return lost

    def _due(self) -> dict[str, _HeldLease]:
        now = self._clock.now()
        return {
            task: lease
            for task, lease in self._held.copy().items()
            if not lease.is_refused
            and now - lease.renewed_at >= lease.ttl_ms // _RENEWALS_PER_LEASE
        }


async def renew_regularly(
    leases: HeldLeases,
    renew: Callable[[], Awaitable[None]],
    ttl_ms: int,
    sleep: Sleep = asyncio.sleep,
) -> None:
    """Renew leases when they are due, until cancelled; `ttl_ms`: the shortest that is granted."""
    pause_s = min(_LONGEST_PAUSE_S, ttl_ms / 1_000 / _RENEWALS_PER_LEASE)
    while True:
        await sleep(pause_s)
        if leases.is_due():
            await renew()
