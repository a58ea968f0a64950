"""The server itself: over TLS, behind a proxy, with other applications, and its end."""

import json
import socket
import ssl
import threading
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from dragoman.config import HttpSettings
from dragoman.core.errors import SettingsError, StoreUnavailable
from dragoman.engine.identity import Principal
from dragoman.surfaces.http import HttpServer, build_app
from tests.certificate import make_certificate
from tests.requirements import proves
from tests.surfaces.http.house import House, serving


class Other:
    """An application beside ours."""

    def __init__(self) -> None:
        self.seen: list[Principal] = []
        self.is_closed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Say where it was called."""
        self.seen.append(scope["principal"])
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body", "body": scope["path"].encode()})

    def close(self) -> None:
        """End."""
        self.is_closed = True


@proves("HTTP-EXPOSURE")
def test_with_a_certificate_it_speaks_https(tmp_path: Path) -> None:
    path = make_certificate(tmp_path)
    http = HttpSettings(port=0, tls_cert=str(path), tls_key=str(path))
    with serving(House(http=http)) as house:
        trusting = ssl.create_default_context(cafile=str(path))
        connection = HTTPSConnection("localhost", house.port, context=trusting, timeout=30)
        token = {"Authorization": f"Bearer {house.tokens['owner']}"}
        connection.request("GET", "/v1/tasks", headers=token)
        assert json.loads(connection.getresponse().read()) == {"tasks": [], "next": None}
        connection.close()
        assert HttpServer(house.app, http).url == "https://127.0.0.1:0"


@proves("HTTP-EXPOSURE")
def test_its_url_is_one_that_this_machine_can_call(house: House) -> None:
    cases = {
        HttpSettings(port=1): "http://127.0.0.1:1",
        HttpSettings(host="::1", port=2): "http://[::1]:2",
        HttpSettings(
            host="::", port=3, proxy=("10.0.0.1",), allowed_hosts=("hub.example",)
        ): "http://127.0.0.1:3",
    }
    assert [HttpServer(house.app, http).url for http in cases] == list(cases.values())


@proves("HTTP-EXPOSURE")
def test_an_address_may_be_written_as_in_a_url(house: House) -> None:
    server = HttpServer(house.app, HttpSettings(host="[::1]", port=0))
    with server.bind() as bound:
        assert bound.getsockname()[:2] == ("::1", server.port)
        assert server.url == f"http://[::1]:{server.port}"


@proves("HTTP-EXPOSURE")
def test_who_cannot_listen_there_is_told_what_would_help(house: House) -> None:
    elsewhere = HttpSettings(host="198.51.100.7", proxy=("127.0.0.1",))
    with pytest.raises(SettingsError, match=r"7 port 4747: .* address of this machine"):
        HttpServer(house.app, elsewhere).bind()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match="is another one running"):
            HttpServer(house.app, HttpSettings(port=port)).bind()


@proves("HTTP-IDENTITY", "HTTP-HOST")
def test_an_application_that_is_mounted_is_behind_the_same_guard() -> None:
    other = Other()
    house = House()
    house.app = build_app(house.door, {"/other": other})
    with serving(house):
        assert house.ask("PATCH", "/other/deep").body == b"/other/deep"
        assert house.ask("GET", "/other").status == 202
        assert house.ask("GET", "/otherwise").status == 404
        assert house.ask("GET", "/other", by="").status == 401
        assert house.ask("GET", "/other", headers={"Host": "evil.example"}).status == 421
        figures = house.ask("GET", "/metrics").body.decode()
    assert [principal.is_owner for principal in other.seen] == [True, True]
    assert 'route="/other",method="PATCH",status="202"' in figures
    assert other.is_closed


class Failing(Other):
    """An application that fails."""

    error: Exception

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Fail."""
        raise self.error


@proves("HTTP-PROBLEMS")
@pytest.mark.parametrize(
    ("error", "status", "told"),
    [(StoreUnavailable("cut"), 503, ": cut"), (ValueError("cut"), 500, " failed")],
)
def test_what_is_logged_of_a_request_cannot_forge_lines(
    caplog: pytest.LogCaptureFixture, error: Exception, status: int, told: str
) -> None:
    house, failing = House(), Failing()
    failing.error = error
    house.app = build_app(house.door, {"/other": failing})
    path = "/other/a%0A%1b%5B2JERROR%20forged"
    with serving(house):
        assert house.ask("GET", path).status == status
    assert [record.getMessage() for record in caplog.records] == [f"GET {path}{told}"]


@proves("HTTP-STOP")
def test_what_is_under_way_is_answered_before_it_stops() -> None:
    house = House()
    got: list[int] = []
    with serving(house):
        house.welcome("ada")
        asked = {"wait_ms": 60_000}
        waiting = threading.Thread(
            target=lambda: got.append(house.ask("POST", "/v1/work", asked, by="ada").status)
        )
        waiting.start()
        while not house.app.office.feed.seats:
            house.ask("GET", "/healthz")
    waiting.join()
    assert got == [204]
