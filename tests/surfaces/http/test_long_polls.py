"""Long polls for events and for work."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.core.task_state import CreateTask
from dragoman.ledger.entry import Entry
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore
from dragoman.surfaces.http import Timeouts
from tests.requirements import proves
from tests.surfaces.http.background_requests import request_in_background, wait_for_waiters
from tests.surfaces.http.hub_server import HubServer, serving

HANG_S = 30
"""Half of the wait of the requests below: a long poll that takes longer has missed its entry."""


@proves("HTTP-WAIT")
def test_event_long_poll_returns_when_entries_arrive(server: HubServer) -> None:
    after = server.store.head()
    thread, received = request_in_background(
        server, "GET", f"/v1/events?after={after}&wait=60000", by="ada"
    )
    wait_for_waiters(server, 1)
    task = server.submit(CreateTask("One"))
    thread.join()
    assert [event["body"]["id"] for event in received[0].json["events"]] == [task]
    assert received[0].json["next"] == after + 1


@proves("HTTP-WAIT")
def test_event_long_poll_skips_filtered_entries(server: HubServer) -> None:
    after = server.store.head()
    path = f"/v1/events?after={after}&wait=60000&type=task.claimed"
    thread, received = request_in_background(server, "GET", path, by="ada")
    wait_for_waiters(server, 1)
    task = server.submit(CreateTask("One", ready=True))
    server.post(f"/v1/tasks/{task}/claim", {}, by="bob")
    thread.join()
    assert [event["type"] for event in received[0].json["events"]] == ["task.claimed"]


class GrowingStore(MemoryStore):
    """Store that runs a callback during a read from its beginning."""

    on_read: Callable[[], object] | None = None

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        page = super().entries(after, limit, until=until)
        callback, self.on_read = (self.on_read, None) if after == 0 else (None, self.on_read)
        if callback:
            callback()
        return page


@proves("HTTP-WAIT")
def test_entry_committed_during_a_read_is_returned_at_once() -> None:
    store = GrowingStore("house")
    with serving(HubServer(store)) as server:
        server.add_agent("ada")

        def append_entry() -> None:
            server.submit(CreateTask("One"))
            while server.app.context.feed.head < store.head():
                server.request("GET", "/healthz", by="")

        store.on_read = append_entry
        path = "/v1/events?after=0&wait=60000&type=task.created"
        thread, received = request_in_background(server, "GET", path, by="ada")
        thread.join(HANG_S)
        assert not thread.is_alive(), "it waits for what is there"
        assert [event["type"] for event in received[0].json["events"]] == ["task.created"]


@proves("HTTP-WAIT")
def test_long_poll_without_result_times_out(server: HubServer) -> None:
    head = server.store.head()
    assert server.get(f"/v1/events?after={head}&wait=20") == {"events": [], "next": head}
    response = server.request("POST", "/v1/work", {"wait_ms": 20}, by="ada")
    assert (response.status, response.body) == (204, b"")
    assert server.request("POST", "/v1/work", {}, by="ada").status == 204
    assert server.store.head() == head


@proves("HTTP-WAIT", "HTTP-WORK")
def test_work_long_poll_returns_a_claimed_task(server: HubServer) -> None:
    body = {"wait_ms": 60_000, "session": "s1", "ttl_ms": 60_000}
    thread, received = request_in_background(server, "POST", "/v1/work", body, by="ada")
    wait_for_waiters(server, 1)
    server.submit(CreateTask("Not ready"))
    task = server.submit(CreateTask("Ready", ready=True, body="All of it."))
    thread.join()
    work = received[0].json
    assert (work["agent"], work["session"], work["fence"]) == ("ada", "s1", 1)
    assert (work["task"]["id"], work["task"]["body"]) == (task, "All of it.")
    assert work["expiresAt"] == "2026-02-09T20:56:00.000Z"


@proves("HTTP-WORK")
def test_stopping_hub_gives_out_no_work() -> None:
    with serving(HubServer(is_stopping=lambda: True)) as server:
        server.add_agent("ada")
        server.submit(CreateTask("Ready", ready=True))
        assert server.request("POST", "/v1/work", {"wait_ms": 20}, by="ada").status == 204


@proves("HTTP-WORK")
def test_assigned_task_goes_to_its_assignee_only(server: HubServer) -> None:
    ada, for_ada = request_in_background(server, "POST", "/v1/work", {"wait_ms": 60_000}, by="ada")
    bob, for_bob = request_in_background(server, "POST", "/v1/work", {"wait_ms": 60_000}, by="bob")
    wait_for_waiters(server, 2)
    server.submit(CreateTask("Bob's", id="bobs", ready=True, assignee="bob"))
    bob.join()
    server.submit(CreateTask("Anyone's", id="anyones", ready=True))
    ada.join()
    assert for_bob[0].json["task"]["id"] == "bobs"
    assert for_ada[0].json["task"]["id"] == "anyones"


@proves("HTTP-WORK")
def test_end_of_backoff_is_noticed_without_an_event() -> None:
    with serving(HubServer(timeouts=Timeouts(claim_retry=0.02))) as server:
        server.add_agent("ada")
        task = server.submit(CreateTask("One", ready=True))
        server.post(f"/v1/tasks/{task}/claim", {}, by="ada")
        server.post(f"/v1/tasks/{task}/report", {"outcome": "failed"}, by="ada")
        assert server.request("POST", "/v1/work", {}, by="ada").status == 204
        thread, received = request_in_background(
            server, "POST", "/v1/work", {"wait_ms": 60_000}, by="ada"
        )
        wait_for_waiters(server, 1)
        server.clock.advance(3_600_000)
        thread.join()
    assert received[0].json["attempt"] == 2


@proves("HTTP-WORK")
@pytest.mark.parametrize("tasks", [1, 7])
def test_each_task_goes_to_exactly_one_waiting_agent(tmp_path: Path, tasks: int) -> None:
    store = SqliteStore.open(tmp_path / "dragoman.db", lambda: "work")
    with serving(HubServer(store)) as server:
        names = [f"a{number}" for number in range(20)]
        for name in names:
            server.add_agent(name)
        request = ("POST", "/v1/work", {"wait_ms": 1_500})
        polls = [request_in_background(server, *request, by=name) for name in names]
        wait_for_waiters(server, len(names))
        created = {server.submit(CreateTask(f"{number}", ready=True)) for number in range(tasks)}
        for thread, _ in polls:
            thread.join()
        responses = [received[0] for _, received in polls]
    assert Counter(response.status for response in responses) == {200: tasks, 204: 20 - tasks}
    assert {response.json["task"]["id"] for response in responses if response.body} == created


@proves("HTTP-WAIT")
def test_disconnected_client_is_given_no_work(server: HubServer) -> None:
    with server.connect() as sock:
        body = b'{"wait_ms":60000}'
        body_headers = ("Content-Type: application/json", f"Content-Length: {len(body)}")
        sock.sendall(server.request_head("POST", "/v1/work", *body_headers, by="ada") + body)
        wait_for_waiters(server, 1)
    wait_for_waiters(server, 0)
    task = server.submit(CreateTask("One", ready=True))
    assert server.get(f"/v1/tasks/{task}")["status"] == "ready"


@proves("HTTP-WORK", "HTTP-KEYS")
def test_repeated_key_returns_the_same_work(server: HubServer) -> None:
    server.submit(CreateTask("One", ready=True))
    server.submit(CreateTask("Two", ready=True))
    key = {"Idempotency-Key": "w1"}
    first = server.request("POST", "/v1/work", {}, by="ada", headers=key)
    again = server.request("POST", "/v1/work", {}, by="ada", headers=key)
    assert first.json["task"]["id"] == again.json["task"]["id"]
    assert first.json["fence"] == again.json["fence"] == 1


@proves("HTTP-WORK")
def test_agent_cannot_take_work_for_another(server: HubServer) -> None:
    server.submit(CreateTask("One", ready=True))
    response = server.request("POST", "/v1/work", {"agent": "bob"}, by="ada")
    assert response.status == 403
    assert server.post("/v1/work", {"agent": "bob"})["agent"] == "bob"


@proves("HTTP-STOP")
def test_stopping_hub_ends_long_polls(server: HubServer) -> None:
    thread, received = request_in_background(
        server, "POST", "/v1/work", {"wait_ms": 60_000}, by="ada"
    )
    wait_for_waiters(server, 1)
    server.app.close()
    thread.join()
    assert (received[0].status, received[0].body) == (204, b"")


@proves("LOST-CURSOR", "HTTP-WAIT")
def test_event_cursor_beyond_the_end_returns_a_gap_at_once(server: HubServer) -> None:
    head = server.store.head()
    thread, received = request_in_background(
        server, "GET", "/v1/events?after=9999&wait=60000", by="ada"
    )
    thread.join(HANG_S)
    assert not thread.is_alive(), "it waits for what is never to come"
    for page in (received[0].json, server.get("/v1/events?after=9999")):
        assert (page["events"], page["next"]) == ([], head)
        assert page["gap"] == {"after": 9999, "until": head}
