"""Before anything is looked at: for which host, from which origin, by whom, and how often."""

import logging
from collections.abc import Mapping

from msgspec import Struct
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.core.errors import DragomanError, Refusal
from dragoman.engine.identity import Principal
from dragoman.surfaces.http.exposure import Names
from dragoman.surfaces.http.office import Office
from dragoman.surfaces.http.problems import HttpProblem, of_error, of_refusal, stop

VIA = "http"
UNMATCHED = "(none)"
"""The route of a request that was not brought to one, in figures."""

_log = logging.getLogger("dragoman.http")
_SHOWN = 100


class Progress(Struct):
    """How far an answer has come."""

    status: int = 0
    is_stream: bool = False
    route: str = UNMATCHED


class Guard:
    """Lets a request through to the application, or answers it with a problem."""

    def __init__(self, office: Office, inner: ASGIApp, open_paths: frozenset[str]) -> None:
        self._office = office
        self._inner = inner
        self._open_paths = open_paths
        self._names = Names(office.door.settings.http)
        self._identity = office.door.identity

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        progress, monotonic = Progress(), self._office.door.monotonic
        scope["progress"] = progress
        begun = monotonic()

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                progress.status = message["status"]
            await send(message)

        try:
            headers = dict(scope["headers"])
            scope["by_name"] = headers
            self._check(scope, headers)
            await self._inner(scope, receive, watched)
        except HttpProblem as stopped:
            await _tell(stopped, progress, scope, receive, watched)
        except DragomanError as error:
            _log.error("%s %s: %s", scope["method"], scope["path"][:_SHOWN], error)
            await _tell(HttpProblem(of_error(error)), progress, scope, receive, watched)
        except Exception:  # noqa: BLE001  one request must not take others along
            _log.exception("%s %s failed", scope["method"], scope["path"][:_SHOWN])
            failed = stop("internal_error", "the hub has failed at this request; its log says how")
            await _tell(failed, progress, scope, receive, watched)
        seconds = 0.0 if progress.is_stream else monotonic() - begun
        self._office.metrics.request(progress.route, scope["method"], progress.status, seconds)

    def _check(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        port = (scope.get("server") or ("", 0))[1]
        host = headers.get(b"host", b"").lower()
        if host not in self._names.hosts(port):
            raise stop(
                "unknown_host",
                f"{host[:_SHOWN].decode(errors='replace')!a} is not a name of this hub: call it by "
                "the address that it listens at, or list that name in http.allowed_hosts",
            )
        origin = headers.get(b"origin")
        if origin is not None and origin.lower() not in self._names.origins(port):
            raise stop(
                "foreign_origin",
                f"web pages of {origin[:_SHOWN].decode(errors='replace')!a} may not call this hub; "
                "if they shall, list the origin in http.allowed_origins",
            )
        if scope["path"] not in self._open_paths:
            scope["principal"] = self._principal(scope, headers)

    def _principal(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Principal:
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not token.strip():
            raise self._strange(
                scope,
                Refusal("unauthenticated", "show a token: `Authorization: Bearer TOKEN`"),
            )
        principal = self._identity.who(token.strip().decode("latin-1"), VIA)
        if isinstance(principal, Refusal):
            raise self._strange(scope, principal)
        if not principal.is_owner:
            self._check_rate(principal.actor.label)
        return principal

    def _strange(self, scope: Scope, refusal: Refusal) -> HttpProblem:
        """Nobody that is known; whoever guesses tokens is slowed down like every caller."""
        self._check_rate(f"address {(scope.get('client') or ('',))[0]}")
        return HttpProblem(of_refusal(refusal))

    def _check_rate(self, caller: str) -> None:
        seconds = self._office.rates.take(caller)
        if seconds:
            http = self._office.door.settings.http
            raise stop(
                "rate_limited",
                f"at most {http.rate_per_second:g} requests a second are taken from one caller "
                f"({http.burst} after a pause): wait {seconds} s",
                retry_after=str(seconds),
            )


async def _tell(
    stopped: HttpProblem, progress: Progress, scope: Scope, receive: Receive, send: Send
) -> None:
    if not progress.status:
        await stopped.response()(scope, receive, send)
