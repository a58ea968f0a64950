"""The package: its JSON Schema says yes and no where the shapes do, and drafts become packages."""

import copy
import json
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from dragoman.core.commands import CreateTask, EditTask
from dragoman.core.errors import Refusal
from dragoman.core.moments import to_rfc3339
from dragoman.core.states.handoff_package import hash_of
from dragoman.engine.facts import StoreFacts
from dragoman.engine.faults import Fault
from dragoman.engine.verifying.verify import check_views
from dragoman.ledger.records import record_of
from dragoman.protocols.acp import Choices
from dragoman.protocols.acp.lint import lint
from dragoman.protocols.acp.package import hash_as_given
from dragoman.protocols.acp.read import read_action
from dragoman.protocols.acp.schema import package_schema
from dragoman.protocols.acp.translate import commands
from dragoman.protocols.acp.wire import Package
from tests.protocols.acp.desk import ALICE, BOB, COORDINATOR, HUMAN, Desk, artifact, offer
from tests.requirements import proves

pytestmark = proves("ACP-PACKAGE")

SCHEMA = json.loads(json.dumps(package_schema()))
VALIDATOR: Any = Draft202012Validator(SCHEMA)


def full() -> dict[str, Any]:
    """A package with every field that there is."""
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
    package["verification"]["package_hash"] = hash_of(package)
    return package


def changed(path: str, value: Any) -> dict[str, Any]:
    """The full package with another value at a place; None: nothing there."""
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


def test_the_schema_is_one_of_its_draft() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMA["title"] == "ACPHandoffPackage"


def test_the_full_package_is_one_for_both() -> None:
    assert VALIDATOR.is_valid(full())
    assert lint(full(), "package", True).ok


def test_every_field_of_a_package_has_its_place() -> None:
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
    come = read.provenance
    assert (come.origin_session, come.related_sessions) == ("s-1", ("s-0",))
    assert (come.decision_refs, come.message_thread_refs) == (("adr-1",), ("th-1",))
    policy = read.policy
    assert (policy.classification, policy.requires_human_approval) == ("restricted", True)
    assert (policy.visibility, policy.sensitivity) == ("human-audit", "moderate")
    assert (policy.human_gate, policy.export_restrictions) == ("required", ("none",))
    assert read.verification.schema_version == "1.0.0"


@pytest.mark.parametrize("path", WRONG)
def test_schema_and_shapes_say_no_to_the_same(path: str) -> None:
    package = changed(path, WRONG[path])
    linted = lint(package, "", False)
    assert not VALIDATOR.is_valid(package)
    assert (linted.ok, linted.type) == (False, "package")
    (issue,) = linted.issues
    assert issue["path"].startswith(path.partition("/")[0])


def test_every_part_is_checked_and_all_findings_are_told() -> None:
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


def test_what_a_schema_cannot_say_is_said_all_the_same() -> None:
    twice = changed("artifacts", [artifact(), artifact()])
    assert lint(twice, "", False).issues[0]["path"] == "artifacts[1].artifact_id"
    never = changed("task/deadline", "tomorrow")
    assert lint(never, "", False).issues[0]["path"] == "task.deadline"


@pytest.mark.parametrize("strict", [False, True])
def test_a_package_is_the_one_that_its_hash_says(strict: bool) -> None:
    package = changed("context/summary", "Another.")
    (issue,) = lint(package, "", strict).issues
    assert issue["path"] == "verification.package_hash"
    package["verification"]["package_hash"] = hash_of(package)
    assert lint(package, "", strict).ok
    half_a_character = changed("context/summary", "\ud800")
    (issue,) = lint(half_a_character, "", strict).issues
    assert "cannot be hashed" in issue["reason"]


