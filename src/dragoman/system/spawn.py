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
"""How often to look whether a program has ended whose output somebody else holds open, and whether
it is still waited for."""
_BLOCK: Final = 65_536
_MOST_KEPT: Final = 4_096

Program = subprocess.Popen[bytes]


class Patience(Struct, frozen=True):
    """How long a program is waited for."""

    seconds: float = 5.0
    grace: float = 1.0
    """What one that has to end is left, to clean up."""
    is_over: Callable[[], bool] = lambda: False
    """Whether nobody waits any more: then it has to end before its time."""


_USUAL: Final = Patience()


def run(
    words: Sequence[str],
    data: bytes,
    variables: Mapping[str, str],
    folder: Path,
    patience: Patience = _USUAL,
) -> tuple[int, bytes]:
    """Feed a program; its exit code and the end of what it said.

    OSError when it cannot be started, TimeoutError when it did not end in time, InterruptedError
    when nobody waits for it any more. Whatever it has started in its process group ends with it.
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
    """Write and read at once, so that neither side waits for the other; until one has ended."""
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
                raise InterruptedError("it was ended before its time: nobody waits for it any more")
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
    """What is left to send; nothing when the program does not want more."""
    try:
        return unsent[os.write(descriptor, unsent) :]
    except BrokenPipeError:
        return unsent[:0]


def _end_group(program: Program, grace: float) -> None:
    """Ask the program and all it has started to end, then end them."""
    for demand, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(program.pid, demand)
        with suppress(subprocess.TimeoutExpired):
            program.wait(patience)
