"""Limits of bodies, heads and connections: size, time, media type, number."""

import json
import re
import socket
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from time import monotonic
from typing import Any

import pytest

from dragoman.config import HttpSettings
from dragoman.surfaces.http import Timeouts
from dragoman.text.strict_json import MAX_BYTES
from tests.requirements import proves
from tests.surfaces.http.aof_messages import report
from tests.surfaces.http.hub_server import HubServer, serving
from tests.surfaces.http.reader import follow_stream

pytestmark = proves("HTTP-LIMITS")

JSON_LINES = "application/x-ndjson"

JSON_PATHS = ("/v1/messages", "/v1/tasks", "/v1/aof/session_end", "/v1/internal/commands")


def _read_to_end(sock: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    parts: list[bytes] = []
    try:
        while part := sock.recv(65_536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


@pytest.mark.parametrize("path", JSON_PATHS)
@pytest.mark.parametrize("type_", ["", "text/plain", "application/x-www-form-urlencoded", "json"])
def test_other_media_types_than_json_are_refused(server: HubServer, path: str, type_: str) -> None:
    response = server.request("POST", path, b"{}", headers={"Content-Type": type_})
    assert (response.status, response.code) == (415, "unsupported_media_type")
    assert "application/json" in response.json["detail"]


@pytest.mark.parametrize("path", JSON_PATHS)
def test_compressed_body_is_refused(server: HubServer, path: str) -> None:
    response = server.request("POST", path, b"{}", headers={"Content-Encoding": "gzip"})
    assert (response.status, response.code) == (415, "unsupported_media_type")
    assert "'gzip'" in response.json["detail"]
    plain = server.request("POST", path, b"{}", headers={"Content-Encoding": "Identity"})
    assert plain.status != 415


@pytest.mark.parametrize(
    ("body", "code", "path"),
    [
        (b"{", "invalid_json", ""),
        (b"\xff", "invalid_json", ""),
        (b'{"title":"a","title":"b"}', "invalid_json", "title"),
        (b'{"title":NaN}', "invalid_json", ""),
        (b"[" * 100 + b"]" * 100, "invalid_json", None),
        (b'{"title":7}', "invalid_field", "title"),
        (b"[]", "invalid_field", ""),
    ],
)
def test_invalid_json_is_refused(
    server: HubServer, body: bytes, code: str, path: str | None
) -> None:
    response = server.request("POST", "/v1/tasks", body)
    assert response.code == code
    assert path is None or response.json.get("path", "") == path


@pytest.mark.parametrize(
    ("path", "field", "suggestion"),
    [
        ("/v1/tasks", "titel", "title"),
        ("/v1/tasks/one/claim", "ttl", "ttl_ms"),
        ("/v1/internal/commands", "command", "commands"),
    ],
)
def test_unknown_field_is_refused_with_suggestion(
    server: HubServer, path: str, field: str, suggestion: str
) -> None:
    response = server.request("POST", path, {field: 1})
    assert response.code == "invalid_field"
    detail = f"{field}: there is no such field; did you mean {suggestion}?"
    assert response.json["detail"] == detail
    assert response.json["path"] == field


@proves("NEAREST-NAME")
def test_unknown_name_without_near_match_lists_known_names(server: HubServer) -> None:
    query_detail = server.request("GET", "/v1/tasks?foo=1").json["detail"]
    assert query_detail == (
        "'foo' is not a parameter here; known: status, assignee, words, ready, limit, cursor, as_of"
    )
    body_detail = server.request("POST", "/v1/tasks", {"title": "x", "status": "ready"}).json[
        "detail"
    ]
    assert "status: there is no such field; known: title, " in body_detail
    assert ", ready, " in body_detail


def test_too_long_body_is_refused_before_it_is_read() -> None:
    with serving(HubServer(http=HttpSettings(port=0, max_body=1_000))) as server:
        fits = json.dumps({"title": "x", "body": "y" * 900}).encode()
        assert server.request("POST", "/v1/tasks", fits).status == 201
        with server.connect() as sock:
            body_headers = ("Content-Type: application/json", "Content-Length: 1001")
            sock.sendall(server.request_head("POST", "/v1/tasks", *body_headers))
            received = _read_to_end(sock)
        assert received.startswith(b"HTTP/1.1 413")
        assert b"message_too_large" in received
        assert b"connection: close" in received
        with server.connect() as sock:
            chunked = ("Content-Type: application/json", "Transfer-Encoding: chunked")
            sock.sendall(server.request_head("POST", "/v1/tasks", *chunked))
            sock.sendall(b"2bc\r\n" + b"z" * 700 + b"\r\n")
            sock.sendall(b"2bc\r\n" + b"z" * 700 + b"\r\n")
            assert _read_to_end(sock).startswith(b"HTTP/1.1 413")


def test_message_has_smaller_size_limit(server: HubServer) -> None:
    message = report("TASK-2026-02-09-001", notes="x" * MAX_BYTES)
    response = server.request("POST", "/v1/messages", message, by="ada")
    assert (response.status, response.code) == (413, "message_too_large")


@pytest.mark.parametrize("sent", [b"", b"{", b'{"title":'])
def test_missing_body_times_out(sent: bytes) -> None:
    with serving(HubServer(timeouts=Timeouts(body_idle=0.05))) as server, server.connect() as sock:
        body_headers = ("Content-Type: application/json", "Content-Length: 20")
        sock.sendall(server.request_head("POST", "/v1/tasks", *body_headers) + sent)
        received = _read_to_end(sock)
    assert received.startswith(b"HTTP/1.1 408")
    assert b"request_timeout" in received


def test_dripping_body_times_out() -> None:
    with (
        serving(HubServer(timeouts=Timeouts(body_idle=5, body=0.3))) as server,
        server.connect() as sock,
    ):
        body_headers = ("Content-Type: application/json", "Content-Length: 100000")
        sock.sendall(server.request_head("POST", "/v1/tasks", *body_headers))
        sock.settimeout(0.02)
        received = b""
        while b"\r\n\r\n" not in received:
            sock.sendall(b" ")
            try:
                received += sock.recv(65_536)
            except TimeoutError:
                continue
    assert received.startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("sent", [b"", b"G", b"GET /v1/tasks HTTP/1.1\r\nHost: "])
def test_incomplete_head_times_out(sent: bytes) -> None:
    with (
        serving(HubServer(timeouts=Timeouts(request_head=0.05))) as server,
        server.connect() as sock,
    ):
        sock.sendall(sent)
        assert _read_to_end(sock) == b""


def test_slow_connections_do_not_block_others() -> None:
    with serving(HubServer(timeouts=Timeouts(request_head=30))) as server:
        socks = [server.connect() for _ in range(300)]
        for sock in socks:
            sock.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        assert server.request("GET", "/v1/tasks").status == 200
        for sock in socks:
            sock.close()


def test_parsing_a_long_body_does_not_block_others(server: HubServer) -> None:
    body = b'"' + b"\\\\" * 8_000_000 + b'" and more'
    with ThreadPoolExecutor(1) as executor:
        started_at = monotonic()
        refused = executor.submit(server.request, "POST", "/v1/internal/commands", body)
        latencies: list[float] = []
        while not refused.done():
            requested_at = monotonic()
            assert server.request("GET", "/healthz").status == 200
            latencies.append(monotonic() - requested_at)
        took = monotonic() - started_at
    assert refused.result().code == "invalid_json"
    assert max(latencies) < took / 2


def test_each_request_on_a_connection_has_its_own_timeout() -> None:
    with (
        serving(HubServer(timeouts=Timeouts(request_head=0.2))) as server,
        server.connect() as sock,
    ):
        for _ in range(3):
            sock.sendall(server.request_head("GET", "/healthz"))
            received = b""
            while not received.endswith(b'{"ok":true}'):
                received += sock.recv(65_536)
            assert received.startswith(b"HTTP/1.1 200")
        sock.sendall(b"GET /healthz HTTP/1.1\r\n")
        assert _read_to_end(sock) == b""


def test_endless_head_is_cut_off(server: HubServer) -> None:
    with server.connect() as sock:
        sock.sendall(b"GET / HTTP/1.1\r\n")
        received = b""
        try:
            for _ in range(2_000):
                sock.sendall(b"X-More: " + b"x" * 1_000 + b"\r\n")
            received = _read_to_end(sock)
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert received == b""
    assert server.request("GET", "/healthz").status == 200


@proves("HTTP-HEAD")
@pytest.mark.parametrize(
    ("path_length", "header_length"), [(1, 100_000), (40_000, 40_000), (70_000, 1)]
)
def test_head_sent_at_once_has_the_same_size_limit(
    server: HubServer, path_length: int, header_length: int
) -> None:
    with server.connect() as sock:
        for _ in range(2):  # each request on a connection has a limit of its own
            sock.sendall(server.request_head("GET", "/healthz", f"X-Long: {'x' * 64_000}"))
            received = b""
            while not received.endswith(b'{"ok":true}'):
                received += sock.recv(65_536)
        received = b""
        try:
            sock.sendall(
                server.request_head(
                    "GET", f"/{'x' * path_length}", f"X-Long: {'x' * header_length}"
                )
            )
            received = _read_to_end(sock)
        except (BrokenPipeError, ConnectionResetError):
            pass
    # Empty if the head arrived in two pieces after all.
    # A path of more than 64 KiB cannot be parsed at all.
    assert received[:12] in (b"HTTP/1.1 413", b"HTTP/1.1 400", b"")


MAX_HEAD = 64 * 1024
HEADER_OVERHEAD = len("name: value\r\n") - len("namevalue")


@proves("HTTP-HEAD")
@pytest.mark.parametrize(("excess", "status"), [(0, b"200"), (1, b"413")])
def test_head_size_limit_is_exactly_64_kib(server: HubServer, excess: int, status: bytes) -> None:
    length = MAX_HEAD + excess - len("/healthz") - len("X-Long") - HEADER_OVERHEAD
    for header in server.request_head("GET", "/healthz").decode().split("\r\n")[1:-2]:
        length -= len(header) + len("\r\n")
    head = server.request_head("GET", "/healthz", f"X-Long: {'x' * length}")
    with server.connect() as sock:
        # The end is sent separately: up to there the head is within the limit.
        sock.sendall(head[:-100])
        sock.sendall(head[-100:])
        assert sock.recv(12) == b"HTTP/1.1 " + status


@proves("HTTP-HEAD")
def test_unfinished_head_is_cut_after_64_kib() -> None:
    # It is cut for its length: its timeout would come after that of the client.
    with (
        serving(HubServer(timeouts=Timeouts(request_head=600))) as server,
        server.connect() as sock,
    ):
        sock.sendall(b"GET /healthz HTTP/1.1\r\nX-Long: ".ljust(MAX_HEAD + 1, b"x"))
        assert _read_to_end(sock) == b""


def test_endless_trailers_are_cut_off(server: HubServer) -> None:
    with server.connect() as sock:
        sock.sendall(
            server.request_head("GET", "/v1/stream", "Transfer-Encoding: chunked") + b"0\r\n"
        )
        assert sock.recv(65_536).startswith(b"HTTP/1.1 200")
        trailers = (b"X-More: " + b"x" * 1_000 + b"\r\n") * 20_000
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            sock.sendall(trailers)


@pytest.mark.parametrize(
    "head",
    [
        ("POST", "/v1/messages", "Transfer-Encoding: chunked"),
        ("POST", "/v1/messages", "Content-Length: 1000000"),
        ("GET", "/v1/tasks", "Transfer-Encoding: chunked"),
        ("GET", "/v1/tasks", "Content-Length: 1000000"),
    ],
)
def test_connection_closes_after_response_to_unread_body(
    server: HubServer, head: tuple[str, ...]
) -> None:
    for by in ("ada", "stranger"):
        server.tokens["stranger"] = "nobody's"
        with server.connect() as sock:
            sock.sendall(server.request_head(*head, by=by))
            received = _read_to_end(sock)
        assert received.startswith(b"HTTP/1.1 ")
        assert b"connection: close" in received


def test_chunked_body_has_the_same_size_limit() -> None:
    with (
        serving(HubServer(http=HttpSettings(port=0, max_body=1_000))) as server,
        server.connect() as sock,
    ):
        chunked = ("Content-Type: application/x-ndjson", "Transfer-Encoding: chunked")
        body = b"7d0\r\n" + b"{}\n \n" * 400 + b"\r\n0\r\n\r\n"
        sock.sendall(server.request_head("POST", "/v1/messages", *chunked) + body)
        assert sock.recv(65_536).startswith(b"HTTP/1.1 413")


@proves("HTTP-ROOM")
def test_too_many_connections_are_refused_as_overloaded() -> None:
    with serving(HubServer(), connections=3) as server, ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(follow_stream(server))
        response = server.request("GET", "/v1/tasks")
        assert (response.status, response.code) == (503, "overloaded")
        assert response.headers["connection"] == "close"
        socks = [stack.enter_context(server.connect()) for _ in range(100)]
        assert _read_to_end(socks[-1]) == b""


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x00\xa5\x01\x00\x00 nonsense\r\n\r\n",
        b"GET /v1/tasks HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET v1 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST /v1/internal/commands HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    ],
)
def test_malformed_http_is_refused_and_closed(server: HubServer, sent: bytes) -> None:
    with server.connect() as sock:
        sock.sendall(sent)
        head, _, body = _read_to_end(sock).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"\r\nconnection: close" in head
    assert body == b"This is no valid HTTP request."


def test_disconnect_within_a_request_changes_nothing(server: HubServer) -> None:
    head = server.store.head()
    for _ in range(20):
        with server.connect() as sock:
            body_headers = ("Content-Type: application/json", "Content-Length: 20")
            sock.sendall(server.request_head("POST", "/v1/tasks", *body_headers) + b'{"title":')
    assert server.request("GET", "/v1/tasks").json["tasks"] == []
    assert server.store.head() == head


def test_memory_for_a_batch_of_many_lines_is_bounded(
    server: HubServer,
) -> None:
    body = b"\n" * 4_000_000 + b"no message"
    tracemalloc.start()
    try:
        response = server.request(
            "POST", "/v1/messages", body, headers={"Content-Type": JSON_LINES}
        )
        assert tracemalloc.get_traced_memory()[1] < 5 * len(body)
    finally:
        tracemalloc.stop()
    assert response.json["line"] == 4_000_001


def test_batch_stops_when_its_client_disconnects(
    caplog: pytest.LogCaptureFixture,
) -> None:
    line_count = 1_000_000
    with serving(HubServer()) as server, server.connect() as sock:
        content_type = f"Content-Type: {JSON_LINES}"
        sock.sendall(
            server.request_head(
                "POST", "/v1/messages", content_type, f"Content-Length: {2 * line_count}"
            )
        )
        sock.sendall(b"1\n" * line_count)
        assert sock.recv(65_536)
        sock.close()
    match = re.search('outcome="not_recognized"} ([0-9]+)', _metrics(server))
    assert match
    assert int(match[1]) < line_count / 2
    assert caplog.text == "", "the hub did not have to break it off when it was stopped"


def test_batch_reports_the_line_at_which_the_hub_stopped(
    server: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = server.app.context
    parse = context.deps.router.parse_async

    async def stop_after_third_line(line: bytes, **more: Any) -> Any:
        if line == b"3":
            context.feed.close()
        return await parse(line, **more)

    monkeypatch.setattr(context.deps.router, "parse_async", stop_after_third_line)
    body = b"1\n2\n3\n4\n5\n"
    response = server.request("POST", "/v1/messages", body, headers={"Content-Type": JSON_LINES})
    results = [json.loads(line) for line in response.body.splitlines()]
    assert [(result["line"], result["problem"]["code"]) for result in results] == [
        *((line, "not_recognized") for line in (1, 2, 3)),
        (4, "stopping"),
    ]
    assert "this line and all after it" in results[-1]["problem"]["detail"]


def _metrics(server: HubServer) -> str:
    return server.app.context.metrics.render(waiting=0, head=0, tasks={}, services={})
