"""The ready queue as a batch sees it: the store's order, less and more what the batch changed."""

from collections.abc import Container, Iterator, Sequence

from dragoman.engine.ports import ReadyKey, Session
from dragoman.ledger.views import State, shelve

_PROMOTED_AT_ONCE = 100


class ReadyQueues:
    """Who is next, for any agent, within one transaction."""

    def __init__(self, session: Session, now: int) -> None:
        self._session = session
        self._now = now
        self.page = 1
        """How many places are read at once: no more than needed, as a store may lock them."""
        self._stored: dict[str, _Queue] = {}
        self._made_ready: dict[str, tuple[str, ReadyKey]] = {}
        self._promoted = False

    def changed(self, stream: str, number: int, state: State | None) -> None:
        """A stream took a new state in this batch."""
        shelf = shelve(state, self._now)
        if shelf.queue is None:
            self._made_ready.pop(stream, None)
        else:
            key = ReadyKey(shelf.rank, shelf.since, number, stream)
            self._made_ready[stream] = (shelf.queue, key)

    def first(self, names: Sequence[str], changed: Container[str]) -> str | None:
        """The stream of the first task in the queues of these names."""
        if not self._promoted:
            self._session.promote(self._now, _PROMOTED_AT_ONCE)
            self._promoted = True
        return min(self._candidates(names, changed), default=_NOBODY).name or None

    def _candidates(self, names: Sequence[str], changed: Container[str]) -> Iterator[ReadyKey]:
        for name in names:
            queue = self._stored.setdefault(name, _Queue(self._session, name, self.page))
            key = queue.first(changed)
            if key:
                yield key
        for queue_name, key in self._made_ready.values():
            if queue_name in names:
                yield key


_NOBODY = ReadyKey(0, 0, 0, "")


class _Queue:
    """One stored queue, read page by page; what the batch changed is passed over."""

    def __init__(self, session: Session, name: str, size: int) -> None:
        self._session = session
        self._name = name
        self._size = size
        self._page: list[ReadyKey] = []
        self._at = 0
        self._is_last = False

    def first(self, changed: Container[str]) -> ReadyKey | None:
        while True:
            while self._at < len(self._page):
                key = self._page[self._at]
                if key.name not in changed:
                    return key
                self._at += 1
            if self._is_last:
                return None
            after = self._page[-1] if self._page else None
            self._page = self._session.ready(self._name, after, self._size)
            self._at = 0
            self._is_last = len(self._page) < self._size
