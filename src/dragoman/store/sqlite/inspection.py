"""SQLite looks at its own file: every page, every row, and every index against its table."""

from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import apsw

from dragoman.engine.ports import Inspection
from dragoman.store.sqlite.driver import FAILURES, Connection
from dragoman.store.sqlite.faults import store_error
from dragoman.store.sqlite.still import Readers

_MOST = 100
_STEPS = 1_000
"""Steps between two looks at the clock: a few dozen times a second, or more often."""
_NO_DAMAGE = ("ok", "*** in database main ***")
"""The output when nothing is wrong, and the line before findings."""


def inspect(readers: Readers, path: Path, seconds: float | None) -> Inspection:
    """Check every page, row and index of the file, for at most so many seconds; None: no limit."""
    reader = readers.open()
    try:
        found = _looked_at(reader, seconds)
    except apsw.InterruptError:
        return Inspection(is_whole=False)
    except (apsw.CorruptError, apsw.NotADBError) as error:
        return Inspection((str(error),))
    except FAILURES as error:
        raise store_error(error, path) from error
    finally:
        reader.close(True)
    readers.check()
    return Inspection(tuple(_damage(found)))


def _damage(found: list[tuple[str]]) -> Iterator[str]:
    for (text,) in found:
        yield from (line for line in text.splitlines() if line not in _NO_DAMAGE)


def _looked_at(reader: Connection, seconds: float | None) -> list[tuple[str]]:
    if seconds is not None:
        end = monotonic() + seconds
        reader.set_progress_handler(lambda: monotonic() >= end, _STEPS)
    return reader.execute(f"PRAGMA integrity_check({_MOST})").fetchall()
