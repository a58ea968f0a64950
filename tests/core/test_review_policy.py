"""Policy of reviews: whoever is reviewed does not decide that there is no review."""

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.agent import AgentRecord
from dragoman.core.attempt import ClaimTask, ReportOutcome
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import ActivateHandoff
from dragoman.core.intent.state import ReceiveResult
from dragoman.core.task_state import AdoptTask, CreateTask, EditTask, MoveTask
from tests.core.handoffs import accept, offer, package
from tests.core.intents import delegate_intent, open_request, registry
from tests.core.world import (
    ALICE,
    BOB,
    COORDINATOR,
    HUB,
    HUMAN,
    NOW,
    ORCHESTRATOR,
    TTL,
    World,
    held,
)
from tests.requirements import proves

pytestmark = proves("REVIEW-POLICY")

UNREVIEWED = CreateTask("a task", id="N", ready=True, review_required=False)
PART = replace(UNREVIEWED, parent="T", assignee="bob", due_by=NOW + TTL)


@pytest.mark.parametrize("command", [UNREVIEWED, PART], ids=["task", "delegated part"])
def test_agent_creates_a_task_without_review_only_where_the_settings_allow_it(
    command: CreateTask,
) -> None:
    refusal = held().decide(ALICE, command)
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.path) == ("not_authorized", "review_required")
    assert "[tasks] agents_skip_review" in refusal.detail
    assert held().code(ALICE, replace(command, review_required=True)) == ""
    assert held().code(ALICE, replace(command, may_skip_review=True)) == ""


@pytest.mark.parametrize("actor", [HUMAN, ORCHESTRATOR, COORDINATOR, HUB])
def test_roles_that_may_judge_work_create_tasks_without_review(actor: Actor) -> None:
    assert World().code(actor, UNREVIEWED) == ""


def test_review_of_adopted_work_follows_the_settings() -> None:
    assert World().code(ALICE, AdoptTask("bead", "b-1", review_required=False)) == ""


def test_agent_may_not_take_the_review_from_a_task() -> None:
    assert held().code(ALICE, EditTask("T", review_required=False)) == "not_authorized"


def test_intent_of_somebody_else_needs_no_review_by_default() -> None:
    world = registry("alice")
    delegate_intent(world)
    assert not world.tasks["i"].review_required


@pytest.mark.parametrize("is_report", [True, False], ids=["report", "result"])
def test_work_for_an_intent_of_its_own_is_reviewed(*, is_report: bool) -> None:
    world = registry("alice")
    delegate_intent(world, actor=ALICE)
    request = open_request(world)
    assert request.agent == "alice"
    world.do(ALICE, ClaimTask("i", "alice"))
    if is_report:
        world.do(ALICE, ReportOutcome("i", "done", "all well", apply=True))
    else:
        world.do(ALICE, ReceiveResult("i", "alice", success=True, request_id=request.id))
    assert world.tasks["i"].status == "review"
    assert world.code(ALICE, MoveTask("i", "done")) == "not_authorized"
    world.do(HUMAN, MoveTask("i", "done"))
    assert world.intents["i"].state == "Satisfied"


def test_intent_that_comes_back_to_its_author_is_reviewed() -> None:
    world = registry("bob")
    delegate_intent(world, actor=ALICE)
    assert not world.tasks["i"].review_required
    world.do(BOB, ClaimTask("i", "bob"))
    parts = package()
    parts["task"]["task_id"] = "i"
    world.do(BOB, replace(offer("alice", package=parts), task="i"))
    world.do(ALICE, accept(world))
    world.do(ALICE, ActivateHandoff("H"))
    assert open_request(world).agent == "alice"
    assert world.tasks["i"].review_required


def test_person_who_does_an_intent_of_its_own_needs_no_review() -> None:
    world = registry("alice")
    world.agents["hera"] = AgentRecord("hera", "human", (), NOW)
    delegate_intent(world)
    world.do(HUMAN, EditTask("i", assignee="hera"))
    assert open_request(world).agent == "hera"
    assert not world.tasks["i"].review_required
