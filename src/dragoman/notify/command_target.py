"""Command target: a notification on the standard input of a program of the operator's choice."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dragoman.core.errors import SettingsError
from dragoman.notify.notification import Notification
from dragoman.text.safe_text import safe_text

INHERITED_VARIABLES: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "LOGNAME")
"""Variables of the hub that a program inherits; no other, for others may hold secrets."""
_MAX_SHOWN: Final = 200

Run = Callable[[Sequence[str], bytes, Mapping[str, str]], tuple[int, bytes]]
"""Runs a program on some input; its exit code and the end of its output, or OSError."""


class CommandTarget:
    """Runs a program for each notification; exit code 0 means that one has arrived."""

    name = "command"

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], run: Run) -> None:
        if not command[0] or any("\0" in word for word in command):
            raise SettingsError("notify.command must be a list that begins with a program's name")
        self._command = command
        self._variables = {name: environ[name] for name in INHERITED_VARIABLES if name in environ}
        self._run = run

    def deliver(self, notification: Notification, now: int) -> str:  # noqa: ARG002  a program has a clock
        """Run the program; "" when it ended well, else what went wrong."""
        ids = {"DRAGOMAN_NOTIFICATION_ID": notification.id, "DRAGOMAN_TASK_ID": notification.task}
        try:
            code, output = self._run(self._command, notification.body, {**self._variables, **ids})
        except OSError as error:
            return f"{self._command[0]}: {error.strerror or error}"
        if code == 0:
            return ""
        ended = f"exit code {code}" if code > 0 else f"ended by signal {-code}"
        last = output.decode(errors="replace").strip().rpartition("\n")[2]
        return f"{self._command[0]}: {ended}" + (f": {_truncate(last)}" if last else "")


def _truncate(text: str) -> str:
    return safe_text(text, one_line=True)[:_MAX_SHOWN]
