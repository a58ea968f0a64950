"""Checks of tasks: who names them, when they are awaited, and what their results change."""

import pytest

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.base import CHECKS_LIST
from dragoman.core.check_state import (
    MAX_CHECK_LENGTH,
    MAX_CHECKS,
    CheckResult,
    RecordChecks,
    TaskChecked,
)
from dragoman.core.limits import MAX_REASON
from dragoman.core.task_state import (
    CHECKS_PASSED_REASON,
    CreateTask,
    EditTask,
    MoveTask,
    SendBackTask,
    TaskEdited,
    TaskTransitioned,
    UpdateTask,
    task_list_keys,
)
from tests.core.world import (
    ALICE,
    HUB,
    HUMAN,
    NOW,
    ORCHESTRATOR,
    World,
    claim,
    events_of,
    held,
    task,
    with_fields,
)
from tests.requirements import proves

pytestmark = proves("EVIDENCE-CHECKS")

TESTS = "uv run pytest -q"
PASSED = CheckResult(TESTS, 0, duration_ms=7, output_sha256="ab" * 32, output="3 passed")
FAILED = CheckResult(TESTS, 1, output_sha256="ab" * 32, output="1 failed\n")
DONE = ReportOutcome("T", "done", "all of it", apply=True)


def finished(*, review_required: bool = True, failed_checks: int = 0) -> World:
    """World with a task that alice has reported done and that has a check."""
    world = with_fields(
        held(review_required=review_required), checks=(TESTS,), failed_checks=failed_checks
    )
    world.do(ALICE, DONE)
    return world


def checked(world: World, *results: CheckResult, attempt: int = 1) -> World:
    """World after the hub has recorded results."""
    world.do(HUB, RecordChecks("T", attempt, results))
    return world


def test_work_with_checks_waits_in_review_even_if_none_is_required() -> None:
    for required in (True, False):
        world = finished(review_required=required)
        found = world.tasks["T"]
        assert (found.status, found.awaits_checks) == ("review", True)
        assert task_list_keys(found) == (CHECKS_LIST,)
        refused = world.decide(HUMAN, MoveTask("T", "done"))
        assert getattr(refused, "code", "") == "invalid_transition"
        assert "--no-checks" in getattr(refused, "detail", "")
        assert world.code(ALICE, UpdateTask("T", "done")) == "invalid_transition"


def test_passed_checks_prove_the_work_and_leave_the_review_to_a_person() -> None:
    world = finished()
    decision = world.do(HUB, RecordChecks("T", 1, (PASSED,)))

    assert events_of(decision) == [TaskChecked(1, True, (PASSED,))]
    found = world.tasks["T"]
    assert (found.status, found.is_proven, found.awaits_checks) == ("review", True, False)
    assert task_list_keys(found) == ()
    world.do(HUMAN, MoveTask("T", "done"))
    assert world.tasks["T"].is_proven


def test_passed_checks_end_a_task_without_review() -> None:
    world = finished(review_required=False)
    decision = world.do(HUB, RecordChecks("T", 1, (PASSED,)))

    moved = events_of(decision)[-1]
    assert isinstance(moved, TaskTransitioned)
    assert (moved.to, moved.reason) == ("done", CHECKS_PASSED_REASON)
    assert world.tasks["T"].status == "done"


def test_failed_check_sends_the_work_back_with_its_output() -> None:
    world = finished()
    decision = world.do(HUB, RecordChecks("T", 1, (PASSED, FAILED)))

    events = events_of(decision)
    assert events[:2] == [TaskChecked(1, False, (PASSED, FAILED)), TaskEdited(reserved_for="alice")]
    found = world.tasks["T"]
    assert (found.status, found.reserved_for, found.failed_checks) == ("ready", "alice", 1)
    assert found.not_before == NOW + 1_000
    assert found.feedback[-1].text == f"the check `{TESTS}` failed: exit code 1\n1 failed"
    claim(world)
    world.do(ALICE, DONE)
    again = checked(world, PASSED, attempt=2).tasks["T"]
    assert (again.is_proven, again.failed_checks) == (True, 0)


def test_check_that_fails_again_and_again_blocks_the_task() -> None:
    world = finished(failed_checks=4)
    checked(world, FAILED)

    found = world.tasks["T"]
    assert (found.status, found.failed_checks) == ("blocked", 5)
    assert "1 failed" in found.obstacle


