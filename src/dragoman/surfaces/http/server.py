"""HTTP server: uvicorn on uvloop, with limits on connections, request heads and slow clients."""

import asyncio
import errno
import socket
import struct
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import uvicorn
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from dragoman.config import HttpSettings
from dragoman.core.errors import SettingsError
from dragoman.surfaces.http.app import HttpApp
from dragoman.surfaces.http.disconnect import attach_connection_state, connection_state
from dragoman.surfaces.http.errors import problem_error
from dragoman.surfaces.http.network_policy import PeerPolicy, check_host_settings, hub_url
from dragoman.surfaces.http.raw_writer import RawWriter, attach_writer
from dragoman.system.process_tuning import raise_open_file_limit

# --- request heads ----------------------------------------------------------------------------

Headers = Iterable[tuple[bytes, bytes]]

_UPGRADE_HEADERS = (b"upgrade", b"http2-settings")
"""Headers by which a client offers to upgrade to another protocol, as some always do."""


def strip_upgrade(headers: Headers) -> Iterator[tuple[bytes, bytes]]:
    """Yield the headers of a request without an offer to upgrade the protocol."""
    for name, value in headers:
        if name == b"connection":
            words = [word.strip() for word in value.split(b",")]
            yield name, b", ".join(word for word in words if word.lower() not in _UPGRADE_HEADERS)
        elif name not in _UPGRADE_HEADERS:
            yield name, value


def format_head(first_line: bytes, headers: Headers) -> bytes:
    """Format the head of an HTTP message."""
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    return b"%b\r\n%b\r\n" % (first_line, lines)


# --- rejected requests ------------------------------------------------------------------------

MAX_HEAD_BYTES = 64 * 1024
"""Bytes of the head of a request, path and headers together."""


async def reject_two_hosts(scope: Scope, receive: Receive, send: Send) -> None:
    """Reject a request whose target names another host than its header."""
    detail = "the target of the request names another host than its header Host; send the path only"
    problem = problem_error("invalid_request", detail, connection="close")
    await problem.response()(scope, receive, send)


async def reject_too_many_connections(scope: Scope, receive: Receive, send: Send) -> None:
    """Reject a request on one connection too many."""
    detail = "the hub has as many connections as it can hold; try again"
    await problem_error("overloaded", detail, connection="close").response()(scope, receive, send)


async def reject_long_head(scope: Scope, receive: Receive, send: Send) -> None:
    """Reject a request whose head is too long."""
    detail = f"the head of the request, address and headers, has more than {MAX_HEAD_BYTES} bytes"
    problem = problem_error("message_too_large", detail, connection="close")
    await problem.response()(scope, receive, send)


async def reject_bypassed_proxy(scope: Scope, receive: Receive, send: Send) -> None:
    """Reject a request that did not come through the configured proxy."""
    problem = problem_error(
        "not_by_proxy",
        "the hub is called through its proxy, which ends TLS: a request that bypasses it could be "
        "read by others; if this is the proxy, list its address in http.proxy",
        connection="close",
    )
    await problem.response()(scope, receive, send)


# --- protocol and server ----------------------------------------------------------------------

_HIGH_WATER = 16 * 1024
"""With more bytes than this that a client has not read yet, writing to it pauses."""

_SEND_BUFFER = 128 * 1024
"""Send buffer of the system; by default it would be megabytes for each reader."""

_HEADER_OVERHEAD = 4
"""Bytes of a header beside its name and value: a colon, a blank, the end of the line."""

_KEEP_ALIVE_S = 30

_RESERVED_FILES = 256
"""Open files that are reserved for the store, the programs of agents and everything else."""

_REJECTION_SLOTS = 64
"""Connections above the maximum that still get a response which says so."""

_KEEP_ALIVE_LOAD = 0.75
"""While more than this share of the connections is in use, none is kept alive."""

_BACKLOG = 2_048

