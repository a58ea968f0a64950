"""Handoff packages: JSON Schema and shapes agree; queries of handoffs."""

import copy
import json
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from dragoman.core.handoff.package import compute_package_hash
from dragoman.protocols.acp.lint import lint
from dragoman.protocols.acp.wire import Package, package_schema
from tests.protocols.acp.hub import BOB, COORDINATOR, AcpHub, artifact, offer
from tests.requirements import proves

pytestmark = proves("ACP-PACKAGE")

SCHEMA = json.loads(json.dumps(package_schema()))
VALIDATOR: Any = Draft202012Validator(SCHEMA)


def full() -> dict[str, Any]:
    """Build a package with every field."""
    package: dict[str, Any] = {
        "handoff_id": "01890a5d-ac96-774b-bcce-b302099a8057",
        "thread_id": "th-1",
        "task": {
            "task_id": "t-1",
            "title": "Login",
            "objective": "People can log in.",
            "success_criteria": ["the tests pass"],
            "deadline": "2026-02-21T14:00:00Z",
            "priority": "critical",
            "external_refs": [
                {
                    "type": "workq_item",
                    "value": "workq:task-123",
                    "description": "Related",
                    "version": "1.0.0",
                }
            ],
        },
        "context": {
            "summary": "Half of it is there.",
            "constraints": ["no new tables"],
            "assumptions": ["names are unique"],
            "open_questions": ["which colour?"],
            "known_risks": ["time"],
        },
        "work_state": {
            "status": "blocked",
            "percent_complete": 12.5,
            "completed_steps": ["one"],
            "next_step": "Write the form.",
            "branch": "login",
            "worktree_path": "/w/login",
            "test_status": "failing",
        },
        "artifacts": [
            artifact(
                sha256="a" * 64,
                description="log",
                version="2",
                size_bytes=7,
                required=False,
            ),
            {"artifact_id": "b", "ref": {"type": "branch", "path": "login"}},
        ],
        "provenance": {
            "origin_session": "s-1",
            "related_sessions": ["s-0"],
            "decision_refs": ["adr-1"],
            "message_thread_refs": ["th-1"],
            "handoff_chain": ["alice"],
        },
        "policy": {
            "classification": "restricted",
            "requires_human_approval": True,
            "export_restrictions": ["none"],
            "visibility": "human-audit",
            "sensitivity": "moderate",
            "human_gate": "required",
        },
        "verification": {"schema_version": "1.0.0"},
    }
    package["verification"]["package_hash"] = compute_package_hash(package)
    return package


def changed(path: str, value: Any) -> dict[str, Any]:
    """Build the full package with another value at a path; None removes it."""
    package = copy.deepcopy(full())
    *above, last = path.split("/")
    at: Any = package
    for part in above:
        at = at[int(part)] if part.isdigit() else at[part]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return package


WRONG: dict[str, Any] = {
    "handoff_id": None,
    "thread_id": 7,
    "more": 1,
    "task/task_id": "",
    "task/title": " ",
    "task/objective": None,
    "task/success_criteria": [],
    "task/priority": "urgent",
    "task/deadline": 7,
    "task/external_refs": [{"type": "beads", "value": "x"}],
    "task/owner": "alice",
    "context/summary": "",
    "context/known_risks": [1],
    "work_state/status": "done",
    "work_state/next_step": "\n",
    "work_state/percent_complete": 101,
    "work_state/test_status": "green",
    "artifacts": None,
    "artifacts/0/ref/sha256": "A" * 64,
    "artifacts/0/ref/size_bytes": -1,
    "artifacts/0/ref/type": "folder",
    "artifacts/0/ref/required": "yes",
    "artifacts/0/artifact_id": None,
    "provenance/origin_session": None,
    "policy/classification": "public",
    "policy/requires_human_approval": "no",
    "policy/requires_human_aproval": True,
    "policy/visibility": "everyone",
    "policy/sensitivity": "huge",
    "policy/human_gate": True,
    "verification/schema_version": "2.0.0",
    "verification/package_hash": f"sha256:{'a' * 64}",
}


def test_package_schema_is_a_valid_json_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMA["title"] == "ACPHandoffPackage"


def test_full_package_passes_schema_and_lint() -> None:
    assert VALIDATOR.is_valid(full())
    assert lint(full(), "package", True).ok


def test_every_field_of_a_package_is_decoded() -> None:
    read = msgspec.convert(full(), Package)
    task, context, state = read.task, read.context, read.work_state
    assert task.success_criteria == ("the tests pass",)
    assert (task.external_refs[0].description, task.external_refs[0].version) == (
        "Related",
        "1.0.0",
    )
    assert (context.constraints, context.assumptions) == (("no new tables",), ("names are unique",))
    assert (context.open_questions, context.known_risks) == (("which colour?",), ("time",))
    assert (state.percent_complete, state.completed_steps) == (12.5, ("one",))
    assert (state.branch, state.worktree_path, state.test_status) == (
        "login",
        "/w/login",
        "failing",
    )
    ref = read.artifacts[0].ref
    assert (ref.description, ref.version, ref.required) == ("log", "2", False)
    provenance = read.provenance
    assert (provenance.origin_session, provenance.related_sessions) == ("s-1", ("s-0",))
    assert (provenance.decision_refs, provenance.message_thread_refs) == (("adr-1",), ("th-1",))
    policy = read.policy
    assert (policy.classification, policy.requires_human_approval) == ("restricted", True)
    assert (policy.visibility, policy.sensitivity) == ("human-audit", "moderate")
    assert (policy.human_gate, policy.export_restrictions) == ("required", ("none",))
    assert read.verification.schema_version == "1.0.0"


