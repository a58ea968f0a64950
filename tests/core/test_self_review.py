"""Self-review: an actor may not approve its own work, nor work that it dispatched."""

from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.errors import Refusal
from dragoman.core.task_state import MoveTask
from tests.core.world import ALICE, HUMAN, ORCHESTRATOR, World, task
from tests.requirements import proves

pytestmark = proves("ROLE-OWN-GATE")
OTHER = Actor("orchestrator", "otis")
APPROVE = MoveTask("T", "done")


def reported_by_alice(dispatcher: Actor) -> World:
    """World in which alice has reported T done, claimed for her by this dispatcher."""
    world = World(task("T", "ready"))
    world.do(dispatcher, ClaimTask("T", "alice"))
    world.do(ALICE, ReportOutcome("T", "done", apply=True))
    return world


def test_orchestrator_may_not_approve_task_it_dispatched() -> None:
    world = reported_by_alice(ORCHESTRATOR)
    assert world.tasks["T"].dispatched_by == "olga"
    assert world.code(ORCHESTRATOR, APPROVE) == "not_authorized"
    assert world.code(OTHER, APPROVE) == ""
    assert world.code(HUMAN, APPROVE) == ""
    assert world.code(ORCHESTRATOR, MoveTask("T", "ready")) == ""


def test_human_may_not_approve_own_work() -> None:
    world = World(task("T", "ready"))
    world.do(HUMAN, ClaimTask("T", HUMAN.name))
    world.do(HUMAN, ReportOutcome("T", "done", apply=True))
    answer = world.decide(HUMAN, APPROVE)
    assert isinstance(answer, Refusal)
    assert answer.code == "not_authorized"
    assert "which is its own work: another person or an orchestrator has to" in answer.detail
    assert world.code(HUMAN, MoveTask("T", "ready")) == ""
    assert world.code(ORCHESTRATOR, APPROVE) == ""
    assert world.code(Actor("human", "hugo"), APPROVE) == ""


def test_reassignment_does_not_allow_self_approval() -> None:
    world = World(task("T", "ready"))
    world.do(HUMAN, ClaimTask("T", HUMAN.name))
    world.do(HUMAN, ReportOutcome("T", "done", apply=True))
    world.put(replace(world.tasks["T"], assignee="eve", reserved_for="eve"))

    assert world.code(HUMAN, APPROVE) == "not_authorized"
    assert world.code(ORCHESTRATOR, APPROVE) == ""


def test_former_holder_may_approve_work_of_another() -> None:
    world = World(task("T", "ready"))
    world.do(HUMAN, ClaimTask("T", HUMAN.name))
    world.do(HUMAN, MoveTask("T", "ready"))
    world.do(ALICE, ClaimTask("T", "alice"))
    world.do(ALICE, ReportOutcome("T", "done", apply=True))

    assert world.code(HUMAN, APPROVE) == ""


def test_task_without_required_review_may_be_self_approved() -> None:
    world = World(task("T", "review", HUMAN.name, review_required=False))
    assert world.code(HUMAN, APPROVE) == ""
    assert reported_by_alice(HUMAN).code(HUMAN, APPROVE) == "", "a person may claim it for another"


def test_orchestrator_may_approve_work_dispatched_by_others() -> None:
    assert reported_by_alice(HUMAN).code(ORCHESTRATOR, APPROVE) == ""
    assert reported_by_alice(ALICE).code(ORCHESTRATOR, APPROVE) == ""
    assert reported_by_alice(OTHER).code(ORCHESTRATOR, APPROVE) == ""
