"""The server: uvicorn on uvloop, with a bound on how long anybody may take to begin a request."""

import asyncio
import errno
import socket
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from dragoman.config import HttpSettings
from dragoman.core.errors import SettingsError
from dragoman.surfaces.http.app import HttpApp
from dragoman.surfaces.http.exposure import Peers, check_exposure, url
from dragoman.surfaces.http.hearing import hearing_of, lay_hearing
from dragoman.surfaces.http.line import Line, lay
from dragoman.surfaces.http.problems import stop
from dragoman.system.open_files import raise_limit

_HIGH_WATER = 16 * 1024
"""Above so many bytes that a reader has not taken yet, it is not sent more."""
_SEND_BUFFER = 128 * 1024
"""And so many the system takes for it, which else would be megabytes for each reader."""
_MOST_HEAD = 64 * 1024
"""The head of a request has at most so many bytes, address and headers together."""
_AROUND = 4
"""A header has so many beside its name and its value: a colon, a blank, the end of the line."""
_KEEP_ALIVE_S = 30
_KEPT_FREE = 256
"""So many open files are left to the store, to the programs of agents and to everything else."""
_TO_SAY_NO = 64
"""So many connections above the most are still told that they are too many."""
_ROOMY = 0.75
"""While more of the connections than this part are taken, none is kept for a next request."""
_BACKLOG = 2_048
_REMEDIES = {
    errno.EADDRINUSE: "is another one running? http.port (or --port) chooses another",
    errno.EACCES: "http.port (or --port) chooses another: those below 1024 are not for everyone",
}
_NOT_OURS = "http.host (or --host) has to be an address of this machine"
_TO_TAKE_THE_END_S = 1.0
"""So long after a stop a reader may take what its stream has still for it; it can come again."""


class PatientHttp(HttpToolsProtocol):
    """HTTP that does not wait for ever for the head of a request, nor reads an endless one."""

    head_s = 10.0
    """From the first byte of a request (or from the start of a connection) on."""
    most = 1_000
    """So many connections are taken at a time."""
    peers: Peers
    _deadline: asyncio.TimerHandle | None = None
    _head = 0
    """So much has come of a head that has not ended."""
    _headers = 0
    """So many bytes the headers have, or what comes after the body."""
    _is_after_head = False
    _answering: RequestResponseCycle | None = None
    """The request that is being answered; the newest one may wait behind it."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Somebody is there: the clock of its first request begins."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=_HIGH_WATER)
        self._deadline = self.loop.call_later(self.head_s, self._give_up)
        if len(self.connections) > self.most + _TO_SAY_NO:
            self._give_up()

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone; whoever answers it is told, also when another request has come since."""
        self._head_is_there()
        super().connection_lost(exc)
        left = self._answering
        if left is not None and not left.response_complete:
            left.disconnected = True
            left.message_event.set()

    def eof_received(self) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        """It says no more: what is asked for is answered, unless that is watched for by somebody.

        False ends the connection. TLS cannot be closed by half.
        """
        last, answering = self.cycle, self._answering
        if answering is None or last.response_complete or last.more_body:
            return False
        if self.scheme == "https" or hearing_of(cast(Scope, answering.scope)).is_watched:
            return False
        for cycle in (answering, *(waiting for waiting, _ in self.pipeline)):
            hearing_of(cast(Scope, cycle.scope)).has_ended = True
        last.keep_alive = False
        return True

    def data_received(self, data: bytes) -> None:
        """More of a request, or the first of the next one."""
        if self._deadline is not None:
            self._head += len(data)
        super().data_received(data)
        if self._deadline is not None and self._head > _MOST_HEAD:
            self._give_up()

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._headers = 0
        self._is_after_head = False
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.head_s, self._give_up)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One more header; what comes after the body is for nobody, and is not kept."""
        self._headers += len(name) + len(value) + _AROUND
        if not self._is_after_head:
            super().on_header(name, value)
        elif self._headers > _MOST_HEAD:
            self._give_up()

    def on_headers_complete(self) -> None:
        """Its head is there; the body has a clock of its own."""
        self._head_is_there()
        size, self._headers = len(self.url) + self._headers, 0
        self._is_after_head = True
        if len(self.connections) > self.most:
            self.app = cast(Any, _too_many)
        elif size > _MOST_HEAD:
            self.app = cast(Any, _too_long)
        elif not _is_for_one_host(self.url, self.headers):
            self.app = cast(Any, _for_two_hosts)
        elif not self.peers.welcome(_host(self.client), _host(self.server)):
            self.app = cast(Any, _past_the_proxy)
        super().on_headers_complete()
        # Who answers begins in a later pass of the loop.
        lay(cast(Scope, self.scope), Line(self.cycle))
        lay_hearing(cast(Scope, self.scope))
        if not self.pipeline:
            self._answering = self.cycle

    def on_response_complete(self) -> None:
        """It was answered; whether the connection is kept depends on how many want one."""
        is_crowded = len(self.connections) > _ROOMY * self.most
        self.timeout_keep_alive = 0 if is_crowded else _KEEP_ALIVE_S
        if self.pipeline:
            self._answering = self.pipeline[-1][0]
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, and end."""
        del msg
        malformed = "this is no HTTP request that can be understood; the connection ends here"
        answer = stop("invalid_request", malformed, connection="close").response()
        headers = [*self.server_state.default_headers, *answer.raw_headers]
        lines = b"".join(b"%b: %b\r\n" % header for header in headers)
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\n%b\r\n%b" % (lines, answer.body))
        self.transport.close()

    def cut_stream(self) -> None:
        """End a stream whose reader was sent away, and does not take even that."""
        answering = self._answering
        progress = None if answering is None else cast(Scope, answering.scope).get("progress")
        if progress is not None and progress.is_stream:
            self.transport.abort()

    def _head_is_there(self) -> None:
        self._head = 0
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            # A head that never ended has no request that could be answered.
            self.transport.abort()