def test_lint_knows_actions_and_messages_and_asks_for_the_kind_that_is_meant() -> None:
    assert lint(offer(), "acp_handoff", False).ok
    assert not lint({"action": "accept"}, "", False).ok
    message: Any = {"to": ["bob"], "type": "status.update", "payload": {}}
    assert lint(message, "acp_send", False).ok
    assert not lint({**message, "payload": {"x": "y" * 5_000}}, "", False).ok
    assert lint(offer(), "package", False).issues[-1]["reason"].startswith("this is acp_handoff")
    given = _without(offer(), "action")
    assert lint(given, "offer", False).ok
    lacking = lint({"to_agent": "bob", "task": given["task"]}, "", False)
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
def test_a_draft_is_made_step_by_step(desk: Desk) -> None:
    said = offer()
    begun = desk.say({"action": "draft", "task": said["task"]}, ALICE)
    id = begun["handoff_id"]
    assert (begun["success"], begun["status"]) == (True, "draft")

    lacks = desk.do("validate", id, ALICE)
    assert (lacks["error"]["code"], lacks["status"]) == ("schema_invalid", "draft")
    assert lacks["metadata"]["verification_failed"] == [
        f"{name}: it is missing" for name in ("to_agent", "context", "work_state")
    ]
    assert lacks["error"]["detail"] == "; ".join(lacks["metadata"]["verification_failed"])
    assert desk.do("propose", id, ALICE)["error"] == lacks["error"]
    desk.do("draft", id, ALICE, deadline="tomorrow")
    lacks = desk.do("validate", id, ALICE)["metadata"]["verification_failed"]
    assert lacks[-1].startswith("deadline: ")

    desk.do("draft", id, ALICE, deadline="")
    more = {"context": said["context"], "work_state": said["work_state"], "to_agent": "bob"}
    assert desk.do("draft", id, ALICE, **more)["success"]
    fine = desk.do("validate", id, ALICE)
    assert (fine["success"], fine["metadata"]["verification_passed"]) == (
        True,
        ["schema", "policy"],
    )
    assert desk.do("propose", id, ALICE)["status"] == "proposed"
    kept = desk.handoff(id)
    assert (kept.id, kept.recipient, kept.task) == (id, "bob", "t-1")
    assert desk.do("validate", id, ALICE)["error"]["code"] == "invalid_transition"
    assert desk.do("accept", id, BOB)["success"]


@proves("ACP-DRAFT", "ACP-PACKAGE-HASH")
@pytest.mark.parametrize("task", ["t-1", "born-elsewhere"])
def test_a_draft_that_states_another_hash_is_found_out_before_it_is_proposed(
    desk: Desk, task: str
) -> None:
    said = {**_without(offer(), "action"), "verification": {"schema_version": "1.0.0"}}
    said["task"] = {**said["task"], "task_id": task}
    id = desk.say({"action": "draft", **said}, ALICE)["handoff_id"]
    own = hash_as_given(said)
    for stated, code in ((own, ""), ("0" * 64, "hash_mismatch")):
        verification = {"schema_version": "1.0.0", "package_hash": stated}
        desk.do("draft", id, ALICE, verification=verification)
        reply = desk.do("validate", id, ALICE)
        assert (reply["success"], reply.get("error", {}).get("code", "")) == (not code, code)
    no = desk.do("validate", id, ALICE)
    assert no["metadata"]["verification_failed"] == [no["error"]["detail"]]
    assert desk.do("propose", id, ALICE)["error"] == no["error"]


@proves("ACP-DRAFT")
@proves("ACP-DRAFT-PARTS")
def test_two_edits_of_a_draft_at_once_are_both_kept(desk: Desk) -> None:
    id = desk.say({"action": "draft", "to_agent": "bob", "reason": "r"}, ALICE)["handoff_id"]
    edits = ({"context": {"summary": "S"}}, {"work_state": {"status": "review", "next_step": "N"}})
    read = [_planned(desk, {"action": "draft", "handoff_id": id, **edit}) for edit in edits]
    for edit in read:
        desk.lab.do(ALICE, *edit)
    assert set(desk.handoff(id).package) == {"reason", "context", "work_state"}
    assert desk.handoff(id).recipient == "bob"


@proves("ACP-DRAFT-PARTS", "ACP-REPEAT")
def test_a_draft_is_offered_once_and_as_it_was_read(desk: Desk) -> None:
    id = desk.say({"action": "draft", **_without(offer(), "action")}, ALICE)["handoff_id"]
    early = _planned(desk, {"action": "propose", "handoff_id": id})
    desk.do("draft", id, ALICE, context={"summary": "All of it is there."})
    answer = desk.lab.hub.engine.handle_now(desk.lab.hub.request(ALICE, *early))
    assert isinstance(answer, Refusal)
    assert answer.code == "try_again"
    first = desk.do("propose", id, ALICE)
    head = desk.lab.store.head()
    assert desk.do("propose", id, ALICE) == first
    assert desk.lab.store.head() == head
    assert desk.code({"action": "propose", "handoff_id": id}, BOB) == "not_found"
    desk.do("reject", id, BOB, reason="other", detail="no")
    assert desk.do("propose", id, ALICE)["success"]


@proves("ACP-REPEAT")
@pytest.mark.parametrize("before", [(), ("draft", "discard")])
def test_what_was_never_a_draft_is_not_proposed(desk: Desk, before: tuple[str, ...]) -> None:
    for action in before:
        assert desk.do(action, "h-1", ALICE)["success"]
    assert desk.code(offer(handoff_id="h-1"), ALICE) == ""
    for action in ("propose", "validate"):
        no = desk.do(action, "h-1", ALICE)["error"]
        assert no == {"code": "invalid_transition", "detail": "h-1 is proposed, and no draft"}


def _planned(desk: Desk, said: dict[str, Any]) -> Any:
    """What an action of alice's asks the hub for, by what can be read now."""
    asked = read_action(said)
    assert not isinstance(asked, Fault)
    facts = StoreFacts(desk.lab.store, lambda _task, _ref: False)
    return commands(asked, ALICE, facts, Choices())


def test_a_draft_is_its_sender_s_alone(desk: Desk) -> None:
    id = desk.say({"action": "draft", **_without(offer(), "action")}, ALICE)["handoff_id"]
    for action in ("validate", "propose"):
        assert desk.do(action, id, BOB)["error"]["code"] == "not_found"
    for action in ("accept", "activate", "withdraw"):
        taken = desk.do(action, id, BOB)
        assert (taken["error"]["code"], "status" in taken) == ("not_found", False)
        assert "alice" not in str(taken)
    stolen = desk.do("draft", id, BOB, context={"summary": "mine"})
    assert "alice" not in str(stolen)
    assert (stolen["error"]["code"], "status" in stolen) == ("not_authorized", False)
    assert desk.say({"action": "query", "status": "draft"}, BOB)["handoffs"] == []
    assert desk.say({"action": "query", "handoff_id": id}, BOB)["error"]["code"] == "not_found"
    (own,) = desk.say({"action": "query", "status": "draft"}, ALICE)["handoffs"]
    assert own["handoff_id"] == id


@proves("ACP-DRAFT")
def test_a_draft_can_be_offered_by_initiate_with_its_id(desk: Desk) -> None:
    id = desk.say({"action": "draft", "reason": "holidays"}, ALICE)["handoff_id"]
    assert desk.say(offer(handoff_id=id), ALICE)["handoff_id"] == id
    assert desk.handoff(id).status == "proposed"


@proves("ACP-DRAFT")
def test_a_policy_that_is_not_permitted_is_told_before_it_is_offered(tmp_path: Any) -> None:
    desk = Desk(tmp_path, visibilities=frozenset[str]())
    said = _without(offer(policy={"visibility": "team"}), "action")
    id = desk.say({"action": "draft", **said}, ALICE)["handoff_id"]
    reply = desk.do("validate", id, ALICE)
    assert (reply["error"]["code"], reply["metadata"]["verification_passed"]) == (
        "policy_violation",
        ["schema"],
    )


