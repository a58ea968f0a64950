"""Checkpoints and inclusion proofs over HTTP."""

from collections.abc import Generator
from pathlib import Path

import pytest

from dragoman.engine.queries.entries import all_entries
from dragoman.ledger.checkpoint import EMPTY_TREE, extend_tree, path_root
from dragoman.store.sqlite import SqliteStore
from dragoman.system.checkpoint_file import CheckpointFile
from dragoman.system.keys import load_or_create_keys
from tests.requirements import proves
from tests.surfaces.cli.tampering import change
from tests.surfaces.http.hub_server import HubServer, serving

pytestmark = proves("HTTP-PROOF")


@pytest.fixture
def file(tmp_path: Path) -> CheckpointFile:
    """Give a file of checkpoints."""
    return CheckpointFile(tmp_path / "checkpoints.jsonl", load_or_create_keys(tmp_path))


@pytest.fixture
def signing(file: CheckpointFile, tmp_path: Path) -> Generator[HubServer]:
    """Serve a hub that has three tasks, all signed."""
    store = SqliteStore.open(tmp_path / "hub.db", lambda: "house")
    with serving(HubServer(store, checkpoints=file)) as server:
        server.add_agent("ada")
        for title in ("first", "second", "third"):
            server.post("/v1/tasks", {"title": title})
        sign(server, file)
        yield server


def sign(server: HubServer, file: CheckpointFile) -> None:
    """Sign the ledger as it is."""
    hashes = (entry.hash for entry in all_entries(server.store))
    file.add(server.store.ledger_id(), extend_tree(EMPTY_TREE, hashes), 0)


def test_checkpoints_are_listed_with_their_signatures(
    signing: HubServer, file: CheckpointFile
) -> None:
    signing.post("/v1/tasks", {"title": "fourth"})
    sign(signing, file)
    with file.path.open("ab") as lines:
        lines.write(b"nonsense\n")
    listed = signing.get("/v1/ledger/checkpoints", by="ada")
    sizes = [one["size"] for one in listed["checkpoints"]]
    assert (sizes[0], sizes[1] < sizes[0], len(sizes)) == (signing.store.head(), True, 2)
    assert listed["invalid"] == 1
    last = file.last()
    assert last is not None
    assert listed["checkpoints"][0]["root"] == last.root
    assert len(bytes.fromhex(listed["checkpoints"][0]["signature"])) == 64
    assert signing.get("/v1/ledger/checkpoints?limit=1") == {"checkpoints": [], "invalid": 1}


def test_entry_is_proven_by_a_path_that_anybody_can_follow(signing: HubServer) -> None:
    proof = signing.get("/v1/ledger/proof?position=2")
    assert proof["verified"] is True
    path = [bytes.fromhex(node) for node in proof["path"]]
    root = path_root(bytes.fromhex(proof["hash"]), 1, proof["checkpoint"]["size"], path)
    assert root.hex() == proof["checkpoint"]["root"]


def test_entry_that_is_not_signed_yet_is_told(signing: HubServer) -> None:
    signing.post("/v1/tasks", {"title": "later"})
    proof = signing.get(f"/v1/ledger/proof?position={signing.store.head()}")
    assert (proof["checkpoint"], proof["path"], proof["verified"]) == (None, [], False)
    response = signing.request("GET", "/v1/ledger/proof?position=9999")
    assert (response.status, response.code) == (404, "not_found")
    assert "the ledger ends at" in response.json["detail"]


def test_changed_entry_is_not_proven(signing: HubServer, tmp_path: Path) -> None:
    change(
        tmp_path / "hub.db", "UPDATE entries SET line = zeroblob(length(line)) WHERE position = 2"
    )
    proof = signing.get("/v1/ledger/proof?position=2")
    assert (proof["verified"], proof["checkpoint"]["size"]) == (False, signing.store.head())


def test_only_people_and_orchestrators_get_a_proof(signing: HubServer) -> None:
    response = signing.request("GET", "/v1/ledger/proof?position=1", by="ada")
    assert (response.status, response.code) == (403, "not_authorized")


def test_hub_that_signs_nothing_has_no_proof(server: HubServer) -> None:
    server.post("/v1/tasks", {"title": "first"})
    assert server.get("/v1/ledger/checkpoints") == {"checkpoints": [], "invalid": 0}
    assert server.get("/v1/ledger/proof?position=1")["checkpoint"] is None
