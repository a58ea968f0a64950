"""Handoff packages: JSON Schema and shapes agree, and drafts become packages."""

import copy
import json
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from dragoman.core.errors import Refusal
from dragoman.core.handoff.package import compute_package_hash
from dragoman.core.task_state import CreateTask, EditTask
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.facts import StoreFacts
from dragoman.engine.operation import Fault
from dragoman.engine.verify import check_stored_states
from dragoman.ledger.indexes import handoff_row
from dragoman.protocols.acp import Choices
from dragoman.protocols.acp.lint import lint
from dragoman.protocols.acp.parse import parse_action
from dragoman.protocols.acp.translate import action_commands, hash_as_sent
from dragoman.protocols.acp.wire import Package, package_schema
from tests.protocols.acp.hub import ALICE, BOB, COORDINATOR, HUMAN, AcpHub, artifact, offer
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


def test_lint_lists_every_finding_of_every_part() -> None:
    wrong: dict[str, Any] = {"task": {}, "context": 1, "policy": {}, "more": 1, "other": 2}
    package = full() | wrong
    assert [issue["path"] for issue in lint(package, "", False).issues] == [
        "more",
        "other",
        *(f"task.{name}" for name in ("task_id", "title", "objective", "success_criteria")),
        "task.priority",
        "context",
        "policy.classification",
        "policy.requires_human_approval",
    ]
    nested = full() | {"task": {**full()["task"], "title": "", "colour": "red", "objective": 1}}
    assert [issue["path"] for issue in lint(nested, "", False).issues] == [
        "task.colour",
        "task.title",
        "task.objective",
    ]


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
    assert (lacking.type, [issue["path"] for issue in lacking.issues]) == (
        "offer",
        ["context", "work_state"],
    )
    lacking = lint({"action": "initiate", "to_agent": "", "task": {"title": "T"}}, "", False)
    assert [issue["path"] for issue in lacking.issues] == [
        "to_agent",
        "task.task_id",
        "task.objective",
        "task.success_criteria",
        "context",
        "work_state",
    ]
    rejected = lint({"action": "reject", "why": "no"}, "", False).issues
    assert [issue["path"] for issue in rejected] == ["why", "handoff_id", "reason", "detail"]
    astray = {"action": "complete", "handoff_id": "h", "final_artifacts": [artifact(path="../x")]}
    (issue,) = lint(astray, "", False).issues
    assert issue["path"] == "final_artifacts[0].ref.path"
    odd = lint({**full(), "artifacts": [{"ref": {"type": "file"}}, {}, 7]}, "", False).issues
    assert [issue["path"] for issue in odd] == [
        "artifacts[0].artifact_id",
        "artifacts[0].ref.path",
        "artifacts[1].artifact_id",
        "artifacts[1].ref",
    ]
    assert lint(7, "", False).issues == ({"path": "", "reason": "this is no JSON object"},)
    assert not lint(7, "package", False).ok


@proves("ACP-DRAFT")
def test_draft_is_completed_step_by_step(hub: AcpHub) -> None:
    arguments = offer()
    started = hub.reply({"action": "draft", "task": arguments["task"]}, ALICE)
    id = started["handoff_id"]
    assert (started["success"], started["status"]) == (True, "draft")

    invalid = hub.act("validate", id, ALICE)
    assert (invalid["error"]["code"], invalid["status"]) == ("schema_invalid", "draft")
    assert invalid["metadata"]["verification_failed"] == [
        f"{name}: it is missing" for name in ("to_agent", "context", "work_state")
    ]
    assert invalid["error"]["detail"] == "; ".join(invalid["metadata"]["verification_failed"])
    assert hub.act("propose", id, ALICE)["error"] == invalid["error"]
    hub.act("draft", id, ALICE, deadline="tomorrow")
    invalid = hub.act("validate", id, ALICE)["metadata"]["verification_failed"]
    assert invalid[-1].startswith("deadline: ")

    hub.act("draft", id, ALICE, deadline="")
    more = {
        "context": arguments["context"],
        "work_state": arguments["work_state"],
        "to_agent": "bob",
    }
    assert hub.act("draft", id, ALICE, **more)["success"]
    fine = hub.act("validate", id, ALICE)
    assert (fine["success"], fine["metadata"]["verification_passed"]) == (
        True,
        ["schema", "policy"],
    )
    assert hub.act("propose", id, ALICE)["status"] == "proposed"
    kept = hub.handoff(id)
    assert (kept.id, kept.recipient, kept.task) == (id, "bob", "t-1")
    assert hub.act("validate", id, ALICE)["error"]["code"] == "invalid_transition"
    assert hub.act("accept", id, BOB)["success"]


