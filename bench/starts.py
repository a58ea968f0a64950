"""Start of a command: its cost before it does anything, because agents call the program in loops.

Counted is the time of a core, not of the clock, so that it matters less what else the machine does.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

_BARE = ("-c", "import typer.main")
"""The least that a program with our kind of command line loads."""
_FIRST_TASK = ("task", "create", "One", "--id", "T-1", "--ready")
_READY_TASKS = 300
"""More than are claimed in a run."""

LOOPED = (
    ("status",),
    ("task", "list"),
    ("task", "show", "T-1"),
    ("task", "create", "Another"),
    ("task", "claim", "--agent", "ben"),
    ("task", "heartbeat", "T-1", "--agent", "ada"),
    ("task", "log", "T-1", "half done", "--as", "ada"),
    ("task", "complete", "T-2", "--agent", "ada"),
    ("send", "--as", "ada", "letter.json"),
    ("call", "mail.inbox", "--as", "ada", "{}"),
    ("mail", "send", "--as", "ada", "--to", "ben", "--subject", "hi", "--body", "x"),
    ("mail", "inbox", "--as", "ada"),
)
"""Commands that agents call in loops; T-1 is ada's, and T-2 was."""


def bare(folder: Path, seconds: float) -> float:
    """Starts of Python with typer, in a second of a core."""
    return _starts(folder, _BARE, seconds)


def python(folder: Path, seconds: float) -> float:
    """Starts of Python with nothing to do, in a second of a core."""
    return _starts(folder, ("-c", "pass"), seconds)


def through_hub(words: tuple[str, ...]) -> Callable[[Path, float], float]:
    """Starts of a command that the running hub runs, in a second of a core; the hub's own time is
    not counted."""

    def starts(folder: Path, seconds: float) -> float:
        data = folder / "hub"
        data.mkdir()
        command = [sys.executable, "-m", "dragoman", "--data", str(data)]
        with subprocess.Popen([*command, "up", "--port", "0"], stdout=subprocess.PIPE) as hub:
            assert hub.stdout is not None
            hub.stdout.readline()
            try:
                program = ("-m", "dragoman", "--data", str(data))
                for first in _prepare(folder):
                    _run(folder, (*program, *first))
                return _starts(folder, (*program, *words), seconds)
            finally:
                hub.terminate()

    return starts


def _prepare(folder: Path) -> Iterator[tuple[str, ...]]:
    """Commands that come before those that agents call in loops, and the files that they name."""
    letter = {"to": ["ben"], "subject": "hi", "body_md": "x"}
    (folder / "letter.json").write_text(json.dumps(letter))
    plan = "".join(f'{{"title": "{number}", "ready": true}}\n' for number in range(_READY_TASKS))
    (folder / "plan.jsonl").write_text(plan)
    yield _FIRST_TASK
    yield ("task", "create", "Two", "--id", "T-2", "--ready", "--no-review")
    yield ("task", "claim", "T-1", "--agent", "ada")
    yield ("task", "claim", "T-2", "--agent", "ada")
    yield ("task", "complete", "T-2", "--agent", "ada")
    yield ("task", "create", "--file", "plan.jsonl")


def version(folder: Path, seconds: float) -> float:
    """Starts of `dragoman --version`, in a second of a core."""
    return _starts(folder, ("-m", "dragoman", "--version"), seconds)


def listed(folder: Path, seconds: float) -> float:
    """Starts of `dragoman task list`, in a second of a core."""
    (folder / "hub").mkdir()  # or it would be told that it was made
    words = ("-m", "dragoman", "--data", str(folder / "hub"))
    _run(folder, (*words, *_FIRST_TASK))
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
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime
