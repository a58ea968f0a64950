"""Handoffs of tasks of intents: CCOS and ACP agree about one task (S-OWN, S-CCOS-3)."""

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.agent import AgentRecord, DescribeAgent
from dragoman.core.attempt import CheckpointTask, ClaimTask, ReportOutcome
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import (
    ActivateHandoff,
    ReassignHandoff,
    RejectHandoff,
    WithdrawHandoff,
)
from dragoman.core.intent.candidate import Policy
from dragoman.core.intent.state import DelegateIntent, ExpireRequest, ReceiveResult
from dragoman.core.task_state import AdoptTask, EditTask
from tests.core.handoffs import accept, accepted, offer, package
from tests.core.intents import (
    CAROL,
    GOAL,
    HOUR,
    anomaly_detail,
    delegate_intent,
    open_request,
    rank_candidates,
    registry,
)
from tests.core.world import ALICE, BOB, COORDINATOR, HUB, HUMAN, NOW, World
from tests.requirements import proves


def offered_to_carol(*names: str, is_accepted: bool = False, **more: Any) -> World:
    """World in which alice has the intent i and has offered its task to carol."""
    world = registry(*names)
    delegate_intent(world, **more)
    world.do(ALICE, replace(offer("carol"), task="i"))
    if is_accepted:
        world.do(CAROL, accept(world))
    return world


def activated_by_carol(*names: str, **more: Any) -> World:
    """World in which carol has activated that handoff."""
    world = offered_to_carol(*names, is_accepted=True, **more)
    world.do(CAROL, ActivateHandoff("H"))
    return world


def handoff_end(world: World) -> tuple[str, str, str]:
    """Final state of the handoff, with the author and detail of its rejection."""
    handoff = world.handoffs["H"]
    assert handoff.rejection is not None
    return handoff.status, handoff.rejection.by, handoff.rejection.detail


def result_of(agent: str, *, success: bool, request: str = "") -> ReceiveResult:
    """Result of the request of an agent."""
    return ReceiveResult("i", agent, success, None, "" if success else "it broke", request)


def refusal_of(world: World, actor: Actor, command: Any, now: int = NOW) -> Refusal:
    answer = world.decide(actor, command, now)
    assert isinstance(answer, Refusal), answer
    return answer


@proves("ACP-INTENT-ENDED")
@pytest.mark.parametrize("is_accepted", [False, True])
def test_result_that_ends_task_closes_handoff(is_accepted: bool) -> None:
    world = offered_to_carol(is_accepted=is_accepted)
    world.do(ALICE, result_of("alice", success=True))
    handoff = world.handoffs["H"]
    assert (world.tasks["i"].status, handoff.status) == ("done", "closed")
    assert handoff.rejection is not None
    assert (handoff.rejection.by, handoff.rejection.reason) == ("hub", "other")
    assert world.tasks["i"].handoff is None
    assert refusal_of(world, CAROL, ActivateHandoff("H")).code == "invalid_transition"


@proves("ACP-INTENT-ENDED")
def test_done_task_cannot_be_activated() -> None:
    world = accepted()
    world.tasks["T"] = replace(world.tasks["T"], status="done")
    answer = refusal_of(world, BOB, ActivateHandoff("H"))
    assert (answer.code, answer.detail) == (
        "invalid_transition",
        "T is done: nothing is left to do",
    )


@proves("ACP-INTENT-OWNER")
def test_failure_of_sender_closes_handoff() -> None:
    world = offered_to_carol(is_accepted=True)
    world.do(ALICE, result_of("alice", success=False))
    assert (open_request(world).agent, world.tasks["i"].assignee) == ("bob", "bob")
    assert handoff_end(world) == ("closed", "hub", "i was reassigned to bob")
    assert world.tasks["i"].handoff is None
    assert refusal_of(world, CAROL, ActivateHandoff("H")).code == "invalid_transition"
    world.do(BOB, ClaimTask("i", "bob"))