def test_reason_of_a_failure_is_bounded_and_names_the_problem() -> None:
    hung = CheckResult(
        "x" * MAX_CHECK_LENGTH, None, "it had not ended after 600 s", output="y" * 9_000
    )
    found = checked(finished(), hung).tasks["T"]

    assert len(found.feedback[-1].text) == MAX_REASON
    assert "it had not ended after 600 s\nyyy" in found.feedback[-1].text
    silent = checked(finished(), CheckResult("x", 2)).tasks["T"]
    assert silent.feedback[-1].text == "the check `x` failed: exit code 2"
    endless = checked(finished(), CheckResult("x", None, "z" * MAX_REASON, output="y")).tasks["T"]
    assert len(endless.feedback[-1].text) == MAX_REASON


def test_late_results_and_those_of_others_change_nothing() -> None:
    world = finished()
    assert world.code(ALICE, RecordChecks("T", 1, (PASSED,))) == "not_authorized"
    assert world.code(ORCHESTRATOR, RecordChecks("T", 1, (PASSED,))) == "not_authorized"
    assert world.code(HUB, RecordChecks("X", 1, (PASSED,))) == "task_not_found"
    assert events_of(world.decide(HUB, RecordChecks("T", 2, (PASSED,)))) == []
    checked(world, PASSED)
    assert events_of(world.decide(HUB, RecordChecks("T", 1, (FAILED,)))) == []
    world.do(HUMAN, SendBackTask("T", "not yet"))
    assert events_of(world.decide(HUB, RecordChecks("T", 1, (FAILED,)))) == []


def test_partly_done_work_is_not_checked() -> None:
    world = with_fields(held(), checks=(TESTS,))
    world.do(ALICE, ReportOutcome("T", "partial", apply=True))

    assert not world.tasks["T"].awaits_checks
    world.do(HUMAN, MoveTask("T", "done"))


@pytest.mark.parametrize("actor", [ALICE, HUB], ids=["agent", "hub"])
def test_work_that_wants_a_review_is_checked_and_stays_in_review(actor: Actor) -> None:
    world = with_fields(held(review_required=False), checks=(TESTS,))
    world.do(actor, ReportOutcome("T", "needs_review", apply=True))
    assert world.code(HUMAN, MoveTask("T", "done")) == "invalid_transition"
    found = checked(world, PASSED).tasks["T"]
    assert (found.status, found.is_proven) == ("review", True)
    world.do(HUMAN, MoveTask("T", "done"))


def test_work_moved_to_review_by_its_agent_is_checked() -> None:
    world = with_fields(held(), checks=(TESTS,))
    world.do(ALICE, MoveTask("T", "review"))

    assert world.tasks["T"].awaits_checks


def test_only_people_and_the_settings_name_checks() -> None:
    world = World()
    world.do(HUMAN, CreateTask("By a person", "T", ready=True, checks=(TESTS,)))
    assert world.tasks["T"].required_checks == (TESTS,)
    for actor in (ALICE, ORCHESTRATOR):
        assert world.code(actor, CreateTask("x", checks=("rm -rf /",))) == "not_authorized"
        assert world.code(actor, EditTask("T", checks=())) == "not_authorized"
        assert world.code(actor, EditTask("T", checks=("true",))) == "not_authorized"
    assert world.code(ALICE, ClaimTask("T", "alice", checks=("true",))) == "not_authorized"
    assert world.code(HUMAN, CreateTask("x", checks=("",))) == "invalid_field"
    too_long = ("x" * (MAX_CHECK_LENGTH + 1),)
    assert world.code(HUMAN, CreateTask("x", checks=too_long)) == "invalid_field"
    too_many = tuple(f"check {number}" for number in range(MAX_CHECKS + 1))
    assert world.code(HUMAN, EditTask("T", checks=too_many)) == "invalid_field"


def test_checks_of_an_agent_hold_for_its_attempt_until_a_person_takes_them_away() -> None:
    world = World(task("T"))
    world.do(HUB, ClaimTask("T", "alice", checks=(TESTS,)), NOW)
    assert world.tasks["T"].required_checks == (TESTS,)
    world.do(ALICE, DONE)
    assert world.tasks["T"].awaits_checks
    assert events_of(world.decide(HUMAN, EditTask("T", checks=(TESTS,)))) == []
    world.do(HUMAN, EditTask("T", checks=()))
    assert not world.tasks["T"].awaits_checks
    world.do(HUMAN, EditTask("T", checks=("true",)))
    assert world.tasks["T"].required_checks == ("true",)
