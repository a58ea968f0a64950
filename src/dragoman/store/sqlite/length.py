"""Whether a database file is as long as it says: one that lacks its last bytes is not worked on.

SQLite takes what a last page lacks for zeros, and goes on. Beside a log nothing can be said: pages
that the file does not have yet may be there. Only sizes are asked for: if this process opened and
closed the file itself, the locks of all its connections would be gone.
"""

from pathlib import Path

from dragoman.core.errors import StoreCorrupt, StoreUnavailable
from dragoman.store.sqlite.driver import Connection

_JOURNALS = ("-wal", "-journal")


def check_file_length(connection: Connection, path: Path) -> None:
    """Raise StoreCorrupt if nobody writes to the file and it is shorter than its header says.

    SQLite reads a truncated last page as zeros, and goes on. Beside a journal nothing can be said:
    it may hold pages that the file does not have yet. Only sizes are asked for: if this process
    opened and closed the file itself, the locks of all its connections would be gone.
    """
    missing = _missing_bytes(connection, path)
    # A process that has just closed the file may have written to it between the two checks.
    if missing and _missing_bytes(connection, path) == missing:
        raise StoreCorrupt(
            f"{path} is truncated (bytes missing: {missing}): it was cut, or not copied "
            "completely; "
            "nothing was written. Keep the file as it is; copy it again, or make a new directory "
            "out of a backup: `dragoman restore FILE --data NEW`"
        )


def _missing_bytes(connection: Connection, path: Path) -> int:
    """The number of missing bytes, as far as can be known."""
    expected = connection.pragma("page_count") * connection.pragma("page_size")
    return 0 if has_journal(path) else max(0, expected - file_size(path))


def has_journal(path: Path) -> bool:
    """True if committed data may be in a journal beside the file."""
    return any(file_size(path.with_name(path.name + end)) for end in _JOURNALS)


def file_size(path: Path) -> int:
    """The size of a file; 0 if it does not exist."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise unreadable_file(path, error) from error


def unreadable_file(path: Path, error: OSError) -> StoreUnavailable:
    """The error for a file whose size cannot be read."""
    return StoreUnavailable(
        f"{path} cannot be examined ({error.strerror}), so the database may be incomplete; nothing "
        "is shown. Check its permissions and the disk"
    )
