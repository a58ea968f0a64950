"""Long polls under load, with a slow store, and many at the same time."""

import threading
from collections.abc import Callable
from typing import TypeVar

import pytest

from dragoman.core.task_state import CreateTask, NoteTask
from dragoman.engine.ports import Transaction
from dragoman.ledger.entry import Entry
from dragoman.store.memory import MemoryStore
from dragoman.surfaces.http import Timeouts
from tests.requirements import proves
from tests.surfaces.http.background_requests import request_in_background, wait_for_waiters
from tests.surfaces.http.hub_server import HubServer, serving

T = TypeVar("T")


class SlowStore(MemoryStore):
    """Store whose writes can be held up."""

    def __init__(self) -> None:
        super().__init__("slow")
        self.may_write = threading.Event()
        self.may_write.set()
        self.is_writing = threading.Event()

    def transact(self, work: Callable[[Transaction], T]) -> T:
        self.is_writing.set()
        assert self.may_write.wait(60)
        return super().transact(work)


def _event_types(server: HubServer, task: str) -> list[str]:
    return [entry["type"] for entry in server.get(f"/v1/tasks/{task}/events")["events"]]


@proves("HTTP-WAIT")
@pytest.mark.parametrize("key", [(), ("Idempotency-Key: w1",)])
def test_client_that_disconnects_during_a_claim_keeps_it_only_under_a_key(
    key: tuple[str, ...],
) -> None:
    store = SlowStore()
    with serving(HubServer(store)) as server:
        server.add_agent("ada")
        task = server.submit(CreateTask("One", ready=True))
        server.get("/v1/tasks", by="ada")
        store.may_write.clear()
        store.is_writing.clear()
        with server.connect() as sock:
            body = b'{"wait_ms":60000}'
            body_headers = ("Content-Type: application/json", f"Content-Length: {len(body)}", *key)
            sock.sendall(server.request_head("POST", "/v1/work", *body_headers, by="ada") + body)
            assert store.is_writing.wait(30)
        for _ in range(50):
            # The server notices the disconnect between two of these.
            server.request("GET", "/healthz", by="")
        store.may_write.set()
        wait_for_waiters(server, 0)
        expected = ["task.created", "task.claimed", *(() if key else ("task.transitioned",))]
        assert _event_types(server, task) == expected
        assert server.get(f"/v1/tasks/{task}")["status"] == ("in-progress" if key else "ready")


@proves("HTTP-WAIT", "HTTP-WORK")
def test_long_poll_finds_work_and_times_out_under_load() -> None:
    with serving(HubServer(timeouts=Timeouts(claim_retry=0.3))) as server:
        server.add_agent("ada")
        server.add_agent("bob")
        task = server.submit(CreateTask("One", ready=True))
        other_task = server.submit(CreateTask("Other"))
        server.post(f"/v1/tasks/{task}/claim", {}, by="ada")
        server.post(f"/v1/tasks/{task}/report", {"outcome": "failed"}, by="ada")
        _, for_bob = poll = request_in_background(
            server, "POST", "/v1/work", {"wait_ms": 60_000}, by="bob"
        )
        wait_for_waiters(server, 1)
        server.clock.advance(3_600_000)
        _write_while(server, other_task, poll[0])
        assert for_bob[0].json["attempt"] == 2
        thread, for_ada = request_in_background(
            server, "POST", "/v1/work", {"wait_ms": 300}, by="ada"
        )
        _write_while(server, other_task, thread)
        assert for_ada[0].status == 204


def _write_while(server: HubServer, task: str, thread: threading.Thread) -> None:
    """Commit entries until the long poll has returned."""
    for _ in range(20_000):
        if not thread.is_alive():
            break
        server.submit(NoteTask(task, "More."))
        server.request("GET", "/healthz", by="")
    assert not thread.is_alive()
    thread.join()


class CountingStore(MemoryStore):
    """Store that counts the reads of entries."""

    reads = 0

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        self.reads += 1
        return super().entries(after, limit, until=until)


@proves("HTTP-WAIT")
def test_entries_are_read_once_for_many_long_polls() -> None:
    store = CountingStore("counting")
    with serving(HubServer(store, timeouts=Timeouts(poll_interval=600))) as server:
        task = server.submit(CreateTask("One"))
        head, request = server.store.head(), ("GET", "/v1/events?wait=60000&type=task.noted&after=")
        polls = [
            request_in_background(server, request[0], f"{request[1]}{head}", by="owner")
            for _ in range(30)
        ]
        wait_for_waiters(server, 30)
        before = store.reads
        server.submit(NoteTask(task, "At last."))
        for thread, _ in polls:
            thread.join()
        read = store.reads - before
        assert read <= 3
        pages = [received[0].json for _, received in polls]
    assert pages == [pages[0]] * 30
    assert [event["body"]["text"] for event in pages[0]["events"]] == ["At last."]
    assert pages[0]["next"] == head + 1
