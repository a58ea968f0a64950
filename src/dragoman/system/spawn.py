"""One program, run to its end or ended: never a shell, and nothing of it is left behind."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

_LOOK: Final = 0.05
"""Interval of checks for cancellation, and for a program that has ended while somebody else holds
its output open."""
_BLOCK: Final = 65_536
_MOST_KEPT: Final = 4_096

Program = subprocess.Popen[bytes]


class Patience(Struct, frozen=True):
    """Time limits of a program."""

    seconds: float = 5.0
    grace: float = 1.0
    """Time to clean up between SIGTERM and SIGKILL."""
    is_over: Callable[[], bool] = lambda: False
    """Returns True when the result is not needed any more: then the program is ended early."""


_USUAL: Final = Patience()


def run(
    words: Sequence[str],
    data: bytes,
    variables: Mapping[str, str],
    folder: Path,
    patience: Patience = _USUAL,
) -> tuple[int, bytes]:
    """Run a program with this input; return its exit code and the end of its output.

    OSError when it cannot be started, TimeoutError when it did not end in time, InterruptedError
    when it was cancelled. Whatever it has started in its process group ends with it.
    """
    deadline = time.monotonic() + patience.seconds
    with subprocess.Popen(
        words,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=dict(variables),
        start_new_session=True,
    ) as program:
        try:
            said = _talk(program, data, deadline, patience.is_over)
            return program.wait(max(0.0, deadline - time.monotonic())), said
        except (TimeoutError, subprocess.TimeoutExpired):
            raise TimeoutError(f"it had not ended after {patience.seconds:g} s") from None
        finally:
            _end_group(program, patience.grace)


def _talk(program: Program, data: bytes, deadline: float, is_over: Callable[[], bool]) -> bytes:
    """Write and read at the same time, so that neither side blocks the other, until one has
    ended."""
    assert program.stdin is not None
    assert program.stdout is not None
    unsent, said = memoryview(data), b""
    with selectors.DefaultSelector() as waiting:
        for pipe, event in (
            (program.stdin, selectors.EVENT_WRITE),
            (program.stdout, selectors.EVENT_READ),
        ):
            os.set_blocking(pipe.fileno(), False)
            waiting.register(pipe, event)
        while True:
            has_ended = program.poll() is not None
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if is_over():
                raise InterruptedError("it was stopped early: its caller no longer waits for it")
            for key, _ in waiting.select(0 if has_ended else min(left, _LOOK)):
                if key.fileobj is program.stdin:
                    unsent = _send(key.fd, unsent)
                    if not unsent:
                        waiting.unregister(program.stdin)
                        program.stdin.close()
                elif piece := os.read(key.fd, _BLOCK):
                    said = (said + piece)[-_MOST_KEPT:]
                else:
                    return said
            if has_ended:
                return said


def _send(descriptor: int, unsent: memoryview) -> memoryview:
    """Data left to send; empty when the program has closed its input."""
    try:
        return unsent[os.write(descriptor, unsent) :]
    except BrokenPipeError:
        return unsent[:0]


def _end_group(program: Program, grace: float) -> None:
    """Send SIGTERM to the program's group, then SIGKILL."""
    for demand, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(program.pid, demand)
        with suppress(subprocess.TimeoutExpired):
            program.wait(patience)
