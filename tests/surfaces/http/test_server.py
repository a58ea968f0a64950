"""HTTP server: TLS, bind address, mounted applications, log lines, shutdown."""

import asyncio
import json
import socket
import ssl
import threading
from contextlib import ExitStack
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from dragoman.config import HttpSettings
from dragoman.core.errors import SettingsError, StoreUnavailable
from dragoman.engine.auth import Principal
from dragoman.surfaces.http import HttpServer, build_app
from dragoman.surfaces.http.server import TimeoutHttpProtocol
from tests.certificate import make_certificate
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, serving

MANY = 48
"""Connections that are opened at once."""


class MountedApp:
    """Mounted application."""

    def __init__(self) -> None:
        self.principals: list[Principal] = []
        self.is_closed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond with the path."""
        self.principals.append(scope["principal"])
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body", "body": scope["path"].encode()})

    def close(self) -> None:
        """Record the call."""
        self.is_closed = True


@proves("HTTP-EXPOSURE")
def test_server_with_certificate_speaks_https(tmp_path: Path) -> None:
    path = make_certificate(tmp_path)
    http = HttpSettings(port=0, tls_cert=str(path), tls_key=str(path))
    with serving(HubServer(http=http)) as server:
        tls_context = ssl.create_default_context(cafile=str(path))
        connection = HTTPSConnection("localhost", server.port, context=tls_context, timeout=30)
        token = {"Authorization": f"Bearer {server.tokens['owner']}"}
        connection.request("GET", "/v1/tasks", headers=token)
        assert json.loads(connection.getresponse().read()) == {"tasks": [], "next": None}
        connection.close()
        assert HttpServer(server.app, http).url == "https://127.0.0.1:0"


@proves("HTTP-EXPOSURE")
def test_url_can_be_called_from_this_machine(server: HubServer) -> None:
    cases = {
        HttpSettings(port=1): "http://127.0.0.1:1",
        HttpSettings(host="::1", port=2): "http://[::1]:2",
        HttpSettings(
            host="::", port=3, proxy=("10.0.0.1",), allowed_hosts=("hub.example",)
        ): "http://127.0.0.1:3",
    }
    assert [HttpServer(server.app, http).url for http in cases] == list(cases.values())


@proves("HTTP-EXPOSURE")
def test_bind_address_may_be_in_brackets(server: HubServer) -> None:
    http_server = HttpServer(server.app, HttpSettings(host="[::1]", port=0))
    with http_server.bind() as sock:
        assert sock.getsockname()[:2] == ("::1", http_server.port)
        assert http_server.url == f"http://[::1]:{http_server.port}"


@proves("HTTP-EXPOSURE")
def test_bind_error_names_a_remedy(server: HubServer) -> None:
    elsewhere = HttpSettings(host="198.51.100.7", proxy=("127.0.0.1",))
    with pytest.raises(SettingsError, match=r"7 port 4747: .* address of this machine"):
        HttpServer(server.app, elsewhere).bind()
    with socket.create_server(("127.0.0.1", 0)) as other_sock:
        port = other_sock.getsockname()[1]
        with pytest.raises(SettingsError, match="is another one running"):
            HttpServer(server.app, HttpSettings(port=port)).bind()


@proves("HTTP-IDENTITY", "HTTP-HOST")
def test_mounted_application_needs_the_same_authentication() -> None:
    app = MountedApp()
    server = HubServer()
    server.app = build_app(server.deps, {"/other": app})
    with serving(server):
        assert server.request("PATCH", "/other/deep").body == b"/other/deep"
        assert server.request("GET", "/other").status == 202
        assert server.request("GET", "/otherwise").status == 404
        assert server.request("GET", "/other", by="").status == 401
        assert server.request("GET", "/other", headers={"Host": "evil.example"}).status == 421
        metrics = server.request("GET", "/metrics").body.decode()
    assert [principal.is_owner for principal in app.principals] == [True, True]
    assert 'route="/other",method="PATCH",status="202"' in metrics
    assert app.is_closed


class FailingApp(MountedApp):
    """Mounted application that fails."""

    error: Exception

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raise the error."""
        raise self.error


@proves("HTTP-PROBLEMS")
@pytest.mark.parametrize(
    ("error", "status", "logged"),
    [(StoreUnavailable("cut"), 503, ": cut"), (ValueError("cut"), 500, " failed")],
)
def test_request_path_cannot_forge_log_lines(
    caplog: pytest.LogCaptureFixture, error: Exception, status: int, logged: str
) -> None:
    server, failing = HubServer(), FailingApp()
    failing.error = error
    server.app = build_app(server.deps, {"/other": failing})
    path = "/other/a%0A%1b%5B2JERROR%20forged"
    with serving(server):
        assert server.request("GET", path).status == status
    assert [record.getMessage() for record in caplog.records] == [f"GET {path}{logged}"]


@proves("HTTP-STOP")
def test_running_requests_are_answered_before_shutdown() -> None:
    server = HubServer()
    statuses: list[int] = []
    with serving(server):
        server.add_agent("ada")
        body = {"wait_ms": 60_000}
        thread = threading.Thread(
            target=lambda: statuses.append(
                server.request("POST", "/v1/work", body, by="ada").status
            )
        )
        thread.start()
        while not server.app.context.feed.waiter_count:
            server.request("GET", "/healthz")
    thread.join()
    assert statuses == [204]


@proves("HTTP-TURNS")
def test_waiting_connections_are_accepted_in_a_few_passes_of_the_loop(
    server: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    have_all_connected, were_all_accepted = threading.Event(), threading.Event()
    passes, accepted_in = [0], list[int]()
    made = TimeoutHttpProtocol.connection_made

    def count_passes(loop: asyncio.AbstractEventLoop) -> None:
        passes[0] += 1
        if not were_all_accepted.is_set():
            loop.call_soon(count_passes, loop)

    def record(self: TimeoutHttpProtocol, transport: asyncio.Transport) -> None:
        made(self, transport)
        if not accepted_in:
            have_all_connected.wait(30)
            count_passes(self.loop)
        accepted_in.append(passes[0])
        if len(accepted_in) == MANY:
            were_all_accepted.set()

    monkeypatch.setattr(TimeoutHttpProtocol, "connection_made", record)
    with ExitStack() as opened:
        for _ in range(MANY):
            opened.enter_context(server.connect())
        have_all_connected.set()
        assert were_all_accepted.wait(30)
    assert len(set(accepted_in)) <= 6


@proves("HTTP-TURNS")
def test_stopped_server_leaves_no_descriptor_open() -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    with serving(HubServer()):
        pass
    before = count()
    with serving(HubServer()):
        assert count() > before
    assert count() == before
