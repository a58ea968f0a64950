"""Handoffs of the tasks of intents: what CCOS and ACP do to one task agrees (S-OWN, S-CCOS-3)."""

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    ActivateHandoff,
    AdoptTask,
    CheckpointTask,
    ClaimTask,
    DelegateIntent,
    DescribeAgent,
    EditTask,
    ExpireRequest,
    ReassignHandoff,
    ReceiveResult,
    RejectHandoff,
    ReportOutcome,
    WithdrawHandoff,
)
from dragoman.core.errors import Refusal
from dragoman.core.offers import Policy
from dragoman.core.states.agent import AgentRecord
from tests.core.delegating import CAROL, GOAL, HOUR, delegated, odd, open_request, ranked, registry
from tests.core.handoffs import DAVE, accept, accepted, offer, package
from tests.core.world import ALICE, BOB, COORDINATOR, HUB, HUMAN, NOW, World
from tests.requirements import proves


def on_its_way(*names: str, is_accepted: bool = False, **more: Any) -> World:
    """Alice has the intent i, and has offered its task to carol."""
    world = registry(*names)
    delegated(world, **more)
    world.do(ALICE, replace(offer("carol"), task="i"))
    if is_accepted:
        world.do(CAROL, accept(world))
    return world


def begun(*names: str, **more: Any) -> World:
    """And carol has taken it over."""
    world = on_its_way(*names, is_accepted=True, **more)
    world.do(CAROL, ActivateHandoff("H"))
    return world


def told(world: World) -> tuple[str, str, str]:
    """How the handoff has ended: its state, by whom it was rejected and why."""
    handoff = world.handoffs["H"]
    assert handoff.rejection is not None
    return handoff.status, handoff.rejection.by, handoff.rejection.detail


def result(agent: str, *, success: bool, request: str = "") -> ReceiveResult:
    """What an agent brings back."""
    return ReceiveResult("i", agent, success, None, "" if success else "it broke", request)


def refused(world: World, actor: Actor, command: Any, now: int = NOW) -> Refusal:
    """A no."""
    answer = world.ask(actor, command, now)
    assert isinstance(answer, Refusal), answer
    return answer


@proves("ACP-INTENT-ENDED")
@pytest.mark.parametrize("is_accepted", [False, True])
def test_a_result_that_ends_the_task_ends_the_handoff(is_accepted: bool) -> None:
    world = on_its_way(is_accepted=is_accepted)
    world.do(ALICE, result("alice", success=True))
    handoff = world.handoffs["H"]
    assert (world.tasks["i"].status, handoff.status) == ("done", "closed")
    assert handoff.rejection is not None
    assert (handoff.rejection.by, handoff.rejection.reason) == ("hub", "other")
    assert world.tasks["i"].handoff is None
    assert refused(world, CAROL, ActivateHandoff("H")).code == "invalid_transition"


@proves("ACP-INTENT-ENDED")
def test_what_is_done_is_not_begun_again_by_an_old_handoff() -> None:
    world = accepted()
    world.tasks["T"] = replace(world.tasks["T"], status="done")
    answer = refused(world, BOB, ActivateHandoff("H"))
    assert (answer.code, answer.detail) == (
        "invalid_transition",
        "T is done: nothing is left to do; what bob can do now is reject",
    )


@proves("ACP-INTENT-OWNER")
def test_a_sender_who_fails_has_nothing_left_to_hand_over() -> None:
    world = on_its_way(is_accepted=True)
    world.do(ALICE, result("alice", success=False))
    assert (open_request(world).agent, world.tasks["i"].assignee) == ("bob", "bob")
    assert told(world) == ("closed", "hub", "i has gone to bob")
    assert world.tasks["i"].handoff is None
    assert refused(world, CAROL, ActivateHandoff("H")).code == "invalid_transition"
    world.do(BOB, ClaimTask("i", "bob"))


@proves("ACP-INTENT-OWNER")
def test_nor_if_nobody_else_may_have_it() -> None:
    world = on_its_way("alice", is_accepted=True)
    world.do(ALICE, result("alice", success=False))
    assert (world.tasks["i"].status, world.intents["i"].state) == ("deadletter", "NeedsFollowUp")
    assert told(world) == ("closed", "hub", "i was given up by alice")


