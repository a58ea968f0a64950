"""Stores that are broken on purpose: the simulation must find them."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from dragoman.core.attempt_state import Lease
from dragoman.engine.ports import Changes, Store, Transaction
from dragoman.store.memory import MemoryStore

T = TypeVar("T")
Change = Callable[[Changes, int], Changes | None]
"""Replacement of the changes of the transaction with this number; None: nothing is written."""


class _Session:
    """Session that writes changed data."""

    def __init__(self, session: Transaction, change: Change, number: int) -> None:
        self._session = session
        self._change = change
        self._number = number

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._session, verb)

    def write(self, changes: Changes) -> None:
        changed = self._change(changes, self._number)
        if changed is not None:
            self._session.write(changed)


class Mutant(MemoryStore):
    """Memory store with such sessions, shared by all hub processes."""

    def __init__(self, change: Change) -> None:
        super().__init__("mutant")
        self._change = change
        self._transactions = 0

    def transact(self, work: Callable[[Transaction], T]) -> T:
        """Run the work; what it writes is changed on the way."""
        self._transactions += 1
        number = self._transactions

        def changed(session: Transaction) -> T:
            return work(cast(Transaction, _Session(session, self._change, number)))

        return super().transact(changed)

    def open(self) -> Store:
        """Return the same store for every process of the hub."""
        return self

    def crash(self, store: Store) -> None:
        """Lose nothing."""


def skip_some_commits(changes: Changes, number: int) -> Changes | None:
    """Write nothing in some transactions, although the hub is told otherwise."""
    return None if number % 50 == 0 else changes


def drop_idempotency_keys(changes: Changes, number: int) -> Changes:
    """Forget the idempotency keys of requests, so that a repeat is a new one."""
    del number
    changes.answers = []
    return changes


def extend_leases(changes: Changes, number: int) -> Changes:
    """Extend every lease by an hour too much."""
    del number
    changes.leases = [(stream, lease and _extended(lease)) for stream, lease in changes.leases]
    changes.streams = [
        replace(row, lease=row.lease and _extended(row.lease)) for row in changes.streams
    ]
    return changes


def _extended(lease: Lease) -> Lease:
    return replace(lease, expires_at=lease.last_heartbeat + lease.ttl_ms + 3_600_000)


def drop_some_claims(changes: Changes, number: int) -> Changes:
    """Omit some claims, but write their leases."""
    if number % 7 == 0 and any(new.event == "task.claimed" for new in changes.entries):
        claimed = {new.stream for new in changes.entries if new.event == "task.claimed"}
        changes.entries = [new for new in changes.entries if new.stream not in claimed]
        changes.streams = [row for row in changes.streams if row.number not in claimed]
    return changes


MUTANTS: tuple[Change, ...] = (
    skip_some_commits,
    drop_idempotency_keys,
    extend_leases,
    drop_some_claims,
)
