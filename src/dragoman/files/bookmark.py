"""How far the files show the ledger: kept beside them, and durable after what it speaks of."""

from typing import Final

import msgspec
from msgspec import Struct

from dragoman.engine.ports import Store
from dragoman.files.disk import Disk
from dragoman.files.layout import CURSOR
from dragoman.files.putting import put
from dragoman.files.tasks.task_files import MOST_BYTES
from dragoman.ledger.entry import Entry


class Mark(Struct, frozen=True, omit_defaults=True):
    """A place in a ledger."""

    ledger: str = ""
    position: int = 0
    behind: dict[str, str] = {}
    """Streams before the position whose files could not be written and are tried again, and why."""


_marks: Final = msgspec.json.Decoder(Mark)


class Bookmark:
    """Where the files of a data directory are in the ledger of a store."""

    def __init__(self, store: Store, disk: Disk) -> None:
        self._store = store
        self._disk = disk

    def read(self) -> Mark | None:
        """Where it stands, whichever ledger that is in; None: nowhere that could be read."""
        data = self._disk.read(CURSOR, MOST_BYTES)
        try:
            return _marks.decode(data) if data else None
        except msgspec.MsgspecError:
            return None

    def of_this_ledger(self) -> Mark | None:
        """Where it stands, if it fits."""
        mark = self.read()
        return mark if mark is not None and self.fits(mark) else None

    def fits(self, mark: Mark) -> bool:
        """Whether it is of this ledger, and not of a longer copy of it."""
        return mark.ledger == self._store.ledger_id() and mark.position <= self._store.head()

    def put(self, position: int, behind: dict[str, str]) -> None:
        """Everything before the position is durable before the mark is."""
        self._disk.settle()
        mark = Mark(self._store.ledger_id(), position, behind)
        put(self._disk, CURSOR, msgspec.json.encode(mark) + b"\n")
        self._disk.settle()

    def last_shown(self) -> Entry | None:
        """The last entry that the files show."""
        mark = self.of_this_ledger()
        if mark is None or not mark.position:
            return None
        (entry,) = self._store.entries(mark.position - 1, 1) or (None,)
        return entry