def _host(address: tuple[str, int | None] | None) -> str:
    return address[0] if address else ""


def _is_for_one_host(target: bytes, headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether a target that names a host itself, as for a proxy, means the one in the header."""
    if target[:1] in (b"/", b"*"):
        return True
    host = target.partition(b"://")[2].partition(b"/")[0]
    return all(value.lower() == host.lower() for name, value in headers if name == b"host")


async def _for_two_hosts(scope: Scope, receive: Receive, send: Send) -> None:
    two = "the target of the request names another host than its header Host; send the path only"
    problem = stop("invalid_request", two, connection="close")
    await problem.response()(scope, receive, send)


async def _too_many(scope: Scope, receive: Receive, send: Send) -> None:
    full = "the hub has as many connections as it can hold; try again"
    await stop("overloaded", full, connection="close").response()(scope, receive, send)


async def _too_long(scope: Scope, receive: Receive, send: Send) -> None:
    too_long = f"the head of the request, address and headers, has more than {_MOST_HEAD} bytes"
    problem = stop("message_too_large", too_long, connection="close")
    await problem.response()(scope, receive, send)


async def _past_the_proxy(scope: Scope, receive: Receive, send: Send) -> None:
    problem = stop(
        "not_by_proxy",
        "the hub is called through its proxy, which ends TLS: what comes past it could be read by "
        "others; if this is the proxy, list its address in http.proxy",
        connection="close",
    )
    await problem.response()(scope, receive, send)


class HttpServer(uvicorn.Server):
    """Serves an application until it is told to stop; then whoever waits is sent away first."""

    def __init__(
        self,
        app: HttpApp,
        settings: HttpSettings,
        grace_s: int = 10,
        *,
        connections: int = 0,
        peers: Peers | None = None,
    ) -> None:
        check_exposure(settings)
        self._connections = connections
        """So many are taken at a time; 0: as many as there may be open files."""
        self._app = app
        self._settings = settings
        self.port = settings.port
        self.is_up = threading.Event()
        """Set when it takes requests."""
        self._protocol = type(
            "Http",
            (PatientHttp,),
            {"head_s": app.office.door.patience.head, "peers": peers or Peers(settings)},
        )
        super().__init__(
            uvicorn.Config(
                cast(Any, app),
                host=settings.host,
                port=settings.port,
                loop="uvloop",
                http=self._protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                # Whoever sends what is no HTTP is answered, and must not fill a log.
                log_level="error",
                access_log=False,
                server_header=False,
                headers=[("x-content-type-options", "nosniff")],
                proxy_headers=bool(settings.proxy),
                forwarded_allow_ips=list(settings.proxy),
                ssl_certfile=settings.tls_cert or None,
                ssl_keyfile=settings.tls_key or None,
                timeout_keep_alive=_KEEP_ALIVE_S,
                timeout_graceful_shutdown=grace_s,
            )
        )

    @property
    def url(self) -> str:
        """Where it can be called."""
        return url(self._settings, self.port)

    def bind(self) -> socket.socket:
        """Take the address, before anything is said about it; SettingsError if it is taken."""
        settings = self._settings
        host = settings.host.strip("[]")  # as a URL has it
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        bound = socket.socket(family)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
            bound.bind((host, settings.port))
            # Whoever calls before the server runs waits for it, and is not turned away.
            bound.listen(_BACKLOG)
        except OSError as error:
            bound.close()
            raise SettingsError(
                f"the hub cannot listen at {settings.host} port {settings.port}: {error.strerror}; "
                f"{_REMEDIES.get(error.errno or 0, _NOT_OURS)}"
            ) from None
        self.port = bound.getsockname()[1]
        self._protocol.most = self._connections or max(1, raise_limit() - _KEPT_FREE)
        return bound

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        self.is_up.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Send away whoever waits, then let what is under way come to its end."""
        self._app.close()
        asyncio.get_running_loop().call_later(_TO_TAKE_THE_END_S, self._cut_streams)
        await super().shutdown(sockets)

    def _cut_streams(self) -> None:
        for connection in tuple(self.server_state.connections):
            cast(PatientHttp, connection).cut_stream()

    def capture_signals(self) -> AbstractContextManager[None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """None: signals are the hub's, which lets agents finish before the door is closed."""
        return nullcontext()

    def stop(self) -> None:
        """Begin to stop; may be called from any thread."""
        self.should_exit = True
