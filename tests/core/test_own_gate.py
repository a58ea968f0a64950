"""Nobody approves their own gate, whoever they had do the work."""

from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import ClaimTask, MoveTask, ReportOutcome
from dragoman.core.errors import Refusal
from tests.core.world import ALICE, HUMAN, ORCHESTRATOR, World, task
from tests.requirements import proves

pytestmark = proves("ROLE-OWN-GATE")
OTHER = Actor("orchestrator", "otis")
APPROVE = MoveTask("T", "done")


def reviewed(dispatcher: Actor) -> World:
    """Alice has finished T, which this one claimed for her."""
    world = World(task("T", "ready"))
    world.do(dispatcher, ClaimTask("T", "alice"))
    world.do(ALICE, ReportOutcome("T", "done", apply=True))
    return world


def test_an_orchestrator_does_not_approve_what_it_claimed_for_another() -> None:
    world = reviewed(ORCHESTRATOR)
    assert world.tasks["T"].dispatched_by == "olga"
    assert world.code(ORCHESTRATOR, APPROVE) == "not_authorized"
    assert world.code(OTHER, APPROVE) == ""
    assert world.code(HUMAN, APPROVE) == ""
    assert world.code(ORCHESTRATOR, MoveTask("T", "ready")) == ""


def test_a_person_does_not_approve_what_they_did_themselves() -> None:
    world = World(task("T", "ready"))
    world.do(HUMAN, ClaimTask("T", HUMAN.name))
    world.do(HUMAN, ReportOutcome("T", "done", apply=True))
    answer = world.ask(HUMAN, APPROVE)
    assert isinstance(answer, Refusal)
    assert answer.code == "not_authorized"
    assert "which is its own work: another person or an orchestrator has to" in answer.detail
    assert world.code(HUMAN, MoveTask("T", "ready")) == ""
    assert world.code(ORCHESTRATOR, APPROVE) == ""
    assert world.code(Actor("human", "hugo"), APPROVE) == ""


def test_giving_it_to_another_name_afterwards_makes_it_nobody_elses_work() -> None:
    world = World(task("T", "ready"))
    world.do(HUMAN, ClaimTask("T", HUMAN.name))
    world.do(HUMAN, ReportOutcome("T", "done", apply=True))
    world.put(replace(world.tasks["T"], assignee="eve", reserved_for="eve"))

    assert world.code(HUMAN, APPROVE) == "not_authorized"
    assert world.code(ORCHESTRATOR, APPROVE) == ""


def test_who_has_given_it_back_approves_what_another_did() -> None:
    world = World(task("T", "ready"))
    world.do(HUMAN, ClaimTask("T", HUMAN.name))
    world.do(HUMAN, MoveTask("T", "ready"))
    world.do(ALICE, ClaimTask("T", "alice"))
    world.do(ALICE, ReportOutcome("T", "done", apply=True))

    assert world.code(HUMAN, APPROVE) == ""


def test_what_needs_no_review_is_done_by_whoever_did_it() -> None:
    world = World(task("T", "review", HUMAN.name, review_required=False))
    assert world.code(HUMAN, APPROVE) == ""
    assert reviewed(HUMAN).code(HUMAN, APPROVE) == "", "a person may claim it for another"


def test_it_approves_what_others_had_done() -> None:
    assert reviewed(HUMAN).code(ORCHESTRATOR, APPROVE) == ""
    assert reviewed(ALICE).code(ORCHESTRATOR, APPROVE) == ""
    assert reviewed(OTHER).code(ORCHESTRATOR, APPROVE) == ""
