"""A hub in another process: found by its lock, called with the owner's token, or gone."""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.actors import Actor
from dragoman.core.commands import CreateTask, NoteTask, PostMail, RenewLease
from dragoman.core.errors import Refusal, Refused, StoreUnavailable
from dragoman.core.events import MessageReceived
from dragoman.engine.errand import Say
from dragoman.engine.hub import How, Hub
from dragoman.engine.plan import Taken, Turned
from dragoman.engine.shown.agents import Started
from dragoman.store.memory import MemoryStore
from dragoman.system.clock import FixedClock
from dragoman.system.hub_address import HubAddress, find_hub
from dragoman.system.hub_at_work import Reach, RemoteEngine
from dragoman.system.hub_call import read_hub
from dragoman.system.hub_lock import HubLock
from dragoman.system.ids import CountingIds
from dragoman.system.private_file import BadKey
from dragoman.system.token_file import load_or_create_token
from tests.requirements import proves

pytestmark = proves("HUB-CLI")

ADA = Actor("agent", "ada", "cli")
HUMAN = Actor("human", "max", "cli")
DONE = {
    "receipts": [{"type": "task", "task": "T", "status": "in-progress", "attempt": 1, "fence": 1}],
    "repeated": False,
}


class Desk:
    """A server that answers what it is told, and keeps what it was asked."""

    def __init__(self, status: int, answer: bytes) -> None:
        self.status = status
        self.answer = answer
        self.asked: list[Any] = []
        self.tokens: list[str | None] = []
        self.paths: list[str] = []
        self.keys: list[str | None] = []


@contextmanager
def serving(status: int, answer: Any) -> Generator[tuple[Desk, str]]:
    desk = Desk(status, answer if isinstance(answer, bytes) else json.dumps(answer).encode())

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            desk.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.do_GET()

        def do_GET(self) -> None:
            desk.tokens.append(self.headers["Authorization"])
            desk.paths.append(self.path)
            desk.keys.append(self.headers["Idempotency-Key"])
            self.send_response(desk.status)
            self.end_headers()
            self.wfile.write(desk.answer)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  its name
            del format, args

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield desk, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def remote(url: str, told: set[str], seek: Callable[[], HubAddress | None] | None = None) -> Hub:
    hub = HubAddress(url, "drgo_t")
    reach = Reach(hub, seek or (lambda: hub), leaving_seconds=0.1)
    engine = RemoteEngine(MemoryStore("x"), FixedClock(7), b"secret", reach, told.update)
    return Hub(engine, CountingIds())


def test_a_hub_is_found_by_its_lock_once_it_says_where_it_is(tmp_path: Path) -> None:
    assert find_hub(tmp_path) is None
    token = load_or_create_token(tmp_path).decode()
    with HubLock.acquire(tmp_path, "dragoman up") as lock:
        assert find_hub(tmp_path) is None
        lock.announce("http://127.0.0.1:4747")
        assert find_hub(tmp_path) == HubAddress("http://127.0.0.1:4747", token)
        (tmp_path / "token").unlink()
        with pytest.raises(BadKey, match=r"token is gone, and a hub runs at http://127"):
            find_hub(tmp_path)
    assert find_hub(tmp_path) is None
    lock.announce("http://127.0.0.1:1")
    assert find_hub(tmp_path) is None


def test_a_request_travels_whole_and_its_receipts_come_back() -> None:
    told: set[str] = set()
    heard = MessageReceived("aof", "status.update", "T")
    with serving(200, DONE) as (desk, url):
        said = How(key="k", per_attempt=True, sent_at=5, heard=heard)
        done = remote(url, told).do(ADA, RenewLease("T", 1), **said)
    assert (done.receipts[0].task, done.repeated) == ("T", False)
    assert told == {"task:T"}
    assert desk.tokens == ["Bearer drgo_t"]
    (asked,) = desk.asked
    assert asked["actor"].items() >= {"role": "agent", "name": "ada", "via": "cli"}.items()
    assert asked["commands"] == [{"type": "task.heartbeat", "task": "T", "fence": 1}]
    assert (asked["key"], asked["per_attempt"], asked["sent_at"]) == ("k", True, 5)
    assert asked["heard"]["kind"] == "status.update"


