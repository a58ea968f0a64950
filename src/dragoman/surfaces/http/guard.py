"""Before anything is looked at: for which host, from which origin, by whom, and how often."""

import logging
from collections.abc import Mapping, Sequence

from msgspec import Struct
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.core.errors import DragomanError, Refusal
from dragoman.engine.identity import Principal
from dragoman.surfaces.http.cors import PREFLIGHT, answer_headers, is_preflight
from dragoman.surfaces.http.exposure import Names
from dragoman.surfaces.http.office import Office
from dragoman.surfaces.http.problems import Form, HttpProblem, of_error, of_refusal, stop
from dragoman.surfaces.http.stays import VIA

UNMATCHED = "(none)"
"""The route of a request that matched none, in metrics."""

_log = logging.getLogger("dragoman.http")
_SHOWN = 100
_ONCE = frozenset(
    {
        b"authorization",
        b"content-length",
        b"content-type",
        b"host",
        b"idempotency-key",
        b"last-event-id",
        b"origin",
    }
)
"""Headers that may occur only once: of two, a proxy might have read the other one."""


class Progress(Struct):
    """The state of a response."""

    status: int = 0
    is_stream: bool = False
    is_read: bool = False
    """True if the whole request was received."""
    may_be_read: bool = False
    """True if the web page that sent the request may read the response."""
    route: str = UNMATCHED


class Guard:
    """Passes a request on to the application, or answers it with a problem."""

    def __init__(
        self,
        office: Office,
        inner: ASGIApp,
        open_paths: Mapping[str, bool],
        forms: Mapping[str, Form],
    ) -> None:
        """`error_formats`: formats of a refusal, by the beginning of the path."""
        self._office = office
        self._forms = forms
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

        # White space around a value is not part of it (RFC 9110, 5.5).
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        headers = dict(scope["headers"])
        scope["by_name"] = headers

        async def taken() -> Message:
            message = await receive()
            progress.is_read = not message.get("more_body", False)
            return message

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                progress.status = message["status"]
                if more := _more_headers(progress, headers):
                    message["headers"] = [*message["headers"], *more]
            await send(message)

        try:
            self._check(scope, headers)
            if is_preflight(scope["method"], headers):
                self._office.check_rate(_address(scope))
                await _answer_preflight(watched)
            else:
                await self._let_in(scope, headers)
                await self._inner(scope, taken, watched)
        except HttpProblem as stopped:
            await self._tell(stopped, progress, scope, taken, watched)
        except DragomanError as error:
            _log.error("%s: %s", _named(scope), error)
            await self._tell(HttpProblem(of_error(error)), progress, scope, taken, watched)
        except Exception:  # noqa: BLE001  one request must not take down others
            _log.exception("%s failed", _named(scope))
            failed = stop("internal_error", "the hub has failed at this request; its log says how")
            await self._tell(failed, progress, scope, taken, watched)
        seconds = 0.0 if progress.is_stream else monotonic() - begun
        self._office.metrics.request(progress.route, scope["method"], progress.status, seconds)

    def _check(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        if len(headers) != len(scope["headers"]):
            _check_once(scope["headers"])
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
        scope["progress"].may_be_read = True

    async def _let_in(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        is_free = self._open_paths.get(scope["path"])
        if is_free is None:
            scope["principal"] = await self._principal(scope, headers)
            scope["stays"] = self._office.stays
        elif not is_free:
            self._office.check_rate(_address(scope))

    async def _principal(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Principal:
        scope["token"] = shown_token(headers)
        if not scope["token"]:
            raise self._strange(
                scope,
                Refusal("unauthenticated", "show a token: `Authorization: Bearer TOKEN`"),
            )
        principal = await self._identity.who_soon(scope["token"], VIA)
        if isinstance(principal, Refusal):
            raise self._strange(scope, principal)
        if not principal.is_owner:
            self._office.check_rate(principal.actor.label)
        return principal

    async def _tell(
        self,
        stopped: HttpProblem,
        progress: Progress,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        if progress.status:
            return
        path = scope["path"]
        form = next((form for begin, form in self._forms.items() if path.startswith(begin)), None)
        await stopped.response(form)(scope, receive, send)

    def _strange(self, scope: Scope, refusal: Refusal) -> HttpProblem:
        """Reject an unknown caller; guessing tokens is rate-limited like every other call."""
        self._office.check_rate(_address(scope))
        return HttpProblem(of_refusal(refusal))


def shown_token(headers: Mapping[bytes, bytes]) -> str:
    """Return the bearer token of a request; empty if there is none."""
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    return token.strip().decode("latin-1") if scheme.lower() == b"bearer" else ""


async def _answer_preflight(send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": PREFLIGHT})
    await send({"type": "http.response.body", "body": b""})


def _more_headers(progress: Progress, headers: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    """Build the headers that the middleware adds to a response."""
    more: list[tuple[bytes, bytes]] = []
    if not progress.is_read and (
        b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"
    ):
        # The rest of the request is not read any more.
        more.append((b"connection", b"close"))
    if b"origin" in headers and progress.may_be_read:
        more += answer_headers(headers[b"origin"])
    return more


def _check_once(headers: Sequence[tuple[bytes, bytes]]) -> None:
    names = [name for name, _ in headers]
    for name in _ONCE.intersection(names):
        if names.count(name) > 1:
            raise stop("invalid_request", f"the header {name.decode()} is given twice")


def _address(scope: Scope) -> str:
    """Identify a caller without a token by its address."""
    return f"address {(scope.get('client') or ('',))[0]}"


def _named(scope: Scope) -> str:
    """Describe a request in a log, as it was sent: its decoded path may hold anything."""
    return f"{scope['method']} {scope['raw_path'][:_SHOWN].decode('ascii', 'backslashreplace')}"