@proves("ACP-DRAFT")
@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            {"task": {**offer()["task"], "task_id": "im port"}},
            "'im port' is not the name of a task",
        ),
        ({"to_agent": "alice"}, "alice has it now"),
        ({"thread_id": "a b"}, "'a b' is not a valid thread"),
    ],
)
def test_what_a_proposal_is_refused_for_is_told_before(
    desk: Desk, said: dict[str, Any], told: str
) -> None:
    id = desk.say({"action": "draft", **_without(offer(), "action"), **said}, ALICE)["handoff_id"]
    reply = desk.do("validate", id, ALICE)
    assert told in reply["metadata"]["verification_failed"][0]
    assert reply["metadata"]["verification_passed"] == []
    assert reply["error"]["code"] == desk.do("propose", id, ALICE)["error"]["code"]


@proves("ACP-DRAFT")
def test_everything_that_a_proposal_is_refused_for_is_listed(desk: Desk) -> None:
    id = desk.offered()
    desk.do("accept", id, BOB)
    desk.do("activate", id, BOB)
    said = {**_without(offer(), "action"), "to_agent": "alice", "thread_id": "a b"}
    draft = desk.say({"action": "draft", **said}, BOB)["handoff_id"]
    failed = desk.do("validate", draft, BOB)["metadata"]["verification_failed"]
    words = ("thread", f"already, by {id}", "alice has owned it before")
    assert [word in told for word, told in zip(words, failed, strict=True)] == [True] * 3


@proves("ACP-DRAFT")
def test_whose_the_work_is_and_what_is_superseded_is_told_before_too(desk: Desk) -> None:
    desk.lab.do(HUMAN, CreateTask("T", id="t-1", ready=True))
    said = {"action": "draft", **_without(offer(), "action"), "supersedes": "gone"}
    draft = desk.say(said, ALICE)["handoff_id"]

    def refused(actor: Any = ALICE) -> tuple[str, str]:
        told = [desk.do(action, draft, actor)["error"] for action in ("validate", "propose")]
        assert told[0]["code"] == told[1]["code"]
        return told[0]["code"], told[0]["detail"]

    assert refused() == ("not_found", "there is no handoff gone: see `dragoman handoff list`")
    desk.say({"action": "draft", "handoff_id": draft, "supersedes": ""}, ALICE)
    assert desk.do("validate", draft, ALICE)["success"]
    other = desk.offered(to="carol")
    code, detail = refused()
    assert (code, f"by {other}: offer it in the place of that" in detail) == (
        "ownership_conflict",
        True,
    )
    desk.do("withdraw", other, ALICE)
    desk.lab.do(HUMAN, EditTask("t-1", assignee="carol"))
    assert refused() == ("ownership_conflict", "t-1 belongs to carol, not to alice")


@proves("ACP-QUERY")
def test_what_was_a_draft_is_initiated_when_it_is_offered(desk: Desk) -> None:
    """As its row in the table has it, and its first line in the audit log."""
    begun = desk.lab.clock.now()
    id = desk.say(offer() | {"action": "draft"}, ALICE)["handoff_id"]
    asked = {"action": "query", "handoff_id": id}
    assert desk.say(asked, ALICE)["handoffs"][0]["initiated_at"] == to_rfc3339(begun)
    desk.lab.clock.advance(3_600_000)
    assert desk.do("propose", id, ALICE)["success"]
    row = record_of(desk.handoff(id))
    assert row is not None
    shown = desk.say(asked, ALICE)["handoffs"][0]["initiated_at"]
    assert shown == row.initiated_at == to_rfc3339(begun + 3_600_000)


@proves("ACP-DRAFT", "REDACT-REQUESTS")
def test_who_writes_a_secret_into_a_draft_is_told(desk: Desk) -> None:
    secret = f"ghp_{'a1B2' * 9}"
    said = {"action": "draft", "context": {"summary": f"use {secret}"}}
    reply = desk.say(said, ALICE)
    (told,) = reply["metadata"]["warnings"]
    assert told.startswith("a secret was masked: ")
    assert secret not in str(desk.handoff(reply["handoff_id"]).package)