@proves("ACP-INTENT-OWNER")
@pytest.mark.parametrize("is_late_result", [False, True])
def test_nor_after_its_deadline_whoever_notices_it(is_late_result: bool) -> None:
    world = on_its_way(is_accepted=True, patience_ms=HOUR)
    if is_late_result:
        odd(world, ALICE, result("alice", success=True), NOW + HOUR)
    else:
        world.do(HUB, ExpireRequest("i"), NOW + HOUR)
    assert open_request(world).agent == "bob"
    assert told(world) == ("closed", "hub", "i has gone to bob")


@proves("ACP-INTENT-OWNER")
def test_nor_when_it_fails_in_another_dialect() -> None:
    world = registry()
    delegated(world)
    world.do(ALICE, ClaimTask("i", "alice"))
    world.do(ALICE, replace(offer("carol"), task="i"))
    world.do(ALICE, ReportOutcome("i", "failed", apply=True))
    assert open_request(world).agent == "bob"
    assert told(world) == ("closed", "hub", "i has gone to bob")


@proves("ACP-INTENT-OWNER")
def test_a_recipient_who_fails_loses_it_to_the_next() -> None:
    world = begun()
    world.do(CAROL, result("carol", success=False))
    assert (open_request(world).agent, world.tasks["i"].assignee) == ("bob", "bob")
    assert told(world) == ("closed", "hub", "i has gone to bob")
    assert "i" not in world.leases
    world.do(BOB, ClaimTask("i", "bob"))


@proves("ACP-INTENT-OWNER", "ACP-CHAIN")
def test_and_is_out_of_the_chain_in_which_the_next_stands() -> None:
    world = begun()
    world.do(CAROL, result("carol", success=False))
    assert world.tasks["i"].chain == world.handoffs["H"].owners == ("alice", "bob")
    again = replace(offer("carol", id="H2"), task="i")
    world.do(BOB, again)


@proves("ACP-INTENT-OWNER")
def test_in_the_deadletter_it_stays_the_recipients_to_give_back() -> None:
    world = begun("alice", tries=1)
    world.do(CAROL, result("carol", success=False))
    assert (world.tasks["i"].status, world.handoffs["H"].status) == ("deadletter", "activated")
    world.do(CAROL, RejectHandoff("H", "other", "too hard"))
    assert (world.tasks["i"].status, world.tasks["i"].assignee) == ("deadletter", "alice")


@proves("ACP-INTENT-OWNER")
def test_what_comes_back_to_the_sender_is_asked_of_it_again() -> None:
    world = begun()
    world.do(CAROL, RejectHandoff("H", "other", "too hard"))
    assert (open_request(world).agent, world.tasks["i"].assignee) == ("alice", "alice")


@proves("ACP-INTENT-OWNER", "CCOS-RETRY")
def test_who_has_handed_it_over_is_asked_when_nobody_else_is_left() -> None:
    world = begun()
    world.do(CAROL, result("carol", success=False))
    assert open_request(world).agent == "bob"
    world.do(BOB, result("bob", success=False))
    assert (open_request(world).agent, world.tasks["i"].assignee) == ("alice", "alice")
    world.do(ALICE, result("alice", success=False))
    assert (world.tasks["i"].status, world.intents["i"].state) == ("deadletter", "NeedsFollowUp")


@proves("ACP-INTENT-OWNER", "CCOS-RETRY")
def test_of_several_who_have_handed_it_over_the_last_one_is_asked_first() -> None:
    world = begun("alice", "carol")
    world.do(CAROL, replace(offer("dave", "H2", supersedes="H"), task="i"))
    world.do(DAVE, accept(world, "H2"))
    world.do(DAVE, ActivateHandoff("H2"))
    world.do(DAVE, result("dave", success=False))
    assert open_request(world).agent == "carol"
    assert world.handoffs["H2"].status == "closed"
    world.do(CAROL, result("carol", success=False))
    assert open_request(world).agent == "alice"


