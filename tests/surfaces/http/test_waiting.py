"""Waiting for events and for work: a wait ends with something, and nobody gets what another has."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.core.commands import CreateTask
from dragoman.ledger.entry import Entry
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore
from dragoman.surfaces.http import Patience
from tests.requirements import proves
from tests.surfaces.http.house import House, serving
from tests.surfaces.http.waiting import asking, until_seats

HANGS_S = 30
"""Half of what is waited for below: whoever is not back by then waits for nothing."""


@proves("HTTP-WAIT")
def test_events_are_waited_for_and_told_when_they_come(house: House) -> None:
    after = house.store.head()
    thread, got = asking(house, "GET", f"/v1/events?after={after}&wait=60000", by="ada")
    until_seats(house, 1)
    task = house.do(CreateTask("One"))
    thread.join()
    assert [event["body"]["id"] for event in got[0].json["events"]] == [task]
    assert got[0].json["next"] == after + 1


@proves("HTTP-WAIT")
def test_a_wait_goes_on_over_what_is_not_wanted(house: House) -> None:
    after = house.store.head()
    path = f"/v1/events?after={after}&wait=60000&type=task.claimed"
    thread, got = asking(house, "GET", path, by="ada")
    until_seats(house, 1)
    task = house.do(CreateTask("One", ready=True))
    house.post(f"/v1/tasks/{task}/claim", {}, by="bob")
    thread.join()
    assert [event["type"] for event in got[0].json["events"]] == ["task.claimed"]


class Meanwhile(MemoryStore):
    """A store in which something happens while somebody reads it from its beginning."""

    deed: Callable[[], object] | None = None

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        page = super().entries(after, limit, until=until)
        deed, self.deed = (self.deed, None) if after == 0 else (None, self.deed)
        if deed:
            deed()
        return page


@proves("HTTP-WAIT")
def test_what_comes_while_the_past_is_read_is_not_waited_for() -> None:
    store = Meanwhile("house")
    with serving(House(store)) as house:
        house.welcome("ada")

        def grow() -> None:
            house.do(CreateTask("One"))
            while house.app.office.feed.head < store.head():
                house.ask("GET", "/healthz", by="")

        store.deed = grow
        path = "/v1/events?after=0&wait=60000&type=task.created"
        thread, got = asking(house, "GET", path, by="ada")
        thread.join(HANGS_S)
        assert not thread.is_alive(), "it waits for what is there"
        assert [event["type"] for event in got[0].json["events"]] == ["task.created"]


@proves("HTTP-WAIT")
def test_a_wait_for_nothing_ends_in_time(house: House) -> None:
    head = house.store.head()
    assert house.get(f"/v1/events?after={head}&wait=20") == {"events": [], "next": head}
    answer = house.ask("POST", "/v1/work", {"wait_ms": 20}, by="ada")
    assert (answer.status, answer.body) == (204, b"")
    assert house.ask("POST", "/v1/work", {}, by="ada").status == 204
    assert house.store.head() == head


@proves("HTTP-WAIT", "HTTP-WORK")
def test_work_is_waited_for_and_comes_claimed(house: House) -> None:
    asked = {"wait_ms": 60_000, "session": "s1", "ttl_ms": 60_000}
    thread, got = asking(house, "POST", "/v1/work", asked, by="ada")
    until_seats(house, 1)
    house.do(CreateTask("Not ready"))
    task = house.do(CreateTask("Ready", ready=True, body="All of it."))
    thread.join()
    work = got[0].json
    assert (work["agent"], work["session"], work["fence"]) == ("ada", "s1", 1)
    assert (work["task"]["id"], work["task"]["body"]) == (task, "All of it.")
    assert work["expiresAt"] == "2026-02-09T20:56:00.000Z"


@proves("HTTP-WORK")
def test_a_hub_that_stops_gives_out_no_more_work() -> None:
    with serving(House(is_stopping=lambda: True)) as house:
        house.welcome("ada")
        house.do(CreateTask("Ready", ready=True))
        assert house.ask("POST", "/v1/work", {"wait_ms": 20}, by="ada").status == 204


@proves("HTTP-WORK")
def test_a_task_that_is_kept_for_an_agent_is_not_given_to_another(house: House) -> None:
    ada, for_ada = asking(house, "POST", "/v1/work", {"wait_ms": 60_000}, by="ada")
    bob, for_bob = asking(house, "POST", "/v1/work", {"wait_ms": 60_000}, by="bob")
    until_seats(house, 2)
    house.do(CreateTask("Bob's", id="bobs", ready=True, assignee="bob"))
    bob.join()
    house.do(CreateTask("Anyone's", id="anyones", ready=True))
    ada.join()
    assert for_bob[0].json["task"]["id"] == "bobs"
    assert for_ada[0].json["task"]["id"] == "anyones"


@proves("HTTP-WORK")
def test_a_rest_that_is_over_is_noticed_without_an_event() -> None:
    with serving(House(patience=Patience(retry=0.02))) as house:
        house.welcome("ada")
        task = house.do(CreateTask("One", ready=True))
        house.post(f"/v1/tasks/{task}/claim", {}, by="ada")
        house.post(f"/v1/tasks/{task}/report", {"outcome": "failed"}, by="ada")
        assert house.ask("POST", "/v1/work", {}, by="ada").status == 204
        thread, got = asking(house, "POST", "/v1/work", {"wait_ms": 60_000}, by="ada")
        until_seats(house, 1)
        house.clock.advance(3_600_000)
        thread.join()
    assert got[0].json["attempt"] == 2


@proves("HTTP-WORK")
@pytest.mark.parametrize("tasks", [1, 7])
def test_of_many_who_wait_each_task_goes_to_exactly_one(tmp_path: Path, tasks: int) -> None:
    store = SqliteStore.open(tmp_path / "dragoman.db", lambda: "work")
    with serving(House(store)) as house:
        names = [f"a{number}" for number in range(20)]
        for name in names:
            house.welcome(name)
        asked = ("POST", "/v1/work", {"wait_ms": 1_500})
        waiting = [asking(house, *asked, by=name) for name in names]
        until_seats(house, len(names))
        made = {house.do(CreateTask(f"{number}", ready=True)) for number in range(tasks)}
        for thread, _ in waiting:
            thread.join()
        answers = [got[0] for _, got in waiting]
    assert Counter(answer.status for answer in answers) == {200: tasks, 204: 20 - tasks}
    assert {answer.json["task"]["id"] for answer in answers if answer.body} == made


@proves("HTTP-WAIT")
def test_a_caller_that_has_gone_is_given_nothing(house: House) -> None:
    with house.dial() as line:
        body = b'{"wait_ms":60000}'
        declared = ("Content-Type: application/json", f"Content-Length: {len(body)}")
        line.sendall(house.head("POST", "/v1/work", *declared, by="ada") + body)
        until_seats(house, 1)
    until_seats(house, 0)
    task = house.do(CreateTask("One", ready=True))
    assert house.get(f"/v1/tasks/{task}")["status"] == "ready"


@proves("HTTP-WORK", "HTTP-KEYS")
def test_work_that_was_not_heard_is_asked_for_again_under_the_same_key(house: House) -> None:
    house.do(CreateTask("One", ready=True))
    house.do(CreateTask("Two", ready=True))
    key = {"Idempotency-Key": "w1"}
    first = house.ask("POST", "/v1/work", {}, by="ada", headers=key)
    again = house.ask("POST", "/v1/work", {}, by="ada", headers=key)
    assert first.json["task"]["id"] == again.json["task"]["id"]
    assert first.json["fence"] == again.json["fence"] == 1


@proves("HTTP-WORK")
def test_an_agent_takes_no_work_in_another_s_name(house: House) -> None:
    house.do(CreateTask("One", ready=True))
    answer = house.ask("POST", "/v1/work", {"agent": "bob"}, by="ada")
    assert answer.status == 403
    assert house.post("/v1/work", {"agent": "bob"})["agent"] == "bob"


@proves("HTTP-STOP")
def test_a_hub_that_stops_keeps_nobody_waiting(house: House) -> None:
    thread, got = asking(house, "POST", "/v1/work", {"wait_ms": 60_000}, by="ada")
    until_seats(house, 1)
    house.app.close()
    thread.join()
    assert (got[0].status, got[0].body) == (204, b"")


@proves("LOST-CURSOR", "HTTP-WAIT")
def test_whoever_waits_for_events_beyond_the_end_is_brought_back_at_once(house: House) -> None:
    head = house.store.head()
    thread, got = asking(house, "GET", "/v1/events?after=9999&wait=60000", by="ada")
    thread.join(HANGS_S)
    assert not thread.is_alive(), "it waits for what is never to come"
    for told in (got[0].json, house.get("/v1/events?after=9999")):
        assert (told["events"], told["next"]) == ([], head)
        assert told["gap"] == {"after": 9999, "until": head}
