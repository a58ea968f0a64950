"""HTTP server: uvicorn on uvloop, with limits on connections, request heads and slow clients."""

import asyncio
import errno
import socket
import struct
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import uvicorn
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from dragoman.config import HttpSettings
from dragoman.core.errors import SettingsError
from dragoman.surfaces.http.app import HttpApp
from dragoman.surfaces.http.auth import PeerPolicy, check_host_settings, hub_url
from dragoman.surfaces.http.errors import HttpProblem, problem_error
from dragoman.surfaces.http.fanout import WRITER, RawWriter
from dragoman.system.process_tuning import raise_open_file_limit

# --- protocol ---------------------------------------------------------------------------------

MAX_HEAD_BYTES = 64 * 1024
"""Bytes of the head of a request, path and headers together."""

_HEADER_OVERHEAD = 4
"""Bytes of a header beside its name and value: a colon, a blank, the end of the line."""

_HIGH_WATER = 16 * 1024
"""With more bytes than this that a client has not read yet, writing to it pauses."""

_REJECTION_SLOTS = 64
"""Connections above the maximum that still get a response which says so."""

_ACCEPTS = 16
"""Connections that are accepted in one pass of the event loop."""

_LINGER_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: a closed connection is reset."""


class TimeoutHttpProtocol(HttpToolsProtocol):
    """HTTP protocol with limits for the head of a request, and for clients that do not read."""

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
            cycle.disconnected = True
            cycle.message_event.set()

    def data_received(self, data: bytes) -> None:
        """Parse more bytes of this request, or the first of the next one.

        A request that offers to upgrade the protocol, as the HTTP client of the JDK does, is parsed
        again without the offer: the parser would take its body for data of that protocol.
        """
        if self._head_timer is not None:
            self._head_bytes += len(data)
        self._unset_keepalive_if_required()
        try:
            while data:
                try:
                    self.parser.feed_data(data)
                    break
                except HttpParserUpgrade as offer:
                    rest = data[offer.args[0] :]
                    data, self._replayed_head = self._replayed_head + rest, b""
                    self.parser = HttpRequestParser(self)
                    self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        except HttpParserError:
            self.send_400_response("This is no valid HTTP request.")
        if self._head_timer is not None and self._head_bytes > MAX_HEAD_BYTES:
            self._abort_connection()

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
            kept = (b"%b: %b\r\n" % pair for pair in self.headers if pair[0] != b"upgrade")
            lines = (b"%b %b HTTP/%b\r\n" % (method, self.url, version), *kept, b"\r\n")
            self._replayed_head = b"".join(lines)
            return
        self._cancel_head_timer()
        self._is_after_head = True
        rejection = self._rejection()
        self._header_bytes = 0
        if rejection is not None:
            self.app = cast(Any, rejection.response())
        super().on_headers_complete()
        # The application starts in a later pass of the loop.
        cast(Any, self.scope)[WRITER] = RawWriter(self.cycle)
        if not self.pipeline:
            self._current_cycle = self.cycle

    def _rejection(self) -> HttpProblem | None:
        if len(self.connections) > self.most:
            detail = "the hub has as many connections as it can hold; try again"
            return problem_error("overloaded", detail, connection="close")
        if len(self.url) + self._header_bytes > MAX_HEAD_BYTES:
            detail = f"the head of the request has more than {MAX_HEAD_BYTES} bytes"
            return problem_error("message_too_large", detail, connection="close")
        if not self.peers.is_allowed(_host(self.client), _host(self.server)):
            detail = (
                "the hub is called through its proxy, which ends TLS: a request that bypasses it "
                "could be read by others; if this is the proxy, list its address in http.proxy"
            )
            return problem_error("not_by_proxy", detail, connection="close")
        return None

    def on_message_complete(self) -> None:
        """Note that a request is complete."""
        if not self._is_upgrade_offer():
            super().on_message_complete()

    def _is_upgrade_offer(self) -> bool:
        # CONNECT is not an upgrade, and no path accepts it.
        return self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"

    def on_response_complete(self) -> None:
        """Note that a response is complete."""
        if self.pipeline:
            self._current_cycle = self.pipeline[-1][0]
        super().on_response_complete()

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
        ever."""
        if self.transport.get_write_buffer_size() < unsent:
            self._start_write_timer()
        else:
            # What the system has buffered for it is dropped, too.
            sock = cast(socket.socket, self.transport.get_extra_info("socket"))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
            self.transport.abort()

    def abort_stalled(self) -> None:
        """Abort the connection if its client does not read."""
        if self.flow.write_paused:
            self.transport.abort()

    def _cancel_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _cancel_head_timer(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _abort_connection(self) -> None:
        # A head that never ended is no request that could be answered.
        self._head_timer = None
        if not self.transport.is_closing():
            self.transport.abort()


def _host(address: tuple[str, int | None] | None) -> str:
    return address[0] if address else ""


# --- server -----------------------------------------------------------------------------------

_SEND_BUFFER = 128 * 1024
"""Send buffer of the system; by default it would be megabytes for each reader."""

_KEEP_ALIVE_S = 30

_RESERVED_FILES = 256
"""Open files that are reserved for the store, the programs of agents and everything else."""

_BACKLOG = 2_048

_REMEDIES = {
    errno.EADDRINUSE: "is another one running? http.port (or --port) chooses another",
    errno.EACCES: "http.port (or --port) chooses another: ports below 1024 need privileges",
}

_DEFAULT_REMEDY = "http.host (or --host) has to be an address of this machine"

_STREAM_DRAIN_S = 1.0
"""Time after a stop for readers to take the rest of their responses; they can reconnect."""


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
        # One connection is accepted per pass of the loop and descriptor: with a single one, callers
        # queue up for as many passes as there are others before them.
        copies = [sock.dup() for sock in sockets or [] for _ in range(_ACCEPTS - 1)]
        await super().startup([*sockets, *copies] if sockets else None)
        self.is_up.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close streams and long polls, then let running requests end."""
        self._app.close()
        asyncio.get_running_loop().call_later(_STREAM_DRAIN_S, self._abort_stalled)
        await super().shutdown(sockets)

    def _abort_stalled(self) -> None:
        for connection in tuple(self.server_state.connections):
            cast(TimeoutHttpProtocol, connection).abort_stalled()

    def capture_signals(self) -> AbstractContextManager[None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Leave signals to the hub, which lets agents finish before the server is closed."""
        return nullcontext()

    def stop(self) -> None:
        """Begin to stop; may be called from any thread."""
        self.should_exit = True
