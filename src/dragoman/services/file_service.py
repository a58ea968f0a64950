"""Services for plain files: inbox, projection and cleanup, tolerant of disk errors."""

from collections.abc import Callable
from typing import Final

from dragoman.engine.service_health import HEALTHY, HealthProblem

Warn = Callable[[str], None]

_FILES_BEHIND: Final = (
    "the files lag behind the ledger: {why}. Every request is recorded nevertheless; free or "
    "repair the disk, then `dragoman tick` brings the files level"
)
_PROBLEM_TEXTS: Final = {
    "inbox": "messages wait in the inbox: {why}. Free or repair the disk, then `dragoman tick` "
    "reads them; a message that was read before counts once"
}
"""Service -> message, for those that do not write the projection."""


class FileService:
    """Runs one part of the file services; a disk error delays only this part.

    What was answered is in the ledger and stands: the files only lag behind.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], int],
        warn: Warn,
        *,
        find_leftovers: Callable[[], str] = str,
    ) -> None:
        """`find_leftovers` tells what could not be done although the rest was."""
        self.name = name
        self.last_problem = HEALTHY
        """Problem of the last run."""
        self._work = work
        self._warn = warn
        self._find_leftovers = find_leftovers

    def run_once(self, now: int) -> int:
        """Run the work; the number of things done."""
        del now
        try:
            done = self._work()
        except OSError as error:
            why = f"{error.filename or 'the disk'}: {error.strerror or error}"
            self.last_problem = HealthProblem(
                _PROBLEM_TEXTS.get(self.name, _FILES_BEHIND).format(why=why)
            )
            self._warn(self.last_problem.message)
            return 0
        self.last_problem = HealthProblem(self._find_leftovers(), is_partial=True)
        return done
