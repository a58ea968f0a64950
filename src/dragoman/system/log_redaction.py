"""Redaction of the hub's log: an exception may quote what somebody has sent."""

import logging
from collections.abc import Callable


class RedactingFormatter(logging.Formatter):
    """Formats a log record and redacts secrets in it."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """The line, with the exception behind it if there is one."""
        return self._redact(super().format(record))


def redact_log(redact: Callable[[str], str]) -> None:
    """Redact everything that this process logs."""
    if logging.lastResort is not None:  # the handler that prints when logging is not configured
        logging.lastResort.setFormatter(RedactingFormatter(redact))
