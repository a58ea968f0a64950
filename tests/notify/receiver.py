"""A real HTTP server for tests: it keeps what it was sent, and answers as it is told to."""

import selectors
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from ssl import SSLContext
from threading import Event, Thread

from msgspec import Struct

Answer = Callable[[socket.socket], None]


class Request(Struct, frozen=True):
    """What somebody has sent."""

    line: str
    headers: dict[str, str]
    body: bytes


def status(code: int, *headers: str) -> Answer:
    """Answer with this status."""
    head = "\r\n".join((f"HTTP/1.1 {code} Said", *headers, "Content-Length: 0", "", ""))
    return lambda line: line.sendall(head.encode())


def text(answer: bytes) -> Answer:
    """Answer with these bytes."""
    return lambda line: line.sendall(answer)


def hang(line: socket.socket) -> None:
    """Say nothing until the other side goes."""
    line.recv(1)


def drip(line: socket.socket) -> None:
    """Begin an answer and go on with it, a byte at a time, for as long as somebody listens."""
    line.sendall(b"HTTP/1.1 200 ")
    with selectors.DefaultSelector() as other_side:
        other_side.register(line, selectors.EVENT_READ)
        while not other_side.select(0.02):
            line.sendall(b"O")


class Receiver:
    """Where it listens, what it has got, and what it answers next; at the end always 204."""

    def __init__(self, tls: SSLContext | None) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
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
        """Where it listens."""
        return self._listening.getsockname()[1]

    def url(self, host: str = "127.0.0.1", path: str = "/hook") -> str:
        """Where it listens, under this name."""
        return f"http{'s' if self._tls else ''}://{host}:{self.port}{path}"

    def close(self) -> None:
        """Listen no more."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                line, _ = self._listening.accept()
                self.connections += 1
                with suppress(OSError), line:
                    self._talk(line if self._tls is None else self._encrypted(line))
                self.is_done.set()

    def _encrypted(self, line: socket.socket) -> socket.socket:
        assert self._tls is not None
        try:
            return self._tls.wrap_socket(line, server_side=True)
        except OSError:
            line.close()
            raise

    def _talk(self, line: socket.socket) -> None:
        with line, line.makefile("rb") as said:
            first, headers = said.readline().decode().strip(), dict[str, str]()
            while words := said.readline().decode().strip():
                name, _, value = words.partition(": ")
                headers[name.lower()] = value
            body = said.read(int(headers.get("content-length", "0")))
            self.requests.append(Request(first, headers, body))
            (self.answers.pop(0) if self.answers else status(204))(line)


@contextmanager
def receiving(tls: SSLContext | None = None) -> Generator[Receiver]:
    """Run one."""
    receiver = Receiver(tls)
    try:
        yield receiver
    finally:
        receiver.close()