@proves("ACP-INTENT-OWNER")
def test_failure_of_sender_without_candidates_closes_handoff() -> None:
    world = offered_to_carol("alice", is_accepted=True)
    world.do(ALICE, result_of("alice", success=False))
    assert (world.tasks["i"].status, world.intents["i"].state) == ("deadletter", "NeedsFollowUp")
    assert handoff_end(world) == ("closed", "hub", "i was given up by alice")


@proves("ACP-INTENT-OWNER")
@pytest.mark.parametrize("is_late_result", [False, True])
def test_missed_deadline_of_sender_closes_handoff(is_late_result: bool) -> None:
    world = offered_to_carol(is_accepted=True, patience_ms=HOUR)
    if is_late_result:
        anomaly_detail(world, ALICE, result_of("alice", success=True), NOW + HOUR)
    else:
        world.do(HUB, ExpireRequest("i"), NOW + HOUR)
    assert open_request(world).agent == "bob"
    assert handoff_end(world) == ("closed", "hub", "i was reassigned to bob")


@proves("ACP-INTENT-OWNER")
def test_failed_report_of_sender_closes_handoff() -> None:
    world = registry()
    delegate_intent(world)
    world.do(ALICE, ClaimTask("i", "alice"))
    world.do(ALICE, replace(offer("carol"), task="i"))
    world.do(ALICE, ReportOutcome("i", "failed", apply=True))
    assert open_request(world).agent == "bob"
    assert handoff_end(world) == ("closed", "hub", "i was reassigned to bob")


@proves("ACP-INTENT-OWNER")
def test_failure_of_recipient_passes_task_to_next_candidate() -> None:
    world = activated_by_carol()
    world.do(CAROL, result_of("carol", success=False))
    assert (open_request(world).agent, world.tasks["i"].assignee) == ("bob", "bob")
    assert handoff_end(world) == ("closed", "hub", "i was reassigned to bob")
    assert "i" not in world.leases
    world.do(BOB, ClaimTask("i", "bob"))


@proves("ACP-INTENT-OWNER", "ACP-CHAIN")
def test_next_candidate_replaces_failed_recipient_in_chain() -> None:
    world = activated_by_carol()
    world.do(CAROL, result_of("carol", success=False))
    assert world.tasks["i"].chain == world.handoffs["H"].owners == ("alice", "bob")
    second_offer = replace(offer("carol", id="H2"), task="i")
    world.do(BOB, second_offer)


@proves("ACP-INTENT-OWNER")
def test_recipient_can_reject_task_in_deadletter() -> None:
    world = activated_by_carol("alice", max_agents=1)
    world.do(CAROL, result_of("carol", success=False))
    assert (world.tasks["i"].status, world.handoffs["H"].status) == ("deadletter", "activated")
    world.do(CAROL, RejectHandoff("H", "other", "too hard"))
    assert (world.tasks["i"].status, world.tasks["i"].assignee) == ("deadletter", "alice")


@proves("ACP-INTENT-OWNER")
def test_rejected_task_is_dispatched_to_sender_again() -> None:
    world = activated_by_carol()
    world.do(CAROL, RejectHandoff("H", "other", "too hard"))
    assert (open_request(world).agent, world.tasks["i"].assignee) == ("alice", "alice")


@proves("ACP-INTENT-OWNER", "CCOS-RETRY")
def test_former_sender_vetoed_by_governance_is_not_dispatched() -> None:
    world = activated_by_carol("alice", policy=Policy(cost_ceiling=2.0))
    world.do(HUMAN, DescribeAgent("alice", ("python", "tests"), cost=9.0))
    world.do(CAROL, result_of("carol", success=False))
    assert (world.tasks["i"].status, world.intents["i"].state) == ("deadletter", "NeedsFollowUp")


@proves("ACP-INTENT-OWNER", "CCOS-RETRY")
def test_sender_that_failed_after_rejection_is_not_dispatched_again() -> None:
    world = activated_by_carol("alice")
    world.do(CAROL, RejectHandoff("H", "other", "too hard"))
    world.do(ALICE, result_of("alice", success=False))
    assert (world.tasks["i"].status, world.intents["i"].state) == ("deadletter", "NeedsFollowUp")


