"""The files follow the ledger: after every command, and with a look around when time passes."""

from collections.abc import Callable
from typing import Final

from dragoman.engine.trouble import NONE, Trouble

Warn = Callable[[str], None]

_LAG: Final = (
    "the files lag behind the ledger: {why}. What was asked for is recorded all the same; free or "
    "mend the disk, then `dragoman tick` brings the files level"
)
_OTHER_LAGS: Final = {
    "inbox": "messages wait in the inbox: {why}. Free or mend the disk, then `dragoman tick` takes "
    "them; one that was taken already counts once"
}
"""Part -> what does not go on when it fails, where that is not the files."""

_REST: Final = 20
"""How many times as long as its work a duty rests that does not have to be done at once."""


class FilesDuty:
    """Runs one part of the files face; a disk that does not take the files stops nothing else.

    The ledger has what was answered, so the answer stands: the files only lag behind.
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
        """With a clock that counts `seconds`, the work is done only when it has rested.

        `left` says what of it could not be done though the rest was.
        """
        self.name = name
        self.undone = NONE
        """What could not be done the last time."""
        self._work = work
        self._warn = warn
        self._seconds = seconds
        self._due = 0.0
        self._left = left

    def run_once(self, now: int) -> int:
        """Do it, unless it rests; how much there was to do."""
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