@proves("ACP-LATE")
@pytest.mark.parametrize("place", ["deadline", "task"])
@pytest.mark.parametrize(("ago", "is_late"), [(0, True), (1, True), (-1, False)])
def test_a_deadline_that_has_passed_is_told_and_refuses_nothing(
    desk: Desk, place: str, ago: int, is_late: bool
) -> None:
    stated = to_rfc3339(desk.lab.clock.now() - ago)
    said = {**_without(offer(), "action"), "deadline": stated}
    if place == "task":
        said = {**_without(offer(), "action"), "task": {**offer()["task"], "deadline": stated}}
    id = desk.say({"action": "draft", **said}, ALICE)["handoff_id"]
    for action in ("validate", "propose"):
        reply = desk.do(action, id, ALICE)
        assert reply["success"]
        told = reply["metadata"].get("warnings", [])
        assert [one.startswith(f"timeout_risk: the deadline {stated} has") for one in told] == (
            [True] * is_late
        )


@proves("ACP-QUERY")
def test_a_query_finds_by_every_filter_page_by_page(desk: Desk) -> None:
    ids = [desk.offered(task=f"t-{n}", to=to) for n, to in enumerate(("bob", "carol", "bob"))]
    desk.do("accept", ids[2], BOB)

    def found(**filters: Any) -> list[str]:
        reply = desk.say({"action": "query", **filters}, COORDINATOR)
        return [row["handoff_id"] for row in reply["handoffs"]]

    head = desk.lab.store.head()
    assert found() == ids[::-1]
    assert found(to_agent="bob") == [ids[2], ids[0]]
    assert found(task_id="t-1") == [ids[1]]
    assert found(from_agent="alice", status="accepted") == [ids[2]]
    assert found(teamspace_id="elsewhere") == []
    first = desk.say({"action": "query", "limit": 2}, COORDINATOR)
    rest = desk.say({"action": "query", "limit": 2, "cursor": first["cursor"]}, COORDINATOR)
    assert [row["handoff_id"] for row in rest["handoffs"]] == [ids[0]]
    assert rest["cursor"] is None
    whole = desk.say({"action": "query", "handoff_id": ids[2]}, COORDINATOR)
    assert (whole["status"], whole["handoffs"][0]["package"]["task"]["task_id"]) == (
        "accepted",
        "t-2",
    )
    assert desk.lab.store.head() == head


def _without(said: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in said.items() if key != name}


@proves("ACP-DISCARD")
def test_a_draft_that_was_thrown_away_is_nowhere(desk: Desk) -> None:
    id = desk.say({"action": "draft", **_without(offer(), "action")}, ALICE)["handoff_id"]
    assert desk.do("discard", id, BOB)["error"]["code"] == "not_found"
    gone = desk.do("discard", id, ALICE)
    assert gone == {"success": True, "handoff_id": id, "status": "discarded"}
    assert desk.do("discard", id, ALICE) == gone
    assert desk.say({"action": "query", "status": "draft"}, ALICE)["handoffs"] == []
    for action in ("validate", "propose", "discard", "query"):
        code = "" if action == "discard" else "not_found"
        assert desk.code({"action": action, "handoff_id": id}, ALICE) == code
    assert desk.do("draft", id, ALICE, reason="again")["status"] == "draft"
    assert desk.handoff(id).package == {"reason": "again"}
    assert list(check_views(desk.lab.store, lambda _: None)) == []


@proves("ACP-DISCARD")
def test_an_offer_is_withdrawn_and_not_thrown_away(desk: Desk) -> None:
    no = desk.do("discard", desk.offered(), ALICE)
    assert (no["error"]["code"], "withdraw" in no["error"]["detail"]) == (
        "invalid_transition",
        True,
    )
