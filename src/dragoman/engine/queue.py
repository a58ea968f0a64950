"""The ready queue as a batch sees it: the store's order, less and more what the batch changed."""

from collections.abc import Container, Iterator, Sequence

from dragoman.engine.ports import ReadyKey, Session
from dragoman.ledger.views import State, shelve

_PROMOTED_AT_ONCE = 100


class ReadyQueues:
    """The ready queues within one transaction: the store's order, with the changes of the batch."""

    def __init__(self, session: Session, now: int) -> None:
        self._session = session
        self._now = now
        self.page = 1
        """Number of rows read at once: no more than needed, as a store may lock them."""
        self._stored: dict[str, _Queue] = {}
        self._made_ready: dict[str, tuple[str, ReadyKey]] = {}
        self._promoted = False

    def changed(self, stream: str, number: int, state: State | None) -> None:
        """Update the queues for a stream that the batch has changed."""
        shelf = shelve(state, self._now)
        if shelf.queue is None:
            self._made_ready.pop(stream, None)
        else:
            key = ReadyKey(shelf.rank, shelf.since, number, stream)
            self._made_ready[stream] = (shelf.queue, key)

    def first(
        self, names: Sequence[str], changed: Container[str], passed: Container[str] = ()
    ) -> str | None:
        """The stream of the first task in these queues, except for skipped ones."""
        if not self._promoted:
            self._session.promote(self._now, _PROMOTED_AT_ONCE)
            self._promoted = True
        return min(self._candidates(names, changed, passed), default=_NOBODY).name or None

    def _candidates(
        self, names: Sequence[str], changed: Container[str], passed: Container[str]
    ) -> Iterator[ReadyKey]:
        for name in names:
            queue = self._stored.setdefault(name, _Queue(self._session, name, self.page))
            key = queue.first(changed, passed)
            if key:
                yield key
        for queue_name, key in self._made_ready.values():
            if queue_name in names and key.name not in passed:
                yield key


_NOBODY = ReadyKey(0, 0, 0, "")


class _Queue:
    """One stored queue, read page by page; streams that the batch changed are skipped for good."""

    def __init__(self, session: Session, name: str, size: int) -> None:
        self._session = session
        self._name = name
        self._size = size
        self._keys: list[ReadyKey] = []
        self._at = 0
        self._is_last = False

    def first(self, changed: Container[str], passed: Container[str]) -> ReadyKey | None:
        at = self._at
        while at < len(self._keys) or self._read_on():
            key = self._keys[at]
            if key.name not in changed and key.name not in passed:
                return key
            at += 1
            if key.name in changed and at == self._at + 1:
                self._at = at
        return None

    def _read_on(self) -> bool:
        """Read the next page; False: there is none."""
        if self._is_last:
            return False
        after = self._keys[-1] if self._keys else None
        page = self._session.ready(self._name, after, self._size)
        self._keys += page
        self._is_last = len(page) < self._size
        return bool(page)
