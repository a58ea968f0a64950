"""Reader that tails the ledger while others write, and a check of what it has read."""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence

from dragoman.engine.ports import Store
from dragoman.engine.subscribe import follow
from tests.conformance.store.threads import TIMEOUT_S, start_thread

Seen = tuple[int, str, int]
"""Position, stream and version of an entry."""


class Tail:
    """Reader that follows the ledger from its start until writing is finished."""

    def __init__(self, store: Store) -> None:
        self._is_written = threading.Event()
        self._has_looked_again = False
        self.seen: list[tuple[int, str, int]] = []
        self._reading = start_thread(lambda: self._read(store))

    def finish(self) -> None:
        """Read what remains after the last write, and stop."""
        self._is_written.set()
        self._reading.result(TIMEOUT_S)

    def _read(self, store: Store) -> None:
        for entry in follow(store.entries, 0, self._wait):
            self.seen.append((entry.position, entry.stream, entry.version))

    def _wait(self) -> bool:
        if not self._is_written.is_set():
            self._is_written.wait(0.001)
            return True
        looked, self._has_looked_again = self._has_looked_again, True
        return not looked


def reading_errors(seen: Sequence[Seen], store: Store) -> Iterator[str]:
    """List entries that a reader missed, saw twice or saw out of order."""
    times = Counter(seen)
    kept = [(entry.position, entry.stream, entry.version) for entry in store.entries(0, 1 << 40)]
    yield from (f"missed {entry}" for entry in kept if entry not in times)
    yield from (f"saw {entry}, which is not there" for entry in times.keys() - set(kept))
    yield from (f"saw {entry} {n} times" for entry, n in times.items() if n > 1)
    if list(seen) != sorted(seen):
        yield "saw positions out of order"
    if [position for position, _, _ in kept] != list(range(1, len(kept) + 1)):
        yield "the ledger has gaps"
