"""`/mcp`: authentication, sessions, invalid messages, streams and shutdown."""

import json
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.client import HTTPResponse
from threading import Event
from time import monotonic
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.config import HttpSettings, LeaseSettings
from dragoman.core.agent import RevokeToken
from dragoman.core.task_state import CreateTask
from dragoman.engine.queries.tasks import TaskView, find_task
from dragoman.surfaces.mcp.http import MAX_SESSIONS_PER_CALLER
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, Response, serving
from tests.surfaces.mcp.clients import INITIALIZE, MALFORMED, call_once
from tests.surfaces.mcp.mcp_hub import mount_mcp

pytestmark = proves("MCP-DOOR")

ACCEPT = {"Accept": "application/json, text/event-stream"}
LIST_TOOLS: dict[str, Any] = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}


def begin_session(server: HubServer, by: str) -> dict[str, str]:
    """Begin a session; return the headers of its later requests."""
    response = server.request("POST", "/mcp", INITIALIZE, by=by, headers=ACCEPT)
    assert response.status == 200
    session = {**ACCEPT, "Mcp-Session-Id": response.headers["mcp-session-id"]}
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert server.request("POST", "/mcp", initialized, by=by, headers=session).status == 202
    return session


def test_token_host_and_origin_are_checked(server: HubServer) -> None:
    assert (
        server.request("POST", "/mcp", INITIALIZE, by="", headers=ACCEPT).code == "unauthenticated"
    )
    for header, code in (
        ({"Host": "evil.example"}, "unknown_host"),
        ({"Origin": "https://evil.example"}, "foreign_origin"),
    ):
        response = server.request(
            "POST", "/mcp", INITIALIZE, by="ada", headers={**ACCEPT, **header}
        )
        assert response.code == code


@proves("MCP-IDENTITY")
def test_session_belongs_to_its_caller(server: HubServer) -> None:
    session = begin_session(server, "ada")

    def list_tools(by: str) -> Response:
        return server.request("POST", "/mcp", LIST_TOOLS, by=by, headers=session)

    assert list_tools("ada").status == 200
    assert list_tools("bob").status == 404
    assert list_tools("owner").status == 404
    assert server.request("DELETE", "/mcp", by="bob", headers=session).status == 404
    assert server.request("DELETE", "/mcp", by="ada", headers=session).status == 200
    assert list_tools("ada").status == 404


def test_too_large_body_is_refused() -> None:
    small = HttpSettings(port=0, rate_per_second=0, max_body=2_000)
    with serving(mount_mcp(HubServer(http=small))) as server:
        large = LIST_TOOLS | {"params": {"padding": "x" * 2_000}}
        response = server.request("POST", "/mcp", large, headers=ACCEPT)

    assert response.code == "message_too_large"


@proves("MCP-MALFORMED")
@pytest.mark.parametrize("version", [{}, {"MCP-Protocol-Version": "2026-07-28"}])
@pytest.mark.parametrize(("body", "message"), MALFORMED)
def test_invalid_json_is_refused_as_at_every_door(
    server: HubServer, version: dict[str, str], body: bytes, message: str
) -> None:
    response = server.request("POST", "/mcp", body, by="ada", headers={**ACCEPT, **version})

    assert (response.status, response.code) == (400, "invalid_json")
    assert message in response.json["detail"]
    assert response.json == server.request("POST", "/v1/tasks", body, by="ada").json


@proves("MCP-MALFORMED")
@pytest.mark.parametrize("body", [b"[]", b"null", b'{"jsonrpc":"2.0"}'])
def test_json_that_is_no_message_is_refused(server: HubServer, body: bytes) -> None:
    response = server.request("POST", "/mcp", body, by="ada", headers=ACCEPT)

    assert response.status == 400
    assert response.json["error"]["code"] in (-32600, -32602)


