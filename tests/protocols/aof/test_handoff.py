"""Handoff: request, acceptance, rejection, and every row of the error table (S-AOF-7)."""

from typing import Any

import pytest

from dragoman.core.actors import Actor
from dragoman.core.commands import LinkTask, RegisterAgent
from tests.protocols.aof.scene import (
    BACKEND,
    CHILD,
    PARENT,
    PERSON,
    QA,
    UNKNOWN,
    Scene,
    accepted,
    rejected,
    request,
)
from tests.requirements import proves

pytestmark = proves("AOF-HANDOFF")

GRANDCHILD = "TASK-2026-02-09-062"


def test_a_request_is_recorded_with_all_that_it_says(scene: Scene) -> None:
    before = scene.size()
    scene.taken(request())

    delegation = scene.task(CHILD).delegation
    assert delegation is not None
    assert delegation.acceptance_criteria == ("All tests pass",)
    assert delegation.expected_outputs == ("tests/report.md",)
    assert delegation.context_refs == (f"tasks/in-progress/{PARENT}.md",)
    assert delegation.constraints == ("No new dependencies",)
    assert (delegation.from_agent, delegation.to_agent) == ("swe-backend", "swe-qa")
    assert scene.task(CHILD).depth == 1
    assert scene.task(CHILD).status == "ready"
    (asked,) = [ln for ln in scene.lines(before) if ln["type"] == "delegation.requested"]
    assert asked["taskId"] == CHILD
    assert asked["payload"]["parentTaskId"] == PARENT
    assert asked["payload"]["toAgent"] == "swe-qa"


@proves("AOF-REPEAT")
@pytest.mark.parametrize("sent_at", ["2026-02-09T21:00:00.000Z", "2026-02-09T22:00:00.000Z"])
def test_a_request_sent_again_is_no_second_request(scene: Scene, sent_at: str) -> None:
    scene.taken(request())
    before = scene.task(CHILD)

    scene.taken(request() | {"sentAt": sent_at})

    assert scene.task(CHILD) == before
    assert scene.types().count("delegation.requested") == 1


def test_lists_that_are_not_given_are_empty(scene: Scene) -> None:
    message = request()
    lists = ("acceptanceCriteria", "expectedOutputs", "contextRefs", "constraints")
    message["payload"] = {k: v for k, v in message["payload"].items() if k not in lists}

    assert scene.taken(message).warnings == ()
    delegation = scene.task(CHILD).delegation
    assert delegation is not None
    assert (delegation.acceptance_criteria, delegation.constraints) == ((), ())


@proves("AOF-WARNINGS", "AOF-REASONS")
@pytest.mark.parametrize(
    "criteria", ["All tests pass", None, 5, {"a": 1}, ["ok", 1], [["ok"]], [1.5]]
)
def test_criteria_that_are_no_list_of_strings_are_none_with_a_warning(
    scene: Scene, criteria: Any
) -> None:
    before = scene.size()
    answer = scene.taken(request(acceptanceCriteria=criteria))

    assert len(answer.warnings) == 1
    delegation = scene.task(CHILD).delegation
    assert delegation is not None
    assert delegation.acceptance_criteria == ()
    (warning,) = [ln for ln in scene.lines(before) if ln["type"] == "protocol.message.warning"]
    assert warning["payload"]["reason"] == "invalid_acceptance_criteria"


@proves("AOF-WARNINGS")
def test_and_so_they_are_under_the_credential_of_the_attempt_on_the_parent(scene: Scene) -> None:
    answer = scene.taken(request(acceptanceCriteria="all of it"), scene.of_the_attempt())
    assert len(answer.warnings) == 1
    assert scene.task(CHILD).delegation is not None


def test_criteria_beyond_their_bounds_are_refused(scene: Scene) -> None:
    assert scene.code(request(acceptanceCriteria=["x" * 5_000])) == "invalid_envelope"
    assert scene.code(request(acceptanceCriteria=["x"] * 1_001)) == "invalid_envelope"
    assert scene.code(request(acceptanceCriteria=["x"] * 10_000)) == "invalid_json"
    assert scene.task(CHILD).delegation is None


def test_acceptance_is_logged_and_moves_nothing(scene: Scene) -> None:
    scene.taken(request())
    before = scene.size()
    scene.taken(accepted())

    assert scene.types(before) == ["protocol.message.received", "delegation.accepted"]
    assert scene.task(CHILD).status == "ready"


def test_rejection_blocks_the_child_with_its_reason(scene: Scene) -> None:
    scene.taken(request())
    before = scene.size()
    scene.taken(rejected())

    types = scene.types(before)
    assert sorted(types) == [
        "delegation.rejected",
        "protocol.message.received",
        "task.transitioned",
    ]
    moved = scene.lines(before)[types.index("task.transitioned")]
    assert moved["payload"] == {"from": "ready", "to": "blocked", "reason": "No test plan"}
    said_no = scene.lines(before)[types.index("delegation.rejected")]
    assert said_no["payload"]["reason"] == "No test plan"


