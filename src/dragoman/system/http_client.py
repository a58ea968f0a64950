"""HTTP client for outgoing requests, guarded against SSRF and slow servers.

A host name is resolved once, its addresses are checked, and the connection goes to a checked
address, so a name that resolves differently the second time gains nothing. Redirects are not
followed.
"""

import socket
import ssl
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from ipaddress import ip_address, ip_network
from threading import Thread
from typing import Any, Final, TypeVar
from urllib.parse import SplitResult, urlsplit

from dragoman.core.errors import SettingsError

_PORTS: Final = {"http": 80, "https": 443}
_TIMEOUT_SECONDS: Final = 5.0

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
        return self._request("POST", headers, body, 0)[0]

    def post_and_read(
        self, headers: Mapping[str, str], body: bytes, max_bytes: int
    ) -> tuple[int, bytes]:
        """Send a POST and return status and body, at most `max_bytes` of it."""
        return self._request("POST", headers, body, max_bytes)

    def get(self, headers: Mapping[str, str], max_bytes: int) -> tuple[int, bytes]:
        """Send a GET and return status and body, at most `max_bytes` of it; OSError without an
        answer."""
        return self._request("GET", headers, None, max_bytes)

    def _request(
        self, method: str, headers: Mapping[str, str], body: bytes | None, max_bytes: int
    ) -> tuple[int, bytes]:
        if not all(map(str.isprintable, headers.values())):
            raise ValueError("A header must not hold a line's end.")
        call = _Connection(self._host, self._port, self._seconds, self._resolve_checked, self._tls)
        answer: Future[tuple[int, bytes]] = Future()

        def run() -> None:
            try:
                sent = {"Host": self._host_header, "Connection": "close", **headers}
                call.request(method, self._path, body, sent)
                with call.getresponse() as response:
                    content = response.read(max_bytes) if max_bytes else b""
                    answer.set_result((response.status, content))
            except Exception as error:  # noqa: BLE001  raised again where the caller waits
                answer.set_exception(error)
            finally:
                call.close()

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


class _Connection(HTTPConnection):
    """Connection of one request to a checked address, which another thread can abort."""

    def __init__(
        self,
        host: str,
        port: int,
        seconds: float,
        resolve: Callable[[], Sequence[tuple[Any, ...]]],
        tls: Callable[[], ssl.SSLContext] | None,
    ) -> None:
        super().__init__(host, port, seconds)
        self._resolve = resolve
        self._make_tls = tls
        self._socket: socket.socket | None = None
        self._is_aborted = False

    def connect(self) -> None:
        """Connect to the first address that answers; over TLS to a host that proves its name."""
        tls = self._make_tls and self._make_tls()
        try:
            plain = self._connect_plain()
        except ForbiddenAddress:
            raise
        except OSError as error:
            reason = error.strerror or error
            raise ConnectionError(
                f"{self.host} port {self.port} cannot be reached: {reason}"
            ) from None
        if tls is None:
            self.sock = plain
            return
        # The handshake comes after the socket is stored, so that a hanging one can be aborted too.
        encrypted = tls.wrap_socket(plain, server_hostname=self.host, do_handshake_on_connect=False)
        self._replace_socket(encrypted)
        self.sock = encrypted
        encrypted.do_handshake()

    def _connect_plain(self) -> socket.socket:
        problem: OSError = ConnectionError("the name has no address")
        for family, kind, protocol, _, address in self._resolve():
            connection = socket.socket(family, kind, protocol)
            self._replace_socket(connection)
            try:
                connection.settimeout(self.timeout)
                connection.connect(address)
            except OSError as error:
                connection.close()
                problem = error
            else:
                return connection
        raise problem

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
