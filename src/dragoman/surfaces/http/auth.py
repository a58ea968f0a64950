"""Network policy and authentication: host, origin, token and rate, checked before all else.

It also turns exceptions into problem documents and counts requests.
"""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from ipaddress import ip_address, ip_network
from ssl import PROTOCOL_TLS_SERVER, SSLContext, SSLError

from msgspec import Struct
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.config import HttpSettings
from dragoman.core.errors import DragomanError, Refusal, SettingsError
from dragoman.engine.auth import Principal
from dragoman.surfaces.http.context import AppContext
from dragoman.surfaces.http.errors import (
    HttpProblem,
    problem_error,
    problem_from_error,
    problem_from_refusal,
)
from dragoman.surfaces.http.limits import VIA, BodyReservation
from dragoman.surfaces.http.sessions import check_is_own_page, session_cookie

# --- network policy ---------------------------------------------------------------------------

_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_WILDCARD_HOSTS = ("0.0.0.0", "::", "")  # noqa: S104  compared with, not listened at
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?")
_STANDARD_PORTS = {"http": 80, "https": 443}


def check_host_settings(settings: HttpSettings) -> None:
    """Raise SettingsError if others could eavesdrop, or call the hub under any name."""
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise SettingsError("http.tls_cert and http.tls_key belong together: give both or neither")
    for proxy in settings.proxy:
        _check_proxy(proxy)
    _check_hosts(settings)
    if is_loopback_host(settings.host):
        return
    host = settings.host or "(empty, so every address of this machine)"
    if not (settings.tls_cert or settings.proxy):
        raise SettingsError(
            f"http.host {host} can be reached by others, and tokens would travel in the "
            "open: give http.tls_cert and http.tls_key, or name the proxy that ends TLS in "
            "http.proxy, or listen at 127.0.0.1"
        )
    if settings.host in _WILDCARD_HOSTS and not settings.allowed_hosts:
        raise SettingsError(
            f"http.host {host} is no name that the hub can be called by: "
            "list the names that callers use in http.allowed_hosts"
        )


def check_certificate(settings: HttpSettings) -> None:
    """Raise SettingsError if the certificate and its key cannot be used."""
    if not settings.tls_cert:
        return
    try:
        # Without a password OpenSSL would ask for one, at a terminal that may not exist.
        SSLContext(PROTOCOL_TLS_SERVER).load_cert_chain(
            settings.tls_cert, settings.tls_key, password=""
        )
    except SSLError as error:
        raise SettingsError(
            f"http.tls_cert {settings.tls_cert} and http.tls_key {settings.tls_key} are no "
            "certificate chain and the private key that belongs to it, in PEM and without a "
            f"password: {error.reason or error}"
        ) from None
    except OSError as error:
        raise SettingsError(
            f"http.tls_cert {settings.tls_cert} or http.tls_key {settings.tls_key} cannot be "
            f"read: {error.strerror}; a relative path begins where `dragoman up` is started"
        ) from None


def _check_proxy(proxy: str) -> None:
    try:
        ip_network("0.0.0.0/0" if proxy == "*" else proxy, strict=False)
    except ValueError:
        raise SettingsError(
            f"http.proxy {proxy!a} is no address: give the one that the proxy calls from, "
            "10.0.0.9 for example, or a network, 10.0.0.0/24"
        ) from None


def _check_hosts(settings: HttpSettings) -> None:
    """Check the allowed hosts: one that no header can contain would never match."""
    for host in settings.allowed_hosts:
        if not _HOST.fullmatch(host):
            raise SettingsError(
                f"http.allowed_hosts: {host!a} is no Host of a request: write hub.example or "
                "hub.example:8443, and an IPv6 address in brackets"
            )


def is_loopback_host(host: str) -> bool:
    """Return whether only this machine can reach that address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def scheme(settings: HttpSettings) -> str:
    """Return the scheme of the hub's URL."""
    return "https" if settings.tls_cert else "http"


def hub_url(settings: HttpSettings, port: int) -> str:
    """Return the URL by which the hub can be called from this machine."""
    host = "127.0.0.1" if settings.host in _WILDCARD_HOSTS else settings.host
    return f"{scheme(settings)}://{_format_host(host)}:{port}"


