"""Handoffs: request, acceptance, rejection, and every row of the error table (S-AOF-7)."""

from typing import Any

import pytest

from dragoman.core.actor import Actor
from dragoman.core.agent import RegisterAgent
from dragoman.core.task_state import LinkTask
from tests.protocols.aof.hub import (
    BACKEND,
    CHILD,
    PARENT,
    PERSON,
    QA,
    UNKNOWN,
    AofHub,
    accepted,
    rejected,
    request,
)
from tests.requirements import proves

pytestmark = proves("AOF-HANDOFF")

GRANDCHILD = "TASK-2026-02-09-062"


def test_request_is_recorded_with_all_its_fields(hub: AofHub) -> None:
    before = hub.head()
    hub.accept(request())

    delegation = hub.task(CHILD).delegation
    assert delegation is not None
    assert delegation.acceptance_criteria == ("All tests pass",)
    assert delegation.expected_outputs == ("tests/report.md",)
    assert delegation.context_refs == (f"tasks/in-progress/{PARENT}.md",)
    assert delegation.constraints == ("No new dependencies",)
    assert (delegation.from_agent, delegation.to_agent) == ("swe-backend", "swe-qa")
    assert hub.task(CHILD).depth == 1
    assert hub.task(CHILD).status == "ready"
    (requested,) = [ln for ln in hub.lines(before) if ln["type"] == "delegation.requested"]
    assert requested["taskId"] == CHILD
    assert requested["payload"]["parentTaskId"] == PARENT
    assert requested["payload"]["toAgent"] == "swe-qa"


@proves("AOF-REPEAT")
@pytest.mark.parametrize("sent_at", ["2026-02-09T21:00:00.000Z", "2026-02-09T22:00:00.000Z"])
def test_repeated_request_is_recorded_once(hub: AofHub, sent_at: str) -> None:
    hub.accept(request())
    before = hub.task(CHILD)

    hub.accept(request() | {"sentAt": sent_at})

    assert hub.task(CHILD) == before
    assert hub.types().count("delegation.requested") == 1


def test_absent_lists_are_empty(hub: AofHub) -> None:
    message = request()
    lists = ("acceptanceCriteria", "expectedOutputs", "contextRefs", "constraints")
    message["payload"] = {k: v for k, v in message["payload"].items() if k not in lists}

    assert hub.accept(message).warnings == ()
    delegation = hub.task(CHILD).delegation
    assert delegation is not None
    assert (delegation.acceptance_criteria, delegation.constraints) == ((), ())


@proves("AOF-WARNINGS", "AOF-REASONS")
@pytest.mark.parametrize(
    "criteria", ["All tests pass", None, 5, {"a": 1}, ["ok", 1], [["ok"]], [1.5]]
)
def test_malformed_acceptance_criteria_are_dropped_with_a_warning(
    hub: AofHub, criteria: Any
) -> None:
    before = hub.head()
    answer = hub.accept(request(acceptanceCriteria=criteria))

    assert len(answer.warnings) == 1
    delegation = hub.task(CHILD).delegation
    assert delegation is not None
    assert delegation.acceptance_criteria == ()
    (warning,) = [ln for ln in hub.lines(before) if ln["type"] == "protocol.message.warning"]
    assert warning["payload"]["reason"] == "invalid_acceptance_criteria"


@proves("AOF-WARNINGS")
def test_malformed_acceptance_criteria_are_dropped_under_an_attempt_credential(hub: AofHub) -> None:
    answer = hub.accept(request(acceptanceCriteria="all of it"), hub.attempt_actor())
    assert len(answer.warnings) == 1
    assert hub.task(CHILD).delegation is not None


def test_oversized_acceptance_criteria_are_refused(hub: AofHub) -> None:
    assert hub.code(request(acceptanceCriteria=["x" * 5_000])) == "invalid_envelope"
    assert hub.code(request(acceptanceCriteria=["x"] * 1_001)) == "invalid_envelope"
    assert hub.code(request(acceptanceCriteria=["x"] * 10_000)) == "invalid_json"
    assert hub.task(CHILD).delegation is None


def test_acceptance_is_logged_and_moves_nothing(hub: AofHub) -> None:
    hub.accept(request())
    before = hub.head()
    hub.accept(accepted())

    assert hub.types(before) == ["protocol.message.received", "delegation.accepted"]
    assert hub.task(CHILD).status == "ready"


