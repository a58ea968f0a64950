"""The files follow the ledger: after every command, and with a look around when time passes."""

from collections.abc import Callable
from typing import Final

from dragoman.engine.trouble import NONE, Trouble

Warn = Callable[[str], None]

_LAG: Final = (
    "the files lag behind the ledger: {why}. Every request is recorded nevertheless; free or "
    "repair the disk, then `dragoman tick` brings the files level"
)
_OTHER_LAGS: Final = {
    "inbox": "messages wait in the inbox: {why}. Free or repair the disk, then `dragoman tick` "
    "reads them; a message that was read before counts once"
}
"""Service -> message, for those that do not write the projection."""

_REST: Final = 20
"""Idle time of a throttled service, as a multiple of its working time."""


class FilesDuty:
    """Runs one part of the file services; a disk error delays only this part.

    What was answered is in the ledger and stands: the files only lag behind.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], int],
        warn: Warn,
        seconds: Callable[[], float] | None = None,
        *,
        left: Callable[[], str] = str,
    ) -> None:
        """Throttle the work if there is a clock, `monotonic`, in seconds.

        `find_leftovers` tells what could not be done although the rest was.
        """
        self.name = name
        self.undone = NONE
        """Problem of the last run."""
        self._work = work
        self._warn = warn
        self._seconds = seconds
        self._due = 0.0
        self._left = left

    def run_once(self, now: int) -> int:
        """Run the work, unless it is throttled; the number of things done."""
        del now
        if self._seconds is None:
            return self._do()
        begun = self._seconds()
        if begun < self._due:
            return 0
        done = self._do()
        ended = self._seconds()
        self._due = ended + _REST * (ended - begun)
        return done

    def _do(self) -> int:
        try:
            done = self._work()
        except OSError as error:
            why = f"{error.filename or 'the disk'}: {error.strerror or error}"
            self.undone = Trouble(_OTHER_LAGS.get(self.name, _LAG).format(why=why))
            self._warn(self.undone.words)
            return 0
        self.undone = Trouble(self._left(), is_partial=True)
        return done
