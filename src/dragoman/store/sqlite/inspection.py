"""SQLite looks at its own file: every page, every row, and every index against its table."""

from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import apsw

from dragoman.engine.ports import IntegrityReport
from dragoman.store.sqlite.driver import DRIVER_ERRORS, Connection
from dragoman.store.sqlite.faults import store_error
from dragoman.store.sqlite.still import Readers

_MAX_FINDINGS = 100
_PROGRESS_STEPS = 1_000
"""Steps between two looks at the clock: a few dozen times a second, or more often."""
_NO_DAMAGE = ("ok", "*** in database main ***")
"""The output when nothing is wrong, and the line before findings."""


def check_integrity(readers: Readers, path: Path, seconds: float | None) -> IntegrityReport:
    """Check every page, row and index of the file, for at most so many seconds; None: no limit."""
    reader = readers.open()
    try:
        found = _run_integrity_check(reader, seconds)
    except apsw.InterruptError:
        return IntegrityReport(is_complete=False)
    except (apsw.CorruptError, apsw.NotADBError) as error:
        return IntegrityReport((str(error),))
    except DRIVER_ERRORS as error:
        raise store_error(error, path) from error
    finally:
        reader.close(True)
    readers.check_unchanged()
    return IntegrityReport(tuple(_parse_findings(found)))


def _parse_findings(found: list[tuple[str]]) -> Iterator[str]:
    for (text,) in found:
        yield from (line for line in text.splitlines() if line not in _NO_DAMAGE)


def _run_integrity_check(reader: Connection, seconds: float | None) -> list[tuple[str]]:
    if seconds is not None:
        end = monotonic() + seconds
        reader.set_progress_handler(lambda: monotonic() >= end, _PROGRESS_STEPS)
    return reader.execute(f"PRAGMA integrity_check({_MAX_FINDINGS})").fetchall()
