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
        # Inside of the global range; some of these carry an IPv4 address that nobody has checked.
        ("2001::/23", "reserved"),
        ("2001:db8::/32", "reserved"),
        ("2002::/16", "reserved"),
        ("3fff::/20", "reserved"),
    )
)
"""Networks that are no place on the public internet. Written down, because what the standard
library calls global changes between its releases."""

_GLOBAL_V6: Final = ip_network("2000::/3")

T = TypeVar("T")
Resolve = Callable[..., Sequence[tuple[Any, ...]]]
"""What `socket.getaddrinfo` does."""


class ForbiddenAddress(PermissionError):
    """The name leads to an address that nobody on the outside should make us call."""


class Endpoint:
    """A URL that somebody has named, and what is done with it."""

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
        """Check the URL; `setting` is what an error calls it, for a URL can hold a secret."""
        parts, self._host, self._port = _parsed(url, setting)
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._host_header = parts.netloc
        self._is_open = _plain(self._host) in map(_plain, allow_hosts)
        self._setting = setting
        self._resolve = resolve
        self._tls = tls if parts.scheme == "https" else None
        self._seconds = seconds

    def post(self, headers: Mapping[str, str], body: bytes) -> int:
        """The status that was answered; OSError, with words for a person, when none was."""
        return self._ask(self._head("POST", headers, len(body)) + body, 0)[0]

    def exchange(self, headers: Mapping[str, str], body: bytes, most: int) -> tuple[int, bytes]:
        """The same with so much of the body that was answered."""
        return self._ask(self._head("POST", headers, len(body)) + body, most)

    def get(self, headers: Mapping[str, str], most: int) -> tuple[int, bytes]:
        """The status, and of the body at most so many bytes; OSError when nothing was answered."""
        return self._ask(self._head("GET", headers, 0), most)

    def _ask(self, message: bytes, most: int) -> tuple[int, bytes]:
        call = _Call(self._seconds)
        answer: Future[tuple[int, bytes]] = Future()

        def work() -> None:
            try:
                answer.set_result(self._exchange(call, message, most))
            except Exception as error:  # noqa: BLE001  raised again where the caller waits
                answer.set_exception(error)

        # In a thread, because nothing else ends a resolver that does not answer.
        Thread(target=work, name="fetch", daemon=True).start()
        try:
            return answer.result(self._seconds)
        except TimeoutError:
            raise TimeoutError(f"there was no answer within {self._seconds:g} s") from None
        except HTTPException:
            raise ConnectionError("what came back is not HTTP") from None
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
        # One closed address among open ones is a trick too: none of them is called then.
        for *_, (address, *_) in () if self._is_open else found:
            kind = closed_kind(address)
            if kind:
                raise ForbiddenAddress(
                    f"{self._setting} leads to {address}, an address that is not public ({kind}); "
                    f"if that is meant, add {self._host!r} to allow_hosts"
                )
        return found


def closed_kind(address: str) -> str:
    """What kind of address it is if it is none of the public internet, else ""."""
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
    """The connection of one exchange, so that another thread can end it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._socket: socket.socket | None = None
        self._is_over = False

    def connect(self, addresses: Sequence[tuple[Any, ...]]) -> socket.socket:
        """Reach one of these addresses, in their order."""
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
        """Go on in secret, with a host that has proved its name."""
        # The handshake comes after, so that a hanging one can be ended too.
        line = tls.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
        self._use(line)
        try:
            line.do_handshake()
        except OSError:
            line.close()
            raise
        return line

    def hang_up(self) -> None:
        """Nobody waits any more: whoever reads or writes is woken."""
        self._is_over = True
        line = self._socket
        if line is not None:
            with suppress(OSError):
                # The plain one: that of an SSLSocket also drops what the other thread is using.
                socket.socket.shutdown(line, socket.SHUT_RDWR)

    def _use(self, line: socket.socket) -> None:
        self._socket = line
        if self._is_over:
            line.close()
            raise TimeoutError


class _AtMost(io.RawIOBase):
    """The beginning of what a socket gives; after that it ends, whatever else is sent."""

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
    """An answer of which only the beginning is read: its head, and so much of its body."""

    def __init__(self, line: socket.socket, most: int) -> None:
        super().__init__(line)
        self.fp.close()
        self.fp = io.BufferedReader(_AtMost(line.makefile("rb", buffering=0), _MOST_BYTES + most))
