"""The server: uvicorn on uvloop, with a bound on how long anybody may take to begin a request."""

import asyncio
import socket
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dragoman.config import HttpSettings
from dragoman.core.errors import SettingsError
from dragoman.surfaces.http.app import HttpApp
from dragoman.surfaces.http.exposure import check_exposure, url

_HIGH_WATER = 16 * 1024
"""Above so many bytes that a reader has not taken yet, it is not sent more."""
_MOST_HEAD = 64 * 1024
"""The head of a request has at most so many bytes, address and headers together."""
_KEEP_ALIVE_S = 30
_BACKLOG = 2_048


class PatientHttp(HttpToolsProtocol):
    """HTTP that does not wait for ever for the head of a request, nor reads an endless one."""

    head_s = 10.0
    """From the first byte of a request (or from the start of a connection) on."""
    _deadline: asyncio.TimerHandle | None = None
    _head = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Somebody is there: the clock of its first request begins."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=_HIGH_WATER)
        self._deadline = self.loop.call_later(self.head_s, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone."""
        self._head_is_there()
        super().connection_lost(exc)

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
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.head_s, self._give_up)

    def on_headers_complete(self) -> None:
        """Its head is there; the body has a clock of its own."""
        self._head_is_there()
        super().on_headers_complete()

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


class HttpServer(uvicorn.Server):
    """Serves an application until it is told to stop; then whoever waits is sent away first."""

    def __init__(self, app: HttpApp, settings: HttpSettings, grace_s: int = 10) -> None:
        check_exposure(settings)
        self._app = app
        self._settings = settings
        self.port = settings.port
        self.is_up = threading.Event()
        """Set when it takes requests."""
        protocol = type("Http", (PatientHttp,), {"head_s": app.office.door.patience.head})
        super().__init__(
            uvicorn.Config(
                cast(Any, app),
                host=settings.host,
                port=settings.port,
                loop="uvloop",
                http=protocol,
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
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        bound = socket.socket(family)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((settings.host, settings.port))
            # Whoever calls before the server runs waits for it, and is not turned away.
            bound.listen(_BACKLOG)
        except OSError as error:
            bound.close()
            raise SettingsError(
                f"the hub cannot listen at {settings.host} port {settings.port}: {error.strerror}; "
                "is another one running? http.port (or --port) chooses another"
            ) from None
        self.port = bound.getsockname()[1]
        return bound

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        self.is_up.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Send away whoever waits, then let what is under way come to its end."""
        self._app.close()
        await super().shutdown(sockets)

    def capture_signals(self) -> AbstractContextManager[None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """None: signals are the hub's, which lets agents finish before the door is closed."""
        return nullcontext()

    def stop(self) -> None:
        """Begin to stop; may be called from any thread."""
        self.should_exit = True