@proves("MCP-MALFORMED")
def test_large_body_of_many_values_blocks_nobody(server: HubServer) -> None:
    """Decoding six million values took seconds of the event loop."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":[%b[]]}}' % (b"[]," * 5_000_000)
    delays: list[float] = []
    is_over = Event()

    def watch() -> None:
        while not is_over.is_set():
            started_at = monotonic()
            assert server.request("GET", "/healthz").status == 200
            delays.append(monotonic() - started_at)

    with ThreadPoolExecutor() as threads:
        watching = threads.submit(watch)
        try:
            response = server.request("POST", "/mcp", body, by="ada", headers=ACCEPT)
        finally:
            is_over.set()
        watching.result()

    assert (response.status, response.code) == (400, "invalid_json")
    assert "more than 10000 values" in response.json["detail"]
    assert max(delays) < 1


@proves("MCP-MALFORMED")
def test_body_of_another_media_type_gets_problem_document(server: HubServer) -> None:
    of_text = {**ACCEPT, "Content-Type": "text/plain"}
    response = server.request("POST", "/mcp", b"{}", by="ada", headers=of_text)

    assert (response.status, response.code) == (415, "unsupported_media_type")
    assert response.headers["content-type"] == "application/problem+json"


def test_whitespace_around_header_value_is_ignored(server: HubServer) -> None:
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call: dict[str, Any] = {"name": "inbox", "arguments": {}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call}).encode()
    head = server.request_head(
        "POST",
        "/mcp",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Accept: application/json, text/event-stream",
        "MCP-Protocol-Version:  2026-07-28 ",
        "Mcp-Method: \ttools/call ",
        "Mcp-Name:   inbox\t",
        by="ada",
    )
    with server.connect() as sock:
        sock.sendall(head + body)
        response = HTTPResponse(sock)
        response.begin()
        result = json.loads(response.read())["result"]

    assert result["structuredContent"]["agent"] == "ada"


@contextmanager
def _open_stream(server: HubServer, by: str) -> Generator[HTTPResponse]:
    header_lines = [f"{name}: {value}" for name, value in begin_session(server, by).items()]
    with server.connect() as sock:
        sock.sendall(server.request_head("GET", "/mcp", *header_lines, by=by))
        response = HTTPResponse(sock)
        response.begin()
        assert response.status == 200
        yield response


@proves("HTTP-STAYS")
def test_sessions_per_caller_are_limited() -> None:
    server = mount_mcp(HubServer())
    with serving(server):
        for name in ("ada", "bob"):
            server.add_agent(name)

        def open_session(by: str) -> Response:
            return server.request("POST", "/mcp", INITIALIZE, by=by, headers=ACCEPT)

        sessions = [
            open_session("ada").headers["mcp-session-id"] for _ in range(MAX_SESSIONS_PER_CALLER)
        ]
        assert open_session("ada").status == 503
        assert open_session("bob").status == 200
        assert open_session("owner").status == 200
        session_headers = {**ACCEPT, "Mcp-Session-Id": sessions[0]}
        assert server.request("DELETE", "/mcp", by="ada", headers=session_headers).status == 200
        assert open_session("ada").status == 200


@proves("HTTP-STAYS")
def test_stream_ends_with_its_token() -> None:
    server = mount_mcp(HubServer())
    with serving(server):
        server.add_agent("ada")
        with _open_stream(server, "ada") as response:
            server.submit(RevokeToken("ada"))
            # It ends after the revocation is noticed, as a complete response.
            assert response.read() is not None
        assert (
            server.request("POST", "/mcp", LIST_TOOLS, by="ada", headers=ACCEPT).code
            == "token_revoked"
        )


def test_streams_end_when_the_hub_stops() -> None:
    server = mount_mcp(HubServer())
    with ExitStack() as stack:
        with serving(server):
            response = stack.enter_context(_open_stream(server, "owner"))
        # `serving` has returned, which it does not while a stream is open.
        assert response.read() is not None


@proves("MCP-LEASES")
def test_open_stream_keeps_the_leases_of_its_caller() -> None:
    server = HubServer()
    leases = LeaseSettings(ttl_ms=1_000)
    server.deps = replace(server.deps, settings=replace(server.deps.settings, leases=leases))
    with serving(mount_mcp(server)):
        server.add_agent("ada")
        task = server.submit(CreateTask("Mend it", ready=True))
        call_once(server, "ada", "claim", task=task)

        def heartbeats() -> int:
            view = find_task(server.store, task)
            assert isinstance(view, TaskView)
            assert view.lease is not None
            return view.lease.heartbeats

        with _open_stream(server, "ada"):
            for count in range(2, 5):
                server.clock.advance(400)
                while heartbeats() < count:
                    pass
        assert heartbeats() == 4