@proves("ACP-DRAFT", "ACP-PACKAGE-HASH")
@pytest.mark.parametrize("task", ["t-1", "born-elsewhere"])
def test_validate_refuses_a_draft_with_another_stated_hash(hub: AcpHub, task: str) -> None:
    arguments = {**_without(offer(), "action"), "verification": {"schema_version": "1.0.0"}}
    arguments["task"] = {**arguments["task"], "task_id": task}
    id = hub.reply({"action": "draft", **arguments}, ALICE)["handoff_id"]
    own = hash_as_sent(arguments)
    for stated, code in ((own, ""), ("0" * 64, "hash_mismatch")):
        verification = {"schema_version": "1.0.0", "package_hash": stated}
        hub.act("draft", id, ALICE, verification=verification)
        reply = hub.act("validate", id, ALICE)
        assert (reply["success"], reply.get("error", {}).get("code", "")) == (not code, code)
    refused = hub.act("validate", id, ALICE)
    assert refused["metadata"]["verification_failed"] == [refused["error"]["detail"]]
    assert hub.act("propose", id, ALICE)["error"] == refused["error"]


@proves("ACP-DRAFT")
@proves("ACP-DRAFT-PARTS")
def test_concurrent_edits_of_a_draft_are_both_kept(hub: AcpHub) -> None:
    id = hub.reply({"action": "draft", "to_agent": "bob", "reason": "r"}, ALICE)["handoff_id"]
    edits = ({"context": {"summary": "S"}}, {"work_state": {"status": "review", "next_step": "N"}})
    read = [_plan_commands(hub, {"action": "draft", "handoff_id": id, **edit}) for edit in edits]
    for edit in read:
        hub.lab.do(ALICE, *edit)
    assert set(hub.handoff(id).package) == {"reason", "context", "work_state"}
    assert hub.handoff(id).recipient == "bob"


@proves("ACP-DRAFT-PARTS", "ACP-REPEAT")
def test_draft_is_proposed_once_and_as_it_was_read(hub: AcpHub) -> None:
    id = hub.reply({"action": "draft", **_without(offer(), "action")}, ALICE)["handoff_id"]
    early = _plan_commands(hub, {"action": "propose", "handoff_id": id})
    hub.act("draft", id, ALICE, context={"summary": "All of it is there."})
    answer = hub.lab.hub.engine.handle_now(hub.lab.hub.make_request(ALICE, *early))
    assert isinstance(answer, Refusal)
    assert answer.code == "conflict_retry"
    first = hub.act("propose", id, ALICE)
    head = hub.lab.store.head()
    assert hub.act("propose", id, ALICE) == first
    assert hub.lab.store.head() == head
    assert hub.code({"action": "propose", "handoff_id": id}, BOB) == "not_found"
    hub.act("reject", id, BOB, reason="other", detail="no")
    assert hub.act("propose", id, ALICE)["success"]


@proves("ACP-REPEAT")
@pytest.mark.parametrize("before", [(), ("draft", "discard")])
def test_handoff_that_is_no_draft_cannot_be_proposed(hub: AcpHub, before: tuple[str, ...]) -> None:
    for action in before:
        assert hub.act(action, "h-1", ALICE)["success"]
    assert hub.code(offer(handoff_id="h-1"), ALICE) == ""
    for action in ("propose", "validate"):
        refused = hub.act(action, "h-1", ALICE)["error"]
        assert refused == {"code": "invalid_transition", "detail": "h-1 is proposed, and no draft"}


def _plan_commands(hub: AcpHub, arguments: dict[str, Any]) -> Any:
    """Plan the commands of an action by alice from the current state."""
    action = parse_action(arguments)
    assert not isinstance(action, Fault)
    facts = StoreFacts(hub.lab.store, lambda _task, _ref: False)
    return action_commands(action, ALICE, facts, Choices())


