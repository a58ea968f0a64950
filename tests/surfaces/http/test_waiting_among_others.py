"""Waiting while other things happen, while the store is slow, and with many others."""

import threading
from collections.abc import Callable
from typing import TypeVar

import pytest

from dragoman.core.commands import CreateTask, NoteTask
from dragoman.engine.ports import Session
from dragoman.ledger.entry import Entry
from dragoman.store.memory import MemoryStore
from dragoman.surfaces.http import Patience
from tests.requirements import proves
from tests.surfaces.http.house import House, serving
from tests.surfaces.http.waiting import asking, until_seats

T = TypeVar("T")


class SlowStore(MemoryStore):
    """A store that can be told to let a writer wait."""

    def __init__(self) -> None:
        super().__init__("slow")
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.waits = threading.Event()

    def transact(self, work: Callable[[Session], T]) -> T:
        self.waits.set()
        assert self.goes_on.wait(60)
        return super().transact(work)


def _statuses(house: House, task: str) -> list[str]:
    return [entry["type"] for entry in house.get(f"/v1/tasks/{task}/events")["events"]]


@proves("HTTP-WAIT")
@pytest.mark.parametrize("key", [(), ("Idempotency-Key: w1",)])
def test_a_caller_that_went_while_it_was_given_a_task_keeps_it_only_under_a_key(
    key: tuple[str, ...],
) -> None:
    store = SlowStore()
    with serving(House(store)) as house:
        house.welcome("ada")
        task = house.do(CreateTask("One", ready=True))
        house.get("/v1/tasks", by="ada")
        store.goes_on.clear()
        store.waits.clear()
        with house.dial() as line:
            body = b'{"wait_ms":60000}'
            declared = ("Content-Type: application/json", f"Content-Length: {len(body)}", *key)
            line.sendall(house.head("POST", "/v1/work", *declared, by="ada") + body)
            assert store.waits.wait(30)
        for _ in range(50):
            # The server learns of the end of the connection between two of these.
            house.ask("GET", "/healthz", by="")
        store.goes_on.set()
        until_seats(house, 0)
        told = ["task.created", "task.claimed", *(() if key else ("task.transitioned",))]
        assert _statuses(house, task) == told
        assert house.get(f"/v1/tasks/{task}")["status"] == ("in-progress" if key else "ready")


@proves("HTTP-WAIT", "HTTP-WORK")
def test_work_is_found_and_a_wait_ends_while_other_things_happen() -> None:
    with serving(House(patience=Patience(retry=0.3))) as house:
        house.welcome("ada")
        house.welcome("bob")
        task = house.do(CreateTask("One", ready=True))
        other = house.do(CreateTask("Other"))
        house.post(f"/v1/tasks/{task}/claim", {}, by="ada")
        house.post(f"/v1/tasks/{task}/report", {"outcome": "failed"}, by="ada")
        _, for_bob = waiting = asking(house, "POST", "/v1/work", {"wait_ms": 60_000}, by="bob")
        until_seats(house, 1)
        house.clock.advance(3_600_000)
        _write_while(house, other, waiting[0])
        assert for_bob[0].json["attempt"] == 2
        thread, for_ada = asking(house, "POST", "/v1/work", {"wait_ms": 300}, by="ada")
        _write_while(house, other, thread)
        assert for_ada[0].status == 204


def _write_while(house: House, task: str, waits: threading.Thread) -> None:
    """Something happens all the time while somebody waits."""
    for _ in range(20_000):
        if not waits.is_alive():
            break
        house.do(NoteTask(task, "More."))
        house.ask("GET", "/healthz", by="")
    assert not waits.is_alive()
    waits.join()


class CountingStore(MemoryStore):
    """A store that counts how often entries are read."""

    reads = 0

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        self.reads += 1
        return super().entries(after, limit, until=until)


@proves("HTTP-WAIT")
def test_what_many_wait_for_is_read_once_for_all() -> None:
    store = CountingStore("counting")
    with serving(House(store, patience=Patience(look=600))) as house:
        task = house.do(CreateTask("One"))
        head, asked = house.store.head(), ("GET", "/v1/events?wait=60000&type=task.noted&after=")
        waiting = [asking(house, asked[0], f"{asked[1]}{head}", by="owner") for _ in range(30)]
        until_seats(house, 30)
        before = store.reads
        house.do(NoteTask(task, "At last."))
        for thread, _ in waiting:
            thread.join()
        read = store.reads - before
        assert read <= 3
        pages = [got[0].json for _, got in waiting]
    assert pages == [pages[0]] * 30
    assert [event["body"]["text"] for event in pages[0]["events"]] == ["At last."]
    assert pages[0]["next"] == head + 1
