"""Bodies and connections that are too long, too slow, of the wrong kind, or never end."""

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
from dragoman.surfaces.http import Patience
from dragoman.text.strict_json import MOST_BYTES
from tests.requirements import proves
from tests.surfaces.http.house import House, serving
from tests.surfaces.http.letters import report
from tests.surfaces.http.reader import reading

pytestmark = proves("HTTP-LIMITS")

LINES = "application/x-ndjson"


def _said(line: socket.socket) -> bytes:
    """Everything that the server still says, until it ends the connection."""
    parts: list[bytes] = []
    try:
        while part := line.recv(65_536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/tasks", "/v1/aof/session_end", "/v1/do"])
@pytest.mark.parametrize("type_", ["", "text/plain", "application/x-www-form-urlencoded", "json"])
def test_only_json_is_taken(house: House, path: str, type_: str) -> None:
    answer = house.ask("POST", path, b"{}", headers={"Content-Type": type_})
    assert (answer.status, answer.code) == (415, "unsupported_media_type")
    assert "application/json" in answer.json["detail"]


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/tasks", "/v1/aof/session_end", "/v1/do"])
def test_what_is_packed_is_not_taken(house: House, path: str) -> None:
    answer = house.ask("POST", path, b"{}", headers={"Content-Encoding": "gzip"})
    assert (answer.status, answer.code) == (415, "unsupported_media_type")
    assert "'gzip'" in answer.json["detail"]
    plain = house.ask("POST", path, b"{}", headers={"Content-Encoding": "Identity"})
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
def test_json_that_cannot_be_trusted_is_refused(
    house: House, body: bytes, code: str, path: str | None
) -> None:
    answer = house.ask("POST", "/v1/tasks", body)
    assert answer.code == code
    assert path is None or answer.json.get("path", "") == path


@pytest.mark.parametrize(
    ("path", "field", "meant"),
    [
        ("/v1/tasks", "titel", "title"),
        ("/v1/tasks/one/claim", "ttl", "ttl_ms"),
        ("/v1/do", "command", "commands"),
    ],
)
def test_a_name_that_is_not_known_is_told_with_the_nearest(
    house: House, path: str, field: str, meant: str
) -> None:
    answer = house.ask("POST", path, {field: 1})
    assert answer.code == "invalid_field"
    told = f"{field}: there is no such field; did you mean {meant}?"
    assert answer.json["detail"] == told
    assert answer.json["path"] == field


@proves("NEAREST-NAME")
def test_where_no_known_name_is_near_all_are_told(house: House) -> None:
    asked = house.ask("GET", "/v1/tasks?foo=1").json["detail"]
    assert asked == "'foo' is not asked for here; known: status, assignee, ready, limit, cursor"
    said = house.ask("POST", "/v1/tasks", {"title": "x", "status": "ready"}).json["detail"]
    assert "status: there is no such field; known: title, " in said
    assert ", ready, " in said


def test_a_body_that_is_too_long_is_refused_before_it_is_read() -> None:
    with serving(House(http=HttpSettings(port=0, max_body=1_000))) as house:
        fits = json.dumps({"title": "x", "body": "y" * 900}).encode()
        assert house.ask("POST", "/v1/tasks", fits).status == 201
        with house.dial() as line:
            declared = ("Content-Type: application/json", "Content-Length: 1001")
            line.sendall(house.head("POST", "/v1/tasks", *declared))
            said = _said(line)
        assert said.startswith(b"HTTP/1.1 413")
        assert b"message_too_large" in said
        assert b"connection: close" in said
        with house.dial() as line:
            chunked = ("Content-Type: application/json", "Transfer-Encoding: chunked")
            line.sendall(house.head("POST", "/v1/tasks", *chunked))
            line.sendall(b"2bc\r\n" + b"z" * 700 + b"\r\n")
            line.sendall(b"2bc\r\n" + b"z" * 700 + b"\r\n")
            assert _said(line).startswith(b"HTTP/1.1 413")


def test_a_message_has_a_smaller_limit_of_its_own(house: House) -> None:
    message = report("TASK-2026-02-09-001", notes="x" * MOST_BYTES)
    answer = house.ask("POST", "/v1/messages", message, by="ada")
    assert (answer.status, answer.code) == (413, "message_too_large")


@pytest.mark.parametrize("sent", [b"", b"{", b'{"title":'])
def test_a_body_that_does_not_come_is_not_waited_for(sent: bytes) -> None:
    with serving(House(patience=Patience(body_pause=0.05))) as house, house.dial() as line:
        declared = ("Content-Type: application/json", "Content-Length: 20")
        line.sendall(house.head("POST", "/v1/tasks", *declared) + sent)
        said = _said(line)
    assert said.startswith(b"HTTP/1.1 408")
    assert b"request_timeout" in said


def test_a_body_that_drips_is_not_waited_for_for_ever() -> None:
    with serving(House(patience=Patience(body_pause=5, body=0.3))) as house, house.dial() as line:
        declared = ("Content-Type: application/json", "Content-Length: 100000")
        line.sendall(house.head("POST", "/v1/tasks", *declared))
        line.settimeout(0.02)
        said = b""
        while b"\r\n\r\n" not in said:
            line.sendall(b" ")
            try:
                said += line.recv(65_536)
            except TimeoutError:
                continue
    assert said.startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("sent", [b"", b"G", b"GET /v1/tasks HTTP/1.1\r\nHost: "])
def test_a_head_that_does_not_end_is_cut_off(sent: bytes) -> None:
    with serving(House(patience=Patience(head=0.05))) as house, house.dial() as line:
        line.sendall(sent)
        assert _said(line) == b""


def test_slow_connections_keep_nobody_else_waiting() -> None:
    with serving(House(patience=Patience(head=30))) as house:
        lines = [house.dial() for _ in range(300)]
        for line in lines:
            line.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        assert house.ask("GET", "/v1/tasks").status == 200
        for line in lines:
            line.close()


def test_a_long_body_that_takes_long_to_read_keeps_nobody_else_waiting(house: House) -> None:
    body = b'"' + b"\\\\" * 8_000_000 + b'" and more'
    with ThreadPoolExecutor(1) as elsewhere:
        begun = monotonic()
        # Nobody has to show a token there.
        refused = elsewhere.submit(house.ask, "POST", "/v1/signed", body, by="")
        waits: list[float] = []
        while not refused.done():
            asked = monotonic()
            assert house.ask("GET", "/healthz").status == 200
            waits.append(monotonic() - asked)
        took = monotonic() - begun
    assert refused.result().code == "invalid_json"
    assert max(waits) < took / 2


def test_a_second_request_on_a_connection_has_its_own_time() -> None:
    with serving(House(patience=Patience(head=0.2))) as house, house.dial() as line:
        for _ in range(3):
            line.sendall(house.head("GET", "/healthz"))
            said = b""
            while not said.endswith(b'{"ok":true}'):
                said += line.recv(65_536)
            assert said.startswith(b"HTTP/1.1 200")
        line.sendall(b"GET /healthz HTTP/1.1\r\n")
        assert _said(line) == b""


def test_an_endless_head_is_cut_off(house: House) -> None:
    with house.dial() as line:
        line.sendall(b"GET / HTTP/1.1\r\n")
        said = b""
        try:
            for _ in range(2_000):
                line.sendall(b"X-More: " + b"x" * 1_000 + b"\r\n")
            said = _said(line)
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert said == b""
    assert house.ask("GET", "/healthz").status == 200


@proves("HTTP-HEAD")
@pytest.mark.parametrize(("address", "header"), [(1, 100_000), (40_000, 40_000), (70_000, 1)])
def test_a_head_that_comes_at_once_may_be_no_longer_than_another(
    house: House, address: int, header: int
) -> None:
    with house.dial() as line:
        for _ in range(2):  # each on a connection has room of its own
            line.sendall(house.head("GET", "/healthz", f"X-Long: {'x' * 64_000}"))
            said = b""
            while not said.endswith(b'{"ok":true}'):
                said += line.recv(65_536)
        said = b""
        try:
            line.sendall(house.head("GET", f"/{'x' * address}", f"X-Long: {'x' * header}"))
            said = _said(line)
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert said[:12] in (b"HTTP/1.1 413", b"")  # cut, if it came in two pieces after all


HEAD = 64 * 1024
COUNTED_OF_A_HEADER = len("name: value\r\n") - len("namevalue")


@proves("HTTP-HEAD")
@pytest.mark.parametrize(("more", "status"), [(0, b"200"), (1, b"413")])
def test_address_and_headers_have_64_kib_and_not_a_byte_more(
    house: House, more: int, status: bytes
) -> None:
    room = HEAD + more - len("/healthz") - len("X-Long") - COUNTED_OF_A_HEADER
    for header in house.head("GET", "/healthz").decode().split("\r\n")[1:-2]:
        room -= len(header) + len("\r\n")
    head = house.head("GET", "/healthz", f"X-Long: {'x' * room}")
    with house.dial() as line:
        # Its end in a piece of its own: up to there it is no longer than one that may go on.
        line.sendall(head[:-100])
        line.sendall(head[-100:])
        assert line.recv(12) == b"HTTP/1.1 " + status


@proves("HTTP-HEAD")
def test_a_head_that_has_not_ended_after_64_kib_is_cut() -> None:
    # It is cut for its length: for its time it would be only after the caller has given up.
    with serving(House(patience=Patience(head=600))) as house, house.dial() as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nX-Long: ".ljust(HEAD + 1, b"x"))
        assert _said(line) == b""


def test_endless_trailers_are_cut_off_and_nothing_of_them_is_kept(house: House) -> None:
    with house.dial() as line:
        line.sendall(house.head("GET", "/v1/stream", "Transfer-Encoding: chunked") + b"0\r\n")
        assert line.recv(65_536).startswith(b"HTTP/1.1 200")
        trailers = (b"X-More: " + b"x" * 1_000 + b"\r\n") * 20_000
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            line.sendall(trailers)


@pytest.mark.parametrize(
    "head",
    [
        ("POST", "/v1/messages", "Transfer-Encoding: chunked"),
        ("POST", "/v1/messages", "Content-Length: 1000000"),
        ("GET", "/v1/tasks", "Transfer-Encoding: chunked"),
        ("GET", "/v1/tasks", "Content-Length: 1000000"),
    ],
)
def test_after_an_answer_to_what_was_not_read_the_connection_ends(
    house: House, head: tuple[str, ...]
) -> None:
    for by in ("ada", "stranger"):
        house.tokens["stranger"] = "nobody's"
        with house.dial() as line:
            line.sendall(house.head(*head, by=by))
            said = _said(line)
        assert said.startswith(b"HTTP/1.1 ")
        assert b"connection: close" in said


def test_a_body_in_one_piece_is_measured_too() -> None:
    with serving(House(http=HttpSettings(port=0, max_body=1_000))) as house, house.dial() as line:
        chunked = ("Content-Type: application/x-ndjson", "Transfer-Encoding: chunked")
        body = b"7d0\r\n" + b"{}\n \n" * 400 + b"\r\n0\r\n\r\n"
        line.sendall(house.head("POST", "/v1/messages", *chunked) + body)
        assert line.recv(65_536).startswith(b"HTTP/1.1 413")


@proves("HTTP-ROOM")
def test_more_connections_than_there_is_room_for_are_told_so() -> None:
    with serving(House(), connections=3) as house, ExitStack() as open_ones:
        for _ in range(3):
            open_ones.enter_context(reading(house))
        # The last requests that fit are answered, and their connections not kept.
        answer = house.ask("GET", "/v1/tasks")
        assert (answer.status, answer.code) == (503, "overloaded")
        assert answer.headers["connection"] == "close"
        lines = [open_ones.enter_context(house.dial()) for _ in range(100)]
        assert _said(lines[-1]) == b""


@proves("HTTP-ROOM")
def test_a_crowd_keeps_no_connection_for_a_next_request() -> None:
    with serving(House(), connections=1) as house, house.dial() as line:
        line.sendall(house.head("GET", "/v1/tasks"))
        assert _said(line).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x00\xa5\x01\x00\x00 nonsense\r\n\r\n",
        b"GET /v1/tasks HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET v1 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST /v1/do HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    ],
)
def test_what_is_no_http_is_answered_with_a_problem_and_ended(house: House, sent: bytes) -> None:
    with house.dial() as line:
        line.sendall(sent)
        head, _, body = _said(line).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"\r\ncontent-type: application/problem+json" in head
    assert b"\r\nconnection: close" in head
    assert b"\r\ncontent-length: %d" % len(body) in head
    assert json.loads(body)["code"] == "invalid_request"


