"""Remote engine: finds the running hub by its lock and forwards requests with the owner's token."""

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

from dragoman.core.actor import Actor, MessageReceived
from dragoman.core.attempt import RenewLease
from dragoman.core.errors import Refusal, Refused, StoreUnavailable
from dragoman.core.mail import PostMail
from dragoman.core.task_state import CreateTask, NoteTask
from dragoman.engine.forwarding import ForwardedOperation
from dragoman.engine.hub import Hub, RequestOptions
from dragoman.engine.request import Accepted, Rejected
from dragoman.engine.schemas.agents import AgentActivity
from dragoman.store.memory import MemoryStore
from dragoman.system.bearer_tokens import load_or_create_token
from dragoman.system.clock import FixedClock, SequentialIds
from dragoman.system.hub_client import ask_hub
from dragoman.system.hub_lock import HubAddress, HubLock, find_hub
from dragoman.system.remote_engine import HubConnection, RemoteEngine
from dragoman.system.safe_fs import BadKey
from tests.requirements import proves

pytestmark = proves("HUB-CLI")

ADA = Actor("agent", "ada", "cli")
HUMAN = Actor("human", "max", "cli")
DONE = {
    "receipts": [{"type": "task", "task": "T", "status": "in-progress", "attempt": 1, "fence": 1}],
    "repeated": False,
}


class FakeHub:
    """Server with a fixed answer, which records its requests."""

    def __init__(self, status: int, answer: bytes) -> None:
        self.status = status
        self.answer = answer
        self.requests: list[Any] = []
        self.tokens: list[str | None] = []
        self.paths: list[str] = []
        self.keys: list[str | None] = []


@contextmanager
def run_server(status: int, answer: Any) -> Generator[tuple[FakeHub, str]]:
    server = FakeHub(status, answer if isinstance(answer, bytes) else json.dumps(answer).encode())

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            server.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.do_GET()

        def do_GET(self) -> None:
            server.tokens.append(self.headers["Authorization"])
            server.paths.append(self.path)
            server.keys.append(self.headers["Idempotency-Key"])
            self.send_response(server.status)
            self.end_headers()
            self.wfile.write(server.answer)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  its name
            del format, args

    listener = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listener.serve_forever)
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{listener.server_port}"
    finally:
        listener.shutdown()
        thread.join()
        listener.server_close()


def make_hub(
    url: str, streams: set[str], seek: Callable[[], HubAddress | None] | None = None
) -> Hub:
    hub = HubAddress(url, "drgo_t")
    reach = HubConnection(hub, seek or (lambda: hub), shutdown_seconds=0.1)
    engine = RemoteEngine(MemoryStore("x"), FixedClock(7), b"secret", reach, streams.update)
    return Hub(engine, SequentialIds())


def test_hub_is_found_once_its_lock_has_an_address(tmp_path: Path) -> None:
    assert find_hub(tmp_path) is None
    token = load_or_create_token(tmp_path).decode()
    with HubLock.acquire(tmp_path, "dragoman up") as lock:
        assert find_hub(tmp_path) is None
        lock.announce_url("http://127.0.0.1:4747")
        assert find_hub(tmp_path) == HubAddress("http://127.0.0.1:4747", token)
        (tmp_path / "token").unlink()
        with pytest.raises(BadKey, match=r"token is gone, and a hub runs at http://127"):
            find_hub(tmp_path)
    assert find_hub(tmp_path) is None
    lock.announce_url("http://127.0.0.1:1")
    assert find_hub(tmp_path) is None


def test_request_is_forwarded_and_receipts_returned() -> None:
    streams: set[str] = set()
    message = MessageReceived("aof", "status.update", "T")
    with run_server(200, DONE) as (server, url):
        options = RequestOptions(key="k", per_attempt=True, sent_at=5, receipt_event=message)
        done = make_hub(url, streams).submit(ADA, RenewLease("T", 1), **options)
    assert (done.receipts[0].task, done.repeated) == ("T", False)
    assert streams == {"task:T"}
    assert server.tokens == ["Bearer drgo_t"]
    (requests,) = server.requests
    assert requests["actor"].items() >= {"role": "agent", "name": "ada", "via": "cli"}.items()
    assert requests["commands"] == [{"type": "task.heartbeat", "task": "T", "fence": 1}]
    assert (requests["key"], requests["per_attempt"], requests["sent_at"]) == ("k", True, 5)
    assert requests["receipt_event"]["kind"] == "status.update"


