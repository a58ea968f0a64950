"""Whether a database file is as long as it says: one that lacks its last bytes is not worked on.

SQLite takes what a last page lacks for zeros, and goes on. Beside a log nothing can be said: pages
that the file does not have yet may be there. Only sizes are asked for: if this process opened and
closed the file itself, the locks of all its connections would be gone.
"""

from pathlib import Path

from dragoman.core.errors import StoreCorrupt, StoreUnavailable
from dragoman.store.sqlite.driver import Connection

_LOGS = ("-wal", "-journal")


def check_length(connection: Connection, path: Path) -> None:
    """Raise StoreCorrupt if nobody writes to the file and it is shorter than its header says.

    SQLite reads a truncated last page as zeros, and goes on. Beside a journal nothing can be said:
    it may hold pages that the file does not have yet. Only sizes are asked for: if this process
    opened and closed the file itself, the locks of all its connections would be gone.
    """
    lacks = _lacks(connection, path)
    # A process that has just closed the file may have written to it between the two checks.
    if lacks and _lacks(connection, path) == lacks:
        raise StoreCorrupt(
            f"{path} is truncated (bytes missing: {lacks}): it was cut, or not copied completely; "
            "nothing was written. Keep the file as it is; copy it again, or make a new directory "
            "out of a backup: `dragoman restore FILE --data NEW`"
        )


def _lacks(connection: Connection, path: Path) -> int:
    """The number of missing bytes, as far as can be known."""
    whole = connection.pragma("page_count") * connection.pragma("page_size")
    return 0 if has_log(path) else max(0, whole - size_of(path))


def has_log(path: Path) -> bool:
    """True if committed data may be in a journal beside the file."""
    return any(size_of(path.with_name(path.name + end)) for end in _LOGS)


def size_of(path: Path) -> int:
    """The size of a file; 0 if it does not exist."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise unseen(path, error) from error


def unseen(path: Path, error: OSError) -> StoreUnavailable:
    """The error for a file whose size cannot be read."""
    return StoreUnavailable(
        f"{path} cannot be examined ({error.strerror}), so the database may be incomplete; nothing "
        "is shown. Check its permissions and the disk"
    )
