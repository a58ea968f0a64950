"""A proxy that can hang up at the worst moment: after a commit, before its answer."""

import select
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict


class Proxy:
    """Passes everything on, until it is told to swallow the answer to a commit."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.hangs_up_after_commit = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no further connections."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(str(self._target))
            is_committing = False
            while True:
                readable, _, _ = select.select([client, server], [], [])
                for side in readable:
                    data = side.recv(65_536)
                    if not data or (side is server and is_committing):
                        return
                    (server if side is client else client).sendall(data)
                    if side is client and self.hangs_up_after_commit.is_set():
                        is_committing = b"\0commit\0" in data
                        if is_committing:
                            self.hangs_up_after_commit.clear()


@contextmanager
def hanging_up_proxy(server_url: str) -> Generator[Proxy]:
    """A proxy before the server of this URL, which listens on a socket in a folder."""
    folder = conninfo_to_dict(server_url)["host"]
    proxy = Proxy(Path(str(folder)) / ".s.PGSQL.5432")
    try:
        yield proxy
    finally:
        proxy.close()