class HostPolicy:
    """Host and Origin headers that are allowed."""

    def __init__(self, settings: HttpSettings) -> None:
        self._settings = settings
        self.hosts = lru_cache(maxsize=16)(self._hosts)
        self.origins = lru_cache(maxsize=16)(self._origins)

    def _hosts(self, port: int) -> frozenset[bytes]:
        """Return every Host header that means this hub at this port."""
        names = [_format_host(self._settings.host), *map(str.lower, self._settings.allowed_hosts)]
        if is_loopback_host(self._settings.host) or self._settings.host in _WILDCARD_HOSTS:
            # The hub's own command line and agents use these (`hub_url`).
            names += _LOOPBACK_NAMES
        known = set[str]()
        for name in names:
            known.add(name)
            if not _has_port(name):
                known.add(f"{name}:{port}")
        if port != _STANDARD_PORTS[scheme(self._settings)]:
            # Without a port the Host would mean another server of this machine.
            known -= set(_LOOPBACK_NAMES) | {_format_host(self._settings.host)}
        return frozenset(host.encode("latin-1", "replace") for host in known if host)

    def _origins(self, port: int) -> frozenset[bytes]:
        """Return every Origin whose pages may call the hub: its own."""
        # A proxy is called by HTTPS, and calls the hub by HTTP.
        schemes = {scheme(self._settings), *(("https",) if self._settings.proxy else ())}
        return frozenset(
            b"%s://%s" % (one.encode(), host) for one in schemes for host in self.hosts(port)
        )


class PeerPolicy:
    """Peer addresses that may connect: any, or (behind a proxy) only the proxy."""

    def __init__(self, settings: HttpSettings) -> None:
        self._allows_any = not settings.proxy or bool(settings.tls_cert) or "*" in settings.proxy
        self._proxies = [ip_network(one, strict=False) for one in settings.proxy if one != "*"]

    def is_allowed(self, peer: str, local_address: str) -> bool:
        """Return whether a peer may connect to that address of this machine."""
        if self._allows_any or peer == local_address:
            return True
        try:
            address = ip_address(peer)
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address
        return address.is_loopback or any(address in proxy for proxy in self._proxies)


