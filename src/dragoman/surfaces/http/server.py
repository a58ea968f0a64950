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
"""Above so many bytes that a reader has not taken yet, it is not sent more."""
_SEND_BUFFER = 128 * 1024
"""And so many the system takes for it, which else would be megabytes for each reader."""
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
_AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: a connection that is closed is reset."""
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
    taking_s = 60.0
    """Until some more of an answer is taken."""
    most = 1_000
    """So many connections are taken at a time."""
    peers: Peers
    _deadline: asyncio.TimerHandle | None = None
    _taking: asyncio.TimerHandle | None = None
    _head = 0
    """So much has come of a head that has not ended."""
    _headers = 0
    """So many bytes the headers have, or what comes after the body."""
    _is_after_head = False
    _answering: RequestResponseCycle | None = None
    """The request that is being answered; the newest one may wait behind it."""
    _anew = b""
    """A head that is to be read again."""
    _is_over = False
    """Whether nothing more is heard, because something could not be understood."""

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
        self._is_taken()
        super().connection_lost(exc)
        left = self._answering
        if left is not None and not left.response_complete:
            hearing_of(cast(Scope, left.scope)).has_left = True
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
        """Read what has come; one that offers another protocol is read anew without its offer.

        The parser takes its body for words of that protocol, which nobody speaks here.
        """
        while data:
            try:
                self.parser.feed_data(data)
            except HttpParserUpgrade as offer:
                data, self._anew = self._anew + data[offer.args[0] :], b""
                # The one before is done, if the request wants to be the last.
                self.parser = HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            else:
                return

    def _end_here(self) -> None:
        """What has come is no HTTP: all that was asked for before is answered, and nothing else."""
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
        elif self._headers > MOST_HEAD:
            self._give_up()

    def on_headers_complete(self) -> None:
        """Its head is there; the body has a clock of its own."""
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
            # An address may be longer than the server can take apart, and is for nobody.
            self.app, self.url = cast(Any, too_long), b"/"
        elif not _is_for_one_host(self.url, self.headers):
            self.app = cast(Any, for_two_hosts)
        elif not self.peers.welcome(_host(self.client), _host(self.server)):
            self.app = cast(Any, past_the_proxy)
        super().on_headers_complete()
        # Who answers begins in a later pass of the loop.
        lay(cast(Scope, self.scope), Line(self.cycle))
        lay_hearing(cast(Scope, self.scope))
        if not self.pipeline:
            self._answering = self.cycle

    def on_message_complete(self) -> None:
        """It is whole."""
        if not self._offers_another_protocol():
            super().on_message_complete()

    def _offers_another_protocol(self) -> bool:
        # CONNECT is no offer, and no method of any address.
        return self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"

    def on_response_complete(self) -> None:
        """It was answered; whether the connection is kept depends on how many want one."""
        is_crowded = len(self.connections) > _ROOMY * self.most
        self.timeout_keep_alive = 0 if is_crowded else _KEEP_ALIVE_S
        if self.pipeline:
            self._answering = self.pipeline[-1][0]
        super().on_response_complete()

    def _tell_malformed(self) -> None:
        malformed = "this is no HTTP request that can be understood; the connection ends here"
        answer = stop("invalid_request", malformed, connection="close").response()
        headers = (*self.server_state.default_headers, *answer.raw_headers)
        self.transport.write(head(b"HTTP/1.1 400 Bad Request", headers) + bytes(answer.body))
        self.transport.close()

    def pause_writing(self) -> None:
        """There is more of an answer than its caller takes at once."""
        super().pause_writing()
        self._await_taking()

    def resume_writing(self) -> None:
        """It has taken most of it."""
        self._is_taken()
        super().resume_writing()

    def _await_taking(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._taking = self.loop.call_later(self.taking_s, self._look_at_taking, left)

    def _look_at_taking(self, before: int) -> None:
        """Cut off who has taken nothing since: what it asked for would be kept for it for ever.

        Not the reader of a stream, for whom little is kept.
        """
        if self._is_stream() or self.transport.get_write_buffer_size() < before:
            self._await_taking()
        else:
            # Nor is what the system has taken for it to be kept.
            line = cast(socket.socket, self.transport.get_extra_info("socket"))
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            self.transport.abort()

    def _is_taken(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None

    def cut_stream(self) -> None:
        """End a stream whose reader was sent away, and does not take even that."""
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
