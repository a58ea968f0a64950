"""The server: uvicorn on uvloop, with a bound on how long anybody may take to begin a request."""

import asyncio
import errno
import socket
import struct
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import uvicorn
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from dragoman.config import HttpSettings
from dragoman.core.errors import SettingsError
from dragoman.surfaces.http.app import HttpApp
from dragoman.surfaces.http.exposure import Peers, check_exposure, url
from dragoman.surfaces.http.heads import head, without_offer
from dragoman.surfaces.http.hearing import hearing_of, lay_hearing
from dragoman.surfaces.http.line import Line, lay
from dragoman.surfaces.http.problems import stop
from dragoman.surfaces.http.turned_away import (
    MOST_HEAD,
    for_two_hosts,
    past_the_proxy,
    too_long,
    too_many,
)
from dragoman.system.open_files import raise_limit

_HIGH_WATER = 16 * 1024
"""With more bytes than this that a client has not read yet, writing to it pauses."""
_SEND_BUFFER = 128 * 1024
"""Send buffer of the system; by default it would be megabytes for each reader."""
_AROUND = 4
"""Bytes of a header beside its name and value: a colon, a blank, the end of the line."""
_KEEP_ALIVE_S = 30
_KEPT_FREE = 256
"""Open files that are reserved for the store, the programs of agents and everything else."""
_TO_SAY_NO = 64
"""Connections above the maximum that still get a response which says so."""
_ROOMY = 0.75
"""While more than this share of the connections is in use, none is kept alive."""
_BACKLOG = 2_048
_AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: a closed connection is reset."""
_REMEDIES = {
    errno.EADDRINUSE: "is another one running? http.port (or --port) chooses another",
    errno.EACCES: "http.port (or --port) chooses another: ports below 1024 need privileges",
}
_NOT_OURS = "http.host (or --host) has to be an address of this machine"
_TO_TAKE_THE_END_S = 1.0
"""Time after a stop for readers to take the rest of their streams; they can reconnect."""


class PatientHttp(HttpToolsProtocol):
    """HTTP protocol with a time limit and a size limit for the head of a request."""

    head_s = 10.0
    """From the first byte of a request (or from the start of a connection) on."""
    taking_s = 60.0
    """Until some more of a response is read by the client."""
    most = 1_000
    """Connections that are accepted at a time."""
    peers: Peers
    _deadline: asyncio.TimerHandle | None = None
    _taking: asyncio.TimerHandle | None = None
    _head = 0
    """Bytes received of an incomplete head."""
    _headers = 0
    """Bytes of the headers, or of the trailers after the body."""
    _is_after_head = False
    _answering: RequestResponseCycle | None = None
    """The request that is being answered; the newest one may be queued behind it."""
    _anew = b""
    """A head that is to be parsed again."""
    _is_over = False
    """True if all further input is ignored, because something was malformed."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the timer of the first request of a new connection."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=_HIGH_WATER)
        self._deadline = self.loop.call_later(self.head_s, self._give_up)
        if len(self.connections) > self.most + _TO_SAY_NO:
            self._give_up()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request that is being answered, even if another one has come since."""
        self._head_is_there()
        self._is_taken()
        super().connection_lost(exc)
        left = self._answering
        if left is not None and not left.response_complete:
            hearing_of(cast(Scope, left.scope)).has_left = True
            left.disconnected = True
            left.message_event.set()

    def eof_received(self) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Handle a half-closed connection: complete requests are answered, unless a disconnect is
        watched.

        False ends the connection. TLS cannot be half-closed.
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
        """Parse more bytes of this request, or the first of the next one."""
        if self._is_over:
            return
        if self._deadline is not None:
            self._head += len(data)
        self._unset_keepalive_if_required()
        try:
            self._feed(data)
        except HttpParserError:
            self._end_here()
        if self._deadline is not None and self._head > MOST_HEAD:
            self._give_up()

    def _feed(self, data: bytes) -> None:
        """Parse the bytes; a request that offers an upgrade is parsed again without the offer.

        The parser would take its body for data of that protocol, which is not supported here.
        """
        while data:
            try:
                self.parser.feed_data(data)
            except HttpParserUpgrade as offer:
                data, self._anew = self._anew + data[offer.args[0] :], b""
                # A request may ask to be the last one; what comes behind it is parsed all the same.
                self.parser = HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            else:
                return

    def _end_here(self) -> None:
        """Stop at malformed input: the requests before it are answered, and nothing else."""
        if self.pipeline and self.pipeline[0][0].more_body:
            self.pipeline.popleft()
        last = self.pipeline[0][0] if self.pipeline else self._answering
        if last is None or last.response_complete or last.more_body:
            self._tell_malformed()
            return
        self._head_is_there()
        self._is_over = True
        self.cycle = last
        last.keep_alive = False

    def on_message_begin(self) -> None:
        """Start the timer of a request."""
        super().on_message_begin()
        self._headers = 0
        self._is_after_head = False
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.head_s, self._give_up)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header; trailers after the body are not used, and not kept."""
        self._headers += len(name) + len(value) + _AROUND
        if not self._is_after_head:
            super().on_header(name, value)
        elif self._headers > MOST_HEAD:
            self._give_up()

    def on_headers_complete(self) -> None:
        """Check the head and start the request; its body has timeouts of its own."""
        if self._offers_another_protocol():
            method, version = self.parser.get_method(), self.parser.get_http_version().encode()
            request = b"%b %b HTTP/%b" % (method, self.url, version)
            self._anew = head(request, without_offer(self.headers))
            return
        self._head_is_there()
        size, self._headers = len(self.url) + self._headers, 0
        self._is_after_head = True
        if len(self.connections) > self.most:
            self.app = cast(Any, too_many)
        elif size > MOST_HEAD:
            # A path may be longer than the server can parse; it matches no route.
            self.app, self.url = cast(Any, too_long), b"/"
        elif not _is_for_one_host(self.url, self.headers):
            self.app = cast(Any, for_two_hosts)
        elif not self.peers.welcome(_host(self.client), _host(self.server)):
            self.app = cast(Any, past_the_proxy)
        super().on_headers_complete()
        # The application starts in a later pass of the loop.
        lay(cast(Scope, self.scope), Line(self.cycle))
        lay_hearing(cast(Scope, self.scope))
        if not self.pipeline:
            self._answering = self.cycle

    def on_message_complete(self) -> None:
        """Note that a request is complete."""
        if not self._offers_another_protocol():
            super().on_message_complete()

    def _offers_another_protocol(self) -> bool:
        # CONNECT is not an upgrade, and no path accepts it.
        return self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"

    def on_response_complete(self) -> None:
        """Note that a response is complete; a crowded server does not keep the connection alive."""
        is_crowded = len(self.connections) > _ROOMY * self.most
        self.timeout_keep_alive = 0 if is_crowded else _KEEP_ALIVE_S
        if self.pipeline:
            self._answering = self.pipeline[-1][0]
        super().on_response_complete()

    def _tell_malformed(self) -> None:
        malformed = "malformed HTTP request; the connection is closed"
        answer = stop("invalid_request", malformed, connection="close").response()
        headers = (*self.server_state.default_headers, *answer.raw_headers)
        self.transport.write(head(b"HTTP/1.1 400 Bad Request", headers) + bytes(answer.body))
        self.transport.close()

    def pause_writing(self) -> None:
        """Start the timer when the client reads slower than we write."""
        super().pause_writing()
        self._await_taking()

    def resume_writing(self) -> None:
        """Stop the timer when it has read most of it."""
        self._is_taken()
        super().resume_writing()

    def _await_taking(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._taking = self.loop.call_later(self.taking_s, self._look_at_taking, left)

    def _look_at_taking(self, before: int) -> None:
        """Abort a connection whose client has read nothing since: its response would be kept for
        ever.

        The reader of a stream is exempt, because little is kept for it.
        """
        if self._is_stream() or self.transport.get_write_buffer_size() < before:
            self._await_taking()
        else:
            # What the system has buffered for it is dropped, too.
            line = cast(socket.socket, self.transport.get_extra_info("socket"))
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            self.transport.abort()

    def _is_taken(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None

    def cut_stream(self) -> None:
        """Abort a stream that was closed, but whose reader does not read even the end."""
        if self._is_stream():
            self.transport.abort()

    def _is_stream(self) -> bool:
        answering = self._answering
        progress = None if answering is None else cast(Scope, answering.scope).get("progress")
        return progress is not None and progress.is_stream

    def _head_is_there(self) -> None:
        self._head = 0
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            # A head that never ended is no request that could be answered.
            self.transport.abort()


def _host(address: tuple[str, int | None] | None) -> str:
    return address[0] if address else ""


def _is_for_one_host(target: bytes, headers: list[tuple[bytes, bytes]]) -> bool:
    """Return whether an absolute target, as for a proxy, names the same host as the header."""
    if target[:1] in (b"/", b"*"):
        return True
    host = target.partition(b"://")[2].partition(b"/")[0]
    return all(value.lower() == host.lower() for name, value in headers if name == b"host")


class HttpServer(uvicorn.Server):
    """Serves an application until it is told to stop; streams and long polls are closed first."""

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
        """Connections at a time; 0: as many as there may be open files."""
        self._app = app
        self._settings = settings
        self.port = settings.port
        self.is_up = threading.Event()
        """Set when it accepts requests."""
        patience = app.office.door.patience
        self._protocol = type(
            "Http",
            (PatientHttp,),
            {
                "head_s": patience.head,
                "taking_s": patience.taking,
                "peers": peers or Peers(settings),
            },
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
                # Malformed requests are answered, and must not fill a log.
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
        """The URL by which it can be called."""
        return url(self._settings, self.port)

    def bind(self) -> socket.socket:
        """Bind the address, before the hub announces it; SettingsError if it cannot."""
        settings = self._settings
        host = settings.host.strip("[]")  # brackets, as in a URL
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        bound = socket.socket(family)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
            bound.bind((host, settings.port))
            # Clients that connect before the server runs wait for it, and are not refused.
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
        """Close streams and long polls, then let running requests end."""
        self._app.close()
        asyncio.get_running_loop().call_later(_TO_TAKE_THE_END_S, self._cut_streams)
        await super().shutdown(sockets)

    def _cut_streams(self) -> None:
        for connection in tuple(self.server_state.connections):
            cast(PatientHttp, connection).cut_stream()

    def capture_signals(self) -> AbstractContextManager[None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Leave signals to the hub, which lets agents finish before the server is closed."""
        return nullcontext()

    def stop(self) -> None:
        """Begin to stop; may be called from any thread."""
        self.should_exit = True
