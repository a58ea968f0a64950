"""HTTP protocol: upgrade offers, CONNECT, and malformed data on a connection."""

import socket
from collections.abc import Iterator, Sequence

import pytest

from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, Response
from tests.surfaces.http.reader import Reader

UPGRADE_OFFER = (
    "Connection: Upgrade, HTTP2-Settings",
    "Upgrade: h2c",
    "HTTP2-Settings: AAEAAEAAAAIAAAAB",
)
"""Upgrade offer of the HTTP client of the JDK on every new connection, and of curl with --http2."""
NEW_TASK = b'{"title":"One","id":"T-1"}'
JSON_TYPE = "Content-Type: application/json"
NOT_HTTP = b"what is this\r\n\r\n"


def _read_responses(sock: socket.socket) -> Iterator[Response]:
    """Read all responses of a connection."""
    with sock.makefile("rb") as received:
        while status_line := received.readline():
            headers: dict[str, str] = {}
            while header_line := received.readline().strip():
                name, _, value = header_line.decode().partition(": ")
                headers[name] = value
            body = received.read(int(headers["content-length"]))
            yield Response(int(status_line.split()[1]), headers, body)


def _send_parts(sock: socket.socket, parts: Sequence[bytes]) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for part in parts:
        sock.sendall(part)


@proves("HTTP-OFFERS")
@pytest.mark.parametrize("version", [b"HTTP/1.1", b"HTTP/1.0"])
@pytest.mark.parametrize("is_split", [False, True])
@pytest.mark.parametrize("is_chunked", [False, True])
def test_request_with_upgrade_offer_keeps_its_body(
    server: HubServer, version: bytes, is_split: bool, is_chunked: bool
) -> None:
    length = "Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {len(NEW_TASK)}"
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(NEW_TASK), NEW_TASK) if is_chunked else NEW_TASK
    head = server.request_head("POST", "/v1/tasks", JSON_TYPE, length, *UPGRADE_OFFER).replace(
        b"HTTP/1.1", version, 1
    )
    with server.connect() as sock:
        _send_parts(sock, [head, body] if is_split else [head + body])
        response = next(_read_responses(sock))
        assert (response.status, response.json["title"]) == (201, "One")


@proves("HTTP-OFFERS")
def test_request_text_in_a_body_is_not_a_request(server: HubServer) -> None:
    inner = server.request_head("POST", "/v1/tasks/T-1/move", JSON_TYPE, "Content-Length: 0")
    outer = server.request_head(
        "POST", "/v1/tasks", JSON_TYPE, f"Content-Length: {len(inner)}", *UPGRADE_OFFER
    )
    with server.connect() as sock:
        sock.sendall(outer + inner + server.request_head("GET", "/healthz", *UPGRADE_OFFER))
        responses = _read_responses(sock)
        assert next(responses).code == "invalid_json"
        assert next(responses).json == {"ok": True}
        sock.sendall(
            server.request_head("GET", "/healthz", "Connection: close, Upgrade", UPGRADE_OFFER[1])
        )
        assert [response.json for response in responses] == [{"ok": True}]


@proves("HTTP-OFFERS")
def test_connect_is_refused_and_next_request_is_answered(server: HubServer) -> None:
    with server.connect() as sock:
        last = server.request_head("GET", "/healthz", "Connection: close")
        sock.sendall(server.request_head("CONNECT", "/v1/tasks") + last)
        refused, response = _read_responses(sock)
        assert (refused.code, response.json) == ("method_not_allowed", {"ok": True})


@proves("HTTP-BEHIND")
@pytest.mark.parametrize("ahead", [0, 2])
@pytest.mark.parametrize("is_within_request", [False, True])
def test_malformed_data_after_a_request_does_not_spoil_its_response(
    server: HubServer, ahead: int, is_within_request: bool
) -> None:
    create = (
        server.request_head("POST", "/v1/tasks", JSON_TYPE, f"Content-Length: {len(NEW_TASK)}")
        + NEW_TASK
    )
    incomplete = server.request_head("POST", "/v1/tasks", JSON_TYPE, "Transfer-Encoding: chunked")
    with server.connect() as sock:
        garbage = incomplete + NOT_HTTP if is_within_request else NOT_HTTP
        sock.sendall(server.request_head("GET", "/v1/tasks") * ahead + create + garbage)
        *lists, response = _read_responses(sock)
        assert [one.json for one in lists] == [{"tasks": [], "next": None}] * ahead
        assert (response.status, response.json["id"]) == (201, "T-1")
        assert response.headers["connection"] == "close"


@proves("HTTP-BEHIND")
def test_malformed_data_does_not_get_into_a_stream(server: HubServer) -> None:
    with server.connect() as sock:
        sock.sendall(server.request_head("GET", "/v1/stream"))
        reader = Reader(sock)
        assert reader.frame() is not None
        sock.sendall(NOT_HTTP * 2)
        # The server has read it by the time that a second request is answered.
        assert server.request("POST", "/v1/tasks", NEW_TASK).status == 201
        event = reader.next()
        assert event is not None
        assert event.event == "task.created"


@proves("HTTP-BEHIND")
def test_malformed_body_is_refused(server: HubServer) -> None:
    with server.connect() as sock:
        head = server.request_head("POST", "/v1/tasks", JSON_TYPE, "Transfer-Encoding: chunked")
        sock.sendall(head + NOT_HTTP)
        assert [response.code for response in _read_responses(sock)] == ["invalid_request"]