@pytest.mark.parametrize("path", WRONG)
def test_schema_and_shapes_refuse_the_same_packages(path: str) -> None:
    package = changed(path, WRONG[path])
    linted = lint(package, "", False)
    assert not VALIDATOR.is_valid(package)
    assert (linted.ok, linted.type) == (False, "package")
    (issue,) = linted.issues
    assert issue["path"].startswith(path.partition("/")[0])


def test_lint_names_the_first_fault_of_a_shape() -> None:
    nested = full() | {"task": {**full()["task"], "title": "", "objective": 1}}
    faults: tuple[tuple[dict[str, Any], str], ...] = (
        (full() | {"more": 1}, "more"),
        (full() | {"task": {}}, "task.task_id"),
        (full() | {"context": 1}, "context"),
        (nested, "task.title"),
    )
    for package, path in faults:
        assert [issue["path"] for issue in lint(package, "", False).issues] == [path]


def test_lint_checks_rules_beyond_the_schema() -> None:
    twice = changed("artifacts", [artifact(), artifact()])
    assert lint(twice, "", False).issues[0]["path"] == "artifacts[1].artifact_id"
    never = changed("task/deadline", "tomorrow")
    assert lint(never, "", False).issues[0]["path"] == "task.deadline"


@pytest.mark.parametrize("strict", [False, True])
def test_lint_compares_the_package_with_its_hash(strict: bool) -> None:
    package = changed("context/summary", "Another.")
    (issue,) = lint(package, "", strict).issues
    assert issue["path"] == "verification.package_hash"
    package["verification"]["package_hash"] = compute_package_hash(package)
    assert lint(package, "", strict).ok
    half_a_character = changed("context/summary", "\ud800")
    (issue,) = lint(half_a_character, "", strict).issues
    assert "cannot be hashed" in issue["reason"]


def test_lint_recognizes_actions_messages_offers_and_packages() -> None:
    assert lint(offer(), "acp_handoff", False).ok
    assert not lint({"action": "accept"}, "", False).ok
    message: Any = {"to": ["bob"], "type": "status.update", "payload": {}}
    assert lint(message, "acp_send", False).ok
    assert not lint({**message, "payload": {"x": "y" * 5_000}}, "", False).ok
    assert lint(offer(), "package", False).issues[-1]["reason"].startswith("this is acp_handoff")
    offered = _without(offer(), "action")
    assert lint(offered, "offer", False).ok
    lacking = lint({"to_agent": "bob", "task": offered["task"]}, "", False)
    assert (lacking.type, [issue["path"] for issue in lacking.issues]) == ("offer", ["context"])
    rejected = lint({"action": "reject", "why": "no"}, "", False).issues
    assert [issue["path"] for issue in rejected] == ["why"]
    astray = {"action": "complete", "handoff_id": "h", "final_artifacts": [artifact(path="../x")]}
    (issue,) = lint(astray, "", False).issues
    assert issue["path"] == "final_artifacts[0].ref.path"
    odd = lint({**full(), "artifacts": [{"ref": {"type": "file"}}, {}, 7]}, "", False).issues
    assert [issue["path"] for issue in odd] == ["artifacts[0].ref.path"]
    assert lint(7, "", False).issues == ({"path": "", "reason": "this is no JSON object"},)
    assert not lint(7, "package", False).ok


@proves("ACP-QUERY")
def test_query_filters_and_pages_handoffs(hub: AcpHub) -> None:
    ids = [hub.propose(task=f"t-{n}", to=to) for n, to in enumerate(("bob", "carol", "bob"))]
    hub.act("accept", ids[2], BOB)

    def found(**filters: Any) -> list[str]:
        reply = hub.reply({"action": "query", **filters}, COORDINATOR)
        return [row["handoff_id"] for row in reply["handoffs"]]

    head = hub.lab.store.head()
    assert found() == ids[::-1]
    assert found(to_agent="bob") == [ids[2], ids[0]]
    assert found(task_id="t-1") == [ids[1]]
    assert found(from_agent="alice", status="accepted") == [ids[2]]
    assert found(teamspace_id="elsewhere") == []
    first = hub.reply({"action": "query", "limit": 2}, COORDINATOR)
    rest = hub.reply({"action": "query", "limit": 2, "cursor": first["cursor"]}, COORDINATOR)
    assert [row["handoff_id"] for row in rest["handoffs"]] == [ids[0]]
    assert rest["cursor"] is None
    whole = hub.reply({"action": "query", "handoff_id": ids[2]}, COORDINATOR)
    assert (whole["status"], whole["handoffs"][0]["package"]["task"]["task_id"]) == (
        "accepted",
        "t-2",
    )
    assert hub.lab.store.head() == head


def _without(arguments: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if key != name}
