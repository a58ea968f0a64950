"""Start of a command: its cost before it does anything, because agents call the program in loops.

Counted is the time of a core, not of the clock, so that it matters less what else the machine does.
"""

import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter

_BARE = ("-c", "import typer.main")
"""The least that a program with our kind of command line loads."""


def bare(folder: Path, seconds: float) -> float:
    """Starts of Python with typer, in a second of a core."""
    return _starts(folder, _BARE, seconds)


def version(folder: Path, seconds: float) -> float:
    """Starts of `dragoman --version`, in a second of a core."""
    return _starts(folder, ("-m", "dragoman", "--version"), seconds)


def listed(folder: Path, seconds: float) -> float:
    """Starts of `dragoman task list`, in a second of a core."""
    (folder / "hub").mkdir()  # or it would be told that it was made
    words = ("-m", "dragoman", "--data", str(folder / "hub"))
    _run(folder, (*words, "task", "create", "One"))
    return _starts(folder, (*words, "task", "list"), seconds)


def _starts(folder: Path, words: tuple[str, ...], seconds: float) -> float:
    _run(folder, words)  # the first one compiles
    costs = [_run(folder, words)]
    end = perf_counter() + seconds
    while perf_counter() < end:
        costs.append(_run(folder, words))
    return len(costs) / sum(costs)


def _run(folder: Path, words: tuple[str, ...]) -> float:
    """Seconds of a core that one run takes, with modules that are kept when they are compiled."""
    command = [sys.executable, "-E", "-X", f"pycache_prefix={folder / 'bytecode'}", *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime
