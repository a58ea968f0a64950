"""Bodies in flight: the largest body of each operation, the budget of a caller, and of all."""

import json
import select
import socket
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from dragoman.config import HttpSettings
from dragoman.surfaces.http import Timeouts
from dragoman.surfaces.http.endpoint import MAX_OBJECT_BYTES
from dragoman.surfaces.http.limits import OPEN_BYTES_OF_ADDRESS, BodyBudget
from dragoman.text.strict_json import MAX_BYTES
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, serving

pytestmark = proves("HTTP-BODIES")

MIB = 1024 * 1024
LARGEST = 4 * MIB


@pytest.fixture
def server() -> Iterator[HubServer]:
    """Give a hub whose largest body is 4 MiB, with five agents."""
    http = HttpSettings(port=0, rate_per_second=0, max_body=LARGEST)
    with serving(HubServer(http=http)) as server:
        for name in ("ada", "bob", "cyd", "dov", "eva"):
            server.add_agent(name)
        yield server


def announce(
    server: HubServer, path: str, size: int, *, by: str = "ada", media: str = "application/json"
) -> socket.socket:
    """Send the head of a request with a body of this size, and nothing of the body."""
    server.tokens.setdefault("", "none")
    sock = server.connect()
    head = server.request_head(
        "POST",
        path,
        f"Content-Type: {media}",
        f"Content-Length: {size}",
        "Expect: 100-continue",
        by=by,
    )
    sock.sendall(head)
    return sock


def first_line(sock: socket.socket) -> bytes:
    """Return the status line of the next response; 100 means that the body is being read."""
    return sock.recv(65_536).partition(b"\r\n")[0]


def wait_until_all_is_given_back(server: HubServer) -> None:
    """Wait until the hub has seen that the requests before have ended."""
    context = server.app.context
    for _ in range(10_000):
        if not len(context.body_budget) + len(context.open_body_budget):
            return
        server.request("GET", "/healthz", by="")
    raise AssertionError("bytes are still held")


BATCH = {"Content-Type": "application/x-ndjson"}
READ = b"HTTP/1.1 100 Continue"
TOO_LARGE = b"HTTP/1.1 413 Request Entity Too Large"
BUSY = b"HTTP/1.1 503 Service Unavailable"


@pytest.mark.parametrize(
    ("path", "largest"),
    [
        ("/v1/signed", MAX_BYTES),
        ("/v1/tasks", MAX_OBJECT_BYTES),
        ("/v1/tasks/one/claim", MAX_OBJECT_BYTES),
        ("/v1/aof/session_end", MAX_BYTES),
        ("/v1/agentmail/mail.send", MAX_BYTES),
        ("/v1/messages?dialect=aof", MAX_BYTES),
        ("/v1/messages", LARGEST),
        ("/v1/saop/saop.turn", LARGEST),
    ],
)
def test_each_operation_has_a_largest_body(server: HubServer, path: str, largest: int) -> None:
    with announce(server, path, largest) as sock:
        assert first_line(sock) == READ
    with announce(server, path, largest + 1) as sock:
        assert first_line(sock) == TOO_LARGE


def test_longest_text_of_a_task_fits_however_it_is_escaped(server: HubServer) -> None:
    body = json.dumps({"title": "x", "body": "\N{GRINNING FACE}" * 200_000}).encode()
    assert len(body) > 2_400_000
    assert server.request("POST", "/v1/tasks", body).status == 201


def test_bodies_of_one_caller_have_a_budget_which_others_do_not_share(server: HubServer) -> None:
    batch = "application/x-ndjson"
    with ExitStack() as stack:
        for _ in range(2):
            sock = stack.enter_context(announce(server, "/v1/messages", LARGEST, media=batch))
            assert first_line(sock) == READ
        refused = server.request("POST", "/v1/tasks", {"title": "x"}, by="ada")
        assert (refused.status, refused.code) == (503, "overloaded")
        assert refused.headers["retry-after"] == "1"
        assert "of one caller" in refused.json["detail"]
        assert server.request("GET", "/v1/tasks", by="ada").status == 200
        assert server.request("POST", "/v1/tasks", {"title": "x"}, by="bob").status == 201


def test_bodies_of_all_have_a_budget_which_does_not_hold_the_owner(server: HubServer) -> None:
    batch = BATCH["Content-Type"]
    with ExitStack() as stack:
        for name in ("ada", "bob", "cyd", "dov"):
            for _ in range(2):
                sock = stack.enter_context(announce(server, "/v1/messages", LARGEST, by=name))
                assert first_line(sock) == READ
        with announce(server, "/v1/messages", LARGEST, by="eva", media=batch) as sock:
            answer = sock.recv(65_536)
        assert answer.startswith(BUSY)
        assert b"of all callers" in answer
        assert server.request("POST", "/v1/messages", b"\n" * LARGEST, headers=BATCH).status == 200
        small = server.request("POST", "/v1/tasks", {"title": "x"}, by="eva")
        assert small.status == 201, "large bodies leave a share to small ones"


