"""HTTP client for outgoing requests, guarded against SSRF and slow servers.

A host name is resolved once, its addresses are checked, and the connection goes to a checked
address, so a name that resolves differently the second time gains nothing. Redirects are not
followed.
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
_TIMEOUT_SECONDS: Final = 5.0
_MAX_HEAD_BYTES: Final = 65_536

_NON_PUBLIC: Final = tuple(
    map(
        ip_network,
        # Local, private, link-local and metadata addresses, reserved ranges and multicast. Of
        # IPv6, within the global range, also those that embed an IPv4 address unchecked.
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32"),
            *("169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24"),
            *("192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
            *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
            *("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"),
        ),
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


class SafeHttpClient:
    """HTTP client for one URL of the settings."""

    def __init__(
        self,
        url: str,
        setting: str,
        allow_hosts: Collection[str] = (),
        *,
        resolve: Resolve = socket.getaddrinfo,
        tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
        seconds: float = _TIMEOUT_SECONDS,
    ) -> None:
        """Parse the URL; `setting` names it in errors, since a URL can hold a secret."""
        parts, self._host, self._port = _parse_url(url, setting)
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._host_header = parts.netloc
        self._is_allowed_host = _normalize_host(self._host) in map(_normalize_host, allow_hosts)
        self._setting = setting
        self._resolve = resolve
        self._tls = tls if parts.scheme == "https" else None
        self._seconds = seconds

    def post(self, headers: Mapping[str, str], body: bytes) -> int:
        """Send a POST and return the status; OSError with a readable message when there was no
        answer."""
        return self._run_with_timeout(self._request_head("POST", headers, len(body)) + body, 0)[0]

    def post_and_read(
        self, headers: Mapping[str, str], body: bytes, max_bytes: int
    ) -> tuple[int, bytes]:
        """Send a POST and return status and body, at most `max_bytes` of it."""
        return self._run_with_timeout(
            self._request_head("POST", headers, len(body)) + body, max_bytes
        )

    def get(self, headers: Mapping[str, str], max_bytes: int) -> tuple[int, bytes]:
        """Send a GET and return status and body, at most `max_bytes` of it; OSError without an
        answer."""
        return self._run_with_timeout(self._request_head("GET", headers, 0), max_bytes)

    def _run_with_timeout(self, message: bytes, max_bytes: int) -> tuple[int, bytes]:
        call = _Connection(self._seconds)
        answer: Future[tuple[int, bytes]] = Future()

        def run() -> None:
            try:
                answer.set_result(self._send_and_receive(call, message, max_bytes))
            except Exception as error:  # noqa: BLE001  raised again where the caller waits
                answer.set_exception(error)

        # In a thread, because nothing else interrupts a resolver that does not answer.
        Thread(target=run, name="fetch", daemon=True).start()
        try:
            return answer.result(self._seconds)
        except TimeoutError:
            raise TimeoutError(f"there was no answer within {self._seconds:g} s") from None
        except HTTPException:
            raise ConnectionError("the answer is not HTTP") from None
        finally:
            call.abort()

    def _send_and_receive(
        self, call: "_Connection", message: bytes, max_bytes: int
    ) -> tuple[int, bytes]:
        tls, connection = self._tls and self._tls(), self._connect(call)
        with (
            connection if tls is None else call.start_tls(connection, tls, self._host) as connection
        ):
            connection.sendall(message)
            with _LimitedResponse(connection, max_bytes) as answer:
                answer.begin()
                return answer.status, answer.read(max_bytes) if max_bytes else b""

    def _connect(self, call: "_Connection") -> socket.socket:
        try:
            return call.connect(self._resolve_checked())
        except ForbiddenAddress:
            raise
        except OSError as error:
            reason = error.strerror or error
            raise ConnectionError(
                f"{self._host} port {self._port} cannot be reached: {reason}"
            ) from None

    def _request_head(self, method: str, headers: Mapping[str, str], length: int) -> bytes:
        defaults = {"Host": self._host_header, "Content-Length": f"{length}", "Connection": "close"}
        lines = [f"{method} {self._path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in (defaults | dict(headers)).items()]
        if not all(map(str.isprintable, lines)):
            raise ValueError("A header must not hold a line's end.")
        return "\r\n".join((*lines, "", "")).encode("ascii")

    def _resolve_checked(self) -> Sequence[tuple[Any, ...]]:
        found = self._resolve(self._host, self._port, type=socket.SOCK_STREAM)
        # One private address among public ones is an attack too: none of them is called then.
        for *_, (address, *_) in () if self._is_allowed_host else found:
            if not is_public(address):
                raise ForbiddenAddress(
                    f"{self._setting} leads to {address}, an address that is not public; "
                    f"if that is meant, add {self._host!r} to allow_hosts"
                )
        return found


def is_public(address: str) -> bool:
    """Check whether an address is one of the public internet."""
    ip = ip_address(address.partition("%")[0])
    in_range = ip.version == 4 or ip in _GLOBAL_V6
    return in_range and not any(ip in network for network in _NON_PUBLIC)


def _parse_url(url: str, setting: str) -> tuple[SplitResult, str, int]:
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


def _normalize_host(host: str) -> str:
    return host.lower().strip("[]").removesuffix(".")


class _Connection:
    """Connection of one request, which another thread can abort."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._socket: socket.socket | None = None
        self._is_aborted = False

    def connect(self, addresses: Sequence[tuple[Any, ...]]) -> socket.socket:
        """Connect to the first of these addresses that answers."""
        problem: OSError = ConnectionError("the name has no address")
        for family, kind, protocol, _, address in addresses:
            connection = socket.socket(family, kind, protocol)
            self._replace_socket(connection)
            try:
                connection.settimeout(self._seconds)
                connection.connect(address)
            except OSError as error:
                connection.close()
                problem = error
            else:
                return connection
        raise problem

    def start_tls(self, plain: socket.socket, tls: ssl.SSLContext, host: str) -> ssl.SSLSocket:
        """Start TLS with a host that proves its name."""
        # The handshake comes after the socket is stored, so that a hanging one can be aborted too.
        encrypted = tls.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
        self._replace_socket(encrypted)
        try:
            encrypted.do_handshake()
        except OSError:
            encrypted.close()
            raise
        return encrypted

    def abort(self) -> None:
        """Shut the connection down and wake the thread that reads or writes it."""
        self._is_aborted = True
        connection = self._socket
        if connection is not None:
            with suppress(OSError):
                # The method of the plain socket: that of SSLSocket also drops what the other thread
                # is using.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def _replace_socket(self, connection: socket.socket) -> None:
        self._socket = connection
        if self._is_aborted:
            connection.close()
            raise TimeoutError


class _LimitedReader(io.RawIOBase):
    """Reads at most so many bytes of a socket, then reports its end."""

    def __init__(self, raw: socket.SocketIO, max_bytes: int) -> None:
        self._raw = raw
        self._remaining = max_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        count = self._raw.readinto(memoryview(buffer)[: self._remaining])
        self._remaining -= count or 0
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _LimitedResponse(HTTPResponse):
    """Response whose head and body are limited in size."""

    def __init__(self, connection: socket.socket, max_bytes: int) -> None:
        super().__init__(connection)
        self.fp.close()
        self.fp = io.BufferedReader(
            _LimitedReader(connection.makefile("rb", buffering=0), _MAX_HEAD_BYTES + max_bytes)
        )