@proves("ACP-INTENT-OWNER", "CCOS-RETRY")
def test_but_not_if_governance_has_something_against_it_by_now() -> None:
    world = begun("alice", policy=Policy(cost_ceiling=2.0))
    world.do(HUMAN, DescribeAgent("alice", ("python", "tests"), cost=9.0))
    world.do(CAROL, result("carol", success=False))
    assert (world.tasks["i"].status, world.intents["i"].state) == ("deadletter", "NeedsFollowUp")


@proves("ACP-INTENT-OWNER", "CCOS-RETRY")
def test_nor_again_and_again_if_the_hub_cannot_reach_it() -> None:
    world = begun("alice", patience_ms=HOUR)
    world.do(CAROL, result("carol", success=False), NOW + 1)
    assert open_request(world).agent == "alice"
    world.do(HUB, ExpireRequest("i", is_called=True), NOW + 2 * HOUR)
    assert world.intents["i"].failed == ("carol",)
    assert (world.tasks["i"].status, world.intents["i"].state) == ("deadletter", "NeedsFollowUp")


@proves("ACP-INTENT-OWNER", "CCOS-RETRY")
def test_nor_who_has_given_it_back() -> None:
    world = begun("alice")
    world.do(CAROL, RejectHandoff("H", "other", "too hard"))
    world.do(ALICE, result("alice", success=False))
    assert (world.tasks["i"].status, world.intents["i"].state) == ("deadletter", "NeedsFollowUp")


def failed_before() -> World:
    """Alice has failed it; then a person gave it to her, and carol has taken it over."""
    world = registry("alice", "bob", "dave")
    delegated(world, tries=9)
    world.do(ALICE, result("alice", success=False))
    world.do(HUMAN, EditTask("i", assignee="alice"))
    world.do(ALICE, replace(offer("carol"), task="i"))
    world.do(CAROL, accept(world))
    world.do(CAROL, ActivateHandoff("H"))
    return world


@proves("ACP-INTENT-OWNER")
def test_but_not_if_the_sender_has_failed_it() -> None:
    world = failed_before()
    world.do(CAROL, RejectHandoff("H", "other", "too hard"))
    assert (open_request(world).agent, world.tasks["i"].assignee) == ("dave", "dave")
    assert (world.handoffs["H"].status, world.tasks["i"].handoff) == ("rejected", None)


@proves("ACP-INTENT-OWNER")
def test_nor_while_a_coordinator_has_it_offered_to_somebody_else() -> None:
    world = failed_before()
    world.cause = "H2"
    world.do(COORDINATOR, ReassignHandoff("H", "erin"))
    assert (world.intents["i"].request, world.tasks["i"].assignee) == (None, "alice")
    assert world.intents["i"].state == "NeedsFollowUp"
    under_way = world.tasks["i"].handoff
    assert under_way is not None
    assert under_way.id == "H2"


@proves("ACP-INTENT-OWNER")
def test_what_is_on_its_way_is_not_delegated() -> None:
    world = registry()
    world.do(ALICE, AdoptTask("acp", "T", ready=True))
    world.do(ALICE, offer("carol"))
    answer = refused(world, HUMAN, DelegateIntent(GOAL, "T", candidates=ranked(world)))
    assert (answer.code, answer.kind) == ("ownership_conflict", "active_handoff")


@proves("ACP-INTENT-OWNER")
def test_nor_delegated_anew() -> None:
    world = failed_before()
    world.cause = "H2"
    world.do(COORDINATOR, ReassignHandoff("H", "erin"))
    answer = refused(world, HUMAN, DelegateIntent(GOAL, "i", candidates=ranked(world)))
    assert (answer.code, answer.kind) == ("ownership_conflict", "active_handoff")


LOCAL = Policy(data_locality=("eu",), trust_floor="T1", cost_ceiling=2.0)
_NOWHERE = "data locality: it works in places that it does not name, and data stays in eu"
FITTING: dict[str, Any] = {"locality": ("eu",), "trust": "T1", "cost": 2.0}


def _costing(cost: float) -> dict[str, Any]:
    return {**FITTING, "cost": cost}


