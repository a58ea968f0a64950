"""Relay between an agent and its hub that can fail in every way that a network can."""

import select
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

PROXY_PAGE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 15\r\n\r\n<p>a proxy</p>\r\n"
)
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\n"
    b"Content-Type: application/problem+json\r\nContent-Length: 40\r\n\r\n"
    b'{"code":"overloaded","detail":"so busy"}'
)

GARBLED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n"
    b"Content-Length: 12\r\n\r\nnot squeezed"
)


class Relay:
    """Forwards everything, but for the faults that are set."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.target = 0
        """Port that it forwards to; 0: it closes every connection."""
        self.responses_to_drop: list[bytes] = []
        """Parts of request lines; such a request is forwarded, and its response dropped, once."""
        self.canned_responses: dict[bytes, bytes] = {}
        """Begin of a request line -> response of the relay itself."""
        self.stalled_request = b""
        """Begin of a request line whose response neither comes nor ends."""
        self.requests: list[bytes] = []
        """Request line of every request."""
        self.answered: list[bytes] = []
        """Request line of every request whose response has begun."""
        self._changed = threading.Condition()
        self._clients: set[socket.socket] = set()
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def url(self) -> str:
        """URL of the relay."""
        return f"http://127.0.0.1:{self.port}"

    def count(self, part: bytes) -> int:
        """Count the requests with this in their request line."""
        return sum(part in line for line in self.requests)

    def wait_for_request(self, part: bytes, count: int = 1) -> None:
        """Block until there were this many requests with this in their request line."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.count(part) >= count, 30)

    def wait_for_response(self, part: bytes, more: int = 1) -> None:
        """Block until this many more of them were answered."""
        with self._changed:
            end = sum(part in line for line in self.answered) + more
            assert self._changed.wait_for(
                lambda: sum(part in line for line in self.answered) >= end, 30
            )

    def cut_connections(self) -> None:
        """Close every connection."""
        for client in tuple(self._clients):
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Accept no further connections."""
        with self._listener, suppress(OSError):
            # Closing alone would leave the blocked `accept` blocked.
            self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            if not self.target:
                return
            self._clients.add(client)
            with socket.create_connection(("127.0.0.1", self.target)) as hub:
                for side in (client, hub):
                    side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._forward(client, hub)

    def _forward(self, client: socket.socket, hub: socket.socket) -> None:
        request_line = b""
        is_dropped = False
        while True:
            readable, _, _ = select.select([client, hub], [], [])
            for side in readable:
                data = side.recv(65_536)
                if not data or (side is hub and is_dropped):
                    return
                if side is client:
                    if data.startswith((b"GET ", b"POST ")):
                        request_line = data.split(b"\r\n")[0]
                        self._record(self.requests, request_line)
                        is_dropped = self._is_response_dropped(request_line)
                    canned_response = _value_for_prefix(self.canned_responses, request_line)
                    if canned_response:
                        client.sendall(canned_response)
                        return
                    hub.sendall(data)
                elif not (self.stalled_request and request_line.startswith(self.stalled_request)):
                    client.sendall(data)
                    self._record(self.answered, request_line)

    def _record(self, where: list[bytes], line: bytes) -> None:
        with self._changed:
            where.append(line)
            self._changed.notify_all()

    def _is_response_dropped(self, request: bytes) -> bool:
        for part in self.responses_to_drop:
            if part in request:
                self.responses_to_drop.remove(part)
                return True
        return False


def _value_for_prefix(table: dict[bytes, bytes], request: bytes) -> bytes:
    return next((value for prefix, value in table.items() if request.startswith(prefix)), b"")


@contextmanager
def running_relay() -> Generator[Relay]:
    """Run a relay, and close it at the end."""
    relay = Relay()
    try:
        yield relay
    finally:
        relay.close()
