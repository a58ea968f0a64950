"""A real HTTP server for tests: it records requests and sends the listed answers."""

import selectors
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from ssl import SSLContext
from threading import Event, Thread

from msgspec import Struct

Answer = Callable[[socket.socket], None]


class Request(Struct, frozen=True):
    """A received request."""

    line: str
    headers: dict[str, str]
    body: bytes


def status(code: int, *headers: str) -> Answer:
    """Answer with this status."""
    head = "\r\n".join((f"HTTP/1.1 {code} Said", *headers, "Content-Length: 0", "", ""))
    return lambda connection: connection.sendall(head.encode())


def text(answer: bytes) -> Answer:
    """Answer with these bytes."""
    return lambda connection: connection.sendall(answer)


def hang(connection: socket.socket) -> None:
    """Send nothing until the client disconnects."""
    connection.recv(1)


def drip(connection: socket.socket) -> None:
    """Send an endless status line, a byte at a time, until the client disconnects."""
    connection.sendall(b"HTTP/1.1 200 ")
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        while not selector.select(0.02):
            connection.sendall(b"O")


class Receiver:
    """A server on localhost with recorded requests and listed answers; 204 when none is left."""

    def __init__(self, tls: SSLContext | None) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._tls = tls
        self.answers: list[Answer] = []
        self.requests: list[Request] = []
        self.connections = 0
        self.is_done = Event()
        """Set after each answer."""
        self._thread = Thread(target=self._serve)
        self._thread.start()

    @property
    def port(self) -> int:
        return self._socket.getsockname()[1]

    def url(self, host: str = "127.0.0.1", path: str = "/hook") -> str:
        """URL of the server, under this host name."""
        return f"http{'s' if self._tls else ''}://{host}:{self.port}{path}"

    def close(self) -> None:
        """Stop listening."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.connections += 1
                with suppress(OSError), connection:
                    self._answer(connection if self._tls is None else self._wrap_tls(connection))
                self.is_done.set()

    def _wrap_tls(self, connection: socket.socket) -> socket.socket:
        assert self._tls is not None
        try:
            return self._tls.wrap_socket(connection, server_side=True)
        except OSError:
            connection.close()
            raise

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            first, headers = stream.readline().decode().strip(), dict[str, str]()
            while words := stream.readline().decode().strip():
                name, _, value = words.partition(": ")
                headers[name.lower()] = value
            body = stream.read(int(headers.get("content-length", "0")))
            self.requests.append(Request(first, headers, body))
            (self.answers.pop(0) if self.answers else status(204))(connection)


@contextmanager
def receiving(tls: SSLContext | None = None) -> Generator[Receiver]:
    """Run a receiver."""
    receiver = Receiver(tls)
    try:
        yield receiver
    finally:
        receiver.close()
