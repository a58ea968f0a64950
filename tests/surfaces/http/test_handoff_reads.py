"""Handoffs over HTTP: lists and filters, one of them, its history, and why it is stuck."""

from collections.abc import Generator
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.config import TeamspaceSettings
from dragoman.core.actors import Actor
from dragoman.core.commands import AnyCommand, DraftHandoff
from dragoman.engine.ports import Store
from dragoman.surfaces.http import build_app
from tests.engine.handoffs import accept, activate, life, make, offer
from tests.engine.lab import ALICE, CAROL
from tests.requirements import proves
from tests.surfaces.http.house import House, serving

pytestmark = proves("ACP-HTTP-READ")


class Behind:
    """The hub behind the door."""

    def __init__(self, house: House) -> None:
        self._house = house
        self.store: Store = house.store

    def do(self, actor: Actor, *commands: AnyCommand) -> Any:
        return self._house.hub.do(actor, *commands)


@pytest.fixture
def office() -> Generator[House]:
    """Three handoffs: closed, activated, offered in another teamspace; and a draft."""
    with serving(House()) as house:
        house.welcome("alice")
        house.welcome("bob")
        behind = Behind(house)
        life(behind, "h1", "t1")
        make(behind, "t2")
        offer(behind, "h2", "t2")
        accept(behind, "h2")
        activate(behind, "h2")
        make(behind, "t3")
        offer(behind, "h3", "t3", to="alice", by=CAROL, teamspace="red")
        behind.do(ALICE, DraftHandoff({"context": {}}, id="d1", recipient="bob"))
        yield house


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["h3", "h2", "h1"]),
        ("?status=closed", ["h1"]),
        ("?task=t2", ["h2"]),
        ("?from=alice", ["h2", "h1"]),
        ("?to=alice&status=proposed", ["h3"]),
        ("?teamspace=red", ["h3"]),
        ("?from=nobody", []),
    ],
)
def test_handoffs_are_listed_by_what_they_are(office: House, query: str, found: list[str]) -> None:
    page = office.get(f"/v1/handoffs{query}", by="bob")
    assert [one["handoff_id"] for one in page["handoffs"]] == found
    assert page["next"] is None


def test_pages_follow_on_one_another(office: House) -> None:
    first = office.get("/v1/handoffs?limit=2")
    second = office.get(f"/v1/handoffs?limit=2&cursor={first['next']}")
    assert [one["handoff_id"] for one in second["handoffs"]] == ["h1"]
    assert second["next"] is None


def test_a_handoff_has_its_package_its_history_and_a_diagnosis(office: House) -> None:
    shown = office.get("/v1/handoffs/h2")
    assert (shown["status"], shown["from_agent"], shown["to_agent"]) == (
        "activated",
        "alice",
        "bob",
    )
    assert shown["package"]["verification"]["package_hash"] == shown["package_hash"]
    history = office.get("/v1/handoffs/h2/events?limit=2")
    assert [entry["type"] for entry in history["events"]] == ["handoff.proposed", "handoff.moved"]
    rest = office.get(f"/v1/handoffs/h2/events?after={history['next']}")
    assert rest["next"] is None
    assert rest["events"][-1]["body"]["to"] == "activated"
    draft = office.get("/v1/handoffs/d1/diagnosis")
    assert "cannot be offered" in draft["summary"]
    found = office.get("/v1/handoffs/h2/diagnosis")
    assert found["steps"][0]["who"] == ["bob"]
    assert found["due_by"] == "2026-02-10T20:55:00.000Z"


def test_a_draft_is_its_sender_s(office: House) -> None:
    listed = office.get("/v1/handoffs?status=draft", by="alice")
    assert [one["handoff_id"] for one in listed["handoffs"]] == ["d1"]
    assert office.get("/v1/handoffs?status=draft&from=alice", by="bob")["handoffs"] == []
    for path in ("", "/events", "/diagnosis"):
        assert office.get(f"/v1/handoffs/d1{path}", by="alice")
        answer = office.ask("GET", f"/v1/handoffs/d1{path}", by="bob")
        assert (answer.status, answer.code) == (404, "handoff_not_found")


def test_and_the_owners_who_says_whose(office: House) -> None:
    assert office.get("/v1/handoffs/d1")["status"] == "draft"
    listed = office.get("/v1/handoffs?status=draft&from=alice")
    assert [one["handoff_id"] for one in listed["handoffs"]] == ["d1"]
    answer = office.ask("GET", "/v1/handoffs?status=draft")
    assert (answer.status, answer.code) == (422, "invalid_field")
    assert "say whose" in answer.json["detail"]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/handoffs/nothing", 404, "handoff_not_found"),
        ("/v1/handoffs/%3F", 422, "invalid_id"),
        ("/v1/handoffs?status=lost", 400, "invalid_request"),
        ("/v1/handoffs?form=alice", 400, "invalid_request"),
        ("/v1/handoffs?limit=0", 400, "invalid_request"),
    ],
)
def test_what_cannot_be_shown_is_refused(office: House, path: str, status: int, code: str) -> None:
    answer = office.ask("GET", path)
    assert (answer.status, answer.code) == (status, code)


def test_a_closed_teamspace_is_not_there_for_others() -> None:
    house = House()
    settings = replace(house.door.settings, teamspaces={"red": TeamspaceSettings(("carol",))})
    house.door = replace(house.door, settings=settings)
    house.app = build_app(house.door)
    with serving(house):
        house.welcome("bob")
        house.welcome("carol")
        behind = Behind(house)
        make(behind, "t3")
        offer(behind, "h3", "t3", to="alice", by=CAROL, teamspace="red")
        assert house.get("/v1/handoffs", by="bob")["handoffs"] == []
        assert house.ask("GET", "/v1/handoffs/h3", by="bob").code == "handoff_not_found"
        for who in ("carol", "owner"):
            assert house.get("/v1/handoffs/h3", by=who)["teamspace_id"] == "red"
