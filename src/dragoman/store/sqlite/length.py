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
    """StoreCorrupt when the file lies still and is too short."""
    lacks = _lacks(connection, path)
    # Somebody who has just closed the file may have written to it between two looks.
    if lacks and _lacks(connection, path) == lacks:
        raise StoreCorrupt(
            f"{path} has lost its end (bytes missing: {lacks}): it was cut, or not copied whole; "
            "nothing was written. Keep the file as it is; copy it again, or make a new directory "
            "out of a backup: `dragoman restore FILE --data NEW`"
        )


def _lacks(connection: Connection, path: Path) -> int:
    """How many bytes are missing, for all that is known."""
    whole = connection.pragma("page_count") * connection.pragma("page_size")
    return 0 if has_log(path) else max(0, whole - size_of(path))


def has_log(path: Path) -> bool:
    """Whether the file alone may not be all that was committed."""
    return any(size_of(path.with_name(path.name + end)) for end in _LOGS)


def size_of(path: Path) -> int:
    """How long a file is; one that is not there holds nothing."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise unseen(path, error) from error


def unseen(path: Path, error: OSError) -> StoreUnavailable:
    """Nobody can say how long a file is."""
    return StoreUnavailable(
        f"{path} cannot be looked at ({error.strerror}), so that nobody knows whether what is read "
        "of the database is whole; nothing is shown. Look at its rights and at the disk"
    )
