"""Reading handoffs over HTTP: lists and filters, one handoff, its history and diagnosis."""

from collections.abc import Generator
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.config import TeamspaceSettings
from dragoman.core.actor import Actor
from dragoman.core.base import Command
from dragoman.engine.ports import Store
from dragoman.surfaces.http import build_app
from tests.engine.handoffs import accept, activate, life, make, offer
from tests.engine.lab import CAROL
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, serving

pytestmark = proves("ACP-HTTP-READ")


class HubBehindServer:
    """Hub of a server, as the helpers of handoff tests expect it."""

    def __init__(self, server: HubServer) -> None:
        self._server = server
        self.store: Store = server.store

    def do(self, actor: Actor, *commands: Command) -> Any:
        return self._server.hub.submit(actor, *commands)


@pytest.fixture
def server_with_handoffs() -> Generator[HubServer]:
    """Give three handoffs (closed, activated, offered in another teamspace)."""
    with serving(HubServer()) as server:
        server.add_agent("alice")
        server.add_agent("bob")
        hub = HubBehindServer(server)
        life(hub, "h1", "t1")
        make(hub, "t2")
        offer(hub, "h2", "t2")
        accept(hub, "h2")
        activate(hub, "h2")
        make(hub, "t3")
        offer(hub, "h3", "t3", to="alice", by=CAROL, teamspace="red")
        yield server


@pytest.mark.parametrize(
    ("query", "expected"),
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
def test_handoffs_are_filtered(
    server_with_handoffs: HubServer, query: str, expected: list[str]
) -> None:
    page = server_with_handoffs.get(f"/v1/handoffs{query}", by="bob")
    assert [one["handoff_id"] for one in page["handoffs"]] == expected
    assert page["next"] is None


def test_pages_are_continued_by_cursor(server_with_handoffs: HubServer) -> None:
    first = server_with_handoffs.get("/v1/handoffs?limit=2")
    second = server_with_handoffs.get(f"/v1/handoffs?limit=2&cursor={first['next']}")
    assert [one["handoff_id"] for one in second["handoffs"]] == ["h1"]
    assert second["next"] is None


def test_handoff_shows_package_history_and_diagnosis(server_with_handoffs: HubServer) -> None:
    handoff = server_with_handoffs.get("/v1/handoffs/h2")
    assert (handoff["status"], handoff["from_agent"], handoff["to_agent"]) == (
        "activated",
        "alice",
        "bob",
    )
    assert handoff["package"]["verification"]["package_hash"] == handoff["package_hash"]
    history = server_with_handoffs.get("/v1/handoffs/h2/events?limit=2")
    assert [entry["type"] for entry in history["events"]] == [
        "handoff.proposed",
        "handoff.transitioned",
    ]
    rest = server_with_handoffs.get(f"/v1/handoffs/h2/events?after={history['next']}")
    assert rest["next"] is None
    assert rest["events"][-1]["body"]["to"] == "activated"
    diagnosis = server_with_handoffs.get("/v1/handoffs/h2/diagnosis")
    assert diagnosis["steps"][0]["who"] == ["bob"]
    assert diagnosis["due_by"] == "2026-02-10T20:55:00.000Z"


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
def test_invalid_handoff_query_is_refused(
    server_with_handoffs: HubServer, path: str, status: int, code: str
) -> None:
    response = server_with_handoffs.request("GET", path)
    assert (response.status, response.code) == (status, code)


def test_closed_teamspace_is_hidden_from_others() -> None:
    server = HubServer()
    settings = replace(server.deps.settings, teamspaces={"red": TeamspaceSettings(("carol",))})
    server.deps = replace(server.deps, settings=settings)
    server.app = build_app(server.deps)
    with serving(server):
        server.add_agent("bob")
        server.add_agent("carol")
        hub = HubBehindServer(server)
        make(hub, "t3")
        offer(hub, "h3", "t3", to="alice", by=CAROL, teamspace="red")
        assert server.get("/v1/handoffs", by="bob")["handoffs"] == []
        assert server.request("GET", "/v1/handoffs/h3", by="bob").code == "handoff_not_found"
        for reader in ("carol", "owner"):
            assert server.get("/v1/handoffs/h3", by=reader)["teamspace_id"] == "red"
