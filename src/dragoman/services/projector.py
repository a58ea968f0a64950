"""The files follow the ledger: after every command, and with a look around when time passes."""

from collections.abc import Callable

Warn = Callable[[str], None]


class FilesDuty:
    """Runs one part of the files face; a disk that does not take the files stops nothing else.

    The ledger has what was answered, so the answer stands: the files only lag behind.
    """

    def __init__(self, name: str, work: Callable[[], int], warn: Warn) -> None:
        self.name = name
        self._work = work
        self._warn = warn

    def run_once(self, now: int) -> int:
        """Do it; how much there was to do."""
        del now
        try:
            return self._work()
        except OSError as error:
            self._warn(
                f"the files lag behind the ledger: {error.filename or 'the disk'}: "
                f"{error.strerror or error}. What was asked for is recorded all the same; free or "
                "mend the disk, then `dragoman tick` brings the files level"
            )
            return 0
