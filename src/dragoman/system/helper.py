"""A process beside this one that runs the same program, and answers what it is asked."""

import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_LENGTH: Final = struct.Struct(">Q")


class Helper:
    """Process that answers requests; it ends with this one at the latest."""

    def __init__(self, run: Callable[[], None]) -> None:
        """Start the process; OSError if it cannot be. `run` is a module function that calls
        `serve_requests`."""
        self._talk, theirs = socket.socketpair()
        # It finds modules where this process finds them, not in the folder in which it is started.
        words = (
            f"import sys; sys.path[:] = {sys.path!r}\n"
            f"from {run.__module__} import {run.__name__} as run; run()"
        )
        try:
            with theirs:
                self._program = subprocess.Popen(
                    (sys.executable, "-c", words),
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
        except BaseException:
            self._talk.close()
            raise

    def ask(self, question: bytes) -> bytes | None:
        """Send a request and wait for its answer; None when the process has ended."""
        with suppress(OSError):
            _send(self._talk, question)
            return _receive(self._talk)
        return None

    def end(self) -> None:
        """Kill the process; a pending request gets None."""
        self._program.kill()
        self._program.wait()

    def close(self) -> None:
        """Close the connection to a process that has ended."""
        self._talk.close()


def serve(answer: Callable[[bytes], bytes]) -> None:
    """Answer requests, in the helper process, until the parent closes the connection."""
    # An interrupt ends the parent process, and with it this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=sys.stdin.fileno()) as talk:
        while (question := _receive(talk)) is not None:
            _send(talk, answer(question))


def _send(talk: socket.socket, data: bytes) -> None:
    talk.sendall(_LENGTH.pack(len(data)) + data)


def _receive(talk: socket.socket) -> bytes | None:
    """Next whole message; None when the other side has closed the connection."""
    head = talk.recv(_LENGTH.size, socket.MSG_WAITALL)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    # In one call: between two, other threads of this process would keep the other side waiting.
    data = talk.recv(length, socket.MSG_WAITALL)
    return data if len(data) == length else None
