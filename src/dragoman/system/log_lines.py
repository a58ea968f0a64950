"""Lines of the hub's log, without secrets: an exception may quote what somebody has sent."""

import logging
from collections.abc import Callable


class RedactedLines(logging.Formatter):
    """Writes a record as the default does, and takes secrets out of all that it says."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """The line, with the exception behind it if there is one."""
        return self._redact(super().format(record))


def redact_log_lines(redact: Callable[[str], str]) -> None:
    """From now on nothing gets into the log of this process that `redact` takes out."""
    if logging.lastResort is not None:  # what prints where nobody has said how to
        logging.lastResort.setFormatter(RedactedLines(redact))