def test_slow_bodies_lose_their_place_when_others_need_it() -> None:
    """Eight bodies of the largest size, of four callers, would keep all others out."""
    http = HttpSettings(port=0, rate_per_second=0, max_body=LARGEST)
    batch = "application/x-ndjson"
    with serving(HubServer(http=http, timeouts=Timeouts(slow_body=0.0))) as server:
        names = ("ada", "bob", "cyd", "dov", "eva")
        for name in names:
            server.add_agent(name)
        with ExitStack() as stack:
            slow = [
                stack.enter_context(announce(server, "/v1/messages", LARGEST, by=name, media=batch))
                for name in names[:4]
                for _ in range(2)
            ]
            assert {first_line(sock) for sock in slow} == {READ}
            with announce(server, "/v1/messages", LARGEST, by="eva", media=batch) as sock:
                assert first_line(sock) == READ
                (lost,), _, _ = select.select(slow, (), (), 60)
                assert first_line(lost) == BUSY
            slow_caller = names[slow.index(lost) // 2]
            waits = server.request("POST", "/v1/tasks", {"title": "x"}, by=slow_caller)
            assert waits.status == 503, "whoever was slow has to wait"
            assert server.request("POST", "/v1/tasks", {"title": "x"}, by="eva").status == 201
            for sock in slow:
                if sock is not lost:
                    sock.sendall(b"\n" * LARGEST)
                    assert first_line(sock) == b"HTTP/1.1 200 OK", "it kept its place"
        wait_until_all_is_given_back(server)


def test_bytes_are_given_back_when_a_request_ends(server: HubServer) -> None:
    for _ in range(10):
        with announce(server, "/v1/messages", LARGEST) as sock:
            assert first_line(sock) == READ
        wait_until_all_is_given_back(server)
    assert server.request("POST", "/v1/tasks", {"title": "x"}, by="ada").status == 201
    server.request("POST", "/v1/tasks", b"{", by="ada")
    server.request("POST", "/v1/signed", b"{}", by="")
    wait_until_all_is_given_back(server)


def test_body_in_chunks_is_charged_with_each_chunk(server: HubServer) -> None:
    chunked = ("Content-Type: application/x-ndjson", "Transfer-Encoding: chunked")
    with ExitStack() as stack:
        for _ in range(2):
            sock = stack.enter_context(announce(server, "/v1/messages", LARGEST))
            assert first_line(sock) == READ
        with server.connect() as sock:
            sock.sendall(server.request_head("POST", "/v1/messages", *chunked, by="ada"))
            sock.sendall(b"5\r\nhello\r\n")
            assert first_line(sock) == BUSY


def test_address_without_a_token_has_a_small_budget(server: HubServer) -> None:
    with ExitStack() as stack:
        for _ in range(OPEN_BYTES_OF_ADDRESS // MAX_BYTES):
            sock = stack.enter_context(announce(server, "/v1/signed", MAX_BYTES, by=""))
            assert first_line(sock) == READ
        with announce(server, "/v1/signed", MAX_BYTES, by="") as sock:
            assert first_line(sock) == BUSY
        assert server.request("POST", "/v1/tasks", {"title": "x"}, by="ada").status == 201


def test_budget_of_all_holds_for_each_new_caller() -> None:
    budget = BodyBudget(per_caller=4, total=10)
    for caller in ("a", "b"):
        budget.acquire(caller, 4)
    with pytest.raises(Exception, match="at most 10 bytes"):
        budget.acquire("c", 3)
    budget.acquire("c", 2)
    budget.release("a", 4)
    budget.acquire("c", 2)
    with pytest.raises(Exception, match="at most 4 bytes"):
        budget.acquire("c", 1)
    assert len(budget) == 8


@pytest.mark.parametrize(("path", "by"), [("/v1/signed", ""), ("/v1/tasks", "ada")])
def test_memory_for_a_hundred_large_bodies_is_bounded_and_comes_back(
    server: HubServer, path: str, by: str
) -> None:
    part = b'{"title":"' + b"x" * MIB
    tracemalloc.start()
    try:
        with ExitStack() as stack:
            for _ in range(100):
                sock = stack.enter_context(announce(server, path, 2 * MIB, by=by))
                try:
                    sock.sendall(part)
                except OSError:
                    continue  # it is refused, and not read any more
            assert server.request("GET", "/v1/tasks", by="bob").status == 200
        wait_until_all_is_given_back(server)
        left, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 8 * LARGEST
    assert left < LARGEST