@contextmanager
def run_breaking_server(times: int) -> Generator[tuple[list[bytes], str]]:
    """Start a server that hangs up so often before it answers, and records its requests."""
    requests: list[bytes] = []
    answer = json.dumps(DONE).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer)

    def serve(listener: socket.socket) -> None:
        for number in range(times + 1):
            try:
                connection, _ = listener.accept()
            except OSError:  # fewer calls than expected
                return
            with connection:
                requests.append(connection.recv(65_536))
                while b"}" not in requests[-1]:
                    requests[-1] += connection.recv(65_536)
                if number == times:
                    connection.sendall(head + answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        yield requests, f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_request_with_lost_answer_is_retried_with_its_key() -> None:
    with run_breaking_server(1) as (requests, url):
        done = make_hub(url, set()).submit(ADA, RenewLease("T", 1))
    assert done.receipts[0].task == "T"
    first, second = (json.loads(one[one.index(b"{") :]) for one in requests)
    assert first["key"]
    assert first == second


def test_unanswered_request_is_reported_as_possibly_done() -> None:
    with run_breaking_server(3) as (requests, url), pytest.raises(StoreUnavailable) as broken:
        make_hub(url, set()).submit(ADA, RenewLease("T", 1))
    assert "may have been done" in broken.value.detail
    assert len(requests) == 3
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        reach = HubConnection(HubAddress(url, "drgo_t"), lambda: None, timeout_seconds=0.1)
        on_commit = set[str]().update
        engine = RemoteEngine(MemoryStore("x"), FixedClock(7), b"secret", reach, on_commit)
        with pytest.raises(StoreUnavailable, match="it may still carry out the request"):
            Hub(engine, SequentialIds()).submit(ADA, RenewLease("T", 1))


def test_redactions_of_hub_are_reported() -> None:
    masked, warnings = "a secret was masked: text (pin)", list[str]()
    with run_server(200, {**DONE, "masked": [masked]}) as (_, url):
        hub = make_hub(url, set())
        hub.redaction.on_masked = warnings.append
        token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
        plain, known = (
            hub.submit(ADA, RenewLease("T")),
            hub.submit(ADA, NoteTask("T", f"use {token}")),
        )
    assert plain.redaction_warnings == (masked,)
    assert known.redaction_warnings[1:] == (masked,)
    assert warnings == [masked, known.redaction_warnings[0], masked]


@proves("ENGINE-EFFECT")
def test_effect_and_its_refusal_are_forwarded() -> None:
    streams: set[str] = set()
    posted = {"type": "task", "task": "", "status": None, "stream": "mail:m", "thread": "m"}
    refusal = {"code": "lease_lost", "detail": "stop"}
    with run_server(200, {"receipts": [posted], "repeated": False, "declined": refusal}) as (
        server,
        url,
    ):
        letter, effect = PostMail(("bob",), "x", ""), (RenewLease("T", 1),)
        done = make_hub(url, streams).submit(ADA, letter, effect=effect)
    assert server.requests[0]["effect"] == [{"type": "task.heartbeat", "task": "T", "fence": 1}]
    assert done.declined == Refusal("lease_lost", "stop")
    assert (done.receipts[0].stream, streams) == ("mail:m", set())


def test_async_call_is_forwarded() -> None:
    with run_server(200, DONE) as (server, url):
        done = asyncio.run(make_hub(url, set()).submit_async(ADA, RenewLease("T")))
    assert done.receipts[0].task == "T"
    assert len(server.requests) == 1


def test_refusal_of_hub_is_raised() -> None:
    problem = {"code": "lease_lost", "detail": "stop working on it", "status": 409}
    with run_server(409, problem) as (_, url), pytest.raises(Refused, match="lease_lost: stop"):
        make_hub(url, set()).submit(ADA, RenewLease("T"))


def test_token_replaced_under_running_hub_is_reported() -> None:
    problem = {"code": "unauthenticated", "detail": "speaks for nobody", "status": 401}
    with (
        run_server(401, problem) as (_, url),
        pytest.raises(BadKey, match="was changed since the hub"),
    ):
        make_hub(url, set()).submit(ADA, CreateTask("x"))


@pytest.mark.parametrize(
    ("status", "answer", "words"),
    [
        (401, {"code": "unheard_of", "detail": "no"}, r"answered 401 \(unheard_of: no\)"),
        (500, b"<html>", r"answered 500 \(no code: no reason\)"),
        (503, {"detail": "later"}, r"answered 503 \(no code: later\)"),
    ],
)
def test_other_answers_are_quoted(status: int, answer: Any, words: str) -> None:
    with run_server(status, answer) as (_, url), pytest.raises(StoreUnavailable, match=words):
        make_hub(url, set()).submit(ADA, CreateTask("x"))


def test_stopped_hub_is_reported() -> None:
    with run_server(200, DONE) as (_, url):
        pass
    with pytest.raises(StoreUnavailable, match="does not answer"):
        make_hub(url, set()).submit(ADA, CreateTask("x"))


def test_request_runs_here_after_hub_stopped() -> None:
    """The hub no longer answers, and holds the data directory for two more checks."""
    with run_server(200, DONE) as (_, url):
        pass
    found: list[HubAddress | None] = [HubAddress(url, "drgo_t"), None]
    hub = make_hub(url, set(), lambda: found.pop(0))

    assert hub.submit(HUMAN, CreateTask("x", id="T")).receipts[0].task == "T"
    assert not found
    assert hub.store.stream("task:T") is not None
    assert hub.submit(HUMAN, CreateTask("y", id="U")).receipts[0].task == "U"


def test_request_is_forwarded_to_next_hub() -> None:
    with run_server(200, DONE) as (_, stopped_url):
        pass
    with run_server(200, DONE) as (server, url):
        hub = make_hub(stopped_url, set(), lambda: HubAddress(url, "drgo_new"))
        assert hub.submit(ADA, RenewLease("T", 1)).receipts[0].task == "T"
    assert server.tokens == ["Bearer drgo_new"]


def make_engine(url: str, streams: set[str], found: HubAddress | None = None) -> RemoteEngine:
    reach = HubConnection(HubAddress(url, "drgo_t"), lambda: found)
    return RemoteEngine(MemoryStore("x"), FixedClock(7), b"secret", reach, streams.update)


def test_operation_is_forwarded_and_reply_returned() -> None:
    streams: set[str] = set()
    taken = {"dialect": "saop", "kind": "saop.turn", "actor": "ada", "reply": {"position": 7}}
    answer = {"accepted": {**taken, "receipts": DONE["receipts"], "warnings": ["masked"]}}
    with run_server(200, answer) as (server, url):
        reply = make_engine(url, streams).forward(
            ForwardedOperation(ADA, "saop.turn", b'{"a": 1}', "k")
        )
        make_engine(url, streams).forward(ForwardedOperation(ADA, "saop.turn", b'{"a": 1}'))
    assert isinstance(reply, Accepted)
    assert (reply.reply, reply.warnings) == ({"position": 7}, ("masked",))
    assert streams == {"task:T"}
    query = "operation=saop.turn&role=agent&name=ada&via=cli"
    assert server.paths[0] == f"/v1/internal/operations?{query}"
    assert server.requests[0] == {"a": 1}
    assert server.keys[0] == "k"
    assert server.keys[1]


def test_rejection_of_operation_is_returned() -> None:
    say = ForwardedOperation(ADA, "saop.turn", b"{}")
    refusal = {"dialect": "saop", "kind": "saop.turn", "code": "invalid_envelope", "detail": "no"}
    with run_server(200, {"rejected": refusal}) as (_, url):
        assert make_engine(url, set()).forward(say) == Rejected(**refusal)
    problem = {"code": "not_authorized", "detail": "you may not", "status": 403}
    with run_server(403, problem) as (_, url), pytest.raises(Refused, match="you may not"):
        make_engine(url, set()).forward(say)


def test_operation_is_not_forwarded_without_hub() -> None:
    with run_server(200, DONE) as (_, url):
        pass
    assert make_engine(url, set()).forward(ForwardedOperation(ADA, "saop.turn", b"{}")) is None


COUNTERS: dict[str, Any] = {
    "attempts": 1,
    "minutes": 0.5,
    "output": 7,
    "cost": 0.25,
    "idle": "it is",
}


@proves("CLI-FLEET")
def test_read_hub_uses_owner_token() -> None:
    with run_server(200, {"running": ["T"], **COUNTERS, "new": True}) as (server, url):
        found = ask_hub(HubAddress(url, "drgo_t"), "GET", "/v1/some?limit=2", AgentActivity)
    assert found == AgentActivity(running=("T",), **COUNTERS)
    assert (server.tokens, server.paths) == (["Bearer drgo_t"], ["/v1/some?limit=2"])


@proves("CLI-FLEET")
@pytest.mark.parametrize(
    ("status", "answer", "words"),
    [
        (401, {"code": "unauthenticated", "detail": "no"}, r"answered 401 \(unauthenticated: no\)"),
        (502, b"<html>", r"answered 502 \(no code: no reason\)"),
        (200, b"<html>", "sent an answer that this version cannot read"),
        (200, {"running": "T"}, "sent an answer that this version cannot read"),
    ],
)
def test_unusable_answer_is_explained(status: int, answer: Any, words: str) -> None:
    with run_server(status, answer) as (server, url), pytest.raises(StoreUnavailable, match=words):
        ask_hub(HubAddress(url, "drgo_t"), "GET", "/", AgentActivity)
    assert len(server.paths) == 1


@proves("CLI-FLEET")
def test_read_hub_tries_once_with_short_timeout() -> None:
    with run_server(200, {}) as (_, url):
        pass
    with pytest.raises(StoreUnavailable, match=r"cannot be asked \(Connection refused\)"):
        ask_hub(HubAddress(url, "drgo_t"), "GET", "/", AgentActivity)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(StoreUnavailable, match=f"{url} did not answer within 0.1 s"):
            ask_hub(HubAddress(url, "drgo_t"), "GET", "/", AgentActivity, seconds=0.1)
    with (
        run_breaking_server(1) as (requests, url),
        pytest.raises(StoreUnavailable, match="cannot be asked"),
    ):
        ask_hub(HubAddress(url, "drgo_t"), "GET", "/{}", AgentActivity)
    assert len(requests) == 1