_LINGER_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: a closed connection is reset."""

_REMEDIES = {
    errno.EADDRINUSE: "is another one running? http.port (or --port) chooses another",
    errno.EACCES: "http.port (or --port) chooses another: ports below 1024 need privileges",
}

_DEFAULT_REMEDY = "http.host (or --host) has to be an address of this machine"

_STREAM_DRAIN_S = 1.0
"""Time after a stop for readers to take the rest of their streams; they can reconnect."""


class TimeoutHttpProtocol(HttpToolsProtocol):
    """HTTP protocol with a time limit and a size limit for the head of a request."""

    head_s = 10.0
    """From the first byte of a request (or from the start of a connection) on."""
    taking_s = 60.0
    """Until some more of a response is read by the client."""
    most = 1_000
    """Connections that are accepted at a time."""
    peers: PeerPolicy
    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    """Bytes received of an incomplete head."""
    _header_bytes = 0
    """Bytes of the headers, or of the trailers after the body."""
    _is_after_head = False
    _current_cycle: RequestResponseCycle | None = None
    """The request that is being answered; the newest one may be queued behind it."""
    _replayed_head = b""
    """A head that is to be parsed again."""
    _is_malformed = False
    """True if all further input is ignored, because something was malformed."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the timer of the first request of a new connection."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=_HIGH_WATER)
        self._head_timer = self.loop.call_later(self.head_s, self._abort_connection)
        if len(self.connections) > self.most + _REJECTION_SLOTS:
            self._abort_connection()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request that is being answered, even if another one has come since."""
        self._cancel_head_timer()
        self._cancel_write_timer()
        super().connection_lost(exc)
        cycle = self._current_cycle
        if cycle is not None and not cycle.response_complete:
            connection_state(cast(Scope, cycle.scope)).is_disconnected = True
            cycle.disconnected = True
            cycle.message_event.set()

    def eof_received(self) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Handle a half-closed connection: complete requests are answered, unless a disconnect is
        watched.

        False ends the connection. TLS cannot be half-closed.
        """
        last, current = self.cycle, self._current_cycle
        if current is None or last.response_complete or last.more_body:
            return False
        if self.scheme == "https" or connection_state(cast(Scope, current.scope)).is_watched:
            return False
        for cycle in (current, *(waiting for waiting, _ in self.pipeline)):
            connection_state(cast(Scope, cycle.scope)).is_half_closed = True
        last.keep_alive = False
        return True

    def data_received(self, data: bytes) -> None:
        """Parse more bytes of this request, or the first of the next one."""
        if self._is_malformed:
            return
        if self._head_timer is not None:
            self._head_bytes += len(data)
        self._unset_keepalive_if_required()
        try:
            self._feed(data)
        except HttpParserError:
            self._end_malformed()
        if self._head_timer is not None and self._head_bytes > MAX_HEAD_BYTES:
            self._abort_connection()

    def _feed(self, data: bytes) -> None:
        """Parse the bytes; a request that offers an upgrade is parsed again without the offer.

        The parser would take its body for data of that protocol, which is not supported here.
        """
        while data:
            try:
                self.parser.feed_data(data)
            except HttpParserUpgrade as offer:
                data, self._replayed_head = self._replayed_head + data[offer.args[0] :], b""
                # A request may ask to be the last one; what comes behind it is parsed all the same.
                self.parser = HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            else:
                return

    def _end_malformed(self) -> None:
        """Stop at malformed input: the requests before it are answered, and nothing else."""
        if self.pipeline and self.pipeline[0][0].more_body:
            self.pipeline.popleft()
        last = self.pipeline[0][0] if self.pipeline else self._current_cycle
        if last is None or last.response_complete or last.more_body:
            self._send_malformed()
            return
        self._cancel_head_timer()
        self._is_malformed = True
        self.cycle = last
        last.keep_alive = False

    def on_message_begin(self) -> None:
        """Start the timer of a request."""
        super().on_message_begin()
        self._header_bytes = 0
        self._is_after_head = False
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_s, self._abort_connection)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header; trailers after the body are not used, and not kept."""
        self._header_bytes += len(name) + len(value) + _HEADER_OVERHEAD
        if not self._is_after_head:
            super().on_header(name, value)
        elif self._header_bytes > MAX_HEAD_BYTES:
            self._abort_connection()

    def on_headers_complete(self) -> None:
        """Check the head and start the request; its body has timeouts of its own."""
        if self._is_upgrade_offer():
            method, version = self.parser.get_method(), self.parser.get_http_version().encode()
            request = b"%b %b HTTP/%b" % (method, self.url, version)
            self._replayed_head = format_head(request, strip_upgrade(self.headers))
            return
        self._cancel_head_timer()
        size, self._header_bytes = len(self.url) + self._header_bytes, 0
        self._is_after_head = True
        if len(self.connections) > self.most:
            self.app = cast(Any, reject_too_many_connections)
        elif size > MAX_HEAD_BYTES:
            # A path may be longer than the server can parse; it matches no route.
            self.app, self.url = cast(Any, reject_long_head), b"/"
        elif not _has_consistent_host(self.url, self.headers):
            self.app = cast(Any, reject_two_hosts)
        elif not self.peers.is_allowed(_host(self.client), _host(self.server)):
            self.app = cast(Any, reject_bypassed_proxy)
        super().on_headers_complete()
        # The application starts in a later pass of the loop.
        attach_writer(cast(Scope, self.scope), RawWriter(self.cycle))
        attach_connection_state(cast(Scope, self.scope))
        if not self.pipeline:
            self._current_cycle = self.cycle

    def on_message_complete(self) -> None:
        """Note that a request is complete."""
        if not self._is_upgrade_offer():
            super().on_message_complete()

    def _is_upgrade_offer(self) -> bool:
        # CONNECT is not an upgrade, and no path accepts it.
        return self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"

    def on_response_complete(self) -> None:
        """Note that a response is complete; a crowded server does not keep the connection alive."""
        is_crowded = len(self.connections) > _KEEP_ALIVE_LOAD * self.most
        self.timeout_keep_alive = 0 if is_crowded else _KEEP_ALIVE_S
        if self.pipeline:
            self._current_cycle = self.pipeline[-1][0]
        super().on_response_complete()

    def _send_malformed(self) -> None:
        detail = "malformed HTTP request; the connection is closed"
        answer = problem_error("invalid_request", detail, connection="close").response()
        headers = (*self.server_state.default_headers, *answer.raw_headers)
        self.transport.write(format_head(b"HTTP/1.1 400 Bad Request", headers) + bytes(answer.body))
        self.transport.close()

    def pause_writing(self) -> None:
        """Start the timer when the client reads slower than we write."""
        super().pause_writing()
        self._start_write_timer()

    def resume_writing(self) -> None:
        """Stop the timer when it has read most of it."""
        self._cancel_write_timer()
        super().resume_writing()

    def _start_write_timer(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        self._write_timer = self.loop.call_later(self.taking_s, self._check_write_progress, unsent)

    def _check_write_progress(self, unsent: int) -> None:
        """Abort a connection whose client has read nothing since: its response would be kept for
        ever.

        The reader of a stream is exempt, because little is kept for it.
        """
        if self._is_stream() or self.transport.get_write_buffer_size() < unsent:
            self._start_write_timer()
        else:
            # What the system has buffered for it is dropped, too.
            sock = cast(socket.socket, self.transport.get_extra_info("socket"))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
            self.transport.abort()

    def _cancel_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def abort_stream(self) -> None:
        """Abort a stream that was closed, but whose reader does not read even the end."""
        if self._is_stream():
            self.transport.abort()

    def _is_stream(self) -> bool:
        current = self._current_cycle
        progress = None if current is None else cast(Scope, current.scope).get("progress")
        return progress is not None and progress.is_stream

    def _cancel_head_timer(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _abort_connection(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            # A head that never ended is no request that could be answered.
            self.transport.abort()


def _host(address: tuple[str, int | None] | None) -> str:
    return address[0] if address else ""


def _has_consistent_host(target: bytes, headers: list[tuple[bytes, bytes]]) -> bool:
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
        peers: PeerPolicy | None = None,
    ) -> None:
        check_host_settings(settings)
        self._max_connections = connections
        """Connections at a time; 0: as many as there may be open files."""
        self._app = app
        self._settings = settings
        self.port = settings.port
        self.is_up = threading.Event()
        """Set when it accepts requests."""
        timeouts = app.context.deps.timeouts
        self._protocol = type(
            "Http",
            (TimeoutHttpProtocol,),
            {
                "head_s": timeouts.request_head,
                "taking_s": timeouts.write_stall,
                "peers": peers or PeerPolicy(settings),
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
        return hub_url(self._settings, self.port)

    def bind(self) -> socket.socket:
        """Bind the address, before the hub announces it; SettingsError if it cannot."""
        settings = self._settings
        host = settings.host.strip("[]")  # brackets, as in a URL
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
            sock.bind((host, settings.port))
            # Clients that connect before the server runs wait for it, and are not refused.
            sock.listen(_BACKLOG)
        except OSError as error:
            sock.close()
            raise SettingsError(
                f"the hub cannot listen at {settings.host} port {settings.port}: {error.strerror}; "
                f"{_REMEDIES.get(error.errno or 0, _DEFAULT_REMEDY)}"
            ) from None
        self.port = sock.getsockname()[1]
        self._protocol.most = self._max_connections or max(
            1, raise_open_file_limit() - _RESERVED_FILES
        )
        return sock

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        self.is_up.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close streams and long polls, then let running requests end."""
        self._app.close()
        asyncio.get_running_loop().call_later(_STREAM_DRAIN_S, self._abort_streams)
        await super().shutdown(sockets)

    def _abort_streams(self) -> None:
        for connection in tuple(self.server_state.connections):
            cast(TimeoutHttpProtocol, connection).abort_stream()

    def capture_signals(self) -> AbstractContextManager[None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Leave signals to the hub, which lets agents finish before the server is closed."""
        return nullcontext()

    def stop(self) -> None:
        """Begin to stop; may be called from any thread."""
        self.should_exit = True
