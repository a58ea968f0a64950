"""The real program, in processes of its own: `python -m dragoman` on a temporary directory."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.surfaces.cli.console import Console

COMMAND = (sys.executable, "-m", "dragoman")
NOON = "2026-02-09T12:00:00Z"

_TESTER_VARIABLES = frozenset(
    {"DRAGOMAN_DATA", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM"}
    # Compiled modules are kept for the next process, in a folder of the tests.
    | {"PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"}
)


class ProcessResult(Struct, frozen=True):
    """What a process said, and the code it ended with."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object on standard output."""
        (line,) = self.out.splitlines()
        return json.loads(line)


class Program:
    """Starts the program for one data directory."""

    def __init__(self, data: Path, bytecode: Path) -> None:
        self.data = data
        self._bytecode = bytecode
        self._started: list[subprocess.Popen[str]] = []

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """What the program is told by its surroundings."""
        inherited = {k: v for k, v in os.environ.items() if k not in _TESTER_VARIABLES}
        ours = {"DRAGOMAN_DATA": str(self.data), "PYTHONPYCACHEPREFIX": str(self._bytecode)}
        return {**inherited, **ours, **(more or {})}

    def prepare(self, *args: str) -> None:
        """Give a command in the test's own process, where only its effect is wanted."""
        assert Console(self.data)(*args).code == 0

    def ask_here(self, *args: str) -> Any:
        """The same, where its answer is wanted too."""
        return Console(self.data).ask(*args)

    def run(
        self, *args: str, stdin: str = "", more: Mapping[str, str] | None = None
    ) -> ProcessResult:
        """Run a command to its end."""
        done = subprocess.run(
            (*COMMAND, *args),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env=self.environment(more),
        )
        assert "Traceback" not in done.stderr, done.stderr
        return ProcessResult(done.returncode, done.stdout, done.stderr)

    def ask(self, *args: str, code: int = 0) -> Any:
        """The object that a command answers with --json, and that it ends as it should."""
        ended = self.run(*args, "--json")
        assert ended.code == code, ended
        return ended.json

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Begin a command, and do not wait for it."""
        process = subprocess.Popen(
            (*COMMAND, *args),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(),
            # A build machine may run everything with them ignored, and children inherit that.
            preexec_fn=restore_signal_handlers,  # noqa: PLW1509  it calls no lock
        )
        self._started.append(process)
        return process

    def close(self) -> None:
        """End what was begun and still runs: a test that has failed must not disturb others."""
        for process in self._started:
            with process:
                process.kill()


def restore_signal_handlers() -> None:
    """In a program that is about to start: let it hear them, whatever it inherits."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def wait_for_exit(process: subprocess.Popen[str]) -> ProcessResult:
    """What a started command said when it has ended."""
    out, err = process.communicate()
    assert "Traceback" not in err, err
    return ProcessResult(process.returncode, out, err)
