"""The ledger, verified over HTTP."""

from pathlib import Path

from dragoman.store.sqlite import SqliteStore
from tests.requirements import proves
from tests.surfaces.cli.tampering import change
from tests.surfaces.http.hub_server import HubServer, serving

pytestmark = proves("HTTP-VERIFY")


def test_whole_ledger_is_verified(server: HubServer) -> None:
    server.post("/v1/tasks", {"title": "first"})
    proof = server.post("/v1/ledger/verify", {})
    assert proof["entries"] == server.store.head()
    assert (proof["streams"] > 1, proof["findings"]) == (True, [])


def test_only_people_and_orchestrators_may_verify(server: HubServer) -> None:
    for name in ("ada", "olga"):
        response = server.request("POST", "/v1/ledger/verify", {}, by=name)
        assert (response.status, response.code) == (403, "not_authorized")


def test_changed_entry_is_found_with_its_position(tmp_path: Path) -> None:
    file = tmp_path / "hub.db"
    with serving(HubServer(SqliteStore.open(file, lambda: "house"))) as server:
        server.post("/v1/tasks", {"title": "first"})
        server.post("/v1/tasks", {"title": "second"})
    change(file, "UPDATE entries SET line = zeroblob(length(line)) WHERE position = 1")
    with serving(HubServer(SqliteStore.open(file, lambda: "house"))) as server:
        finding, *_ = server.post("/v1/ledger/verify", {})["findings"]
        assert finding.startswith("entry 1: ")