def _format_host(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host.lower()


def _has_port(name: str) -> bool:
    return name.rpartition(":")[2].isdigit() and not name.endswith("]")


# --- middleware -------------------------------------------------------------------------------

UNMATCHED = "(none)"
"""The route of a request that matched none, in metrics."""

_log = logging.getLogger("dragoman.http")

_MAX_SHOWN = 100

_SINGLE_HEADERS = frozenset(
    {
        b"authorization",
        b"content-length",
        b"content-type",
        b"cookie",
        b"host",
        b"idempotency-key",
        b"last-event-id",
        b"origin",
        b"sec-fetch-site",
        b"transfer-encoding",
    }
)
"""Headers that may occur only once: of two, a proxy might have read the other one."""


class ResponseProgress(Struct):
    """The state of a response."""

    status: int = 0
    is_stream: bool = False
    is_request_read: bool = False
    """True if the whole request was received."""
    route: str = UNMATCHED


class AuthMiddleware:
    """Passes a request on to the application, or answers it with a problem.

    `open_path` tells of a path that is served without a token whether it is exempt from the rate
    limit; of others it gives None.
    """

    def __init__(
        self,
        context: AppContext,
        inner: ASGIApp,
        open_path: Callable[[str], bool | None],
    ) -> None:
        self._context = context
        self._inner = inner
        self._open_path = open_path
        self._host_policy = HostPolicy(context.deps.settings.http)
        self._identity = context.deps.identity

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        progress, monotonic = ResponseProgress(), self._context.deps.monotonic
        scope["progress"] = progress
        started_at = monotonic()

        # White space around a value is not part of it (RFC 9110, 5.5).
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        headers = dict(scope["headers"])
        scope["by_name"] = headers

        async def tracked_receive() -> Message:
            message = await receive()
            progress.is_request_read = not message.get("more_body", False)
            return message

        async def tracked_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                progress.status = message["status"]
                if not progress.is_request_read and _has_body(headers):
                    # The rest of the request is not read any more.
                    message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        try:
            self._check_headers(scope, headers)
            await self._admit(scope, headers)
            await self._inner(scope, tracked_receive, tracked_send)
        except HttpProblem as rejection:
            await self._send_problem(rejection, progress, scope, tracked_receive, tracked_send)
        except DragomanError as error:
            _log.error("%s: %s", _describe_request(scope), error)
            await self._send_problem(
                HttpProblem(problem_from_error(error)),
                progress,
                scope,
                tracked_receive,
                tracked_send,
            )
        except Exception:  # noqa: BLE001  one request must not take down others
            _log.exception("%s failed", _describe_request(scope))
            internal_error = problem_error(
                "internal_error", "the hub has failed at this request; its log says how"
            )
            await self._send_problem(internal_error, progress, scope, tracked_receive, tracked_send)
        finally:
            if "body_reservation" in scope:
                scope["body_reservation"].release()
        seconds = 0.0 if progress.is_stream else monotonic() - started_at
        self._context.metrics.record_request(
            progress.route, scope["method"], progress.status, seconds
        )

    def _check_headers(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        if len(headers) != len(scope["headers"]):
            _check_duplicate_headers(scope["headers"])
        if headers.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
            encoding = headers[b"transfer-encoding"][:_MAX_SHOWN].decode(errors="replace")
            raise problem_error(
                "invalid_request",
                f"Transfer-Encoding: {encoding!a} is not taken; send `chunked` alone, or a "
                "Content-Length",
                "Transfer-Encoding",
            )
        port = (scope.get("server") or ("", 0))[1]
        host = headers.get(b"host", b"").lower()
        if host not in self._host_policy.hosts(port):
            raise problem_error(
                "unknown_host",
                f"{host[:_MAX_SHOWN].decode(errors='replace')!a} is not a name of this hub: "
                "call it by "
                "the address that it listens at, or list that name in http.allowed_hosts",
            )
        origin = headers.get(b"origin")
        if origin is not None and origin.lower() not in self._host_policy.origins(port):
            raise problem_error(
                "foreign_origin",
                f"web pages of {origin[:_MAX_SHOWN].decode(errors='replace')!a} may not call "
                "this hub",
            )

    async def _admit(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        is_unmetered = self._open_path(scope["path"])
        if is_unmetered is None:
            principal = scope["principal"] = await self._authenticate(scope, headers)
            scope["body_reservation"] = (
                BodyReservation()
                if principal.is_owner
                else BodyReservation(self._context.body_budget, principal.actor.label)
            )
            scope["stream_limits"] = self._context.stream_limits
        elif not is_unmetered:
            address = _client_address(scope)
            self._context.check_rate(address)
            scope["body_reservation"] = BodyReservation(self._context.open_body_budget, address)

    async def _authenticate(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Principal:
        scope["token"] = bearer_token(headers) or self._session_token(scope, headers)
        if not scope["token"]:
            raise self._unauthenticated(
                scope,
                Refusal("unauthenticated", "show a token: `Authorization: Bearer TOKEN`"),
            )
        principal = await self._identity.authenticate_async(scope["token"], VIA)
        if isinstance(principal, Refusal):
            raise self._unauthenticated(scope, principal)
        if not principal.is_owner:
            self._context.check_rate(principal.actor.label)
        return principal

    def _session_token(self, scope: Scope, headers: Mapping[bytes, bytes]) -> str:
        """Open the session of a browser: the token inside; empty if there is none."""
        sealed = session_cookie(headers, scope["server"][1])
        if not sealed:
            return ""
        check_is_own_page(scope["method"], headers)
        session = self._context.deps.sessions.open(sealed)
        if isinstance(session, Refusal):
            raise self._unauthenticated(scope, session)
        scope["session_ends_at"] = session.expires_at
        return session.token

    async def _send_problem(
        self,
        rejection: HttpProblem,
        progress: ResponseProgress,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        if progress.status:
            return
        await rejection.response()(scope, receive, send)

    def _unauthenticated(self, scope: Scope, refusal: Refusal) -> HttpProblem:
        """Reject an unknown caller; guessing tokens is rate-limited like every other call."""
        self._context.check_rate(_client_address(scope))
        return HttpProblem(problem_from_refusal(refusal))


def bearer_token(headers: Mapping[bytes, bytes]) -> str:
    """Return the bearer token of a request; empty if there is none."""
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    return token.strip().decode("latin-1") if scheme.lower() == b"bearer" else ""


def _has_body(headers: Mapping[bytes, bytes]) -> bool:
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


def _check_duplicate_headers(headers: Sequence[tuple[bytes, bytes]]) -> None:
    names = [name for name, _ in headers]
    for name in _SINGLE_HEADERS.intersection(names):
        if names.count(name) > 1:
            raise problem_error("invalid_request", f"the header {name.decode()} is given twice")


def _client_address(scope: Scope) -> str:
    """Identify a caller without a token by its address."""
    return f"address {(scope.get('client') or ('',))[0]}"


def _describe_request(scope: Scope) -> str:
    """Describe a request in a log, as it was sent: its decoded path may hold anything."""
    return f"{scope['method']} {scope['raw_path'][:_MAX_SHOWN].decode('ascii', 'backslashreplace')}"
