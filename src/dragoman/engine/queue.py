"""The ready queue as a batch sees it: the store's order, less and more what the batch changed."""

from collections.abc import Container, Iterator, Sequence

from dragoman.engine.ports import ReadyKey, Transaction
from dragoman.ledger.views import State, index_row

_PROMOTION_LIMIT = 100


class ReadyQueues:
    """The ready queues within one transaction: the store's order, with the changes of the batch."""

    def __init__(self, session: Transaction, now: int) -> None:
        self._session = session
        self._now = now
        self.page_size = 1
        """Number of rows read at once: no more than needed, as a store may lock them."""
        self._stored: dict[str, _StoredQueue] = {}
        self._made_ready: dict[str, tuple[str, ReadyKey]] = {}
        self._promoted = False

    def update(self, stream: str, number: int, state: State | None) -> None:
        """Update the queues for a stream that the batch has changed."""
        index = index_row(state, self._now)
        if index.queue is None:
            self._made_ready.pop(stream, None)
        else:
            key = ReadyKey(index.rank, index.since, number, stream)
            self._made_ready[stream] = (index.queue, key)

    def first(
        self, names: Sequence[str], changed: Container[str], skipped: Container[str] = ()
    ) -> str | None:
        """The stream of the first task in these queues, except for skipped ones."""
        if not self._promoted:
            self._session.promote_due(self._now, _PROMOTION_LIMIT)
            self._promoted = True
        return min(self._candidates(names, changed, skipped), default=_NO_TASK).name or None

    def _candidates(
        self, names: Sequence[str], changed: Container[str], skipped: Container[str]
    ) -> Iterator[ReadyKey]:
        for name in names:
            queue = self._stored.setdefault(name, _StoredQueue(self._session, name, self.page_size))
            key = queue.first(changed, skipped)
            if key:
                yield key
        for queue_name, key in self._made_ready.values():
            if queue_name in names and key.name not in skipped:
                yield key


_NO_TASK = ReadyKey(0, 0, 0, "")


class _StoredQueue:
    """One stored queue, read page by page; streams that the batch changed are skipped for good."""

    def __init__(self, session: Transaction, name: str, size: int) -> None:
        self._session = session
        self._name = name
        self._size = size
        self._keys: list[ReadyKey] = []
        self._next = 0
        self._is_exhausted = False

    def first(self, changed: Container[str], skipped: Container[str]) -> ReadyKey | None:
        at = self._next
        while at < len(self._keys) or self._read_more():
            key = self._keys[at]
            if key.name not in changed and key.name not in skipped:
                return key
            at += 1
            if key.name in changed and at == self._next + 1:
                self._next = at
        return None

    def _read_more(self) -> bool:
        """Read the next page; False: there is none."""
        if self._is_exhausted:
            return False
        after = self._keys[-1] if self._keys else None
        page = self._session.ready_page(self._name, after, self._size)
        self._keys += page
        self._is_exhausted = len(page) < self._size
        return bool(page)
