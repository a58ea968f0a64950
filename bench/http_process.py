"""The servers that are measured, started and ended: see `bench.http_server`."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


class Running:
    """A server in a process of its own."""

    def __init__(self, server: subprocess.Popen[str]) -> None:
        assert server.stdout is not None
        self._server = server
        self.pid = server.pid
        self.port = int(server.stdout.readline())

    def begin(self) -> None:
        """Let its producer begin."""
        assert self._server.stdin is not None
        self._server.stdin.write("\n")
        self._server.stdin.flush()


@contextmanager
def running(kind: str, folder: Path, *more: str) -> Generator[Running]:
    """A server of this kind, until the end."""
    command = [sys.executable, "-m", "bench.http_server", kind, str(folder), *more]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            yield Running(server)
        finally:
            server.kill()
