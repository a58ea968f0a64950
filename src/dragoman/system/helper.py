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
    """Such a process; it ends with this one at the latest."""

    def __init__(self, run: Callable[[], None]) -> None:
        """OSError when none can be started; `run` is a function of a module, and calls `serve`."""
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
        """What it answers; None: it has ended, or could not. Then it can be asked no more."""
        with suppress(OSError):
            _send(self._talk, question)
            return _receive(self._talk)
        return None

    def end(self) -> None:
        """End it, whatever it does: who waits for its answer has None."""
        self._program.kill()
        self._program.wait()

    def close(self) -> None:
        """Let go of one that has ended, and that nobody asks."""
        self._talk.close()


def serve(answer: Callable[[bytes], bytes]) -> None:
    """Answer questions, in the other process, until nobody is there to ask them."""
    # Whoever interrupts the program ends the one that asks, and with it this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=sys.stdin.fileno()) as talk:
        while (question := _receive(talk)) is not None:
            _send(talk, answer(question))


def _send(talk: socket.socket, data: bytes) -> None:
    talk.sendall(_LENGTH.pack(len(data)) + data)


def _receive(talk: socket.socket) -> bytes | None:
    """The next message, whole; None: the other side has gone."""
    head = talk.recv(_LENGTH.size, socket.MSG_WAITALL)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    # In one stroke: between two, other threads of this process would keep the other side waiting.
    data = talk.recv(length, socket.MSG_WAITALL)
    return data if len(data) == length else None
