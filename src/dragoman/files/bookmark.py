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
    """Content of the cursor file: a position in a ledger."""

    ledger: str = ""
    position: int = 0
    behind: dict[str, str] = {}
    """Streams before the position whose files could not be written and are retried -> problem."""


_marks: Final = msgspec.json.Decoder(Mark)


class Bookmark:
    """Position in the ledger up to which the files are written, saved in `projection.json`."""

    def __init__(self, store: Store, disk: Disk) -> None:
        self._store = store
        self._disk = disk

    def read(self) -> Mark | None:
        """Load the cursor, of whichever ledger; None when it is missing or cannot be decoded."""
        data = self._disk.read(CURSOR, MOST_BYTES)
        try:
            return _marks.decode(data) if data else None
        except msgspec.MsgspecError:
            return None

    def of_this_ledger(self) -> Mark | None:
        """Load the cursor, if it belongs to this ledger."""
        mark = self.read()
        return mark if mark is not None and self.fits(mark) else None

    def fits(self, mark: Mark) -> bool:
        """True when it belongs to this ledger, and not to a longer copy of it."""
        return mark.ledger == self._store.ledger_id() and mark.position <= self._store.head()

    def put(self, position: int, behind: dict[str, str]) -> None:
        """Save the cursor after making everything before its position durable."""
        self._disk.settle()
        mark = Mark(self._store.ledger_id(), position, behind)
        put(self._disk, CURSOR, msgspec.json.encode(mark) + b"\n")
        self._disk.settle()

    def last_shown(self) -> Entry | None:
        """Last entry that the files show."""
        mark = self.of_this_ledger()
        if mark is None or not mark.position:
            return None
        (entry,) = self._store.entries(mark.position - 1, 1) or (None,)
        return entry
