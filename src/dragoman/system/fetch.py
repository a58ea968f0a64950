"""One POST or GET to the outside: to an address that was checked, to no other, and not for long.

The name is resolved once and the connection goes to the address that was looked at, so a name that
answers differently the second time gains nothing. Redirects are not followed.
"""

import io
import socket
import ssl
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from ipaddress import ip_address, ip_network
from threading import Thread
from typing import Any, Final, TypeVar
from urllib.parse import SplitResult, urlsplit

from dragoman.core.errors import SettingsError

_PORTS: Final = {"http": 80, "https": 443}
_SECONDS: Final = 5.0
_MOST_BYTES: Final = 65_536

_CLOSED: Final = tuple(
    (ip_network(network), kind)
    for network, kind in (
        ("0.0.0.0/8", "local"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "private"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "metadata"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "reserved"),
        ("192.88.99.0/24", "reserved"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "reserved"),
        ("198.51.100.0/24", "reserved"),
        ("203.0.113.0/24", "reserved"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        ("::1/128", "loopback"),
        ("::ffff:0:0/96", "IPv4-mapped"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("ff00::/8", "multicast"),
        # Within the global range; some of these embed an IPv4 address that was not checked.
        ("2001::/23", "reserved"),
        ("2001:db8::/32", "reserved"),
        ("2002::/16", "reserved"),
        ("3fff::/20", "reserved"),
    )
)
"""Networks outside the public internet. Listed here, because what the standard library calls global
changes between its releases."""

_GLOBAL_V6: Final = ip_network("2000::/3")

T = TypeVar("T")
Resolve = Callable[..., Sequence[tuple[Any, ...]]]
"""Signature of `socket.getaddrinfo`."""


class ForbiddenAddress(PermissionError):
    """The host name resolves to an address that is not public."""


class Endpoint:
    """HTTP client for one URL of the settings."""

    def __init__(
        self,
        url: str,
        setting: str,
        allow_hosts: Collection[str] = (),
        *,
        resolve: Resolve = socket.getaddrinfo,
        tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
        seconds: float = _SECONDS,
    ) -> None:
        """Parse the URL; `setting` names it in errors, since a URL can hold a secret."""
        parts, self._host, self._port = _parsed(url, setting)
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._host_header = parts.netloc
        self._is_open = _plain(self._host) in map(_plain, allow_hosts)
        self._setting = setting
        self._resolve = resolve
        self._tls = tls if parts.scheme == "https" else None
        self._seconds = seconds

    def post(self, headers: Mapping[str, str], body: bytes) -> int:
        """Send a POST and return the status; OSError with a readable message when there was no
        answer."""
        return self._ask(self._head("POST", headers, len(body)) + body, 0)[0]

    def exchange(self, headers: Mapping[str, str], body: bytes, most: int) -> tuple[int, bytes]:
        """Send a POST and return status and body, at most `max_bytes` of it."""
        return self._ask(self._head("POST", headers, len(body)) + body, most)

    def get(self, headers: Mapping[str, str], most: int) -> tuple[int, bytes]:
        """Send a GET and return status and body, at most `max_bytes` of it; OSError without an
        answer."""
        return self._ask(self._head("GET", headers, 0), most)

    def _ask(self, message: bytes, most: int) -> tuple[int, bytes]:
        call = _Call(self._seconds)
        answer: Future[tuple[int, bytes]] = Future()

        def work() -> None:
            try:
                answer.set_result(self._exchange(call, message, most))
            except Exception as error:  # noqa: BLE001  raised again where the caller waits
                answer.set_exception(error)

        # In a thread, because nothing else interrupts a resolver that does not answer.
        Thread(target=work, name="fetch", daemon=True).start()
        try:
            return answer.result(self._seconds)
        except TimeoutError:
            raise TimeoutError(f"there was no answer within {self._seconds:g} s") from None
        except HTTPException:
            raise ConnectionError("the answer is not HTTP") from None
        finally:
            call.hang_up()

    def _exchange(self, call: "_Call", message: bytes, most: int) -> tuple[int, bytes]:
        tls, line = self._tls and self._tls(), self._reached(call)
        with line if tls is None else call.encrypt(line, tls, self._host) as line:
            line.sendall(message)
            with _Answer(line, most) as answer:
                answer.begin()
                return answer.status, answer.read(most) if most else b""

    def _reached(self, call: "_Call") -> socket.socket:
        try:
            return call.connect(self._addresses())
        except ForbiddenAddress:
            raise
        except OSError as error:
            why = error.strerror or error
            raise ConnectionError(
                f"{self._host} port {self._port} cannot be reached: {why}"
            ) from None

    def _head(self, method: str, headers: Mapping[str, str], length: int) -> bytes:
        said = {"Host": self._host_header, "Content-Length": f"{length}", "Connection": "close"}
        lines = [f"{method} {self._path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in (said | dict(headers)).items()]
        if not all(map(str.isprintable, lines)):
            raise ValueError("A header must not hold a line's end.")
        return "\r\n".join((*lines, "", "")).encode("ascii")

    def _addresses(self) -> Sequence[tuple[Any, ...]]:
        found = self._resolve(self._host, self._port, type=socket.SOCK_STREAM)
        # One private address among public ones is an attack too: none of them is called then.
        for *_, (address, *_) in () if self._is_open else found:
            kind = closed_kind(address)
            if kind:
                raise ForbiddenAddress(
                    f"{self._setting} leads to {address}, an address that is not public ({kind}); "
                    f"if that is meant, add {self._host!r} to allow_hosts"
                )
        return found


def closed_kind(address: str) -> str:
    """Kind of a non-public address (`private`, `loopback`, ...), else ""."""
    ip = ip_address(address.partition("%")[0])
    for network, kind in _CLOSED:
        if ip in network:
            return kind
    return "reserved" if ip.version == 6 and ip not in _GLOBAL_V6 else ""


def _parsed(url: str, setting: str) -> tuple[SplitResult, str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError:
        raise SettingsError(f"{setting} is not a URL: its host or port cannot be read") from None
    if parts.scheme not in _PORTS or not host:
        raise SettingsError(f"{setting} must begin with https://HOST or http://HOST")
    if "@" in parts.netloc:
        raise SettingsError(f"{setting} must not hold a user or a password")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise SettingsError(f"{setting} may hold printable ASCII only: write the rest as %XX")
    return parts, host, _PORTS[parts.scheme] if port is None else port


def _plain(host: str) -> str:
    return host.lower().strip("[]").removesuffix(".")


class _Call:
    """Connection of one request, which another thread can abort."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._socket: socket.socket | None = None
        self._is_over = False

    def connect(self, addresses: Sequence[tuple[Any, ...]]) -> socket.socket:
        """Connect to the first of these addresses that answers."""
        problem: OSError = ConnectionError("the name has no address")
        for family, kind, protocol, _, address in addresses:
            line = socket.socket(family, kind, protocol)
            self._use(line)
            try:
                line.settimeout(self._seconds)
                line.connect(address)
            except OSError as error:
                line.close()
                problem = error
            else:
                return line
        raise problem

    def encrypt(self, plain: socket.socket, tls: ssl.SSLContext, host: str) -> ssl.SSLSocket:
        """Start TLS with a host that proves its name."""
        # The handshake comes after the socket is stored, so that a hanging one can be aborted too.
        line = tls.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
        self._use(line)
        try:
            line.do_handshake()
        except OSError:
            line.close()
            raise
        return line

    def hang_up(self) -> None:
        """Shut the connection down and wake the thread that reads or writes it."""
        self._is_over = True
        line = self._socket
        if line is not None:
            with suppress(OSError):
                # The method of the plain socket: that of SSLSocket also drops what the other thread
                # is using.
                socket.socket.shutdown(line, socket.SHUT_RDWR)

    def _use(self, line: socket.socket) -> None:
        self._socket = line
        if self._is_over:
            line.close()
            raise TimeoutError


class _AtMost(io.RawIOBase):
    """Reads at most so many bytes of a socket, then reports its end."""

    def __init__(self, raw: socket.SocketIO, most: int) -> None:
        self._raw = raw
        self._left = most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        count = self._raw.readinto(memoryview(buffer)[: self._left])
        self._left -= count or 0
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Answer(HTTPResponse):
    """Response whose head and body are limited in size."""

    def __init__(self, line: socket.socket, most: int) -> None:
        super().__init__(line)
        self.fp.close()
        self.fp = io.BufferedReader(_AtMost(line.makefile("rb", buffering=0), _MOST_BYTES + most))
