"""HTTP protocol: upgrade offers, CONNECT, and malformed data on a connection."""

import socket
from collections.abc import Iterator, Sequence

import pytest

from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, Response

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


@proves("HTTP-LIMITS")
def test_malformed_body_is_refused(server: HubServer) -> None:
    with server.connect() as sock:
        head = server.request_head("POST", "/v1/tasks", JSON_TYPE, "Transfer-Encoding: chunked")
        sock.sendall(head + NOT_HTTP)
        assert [response.status for response in _read_responses(sock)] == [400]


@proves("HTTP-FRAMING")
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/signed", "/v1/tasks", "/healthz", "/mcp"])
@pytest.mark.parametrize(
    "lines",
    [
        ("Transfer-Encoding: gzip, chunked",),
        ("Transfer-Encoding: identity, chunked",),
        ("Transfer-Encoding: chunked, chunked",),
        ("Transfer-Encoding: gzip", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 5"),
        ("Transfer-Encoding: xchunked",),
    ],
)
def test_transfer_encoding_other_than_chunked_alone_is_refused(
    server: HubServer, path: str, lines: tuple[str, ...]
) -> None:
    with server.connect() as sock:
        head = server.request_head("POST", path, "Content-Type: application/json", *lines)
        sock.sendall(head + b"2\r\n{}\r\n0\r\n\r\n")
        received = b""
        while part := sock.recv(65_536):
            received += part
    assert received.startswith(b"HTTP/1.1 400 ")
    assert received.lower().count(b"connection: close") == 1
    assert received.count(b"HTTP/1.1 ") == 1


@proves("HTTP-FRAMING")
@pytest.mark.parametrize("encoding", ["chunked", "Chunked"])
def test_chunked_alone_is_taken(server: HubServer, encoding: str) -> None:
    with server.connect() as sock:
        media = "Content-Type: application/json"
        head = server.request_head("POST", "/v1/tasks", media, f"Transfer-Encoding: {encoding}")
        sock.sendall(head + b'd\r\n{"title":"x"}\r\n0\r\n\r\n')
        assert sock.recv(65_536).startswith(b"HTTP/1.1 201")