def test_draft_is_visible_to_its_sender_only(hub: AcpHub) -> None:
    id = hub.reply({"action": "draft", **_without(offer(), "action")}, ALICE)["handoff_id"]
    for action in ("validate", "propose"):
        assert hub.act(action, id, BOB)["error"]["code"] == "not_found"
    for action in ("accept", "activate", "withdraw"):
        refused = hub.act(action, id, BOB)
        assert (refused["error"]["code"], "status" in refused) == ("not_found", False)
        assert "alice" not in str(refused)
    stolen = hub.act("draft", id, BOB, context={"summary": "mine"})
    assert "alice" not in str(stolen)
    assert (stolen["error"]["code"], "status" in stolen) == ("not_authorized", False)
    assert hub.reply({"action": "query", "status": "draft"}, BOB)["handoffs"] == []
    assert hub.reply({"action": "query", "handoff_id": id}, BOB)["error"]["code"] == "not_found"
    (own,) = hub.reply({"action": "query", "status": "draft"}, ALICE)["handoffs"]
    assert own["handoff_id"] == id


@proves("ACP-DRAFT")
def test_initiate_with_the_id_of_a_draft_proposes_it(hub: AcpHub) -> None:
    id = hub.reply({"action": "draft", "reason": "holidays"}, ALICE)["handoff_id"]
    assert hub.reply(offer(handoff_id=id), ALICE)["handoff_id"] == id
    assert hub.handoff(id).status == "proposed"


@proves("ACP-DRAFT")
def test_validate_refuses_a_forbidden_policy(tmp_path: Any) -> None:
    hub = AcpHub(tmp_path, visibilities=frozenset[str]())
    arguments = _without(offer(policy={"visibility": "team"}), "action")
    id = hub.reply({"action": "draft", **arguments}, ALICE)["handoff_id"]
    reply = hub.act("validate", id, ALICE)
    assert (reply["error"]["code"], reply["metadata"]["verification_passed"]) == (
        "policy_violation",
        ["schema"],
    )


@proves("ACP-DRAFT")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {"task": {**offer()["task"], "task_id": "im port"}},
            "'im port' is not the name of a task",
        ),
        ({"to_agent": "alice"}, "alice has it now"),
        ({"thread_id": "a b"}, "'a b' is not a valid thread"),
    ],
)
def test_validate_refuses_as_propose_does(
    hub: AcpHub, arguments: dict[str, Any], expected: str
) -> None:
    id = hub.reply({"action": "draft", **_without(offer(), "action"), **arguments}, ALICE)[
        "handoff_id"
    ]
    reply = hub.act("validate", id, ALICE)
    assert expected in reply["metadata"]["verification_failed"][0]
    assert reply["metadata"]["verification_passed"] == []
    assert reply["error"]["code"] == hub.act("propose", id, ALICE)["error"]["code"]


@proves("ACP-DRAFT")
def test_validate_lists_every_reason(hub: AcpHub) -> None:
    id = hub.propose()
    hub.act("accept", id, BOB)
    hub.act("activate", id, BOB)
    arguments = {**_without(offer(), "action"), "to_agent": "alice", "thread_id": "a b"}
    draft = hub.reply({"action": "draft", **arguments}, BOB)["handoff_id"]
    failed = hub.act("validate", draft, BOB)["metadata"]["verification_failed"]
    phrases = ("thread", f"already, by {id}", "alice has owned it before")
    assert [phrase in failure for phrase, failure in zip(phrases, failed, strict=True)] == [
        True
    ] * 3


@proves("ACP-DRAFT")
def test_validate_checks_owner_and_superseded_handoff(hub: AcpHub) -> None:
    hub.lab.do(HUMAN, CreateTask("T", id="t-1", ready=True))
    arguments = {"action": "draft", **_without(offer(), "action"), "supersedes": "gone"}
    draft = hub.reply(arguments, ALICE)["handoff_id"]

    def refused(actor: Any = ALICE) -> tuple[str, str]:
        errors = [hub.act(action, draft, actor)["error"] for action in ("validate", "propose")]
        assert errors[0]["code"] == errors[1]["code"]
        return errors[0]["code"], errors[0]["detail"]

    assert refused() == ("not_found", "there is no handoff gone: see `dragoman handoff list`")
    hub.reply({"action": "draft", "handoff_id": draft, "supersedes": ""}, ALICE)
    assert hub.act("validate", draft, ALICE)["success"]
    other = hub.propose(to="carol")
    code, detail = refused()
    assert (code, f"by {other}: supersede that offer" in detail) == (
        "ownership_conflict",
        True,
    )
    hub.act("withdraw", other, ALICE)
    hub.lab.do(HUMAN, EditTask("t-1", assignee="carol"))
    assert refused() == ("ownership_conflict", "t-1 belongs to carol, not to alice")