def governed(terms: dict[str, Any] | None, **more: Any) -> World:
    """Alice has an intent under a policy; carol, on these terms, is offered its task."""
    world = registry("alice", **FITTING)
    if terms is not None:
        world.agents["carol"] = AgentRecord("carol", "agent", ("acp",), NOW)
        world.do(HUMAN, DescribeAgent("carol", ("cooking",), **terms))
    delegated(world, policy=LOCAL, **more)
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
        (_costing(3.0), "cost: it costs 3, and 2 is the most"),
        ({**FITTING, "trust": "T0"}, "trust: it has T0, and T1 is the least"),
        (
            None,
            f"trust: it has T0, and T1 is the least; {_NOWHERE}",
        ),
    ],
)
def test_the_gate_keeps_to_the_policy_of_an_intent(
    terms: dict[str, Any] | None, reason: str
) -> None:
    world = governed(terms)
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
def test_who_keeps_to_it_is_not_asked_for_more() -> None:
    world = governed(FITTING)
    world.do(CAROL, accept(world, passed=("schema", "policy")))
    assert world.handoffs["H"].passed == ("schema", "policy")
    world.do(CAROL, ActivateHandoff("H"))
    assert open_request(world).agent == "carol"


@proves("ACP-INTENT-POLICY")
def test_what_is_asked_of_one_intent_counts_for_it() -> None:
    world = governed(FITTING, skills=("python",))
    world.do(CAROL, accept(world))
    rejection = world.handoffs["H"].rejection
    assert rejection is not None
    assert rejection.detail == "carol may not have the intent i: capability: it lacks python"


@proves("ACP-INTENT-POLICY")
def test_it_is_looked_at_again_when_the_work_begins() -> None:
    world = governed(FITTING)
    world.do(CAROL, accept(world))
    world.do(HUMAN, DescribeAgent("carol", ("cooking",), **_costing(9.0)))
    answer = refused(world, CAROL, ActivateHandoff("H"))
    assert (answer.code, world.handoffs["H"].status) == ("policy_violation", "accepted")
    assert answer.detail == "carol may not have the intent i: cost: it costs 9, and 2 is the most"


@proves("ACP-INTENT-POLICY")
def test_what_nobody_has_is_not_offered_by_whom_its_policy_keeps_from_it() -> None:
    world = governed(FITTING)
    world.do(ALICE, WithdrawHandoff("H", "no need"))
    world.tasks["i"] = replace(world.tasks["i"], assignee="", reserved_for="")
    answer = refused(world, Actor("agent", "stranger"), replace(offer("carol", "H2"), task="i"))
    assert (answer.code, world.tasks["i"].assignee) == ("policy_violation", "")


@proves("ACP-INTENT-POLICY")
def test_nobody_takes_over_what_became_forbidden() -> None:
    world = on_its_way(policy=Policy(forbidden_goals=("delete production",)))
    world.do(HUMAN, EditTask("i", "Delete production"))
    world.do(CAROL, accept(world))
    rejection = world.handoffs["H"].rejection
    assert rejection is not None
    assert "forbidden goal: it comes with the words 'delete production'" in rejection.detail


@proves("ACP-INTENT-POLICY")
def test_nobody_takes_over_what_its_package_makes_forbidden() -> None:
    world = registry()
    delegated(world, policy=Policy(forbidden_goals=("delete production",)))
    said = package() | {"work_state": {"status": "in_progress", "next_step": "delete production"}}
    world.do(ALICE, replace(offer("carol", package=said), task="i"))
    world.do(CAROL, accept(world))
    status, by, detail = told(world)
    assert (status, by) == ("rejected", "hub")
    assert "forbidden goal: it comes with the words 'delete production'" in detail


@proves("ACP-INTENT-OWNER")
def test_a_recipient_that_leaves_a_checkpoint_stays_the_one_that_is_asked() -> None:
    world = begun()
    world.do(CAROL, CheckpointTask("i", "PAUSE", "abc1234"))
    assert world.handoffs["H"].status == "completed"
    found = world.tasks["i"]
    assert (found.status, found.assignee, found.handoff) == ("ready", "carol", None)
    assert open_request(world).agent == "carol"
