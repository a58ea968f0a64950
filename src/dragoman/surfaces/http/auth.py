"""Authentication middleware: checks host, origin, token and rate before a request is handled.

It also turns exceptions into problem documents and counts requests.
"""

import logging
from collections.abc import Mapping, Sequence

from msgspec import Struct
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.core.errors import DragomanError, Refusal
from dragoman.engine.auth import Principal
from dragoman.surfaces.http.context import AppContext
from dragoman.surfaces.http.errors import (
    HttpProblem,
    problem_error,
    problem_from_error,
    problem_from_refusal,
)
from dragoman.surfaces.http.limits import VIA, BodyReservation
from dragoman.surfaces.http.network_policy import HostPolicy

UNMATCHED = "(none)"
"""The route of a request that matched none, in metrics."""

_log = logging.getLogger("dragoman.http")

_MAX_SHOWN = 100

_SINGLE_HEADERS = frozenset(
    {
        b"authorization",
        b"content-length",
        b"content-type",
        b"host",
        b"idempotency-key",
        b"last-event-id",
        b"origin",
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
    """Passes a request on to the application, or answers it with a problem."""

    def __init__(
        self,
        context: AppContext,
        inner: ASGIApp,
        open_paths: Mapping[str, bool],
    ) -> None:
        self._context = context
        self._inner = inner
        self._open_paths = open_paths
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
        is_unmetered = self._open_paths.get(scope["path"])
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
        scope["token"] = bearer_token(headers)
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