@proves("ACP-QUERY")
def test_initiated_at_of_a_draft_is_when_it_was_proposed(hub: AcpHub) -> None:
    """The row of the table and the first line of the audit log agree."""
    drafted_at = hub.lab.clock.now()
    id = hub.reply(offer() | {"action": "draft"}, ALICE)["handoff_id"]
    query = {"action": "query", "handoff_id": id}
    assert hub.reply(query, ALICE)["handoffs"][0]["initiated_at"] == to_rfc3339(drafted_at)
    hub.lab.clock.advance(3_600_000)
    assert hub.act("propose", id, ALICE)["success"]
    row = handoff_row(hub.handoff(id))
    assert row is not None
    shown = hub.reply(query, ALICE)["handoffs"][0]["initiated_at"]
    assert shown == row.initiated_at == to_rfc3339(drafted_at + 3_600_000)


@proves("ACP-DRAFT", "REDACT-REQUESTS")
def test_secret_in_a_draft_is_masked_with_a_warning(hub: AcpHub) -> None:
    secret = f"ghp_{'a1B2' * 9}"
    arguments = {"action": "draft", "context": {"summary": f"use {secret}"}}
    reply = hub.reply(arguments, ALICE)
    (warning,) = reply["metadata"]["warnings"]
    assert warning.startswith("a secret was masked: ")
    assert secret not in str(hub.handoff(reply["handoff_id"]).package)


@proves("ACP-LATE")
@pytest.mark.parametrize("field", ["deadline", "task"])
@pytest.mark.parametrize(("ago", "is_late"), [(0, True), (1, True), (-1, False)])
def test_past_deadline_is_a_warning_only(hub: AcpHub, field: str, ago: int, is_late: bool) -> None:
    stated = to_rfc3339(hub.lab.clock.now() - ago)
    arguments = {**_without(offer(), "action"), "deadline": stated}
    if field == "task":
        arguments = {**_without(offer(), "action"), "task": {**offer()["task"], "deadline": stated}}
    id = hub.reply({"action": "draft", **arguments}, ALICE)["handoff_id"]
    for action in ("validate", "propose"):
        reply = hub.act(action, id, ALICE)
        assert reply["success"]
        warnings = reply["metadata"].get("warnings", [])
        assert [one.startswith(f"timeout_risk: the deadline {stated} has") for one in warnings] == (
            [True] * is_late
        )


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


@proves("ACP-DISCARD")
def test_discarded_draft_is_gone(hub: AcpHub) -> None:
    id = hub.reply({"action": "draft", **_without(offer(), "action")}, ALICE)["handoff_id"]
    assert hub.act("discard", id, BOB)["error"]["code"] == "not_found"
    gone = hub.act("discard", id, ALICE)
    assert gone == {"success": True, "handoff_id": id, "status": "discarded"}
    assert hub.act("discard", id, ALICE) == gone
    assert hub.reply({"action": "query", "status": "draft"}, ALICE)["handoffs"] == []
    for action in ("validate", "propose", "discard", "query"):
        code = "" if action == "discard" else "not_found"
        assert hub.code({"action": action, "handoff_id": id}, ALICE) == code
    assert hub.act("draft", id, ALICE, reason="again")["status"] == "draft"
    assert hub.handoff(id).package == {"reason": "again"}
    assert list(check_stored_states(hub.lab.store, lambda _: None)) == []


@proves("ACP-DISCARD")
def test_proposed_handoff_cannot_be_discarded(hub: AcpHub) -> None:
    refused = hub.act("discard", hub.propose(), ALICE)
    assert (refused["error"]["code"], "withdraw" in refused["error"]["detail"]) == (
        "invalid_transition",
        True,
    )
