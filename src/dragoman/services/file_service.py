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

_IDLE_FACTOR: Final = 20
"""Idle time of a throttled service, as a multiple of its working time."""


class FileService:
    """Runs one part of the file services; a disk error delays only this part.

    What was answered is in the ledger and stands: the files only lag behind.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], int],
        warn: Warn,
        monotonic: Callable[[], float] | None = None,
        *,
        find_leftovers: Callable[[], str] = str,
    ) -> None:
        """Throttle the work if there is a clock, `monotonic`, in seconds.

        `find_leftovers` tells what could not be done although the rest was.
        """
        self.name = name
        self.last_problem = HEALTHY
        """Problem of the last run."""
        self._work = work
        self._warn = warn
        self._monotonic = monotonic
        self._next_run_at = 0.0
        self._find_leftovers = find_leftovers

    def run_once(self, now: int) -> int:
        """Run the work, unless it is throttled; the number of things done."""
        del now
        if self._monotonic is None:
            return self._run_work()
        started_at = self._monotonic()
        if started_at < self._next_run_at:
            return 0
        done = self._run_work()
        ended_at = self._monotonic()
        self._next_run_at = ended_at + _IDLE_FACTOR * (ended_at - started_at)
        return done

    def _run_work(self) -> int:
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