def activated_after_failure_of_sender() -> World:
    """World in which alice failed i, got it back from a human, and carol activated her handoff."""
    world = registry("alice", "bob", "dave")
    delegate_intent(world, max_agents=9)
    world.do(ALICE, result_of("alice", success=False))
    world.do(HUMAN, EditTask("i", assignee="alice"))
    world.do(ALICE, replace(offer("carol"), task="i"))
    world.do(CAROL, accept(world))
    world.do(CAROL, ActivateHandoff("H"))
    return world


@proves("ACP-INTENT-OWNER")
def test_rejected_task_of_failed_sender_goes_to_next_candidate() -> None:
    world = activated_after_failure_of_sender()
    world.do(CAROL, RejectHandoff("H", "other", "too hard"))
    assert (open_request(world).agent, world.tasks["i"].assignee) == ("dave", "dave")
    assert (world.handoffs["H"].status, world.tasks["i"].handoff) == ("rejected", None)


@proves("ACP-INTENT-OWNER")
def test_reassignment_keeps_task_with_failed_sender() -> None:
    world = activated_after_failure_of_sender()
    world.cause = "H2"
    world.do(COORDINATOR, ReassignHandoff("H", "erin"))
    assert (world.intents["i"].request, world.tasks["i"].assignee) == (None, "alice")
    assert world.intents["i"].state == "NeedsFollowUp"
    active_handoff = world.tasks["i"].handoff
    assert active_handoff is not None
    assert active_handoff.id == "H2"


@proves("ACP-INTENT-OWNER")
def test_task_with_active_handoff_is_not_delegated() -> None:
    world = registry()
    world.do(ALICE, AdoptTask("acp", "T", ready=True))
    world.do(ALICE, offer("carol"))
    answer = refusal_of(world, HUMAN, DelegateIntent(GOAL, "T", candidates=rank_candidates(world)))
    assert (answer.code, answer.kind) == ("ownership_conflict", "active_handoff")


@proves("ACP-INTENT-OWNER")
def test_intent_with_active_handoff_is_not_delegated_again() -> None:
    world = activated_after_failure_of_sender()
    world.cause = "H2"
    world.do(COORDINATOR, ReassignHandoff("H", "erin"))
    answer = refusal_of(world, HUMAN, DelegateIntent(GOAL, "i", candidates=rank_candidates(world)))
    assert (answer.code, answer.kind) == ("ownership_conflict", "active_handoff")


LOCAL = Policy(data_locality=("eu",), trust_floor="T1", cost_ceiling=2.0)
_NOWHERE = "data locality: it works in places that it does not name, and data stays in eu"
FITTING: dict[str, Any] = {"locality": ("eu",), "trust": "T1", "cost": 2.0}


def _at_cost(cost: float) -> dict[str, Any]:
    return {**FITTING, "cost": cost}


def offered_under_policy(terms: dict[str, Any] | None, **more: Any) -> World:
    """World in which alice has an intent under a policy and has offered its task to carol."""
    world = registry("alice", **FITTING)
    if terms is not None:
        world.agents["carol"] = AgentRecord("carol", "agent", ("acp",), NOW)
        world.do(HUMAN, DescribeAgent("carol", ("cooking",), **terms))
    delegate_intent(world, policy=LOCAL, **more)
    world.do(ALICE, replace(offer("carol"), task="i"))
    return world


