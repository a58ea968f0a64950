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

_POLL_SECONDS: Final = 0.05
"""Interval of checks for cancellation, and for a program that has ended while somebody else holds
its output open."""
_READ_BYTES: Final = 65_536
_MAX_OUTPUT_BYTES: Final = 4_096

ChildProcess = subprocess.Popen[bytes]


class Timeouts(Struct, frozen=True):
    """Time limits of a program."""

    timeout_seconds: float = 5.0
    grace_seconds: float = 1.0
    """Time to clean up between SIGTERM and SIGKILL."""
    is_over: Callable[[], bool] = lambda: False
    """Returns True when the result is not needed any more: then the program is ended early."""


_DEFAULT_TIMEOUTS: Final = Timeouts()


def run_program(
    args: Sequence[str],
    stdin: bytes,
    variables: Mapping[str, str],
    folder: Path,
    timeouts: Timeouts = _DEFAULT_TIMEOUTS,
) -> tuple[int, bytes]:
    """Run a program with this input; return its exit code and the end of its output.

    OSError when it cannot be started, TimeoutError when it did not end in time, InterruptedError
    when it was cancelled. Whatever it has started in its process group ends with it.
    """
    deadline = time.monotonic() + timeouts.timeout_seconds
    with subprocess.Popen(
        args,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=dict(variables),
        start_new_session=True,
    ) as program:
        try:
            output = _communicate(program, stdin, deadline, timeouts.is_over)
            return program.wait(max(0.0, deadline - time.monotonic())), output
        except (TimeoutError, subprocess.TimeoutExpired):
            raise TimeoutError(f"it had not ended after {timeouts.timeout_seconds:g} s") from None
        finally:
            _terminate_group(program, timeouts.grace_seconds)


def _communicate(
    program: ChildProcess, data: bytes, deadline: float, is_over: Callable[[], bool]
) -> bytes:
    """Write and read at the same time, so that neither side blocks the other, until one has
    ended."""
    assert program.stdin is not None
    assert program.stdout is not None
    unsent, output = memoryview(data), b""
    with selectors.DefaultSelector() as selector:
        for pipe, event in (
            (program.stdin, selectors.EVENT_WRITE),
            (program.stdout, selectors.EVENT_READ),
        ):
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, event)
        while True:
            has_ended = program.poll() is not None
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError
            if is_over():
                raise InterruptedError("it was stopped early: its caller no longer waits for it")
            for key, _ in selector.select(0 if has_ended else min(remaining, _POLL_SECONDS)):
                if key.fileobj is program.stdin:
                    unsent = _write_stdin(key.fd, unsent)
                    if not unsent:
                        selector.unregister(program.stdin)
                        program.stdin.close()
                elif chunk := os.read(key.fd, _READ_BYTES):
                    output = (output + chunk)[-_MAX_OUTPUT_BYTES:]
                else:
                    return output
            if has_ended:
                return output


def _write_stdin(descriptor: int, unsent: memoryview) -> memoryview:
    """Data left to send; empty when the program has closed its input."""
    try:
        return unsent[os.write(descriptor, unsent) :]
    except BrokenPipeError:
        return unsent[:0]


def _terminate_group(program: ChildProcess, grace: float) -> None:
    """Send SIGTERM to the program's group, then SIGKILL."""
    for signal_number, timeout in ((signal.SIGTERM, grace), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(program.pid, signal_number)
        with suppress(subprocess.TimeoutExpired):
            program.wait(timeout)
