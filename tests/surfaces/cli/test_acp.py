"""ACP at the command line: call, lint and schema."""

import hashlib
import json
from pathlib import Path
from typing import Any

from tests.protocols.acp.hub import artifact, offer
from tests.protocols.acp.test_package import full
from tests.requirements import proves
from tests.surfaces.cli.console import CommandResult, Console

pytestmark = proves("ACP-RESPONSE", "CLI-CALL")


def call(dragoman: Console, action: Any, agent: str) -> CommandResult:
    """Call `acp_handoff` as an agent."""
    return dragoman("call", "acp_handoff", json.dumps(action), "--as", agent)


def test_handoff_reaches_closed_without_a_hub(dragoman: Console) -> None:
    folder = dragoman.data / "teamspaces" / "default" / "artifacts"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("hello\n")
    stated = hashlib.sha256(b"hello\n").hexdigest()
    result = call(dragoman, offer(artifacts=[artifact(sha256=stated)]), "alice")
    id = result.json["handoff_id"]
    for action, agent, status in (
        ("accept", "bob", "accepted"),
        ("activate", "bob", "activated"),
        ("complete", "bob", "completed"),
        ("close", "alice", "closed"),
    ):
        done = call(dragoman, {"action": action, "handoff_id": id}, agent)
        assert (done.code, done.json["status"]) == (0, status), done
    assert dragoman("verify").code == 0


def test_refusal_exits_1_with_protocol_and_cli_fields(dragoman: Console) -> None:
    result = call(dragoman, {"action": "accept", "handoff_id": "gone"}, "bob")
    assert result.code == 1
    assert (result.json["success"], result.json["error"]["code"]) == (False, "not_found")
    assert (result.json["ok"], result.json["code"]) == (False, "not_found")


@proves("ACP-GATE")
def test_failed_gate_exits_1(dragoman: Console) -> None:
    result = call(dragoman, offer(artifacts=[artifact(path="nowhere")]), "alice")
    done = call(dragoman, {"action": "accept", "handoff_id": result.json["handoff_id"]}, "bob")
    assert (done.code, done.json["status"], done.json["code"]) == (
        1,
        "rejected",
        "missing_artifact",
    )


@proves("ACP-PACKAGE")
def test_schema_command_prints_the_package_schema(dragoman: Console) -> None:
    result = dragoman("schema", "acp")
    assert (result.code, result.json["title"]) == (0, "ACPHandoffPackage")
    for args in (("schema",), ("schema", "aof")):
        wrong = dragoman(*args)
        assert (wrong.code, "acp" in wrong.err) == (2, True)


@proves("ACP-DIALECT")
def test_lint_checks_a_package_file(dragoman: Console, tmp_path: Path) -> None:
    file = tmp_path / "package.json"
    file.write_text(json.dumps(full()))
    assert dragoman("lint", "--dialect", "acp", "--strict", str(file)).code == 0
    file.write_text(json.dumps(full() | {"policy": {}}))
    wrong = dragoman("lint", "--dialect", "acp", "--kind", "package", str(file))
    assert (wrong.code, "policy" in wrong.out) == (1, True)


@proves("ACP-TEAMSPACE", "ACP-ARTIFACTS")
def test_settings_define_teamspaces_and_artifact_roots(dragoman: Console, tmp_path: Path) -> None:
    builds = tmp_path / "builds"
    builds.mkdir()
    (builds / "out").write_text("1")
    dragoman.data.mkdir(parents=True, exist_ok=True)
    (dragoman.data / "dragoman.toml").write_text(
        f'[handoffs]\nartifact_roots = ["{builds}"]\nproposed_ms = 60000\n'
        '[teamspaces.core]\nmembers = ["alice", "bob"]\n'
    )
    artifacts = [artifact(path=str(builds / "out"))]
    assert call(dragoman, offer(to="carol", teamspace_id="core"), "alice").code == 1
    result = call(dragoman, offer(artifacts=artifacts, teamspace_id="core"), "alice")
    done = call(dragoman, {"action": "accept", "handoff_id": result.json["handoff_id"]}, "bob")
    assert (done.code, done.json["status"]) == (0, "accepted")
