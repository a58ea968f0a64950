"""The real program in its own processes: `python -m dragoman` on a temporary directory."""

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
    # Compiled modules are cached for the next process, in a folder of the tests.
    | {"PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"}
)


class ProcessResult(Struct, frozen=True):
    """Output and exit code of a process."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The only object on standard output."""
        (line,) = self.out.splitlines()
        return json.loads(line)


class Program:
    """Starter of the program with one data directory."""

    def __init__(self, data: Path, bytecode: Path) -> None:
        self.data = data
        self._bytecode = bytecode
        self._started: list[subprocess.Popen[str]] = []

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Environment variables of the program."""
        inherited = {k: v for k, v in os.environ.items() if k not in _TESTER_VARIABLES}
        ours = {"DRAGOMAN_DATA": str(self.data), "PYTHONPYCACHEPREFIX": str(self._bytecode)}
        return {**inherited, **ours, **(more or {})}

    def prepare(self, *args: str) -> None:
        """Run a command in the test's own process, for its effect only."""
        assert Console(self.data)(*args).code == 0

    def ask_here(self, *args: str) -> Any:
        """Run a command in the test's own process and return the object that it prints."""
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
        """Run a command with --json, check its exit code and return the object that it prints."""
        ended = self.run(*args, "--json")
        assert ended.code == code, ended
        return ended.json

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Start a command without waiting for it."""
        process = subprocess.Popen(
            (*COMMAND, *args),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(),
            # A build machine may ignore these signals, and children inherit that.
            preexec_fn=restore_signal_handlers,  # noqa: PLW1509  it calls no lock
        )
        self._started.append(process)
        return process

    def close(self) -> None:
        """Kill started commands that still run, so that a failed test does not disturb others."""
        for process in self._started:
            with process:
                process.kill()


def restore_signal_handlers() -> None:
    """Reset SIGINT and SIGHUP to their defaults in a program that is about to start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def wait_for_exit(process: subprocess.Popen[str]) -> ProcessResult:
    """Wait for a started command and return its result."""
    out, err = process.communicate()
    assert "Traceback" not in err, err
    return ProcessResult(process.returncode, out, err)
