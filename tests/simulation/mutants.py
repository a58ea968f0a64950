"""Stores that are broken on purpose: a simulation that does not notice them proves nothing."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from dragoman.core.states.lease import Lease
from dragoman.engine.ports import Changes, Session, Store
from dragoman.store.memory import MemoryStore

T = TypeVar("T")
Change = Callable[[Changes, int], Changes | None]
"""What is written in the place of these changes, of the so-manieth transaction; None: nothing."""


class _Session:
    """A session that writes something else than it is told."""

    def __init__(self, session: Session, change: Change, number: int) -> None:
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
    """A memory store with such sessions, which outlives its hubs."""

    def __init__(self, change: Change) -> None:
        super().__init__("mutant")
        self._change = change
        self._transactions = 0

    def transact(self, work: Callable[[Session], T]) -> T:
        """Run the work; what it writes is changed on its way."""
        self._transactions += 1
        number = self._transactions

        def changed(session: Session) -> T:
            return work(cast(Session, _Session(session, self._change, number)))

        return super().transact(changed)

    def open(self) -> Store:
        """The same store for every life of the hub."""
        return self

    def crash(self, store: Store) -> None:
        """Nothing is lost by that."""


def skip_some_commits(changes: Changes, number: int) -> Changes | None:
    """Now and then nothing is written, and the hub is told that it was."""
    return None if number % 50 == 0 else changes


def drop_idempotency_keys(changes: Changes, number: int) -> Changes:
    """No request is remembered, so that its repeat is a new one."""
    del number
    changes.answers = []
    return changes


def extend_leases(changes: Changes, number: int) -> Changes:
    """A sign of life counts for an hour more than it should."""
    del number
    changes.leases = [(stream, lease and _extended(lease)) for stream, lease in changes.leases]
    changes.streams = [
        replace(row, lease=row.lease and _extended(row.lease)) for row in changes.streams
    ]
    return changes


def _extended(lease: Lease) -> Lease:
    return replace(lease, expires_at=lease.beat_at + lease.ttl_ms + 3_600_000)


def drop_some_claims(changes: Changes, number: int) -> Changes:
    """Some claims are not written down, but their leases are."""
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
