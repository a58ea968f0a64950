"""How far the files show the ledger: kept beside them, and durable after what it speaks of."""

from typing import Final

import msgspec
from msgspec import Struct

from dragoman.engine.ports import Store
from dragoman.files.disk import Disk
from dragoman.files.layout import CURSOR_FILE
from dragoman.files.putting import write_if_changed
from dragoman.files.tasks.task_files import MAX_FILE_BYTES
from dragoman.ledger.entry import Entry


class CursorRecord(Struct, frozen=True, omit_defaults=True):
    """Content of the cursor file: a position in a ledger."""

    ledger: str = ""
    position: int = 0
    behind: dict[str, str] = {}
    """Streams before the position whose files could not be written and are retried -> problem."""


_cursor_decoder: Final = msgspec.json.Decoder(CursorRecord)


class ProjectionCursor:
    """Position in the ledger up to which the files are written, saved in `projection.json`."""

    def __init__(self, store: Store, disk: Disk) -> None:
        self._store = store
        self._disk = disk

    def load(self) -> CursorRecord | None:
        """Load the cursor, of whichever ledger; None when it is missing or cannot be decoded."""
        data = self._disk.read(CURSOR_FILE, MAX_FILE_BYTES)
        try:
            return _cursor_decoder.decode(data) if data else None
        except msgspec.MsgspecError:
            return None

    def load_if_matching(self) -> CursorRecord | None:
        """Load the cursor, if it belongs to this ledger."""
        record = self.load()
        return record if record is not None and self.matches(record) else None

    def matches(self, record: CursorRecord) -> bool:
        """True when it belongs to this ledger, and not to a longer copy of it."""
        return record.ledger == self._store.ledger_id() and record.position <= self._store.head()

    def save(self, position: int, failed: dict[str, str]) -> None:
        """Save the cursor after making everything before its position durable."""
        self._disk.sync()
        record = CursorRecord(self._store.ledger_id(), position, failed)
        write_if_changed(self._disk, CURSOR_FILE, msgspec.json.encode(record) + b"\n")
        self._disk.sync()

    def last_projected(self) -> Entry | None:
        """Last entry that the files show."""
        record = self.load_if_matching()
        if record is None or not record.position:
            return None
        (entry,) = self._store.entries(record.position - 1, 1) or (None,)
        return entry
