"""`GET /v1/status`: the whole hub at one moment, as far as the caller may see it."""

from msgspec.structs import replace

from dragoman.config import AgentSettings, TeamspaceSettings
from dragoman.core.task_state import CreateTask
from dragoman.surfaces.http import build_app
from tests.engine.handoffs import make, offer, package
from tests.engine.lab import CAROL
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, serving
from tests.surfaces.http.test_handoff_routes import HubBehindServer

pytestmark = proves("SEE-STATUS")


def test_status_is_the_same_for_every_reader(server: HubServer) -> None:
    task = server.submit(CreateTask("One", ready=True))
    other = server.submit(CreateTask("Two", ready=True, assignee="bbo"))
    server.post(f"/v1/tasks/{task}/claim", {}, by="ada")

    shown = server.get("/v1/status")

    assert shown["at"] == "2026-02-09T20:55:00.000Z"
    assert shown["counts"] == {"in-progress": 1, "ready": 1}
    assert [(one["task"], one["agent"]) for one in shown["working"]] == [(task, "ada")]
    assert [(one["task"], one["actors"]) for one in shown["waiting"]] == [(other, ["bbo"])]
    assert [(one["kind"], one["command"]) for one in shown["attention"]] == [
        ("unknown_assignee", f"dragoman task assign {other} NAME")
    ]
    assert [one["name"] for one in shown["agents"]] == ["ada"]
    for reader in ("ada", "olga"):
        assert server.get("/v1/status", by=reader) == shown


def test_gate_in_a_closed_teamspace_is_hidden_from_others() -> None:
    server = HubServer()
    server.deps = replace(
        server.deps,
        settings=replace(
            server.deps.settings,
            teamspaces={"red": TeamspaceSettings(("carol",))},
            agents={"bbo": AgentSettings(capabilities=("python",))},
        ),
    )
    server.app = build_app(server.deps)
    with serving(server):
        server.add_agent("bob")
        server.add_agent("carol")
        hub = HubBehindServer(server)
        make(hub, "t3")
        gated = package("t3", policy={"requires_human_approval": True, "classification": "public"})
        offer(hub, "h3", "t3", to="alice", by=CAROL, teamspace="red", package=gated)
        server.submit(CreateTask("Two", ready=True, assignee="python"))

        kinds = {
            reader: [one["kind"] for one in server.get("/v1/status", by=reader)["attention"]]
            for reader in ("owner", "carol", "bob")
        }

    assert kinds == {"owner": ["gate"], "carol": ["gate"], "bob": []}


@proves("SEE-NUMBERS")
def test_numbers_are_those_of_the_days_that_are_asked_for(server: HubServer) -> None:
    task = server.submit(CreateTask("One", ready=True))
    server.post(f"/v1/tasks/{task}/claim", {}, by="ada")

    shown = server.get("/v1/numbers?days=1", by="olga")

    assert (shown["at"], shown["since"]) == ("2026-02-09T20:55:00.000Z", "2026-02-08T20:55:00.000Z")
    assert [(one["at"], one["attempts"]) for one in shown["hours"]] == [
        ("2026-02-09T20:00:00.000Z", 1)
    ]
    assert [(one["name"], one["attempts"]) for one in shown["agents"]] == [("ada", 1)]
    assert shown["total"]["givenUp"] == 0