def test_rejection_blocks_the_child_with_its_reason(hub: AofHub) -> None:
    hub.accept(request())
    before = hub.head()
    hub.accept(rejected())

    types = hub.types(before)
    assert sorted(types) == [
        "delegation.rejected",
        "protocol.message.received",
        "task.transitioned",
    ]
    moved = hub.lines(before)[types.index("task.transitioned")]
    assert moved["payload"] == {"from": "ready", "to": "blocked", "reason": "No test plan"}
    rejection = hub.lines(before)[types.index("delegation.rejected")]
    assert rejection["payload"]["reason"] == "No test plan"


@pytest.mark.parametrize("message", [accepted(), rejected()], ids=["accepted", "rejected"])
@proves("AOF-REPEAT")
def test_repeated_answer_changes_nothing(hub: AofHub, message: dict[str, Any]) -> None:
    hub.accept(request())
    hub.accept(message)
    before = hub.task(CHILD)

    hub.accept(message | {"sentAt": "2026-02-09T23:00:00Z"})

    assert hub.task(CHILD) == before
    assert hub.types(hub.head() - 1) == ["protocol.message.received"]


@proves("AOF-AUTHORITY")
@pytest.mark.parametrize("message", [accepted(), rejected()], ids=["accepted", "rejected"])
def test_only_the_requested_agent_may_answer(hub: AofHub, message: dict[str, Any]) -> None:
    assert hub.code(message) == "invalid_transition"
    hub.accept(request())
    assert hub.code(message | {"fromAgent": "eve"}) == "unauthorized_agent"


@proves("AOF-AUTHORITY")
def test_only_the_parent_holder_or_an_orchestrator_may_request(hub: AofHub) -> None:
    by_eve = request(fromAgent="eve") | {"fromAgent": "eve"}
    assert hub.code(by_eve) == "unauthorized_agent"
    hub.do(PERSON, RegisterAgent("eve", "orchestrator"))
    assert hub.code(by_eve) == ""


@proves("AOF-REASONS")
def test_wrong_parent_is_refused_with_its_path(hub: AofHub) -> None:
    unknown = hub.reject(request(parentTaskId=UNKNOWN))
    assert (unknown.code, unknown.path) == ("parent_not_found", "payload.parentTaskId")
    hub.do(PERSON, LinkTask(PARENT, "parent", CHILD))
    cycle = hub.reject(request())
    assert (cycle.code, cycle.path) == ("link_cycle", "payload.parentTaskId")
    assert hub.reject(accepted()).path == ""


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
def test_every_error_is_refused_and_logged_as_in_the_seed(
    hub: AofHub, message: dict[str, Any], reason: str, types: list[str]
) -> None:
    before = hub.head()
    assert hub.code(message) == reason

    lines = hub.lines(before)
    assert [line["type"] for line in lines] == types
    assert {line["payload"]["reason"] for line in lines} == {reason}
    assert {line["taskId"] for line in lines} == {message["taskId"]}


@proves("AOF-REASONS")
def test_nested_delegation_is_refused(hub: AofHub) -> None:
    hub.accept(request())
    hub.claim(CHILD, QA)
    hub.create_ready(GRANDCHILD)
    before = hub.head()
    nested = request(taskId=GRANDCHILD, parentTaskId=CHILD, fromAgent="swe-qa", toAgent="eve") | {
        "taskId": GRANDCHILD,
        "fromAgent": "swe-qa",
        "toAgent": "eve",
    }

    assert hub.code(nested) == "nested_delegation"

    (line,) = hub.lines(before)
    assert (line["type"], line["payload"]["reason"]) == ("delegation.rejected", "nested_delegation")


def test_request_may_be_addressed_to_the_dispatcher(hub: AofHub) -> None:
    assert hub.code(request() | {"toAgent": "dispatcher"}) == ""
    delegation = hub.task(CHILD).delegation
    assert delegation is not None
    assert delegation.to_agent == "swe-qa"


def test_request_in_the_name_of_another_agent_is_refused(hub: AofHub) -> None:
    mallory = Actor("agent", "mallory", "http")
    assert hub.code(request(), mallory) == "identity_mismatch"
    assert hub.code(request(), BACKEND) == ""


@proves("REVIEW-POLICY")
def test_request_cannot_take_the_review_from_a_part(hub: AofHub) -> None:
    hub.accept(request(reviewRequired=False, metadata={"reviewRequired": False}))
    assert hub.task(CHILD).is_delegated
    assert hub.task(CHILD).review_required