@proves("ACP-INTENT-POLICY")
@pytest.mark.parametrize(
    ("terms", "reason"),
    [
        (
            {**FITTING, "locality": ("us",)},
            "data locality: it works in us, and data stays in eu",
        ),
        (_at_cost(3.0), "cost: it costs 3, and 2 is the most"),
        ({**FITTING, "trust": "T0"}, "trust: it has T0, and T1 is the least"),
        (
            None,
            f"trust: it has T0, and T1 is the least; {_NOWHERE}",
        ),
    ],
)
def test_gate_enforces_policy_of_intent(terms: dict[str, Any] | None, reason: str) -> None:
    world = offered_under_policy(terms)
    found = accept(world, passed=("schema", "policy"), failed=(("missing_artifact", "a.txt"),))
    world.do(CAROL, found)
    handoff = world.handoffs["H"]
    assert handoff.rejection is not None
    assert (handoff.rejection.by, handoff.rejection.reason) == ("hub", "policy_violation")
    assert handoff.rejection.detail == f"carol may not have the intent i: {reason}"
    assert handoff.passed == ("schema",)
    assert handoff.failed[1:] == ("missing_artifact: a.txt",)
    assert (open_request(world).agent, world.tasks["i"].handoff) == ("alice", None)


@proves("ACP-INTENT-POLICY")
def test_recipient_within_policy_is_accepted() -> None:
    world = offered_under_policy(FITTING)
    world.do(CAROL, accept(world, passed=("schema", "policy")))
    assert world.handoffs["H"].passed == ("schema", "policy")
    world.do(CAROL, ActivateHandoff("H"))
    assert open_request(world).agent == "carol"


@proves("ACP-INTENT-POLICY")
def test_skills_required_by_intent_count_at_the_gate() -> None:
    world = offered_under_policy(FITTING, skills=("python",))
    world.do(CAROL, accept(world))
    rejection = world.handoffs["H"].rejection
    assert rejection is not None
    assert rejection.detail == "carol may not have the intent i: capability: it lacks python"


@proves("ACP-INTENT-POLICY")
def test_policy_is_checked_again_at_activation() -> None:
    world = offered_under_policy(FITTING)
    world.do(CAROL, accept(world))
    world.do(HUMAN, DescribeAgent("carol", ("cooking",), **_at_cost(9.0)))
    answer = refusal_of(world, CAROL, ActivateHandoff("H"))
    assert (answer.code, world.handoffs["H"].status) == ("policy_violation", "accepted")
    assert answer.detail == "carol may not have the intent i: cost: it costs 9, and 2 is the most"


@proves("ACP-INTENT-POLICY")
def test_unowned_task_is_not_offered_by_agent_outside_policy() -> None:
    world = offered_under_policy(FITTING)
    world.do(ALICE, WithdrawHandoff("H", "no need"))
    world.tasks["i"] = replace(world.tasks["i"], assignee="", reserved_for="")
    answer = refusal_of(world, Actor("agent", "stranger"), replace(offer("carol", "H2"), task="i"))
    assert (answer.code, world.tasks["i"].assignee) == ("policy_violation", "")


@proves("ACP-INTENT-POLICY")
def test_goal_forbidden_by_edit_fails_the_gate() -> None:
    world = offered_to_carol(policy=Policy(forbidden_goals=("delete production",)))
    world.do(HUMAN, EditTask("i", "Delete production"))
    world.do(CAROL, accept(world))
    rejection = world.handoffs["H"].rejection
    assert rejection is not None
    assert "forbidden goal: it comes with the words 'delete production'" in rejection.detail


@proves("ACP-INTENT-POLICY")
def test_forbidden_words_in_package_fail_the_gate() -> None:
    world = registry()
    delegate_intent(world, policy=Policy(forbidden_goals=("delete production",)))
    forbidden_package = package() | {
        "work_state": {"status": "in_progress", "next_step": "delete production"}
    }
    world.do(ALICE, replace(offer("carol", package=forbidden_package), task="i"))
    world.do(CAROL, accept(world))
    status, by, detail = handoff_end(world)
    assert (status, by) == ("rejected", "hub")
    assert "forbidden goal: it comes with the words 'delete production'" in detail


@proves("ACP-INTENT-OWNER")
def test_recipient_with_checkpoint_keeps_the_request() -> None:
    world = activated_by_carol()
    world.do(CAROL, CheckpointTask("i", "PAUSE", "abc1234"))
    assert world.handoffs["H"].status == "completed"
    found = world.tasks["i"]
    assert (found.status, found.assignee, found.handoff) == ("ready", "carol", None)
    assert open_request(world).agent == "carol"