@contextmanager
def breaking_off(times: int) -> Generator[tuple[list[bytes], str]]:
    """A server that hangs up so often before it answers; what it was asked."""
    asked: list[bytes] = []
    answer = json.dumps(DONE).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer)

    def serve(listener: socket.socket) -> None:
        for number in range(times + 1):
            try:
                line, _ = listener.accept()
            except OSError:  # nobody called so often
                return
            with line:
                asked.append(line.recv(65_536))
                while b"}" not in asked[-1]:
                    asked[-1] += line.recv(65_536)
                if number == times:
                    line.sendall(head + answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        yield asked, f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_request_whose_answer_was_lost_is_sent_again_under_the_same_key() -> None:
    with breaking_off(1) as (asked, url):
        done = remote(url, set()).do(ADA, RenewLease("T", 1))
    assert done.receipts[0].task == "T"
    first, second = (json.loads(one[one.index(b"{") :]) for one in asked)
    assert first["key"]
    assert first == second


def test_a_hub_that_does_not_answer_may_have_done_it_all_the_same() -> None:
    with breaking_off(3) as (asked, url), pytest.raises(StoreUnavailable) as broken:
        remote(url, set()).do(ADA, RenewLease("T", 1))
    assert "may have been done" in broken.value.detail
    assert len(asked) == 3
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        reach = Reach(HubAddress(url, "drgo_t"), lambda: None, seconds=0.1)
        told = set[str]().update
        engine = RemoteEngine(MemoryStore("x"), FixedClock(7), b"secret", reach, told)
        with pytest.raises(StoreUnavailable, match="it may still do what was asked"):
            Hub(engine, CountingIds()).do(ADA, RenewLease("T", 1))


def test_what_the_hub_alone_has_masked_is_told_here() -> None:
    masked, told = "a secret was masked: text (pin)", list[str]()
    with serving(200, {**DONE, "masked": [masked]}) as (_, url):
        hub = remote(url, set())
        hub.redaction.tell = told.append
        token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
        plain, known = hub.do(ADA, RenewLease("T")), hub.do(ADA, NoteTask("T", f"use {token}"))
    assert plain.masked == (masked,)
    assert known.masked[1:] == (masked,)
    assert told == [masked, known.masked[0], masked]


@proves("ENGINE-EFFECT")
def test_what_is_to_follow_travels_too_and_why_it_does_not() -> None:
    told: set[str] = set()
    posted = {"type": "task", "task": "", "status": None, "stream": "mail:m", "thread": "m"}
    no = {"code": "lease_lost", "detail": "stop"}
    with serving(200, {"receipts": [posted], "repeated": False, "declined": no}) as (desk, url):
        letter, effect = PostMail(("bob",), "x", ""), (RenewLease("T", 1),)
        done = remote(url, told).do(ADA, letter, effect=effect)
    assert desk.asked[0]["effect"] == [{"type": "task.heartbeat", "task": "T", "fence": 1}]
    assert done.declined == Refusal("lease_lost", "stop")
    assert (done.receipts[0].stream, told) == ("mail:m", set())


def test_the_async_door_leads_to_the_hub_too() -> None:
    with serving(200, DONE) as (desk, url):
        done = asyncio.run(remote(url, set()).do_soon(ADA, RenewLease("T")))
    assert done.receipts[0].task == "T"
    assert len(desk.asked) == 1


def test_a_refusal_of_the_hub_is_a_refusal_here() -> None:
    problem = {"code": "lease_lost", "detail": "stop working on it", "status": 409}
    with serving(409, problem) as (_, url), pytest.raises(Refused, match="lease_lost: stop"):
        remote(url, set()).do(ADA, RenewLease("T"))


def test_a_token_that_was_replaced_under_a_running_hub_is_told_as_that() -> None:
    problem = {"code": "unauthenticated", "detail": "speaks for nobody", "status": 401}
    with (
        serving(401, problem) as (_, url),
        pytest.raises(BadKey, match="was changed since the hub"),
    ):
        remote(url, set()).do(ADA, CreateTask("x"))


@pytest.mark.parametrize(
    ("status", "answer", "words"),
    [
        (401, {"code": "unheard_of", "detail": "no"}, r"answered 401 \(unheard_of: no\)"),
        (500, b"<html>", r"answered 500 \(no code: no reason\)"),
        (503, {"detail": "later"}, r"answered 503 \(no code: later\)"),
    ],
)
def test_any_other_answer_says_what_the_hub_said(status: int, answer: Any, words: str) -> None:
    with serving(status, answer) as (_, url), pytest.raises(StoreUnavailable, match=words):
        remote(url, set()).do(ADA, CreateTask("x"))


def test_a_hub_that_is_gone_is_told() -> None:
    with serving(200, DONE) as (_, url):
        pass
    with pytest.raises(StoreUnavailable, match="does not answer"):
        remote(url, set()).do(ADA, CreateTask("x"))


def test_one_that_stops_is_waited_for_until_nobody_is_the_hub() -> None:
    """Its door is closed, and for two looks it still has the data directory."""
    with serving(200, DONE) as (_, url):
        pass
    found: list[HubAddress | None] = [HubAddress(url, "drgo_t"), None]
    hub = remote(url, set(), lambda: found.pop(0))

    assert hub.do(HUMAN, CreateTask("x", id="T")).receipts[0].task == "T"
    assert not found
    assert hub.store.stream("task:T") is not None
    assert hub.do(HUMAN, CreateTask("y", id="U")).receipts[0].task == "U"


def test_and_the_next_one_is_asked_where_there_is_one() -> None:
    with serving(200, DONE) as (_, gone):
        pass
    with serving(200, DONE) as (desk, url):
        hub = remote(gone, set(), lambda: HubAddress(url, "drgo_new"))
        assert hub.do(ADA, RenewLease("T", 1)).receipts[0].task == "T"
    assert desk.tokens == ["Bearer drgo_new"]


def carrying(url: str, told: set[str], found: HubAddress | None = None) -> RemoteEngine:
    reach = Reach(HubAddress(url, "drgo_t"), lambda: found)
    return RemoteEngine(MemoryStore("x"), FixedClock(7), b"secret", reach, told.update)


def test_an_operation_travels_with_its_words_and_the_answer_comes_back() -> None:
    told: set[str] = set()
    taken = {"dialect": "saop", "kind": "saop.turn", "actor": "ada", "reply": {"position": 7}}
    answer = {"taken": {**taken, "receipts": DONE["receipts"], "warnings": ["masked"]}}
    with serving(200, answer) as (desk, url):
        came = carrying(url, told).carry(Say(ADA, "saop.turn", b'{"a": 1}', "k"))
        carrying(url, told).carry(Say(ADA, "saop.turn", b'{"a": 1}'))
    assert isinstance(came, Taken)
    assert (came.reply, came.warnings) == ({"position": 7}, ("masked",))
    assert told == {"task:T"}
    assert desk.paths[0] == "/v1/say?operation=saop.turn&role=agent&name=ada&via=cli"
    assert desk.asked[0] == {"a": 1}
    assert desk.keys[0] == "k"
    assert desk.keys[1]


def test_a_no_comes_back_as_it_was_told() -> None:
    say = Say(ADA, "saop.turn", b"{}")
    no = {"dialect": "saop", "kind": "saop.turn", "code": "invalid_envelope", "detail": "no"}
    with serving(200, {"turned": no}) as (_, url):
        assert carrying(url, set()).carry(say) == Turned(**no)
    problem = {"code": "not_authorized", "detail": "you may not", "status": 403}
    with serving(403, problem) as (_, url), pytest.raises(Refused, match="you may not"):
        carrying(url, set()).carry(say)


def test_where_no_hub_runs_any_more_the_operation_is_not_carried() -> None:
    with serving(200, DONE) as (_, url):
        pass
    assert carrying(url, set()).carry(Say(ADA, "saop.turn", b"{}")) is None


RESTS: dict[str, Any] = {"attempts": 1, "minutes": 0.5, "output": 7, "cost": 0.25, "idle": "it is"}


@proves("CLI-FLEET")
def test_what_only_a_hub_knows_is_read_with_its_owner_s_token() -> None:
    with serving(200, {"running": ["T"], **RESTS, "new": True}) as (desk, url):
        found = read_hub(HubAddress(url, "drgo_t"), "/v1/some?limit=2", Started)
    assert found == Started(running=("T",), **RESTS)
    assert (desk.tokens, desk.paths) == (["Bearer drgo_t"], ["/v1/some?limit=2"])


@proves("CLI-FLEET")
@pytest.mark.parametrize(
    ("status", "answer", "words"),
    [
        (401, {"code": "unauthenticated", "detail": "no"}, r"answered 401 \(unauthenticated: no\)"),
        (502, b"<html>", r"answered 502 \(no code: no reason\)"),
        (200, b"<html>", "does not answer as this dragoman does"),
        (200, {"running": "T"}, "does not answer as this dragoman does"),
    ],
)
def test_an_answer_that_is_of_no_use_says_why(status: int, answer: Any, words: str) -> None:
    with serving(status, answer) as (desk, url), pytest.raises(StoreUnavailable, match=words):
        read_hub(HubAddress(url, "drgo_t"), "/", Started)
    assert len(desk.paths) == 1


@proves("CLI-FLEET")
def test_who_only_looks_asks_once_and_does_not_wait_for_long() -> None:
    with serving(200, {}) as (_, url):
        pass
    with pytest.raises(StoreUnavailable, match=r"cannot be asked \(Connection refused\)"):
        read_hub(HubAddress(url, "drgo_t"), "/", Started)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(StoreUnavailable, match=f"{url} did not answer within 0.1 s"):
            read_hub(HubAddress(url, "drgo_t"), "/", Started, seconds=0.1)
    with breaking_off(1) as (asked, url), pytest.raises(StoreUnavailable, match="cannot be asked"):
        read_hub(HubAddress(url, "drgo_t"), "/{}", Started)
    assert len(asked) == 1