@pytest.mark.parametrize("message", [accepted(), rejected()], ids=["accepted", "rejected"])
@proves("AOF-REPEAT")
def test_the_same_answer_again_changes_nothing(scene: Scene, message: dict[str, Any]) -> None:
    scene.taken(request())
    scene.taken(message)
    before = scene.task(CHILD)

    scene.taken(message | {"sentAt": "2026-02-09T23:00:00Z"})

    assert scene.task(CHILD) == before
    assert scene.types(scene.size() - 1) == ["protocol.message.received"]


@proves("AOF-AUTHORITY")
@pytest.mark.parametrize("message", [accepted(), rejected()], ids=["accepted", "rejected"])
def test_only_the_agent_that_was_asked_answers(scene: Scene, message: dict[str, Any]) -> None:
    assert scene.code(message) == "invalid_transition"
    scene.taken(request())
    assert scene.code(message | {"fromAgent": "eve"}) == "unauthorized_agent"


@proves("AOF-AUTHORITY")
def test_only_the_holder_of_the_parent_or_whoever_runs_the_show_asks(scene: Scene) -> None:
    by_eve = request(fromAgent="eve") | {"fromAgent": "eve"}
    assert scene.code(by_eve) == "unauthorized_agent"
    scene.do(PERSON, RegisterAgent("eve", "orchestrator"))
    assert scene.code(by_eve) == ""


@proves("AOF-REASONS")
def test_what_is_wrong_about_the_parent_is_told_with_its_field(scene: Scene) -> None:
    unknown = scene.turned(request(parentTaskId=UNKNOWN))
    assert (unknown.code, unknown.path) == ("parent_not_found", "payload.parentTaskId")
    scene.do(PERSON, LinkTask(PARENT, "parent", CHILD))
    cycle = scene.turned(request())
    assert (cycle.code, cycle.path) == ("link_cycle", "payload.parentTaskId")
    assert scene.turned(accepted()).path == ""


ERRORS: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "task not found": (
        request(taskId=UNKNOWN) | {"taskId": UNKNOWN},
        "task_not_found",
        ["protocol.message.rejected", "delegation.rejected"],
    ),
    "parent not found": (
        request(parentTaskId=UNKNOWN),
        "parent_not_found",
        ["delegation.rejected"],
    ),
    "taskId mismatch": (
        request(taskId=PARENT),
        "taskId_mismatch",
        ["protocol.message.rejected"],
    ),
    "an acceptance of no task": (
        accepted(taskId=UNKNOWN) | {"taskId": UNKNOWN},
        "task_not_found",
        ["protocol.message.rejected", "delegation.rejected"],
    ),
    "somebody else's parent": (
        request(fromAgent="eve") | {"fromAgent": "eve"},
        "unauthorized_agent",
        ["protocol.message.rejected"],
    ),
}


@proves("AOF-REASONS")
@pytest.mark.parametrize(("message", "reason", "types"), ERRORS.values(), ids=ERRORS)
def test_every_error_is_answered_and_logged_as_the_seed_says(
    scene: Scene, message: dict[str, Any], reason: str, types: list[str]
) -> None:
    before = scene.size()
    assert scene.code(message) == reason

    lines = scene.lines(before)
    assert [line["type"] for line in lines] == types
    assert {line["payload"]["reason"] for line in lines} == {reason}
    assert {line["taskId"] for line in lines} == {message["taskId"]}


@proves("AOF-REASONS")
def test_work_that_was_delegated_is_not_delegated_on(scene: Scene) -> None:
    scene.taken(request())
    scene.claim(CHILD, QA)
    scene.ready(GRANDCHILD)
    before = scene.size()
    nested = request(taskId=GRANDCHILD, parentTaskId=CHILD, fromAgent="swe-qa", toAgent="eve") | {
        "taskId": GRANDCHILD,
        "fromAgent": "swe-qa",
        "toAgent": "eve",
    }

    assert scene.code(nested) == "nested_delegation"

    (line,) = scene.lines(before)
    assert (line["type"], line["payload"]["reason"]) == ("delegation.rejected", "nested_delegation")


def test_a_request_may_go_through_the_dispatcher(scene: Scene) -> None:
    assert scene.code(request() | {"toAgent": "dispatcher"}) == ""
    delegation = scene.task(CHILD).delegation
    assert delegation is not None
    assert delegation.to_agent == "swe-qa"


def test_a_person_may_not_pose_as_an_agent_with_a_credential_of_its_own(scene: Scene) -> None:
    mallory = Actor("agent", "mallory", "http")
    assert scene.code(request(), mallory) == "identity_mismatch"
    assert scene.code(request(), BACKEND) == ""
