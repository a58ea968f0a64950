"""What comes over a connection beside plain requests: offers of other protocols, and no HTTP."""

import socket
from collections.abc import Iterator, Sequence

import pytest

from tests.requirements import proves
from tests.surfaces.http.house import Answer, House
from tests.surfaces.http.reader import Reader

OFFER = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAAB")
"""As the client of Java's own library begins every connection, and curl with --http2."""
NEW = b'{"title":"One","id":"T-1"}'
TYPED = "Content-Type: application/json"
NO_HTTP = b"what is this\r\n\r\n"


def _answers(line: socket.socket) -> Iterator[Answer]:
    """All that the server says on a connection, until it ends."""
    with line.makefile("rb") as said:
        while first := said.readline():
            headers: dict[str, str] = {}
            while head := said.readline().strip():
                name, _, value = head.decode().partition(": ")
                headers[name] = value
            body = said.read(int(headers["content-length"]))
            yield Answer(int(first.split()[1]), headers, body)


def _in_parts(line: socket.socket, parts: Sequence[bytes]) -> None:
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for part in parts:
        line.sendall(part)


@proves("HTTP-OFFERS")
@pytest.mark.parametrize("version", [b"HTTP/1.1", b"HTTP/1.0"])
@pytest.mark.parametrize("is_split", [False, True])
@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_request_that_offers_another_protocol_has_its_body(
    house: House, version: bytes, is_split: bool, is_chunked: bool
) -> None:
    length = "Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {len(NEW)}"
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(NEW), NEW) if is_chunked else NEW
    head = house.head("POST", "/v1/tasks", TYPED, length, *OFFER).replace(b"HTTP/1.1", version, 1)
    with house.dial() as line:
        _in_parts(line, [head, body] if is_split else [head + body])
        answer = next(_answers(line))
        assert (answer.status, answer.json["title"]) == (201, "One")


@proves("HTTP-OFFERS")
def test_what_stands_in_its_body_or_behind_it_is_read_as_what_it_is(house: House) -> None:
    inner = house.head("POST", "/v1/tasks/T-1/move", TYPED, "Content-Length: 0")
    outer = house.head("POST", "/v1/tasks", TYPED, f"Content-Length: {len(inner)}", *OFFER)
    with house.dial() as line:
        line.sendall(outer + inner + house.head("GET", "/healthz", *OFFER))
        answers = _answers(line)
        assert next(answers).code == "invalid_json"
        assert next(answers).json == {"ok": True}
        line.sendall(house.head("GET", "/healthz", "Connection: close, Upgrade", OFFER[1]))
        assert [answer.json for answer in answers] == [{"ok": True}]


@proves("HTTP-OFFERS")
def test_a_tunnel_is_none_and_what_comes_behind_it_is_answered(house: House) -> None:
    with house.dial() as line:
        last = house.head("GET", "/healthz", "Connection: close")
        line.sendall(house.head("CONNECT", "/v1/tasks") + last)
        refused, answer = _answers(line)
        assert (refused.code, answer.json) == ("method_not_allowed", {"ok": True})


@proves("HTTP-BEHIND")
@pytest.mark.parametrize("ahead", [0, 2])
@pytest.mark.parametrize("is_half_a_request", [False, True])
def test_what_cannot_be_understood_behind_a_request_is_no_answer_to_it(
    house: House, ahead: int, is_half_a_request: bool
) -> None:
    made = house.head("POST", "/v1/tasks", TYPED, f"Content-Length: {len(NEW)}") + NEW
    half = house.head("POST", "/v1/tasks", TYPED, "Transfer-Encoding: chunked")
    with house.dial() as line:
        behind = half + NO_HTTP if is_half_a_request else NO_HTTP
        line.sendall(house.head("GET", "/v1/tasks") * ahead + made + behind)
        *lists, answer = _answers(line)
        assert [one.json for one in lists] == [{"tasks": [], "next": None}] * ahead
        assert (answer.status, answer.json["id"]) == (201, "T-1")
        assert answer.headers["connection"] == "close"


@proves("HTTP-BEHIND")
def test_what_cannot_be_understood_does_not_get_into_a_stream(house: House) -> None:
    with house.dial() as line:
        line.sendall(house.head("GET", "/v1/stream"))
        reader = Reader(line)
        assert reader.frame() is not None
        line.sendall(NO_HTTP * 2)
        # It was heard by the time that a second request has its answer.
        assert house.ask("POST", "/v1/tasks", NEW).status == 201
        told = reader.next()
        assert told is not None
        assert told.event == "task.created"


@proves("HTTP-BEHIND")
def test_a_body_that_cannot_be_understood_is_answered_so(house: House) -> None:
    with house.dial() as line:
        head = house.head("POST", "/v1/tasks", TYPED, "Transfer-Encoding: chunked")
        line.sendall(head + NO_HTTP)
        assert [answer.code for answer in _answers(line)] == ["invalid_request"]