def test_a_caller_that_hangs_up_in_its_request_changes_nothing(house: House) -> None:
    head = house.store.head()
    for _ in range(20):
        with house.dial() as line:
            declared = ("Content-Type: application/json", "Content-Length: 20")
            line.sendall(house.head("POST", "/v1/tasks", *declared) + b'{"title":')
    assert house.ask("GET", "/v1/tasks").json["tasks"] == []
    assert house.store.head() == head


def test_a_batch_of_very_many_lines_takes_no_more_memory_than_a_few_copies_of_it(
    house: House,
) -> None:
    body = b"\n" * 4_000_000 + b"no message"
    tracemalloc.start()
    try:
        answer = house.ask("POST", "/v1/messages", body, headers={"Content-Type": LINES})
        assert tracemalloc.get_traced_memory()[1] < 5 * len(body)
    finally:
        tracemalloc.stop()
    assert answer.json["line"] == 4_000_001


def test_of_a_batch_whose_caller_has_left_no_more_lines_are_taken(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lines = 1_000_000
    with serving(House()) as house, house.dial() as line:
        typed = f"Content-Type: {LINES}"
        line.sendall(house.head("POST", "/v1/messages", typed, f"Content-Length: {2 * lines}"))
        line.sendall(b"1\n" * lines)
        assert line.recv(65_536)
        line.close()
    taken = re.search('outcome="not_recognized"} ([0-9]+)', _figures(house))
    assert taken
    assert int(taken[1]) < lines / 2
    assert caplog.text == "", "the hub did not have to break it off when it was stopped"


def test_of_a_batch_that_a_stop_comes_upon_the_caller_hears_where_it_ended(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = house.app.office
    hear = office.door.interpreter.hear_soon

    async def hear_until_the_third(line: bytes, **more: Any) -> Any:
        if line == b"3":
            office.feed.close()
        return await hear(line, **more)

    monkeypatch.setattr(office.door.interpreter, "hear_soon", hear_until_the_third)
    body = b"1\n2\n3\n4\n5\n"
    answer = house.ask("POST", "/v1/messages", body, headers={"Content-Type": LINES})
    told = [json.loads(line) for line in answer.body.splitlines()]
    assert [(one["line"], one["problem"]["code"]) for one in told] == [
        *((line, "not_recognized") for line in (1, 2, 3)),
        (4, "stopping"),
    ]
    assert "this line and all after it" in told[-1]["problem"]["detail"]


def _figures(house: House) -> str:
    return house.app.office.metrics.text(waiting=0, head=0, tasks={}, duties={})
