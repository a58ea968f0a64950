"""Helper process: runs a function of this program elsewhere and answers its requests."""

import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_LENGTH: Final = struct.Struct(">Q")


class HelperProcess:
    """Process that answers requests; it ends with this one at the latest."""

    def __init__(self, run: Callable[[], None]) -> None:
        """Start the process; OSError if it cannot be. `run` is a module function that calls
        `serve_requests`."""
        self._socket, remote = socket.socketpair()
        # It finds modules where this process finds them, not in the folder in which it is started.
        code = (
            f"import sys; sys.path[:] = {sys.path!r}\n"
            f"from {run.__module__} import {run.__name__} as run; run()"
        )
        try:
            with remote:
                self._process = subprocess.Popen(
                    (sys.executable, "-c", code),
                    stdin=remote.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
        except BaseException:
            self._socket.close()
            raise

    def request(self, message: bytes) -> bytes | None:
        """Send a request and wait for its answer; None when the process has ended."""
        with suppress(OSError):
            _send(self._socket, message)
            return _receive(self._socket)
        return None

    def kill(self) -> None:
        """Kill the process; a pending request gets None."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Close the connection to a process that has ended."""
        self._socket.close()


def serve_requests(handle: Callable[[bytes], bytes]) -> None:
    """Answer requests, in the helper process, until the parent closes the connection."""
    # An interrupt ends the parent process, and with it this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=sys.stdin.fileno()) as connection:
        while (message := _receive(connection)) is not None:
            _send(connection, handle(message))


def _send(connection: socket.socket, data: bytes) -> None:
    connection.sendall(_LENGTH.pack(len(data)) + data)


def _receive(connection: socket.socket) -> bytes | None:
    """Next whole message; None when the other side has closed the connection."""
    head = connection.recv(_LENGTH.size, socket.MSG_WAITALL)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    # In one call: between two, other threads of this process would keep the other side waiting.
    data = connection.recv(length, socket.MSG_WAITALL)
    return data if len(data) == length else None
