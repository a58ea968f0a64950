"""Child processes for tests: each prints a line when it is ready, and goes on when it gets one."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

Child = subprocess.Popen[str]


@contextmanager
def child(program: str, *arguments: Path | str) -> Generator[Child]:
    """Run a Python program; it is killed at the end if it still runs."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def next_line(process: Child) -> str:
    """Next line that the child prints."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def resume(process: Child) -> None:
    """Let the child go on."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
