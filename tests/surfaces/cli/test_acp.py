"""ACP at the command line: call, lint and schema."""

import hashlib
import json
from pathlib import Path
from typing import Any

from tests.protocols.acp.hub import artifact, offer
from tests.protocols.acp.test_package import full
from tests.requirements import proves
from tests.surfaces.cli.console import Console, Said

pytestmark = proves("ACP-RESPONSE", "CLI-CALL")


def call(dragoman: Console, said: Any, agent: str) -> Said:
    """The answer to an action, as an agent."""
    return dragoman("call", "acp_handoff", json.dumps(said), "--as", agent)


def test_the_whole_way_without_a_hub_and_with_a_real_artifact(dragoman: Console) -> None:
    folder = dragoman.data / "teamspaces" / "default" / "artifacts"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("hello\n")
    stated = hashlib.sha256(b"hello\n").hexdigest()
    said = call(dragoman, offer(artifacts=[artifact(sha256=stated)]), "alice")
    id = said.json["handoff_id"]
    for action, agent, status in (
        ("accept", "bob", "accepted"),
        ("activate", "bob", "activated"),
        ("complete", "bob", "completed"),
        ("close", "alice", "closed"),
    ):
        done = call(dragoman, {"action": action, "handoff_id": id}, agent)
        assert (done.code, done.json["status"]) == (0, status), done
    assert dragoman("verify").code == 0


def test_a_no_ends_with_1_and_has_both_forms(dragoman: Console) -> None:
    said = call(dragoman, {"action": "accept", "handoff_id": "gone"}, "bob")
    assert said.code == 1
    assert (said.json["success"], said.json["error"]["code"]) == (False, "not_found")
    assert (said.json["ok"], said.json["code"]) == (False, "not_found")


@proves("ACP-GATE")
def test_a_gate_that_says_no_ends_with_1(dragoman: Console) -> None:
    said = call(dragoman, offer(artifacts=[artifact(path="nowhere")]), "alice")
    done = call(dragoman, {"action": "accept", "handoff_id": said.json["handoff_id"]}, "bob")
    assert (done.code, done.json["status"], done.json["code"]) == (
        1,
        "rejected",
        "missing_artifact",
    )


@proves("ACP-PACKAGE")
def test_the_schema_is_published(dragoman: Console) -> None:
    said = dragoman("schema", "acp")
    assert (said.code, said.json["title"]) == (0, "ACPHandoffPackage")
    for words in (("schema",), ("schema", "aof")):
        wrong = dragoman(*words)
        assert (wrong.code, "acp" in wrong.err) == (2, True)


@proves("ACP-DIALECT")
def test_a_package_is_checked_without_being_sent(dragoman: Console, tmp_path: Path) -> None:
    file = tmp_path / "package.json"
    file.write_text(json.dumps(full()))
    assert dragoman("lint", "--dialect", "acp", "--strict", str(file)).code == 0
    file.write_text(json.dumps(full() | {"policy": {}}))
    wrong = dragoman("lint", "--dialect", "acp", "--kind", "package", str(file))
    assert (wrong.code, "policy" in wrong.out) == (1, True)


@proves("ACP-TEAMSPACE", "ACP-ARTIFACTS")
def test_settings_name_teamspaces_and_roots(dragoman: Console, tmp_path: Path) -> None:
    builds = tmp_path / "builds"
    builds.mkdir()
    (builds / "out").write_text("1")
    dragoman.data.mkdir(parents=True, exist_ok=True)
    (dragoman.data / "dragoman.toml").write_text(
        f'[handoffs]\nartifact_roots = ["{builds}"]\nproposed_ms = 60000\n'
        '[teamspaces.core]\nmembers = ["alice", "bob"]\n'
    )
    given = [artifact(path=str(builds / "out"))]
    assert call(dragoman, offer(to="carol", teamspace_id="core"), "alice").code == 1
    said = call(dragoman, offer(artifacts=given, teamspace_id="core"), "alice")
    done = call(dragoman, {"action": "accept", "handoff_id": said.json["handoff_id"]}, "bob")
    assert (done.code, done.json["status"]) == (0, "accepted")
