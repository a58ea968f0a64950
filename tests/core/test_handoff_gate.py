"""The gate of a handoff: checks and human approval decide about acceptance."""

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import (
    AcceptHandoff,
    ApproveHandoff,
    CloseHandoff,
    HandoffApproved,
    HandoffNoted,
    HandoffTransitioned,
    HandoffVerified,
)
from tests.core.handoffs import (
    accept,
    again,
    handoff,
    mail_recipients,
    offered,
    package,
    validating,
)
from tests.core.world import ALICE, BOB, HUMAN, ORCHESTRATOR, World, events_of, with_fields
from tests.requirements import proves

HASH = "0" * 64


def needing_approval(**policy: object) -> World:
    """World in which alice has offered T to bob, and a human has to approve."""
    return offered(package=package(**(policy or {"requires_human_approval": True})))


@proves("ACP-DECIDES-GATE")
def test_passing_handoff_is_accepted_and_sender_is_notified() -> None:
    world = offered()
    copies = {"a-1": HASH}
    decision = world.do(BOB, accept(world, artifacts=copies, notes="gladly"))
    moves = [(e.from_, e.to) for e in events_of(decision) if isinstance(e, HandoffTransitioned)]
    assert moves == [("proposed", "validating"), ("validating", "accepted")]
    known = handoff(world)
    assert (known.passed, known.failed, known.artifacts) == (("schema",), (), copies)
    assert (decision.receipt.state, known.steps[-1].note) == ("accepted", "gladly")
    assert mail_recipients(world, "handoff.accept") == [("alice",)]
    assert world.tasks["T"].assignee == "alice"


@proves("ACP-COUNTER-OFFER")
def test_acceptance_may_leave_out_artifacts() -> None:
    world = offered()
    world.do(BOB, accept(world, left_out=("a-2",)))
    assert handoff(world).left_out == ("a-2",)


@proves("ACP-DECIDES-GATE")
def test_failed_check_rejects_handoff_with_first_reason() -> None:
    world = offered()
    failed = (("policy_violation", "too secret"), ("missing_artifact", "a-1 is not there"))
    decision = world.do(BOB, accept(world, failed=failed))
    known = handoff(world)
    assert (known.status, decision.receipt.state) == ("rejected", "rejected")
    assert known.failed == ("policy_violation: too secret", "missing_artifact: a-1 is not there")
    assert known.rejection is not None
    assert (known.rejection.by, known.rejection.reason) == ("hub", "policy_violation")
    assert mail_recipients(world, "system.error") == [("alice",)]
    assert again(world, ALICE, CloseHandoff("H"), "cause-2").receipt.state == "closed"
    decision = again(world, BOB, accept(world, failed=failed), "cause-3")
    assert (decision.events, decision.receipt.state) == ((), "closed")
    assert world.tasks["T"].handoff is None
    assert (world.tasks["T"].status, world.tasks["T"].assignee) == ("in-progress", "alice")


@proves("ACP-DECIDES-GATE", "ACP-CHAIN")
def test_ownership_cycle_since_proposal_is_found_at_accept() -> None:
    world = with_fields(offered(), chain=("bob", "alice"))
    world.do(BOB, accept(world))
    rejection = handoff(world).rejection
    assert rejection is not None
    assert rejection.reason == "ownership_conflict"
    second = with_fields(offered(), chain=("bob", "alice"))
    second.do(BOB, accept(second, failed=(("schema_invalid", "no"),)))
    assert handoff(second).failed == ("schema_invalid: no",)


@proves("ACP-DECIDES-GATE")
def test_transient_problem_keeps_handoff_validating_for_retry() -> None:
    world = validating()
    assert handoff(world).status == "validating"
    assert handoff(world).notes[-1].text == "the disk does not answer"
    same = accept(world, waits_for="the disk does not answer")
    assert events_of(again(world, BOB, same, "cause-2")) == []
    for other in (
        replace(same, waits_for="the disk is slow"),
        replace(same, passed=()),
        replace(same, left_out=("a-1",)),
    ):
        assert events_of(world.decide(BOB, other)) != []
    decision = again(world, BOB, accept(world), "cause-3")
    moves = [(e.from_, e.to) for e in events_of(decision) if isinstance(e, HandoffTransitioned)]
    assert moves == [("validating", "accepted")]


@proves("ACP-DECIDES-GATE", "ACP-PACKAGE-HASH")
def test_acceptance_of_changed_package_is_refused() -> None:
    assert offered().code(BOB, AcceptHandoff("H", HASH)) == "hash_mismatch"
    world = offered()
    assert world.code(BOB, accept(world, notes="x" * 70_000)) == "invalid_field"


@proves("ACP-APPROVAL")
@pytest.mark.parametrize("policy", [{"requires_human_approval": True}, {"human_gate": "required"}])
def test_handoff_stays_validating_until_human_approval(policy: dict[str, Any]) -> None:
    world = needing_approval(**policy)
    decision = world.do(BOB, accept(world))
    assert (handoff(world).status, decision.receipt.state) == ("validating", "validating")
    waits = [event for event in events_of(decision) if isinstance(event, HandoffNoted)]
    assert handoff(world).package_hash in waits[0].text
    assert events_of(again(world, BOB, accept(world), "cause-2")) == []
    decision = again(world, HUMAN, ApproveHandoff("H"), "cause-3")
    assert [type(event) for event in events_of(decision)] == [HandoffApproved]
    assert decision.receipt.state == "validating"
    again(world, BOB, accept(world), "cause-4")
    assert handoff(world).status == "accepted"


@proves("ACP-APPROVAL")
def test_human_may_approve_before_acceptance() -> None:
    world = needing_approval()
    world.do(HUMAN, ApproveHandoff("H", package_hash=handoff(world).package_hash))
    assert handoff(world).is_approved
    again(world, BOB, accept(world), "cause-2")
    assert handoff(world).status == "accepted"


@proves("ACP-APPROVAL")
def test_approval_needs_third_person_and_current_hash() -> None:
    world = needing_approval()
    for actor in (ALICE, BOB, ORCHESTRATOR):
        assert world.code(actor, ApproveHandoff("H")) == "not_authorized"
    assert world.code(HUMAN, ApproveHandoff("H", package_hash=HASH)) == "hash_mismatch"
    assert world.code(HUMAN, ApproveHandoff("H", note="x" * 70_000)) == "invalid_field"
    for side in ("sender", "recipient"):
        own = needing_approval()
        own.handoffs["H"] = replace(handoff(own), **{side: HUMAN.name})
        assert own.code(HUMAN, ApproveHandoff("H")) == "not_authorized"


@proves("ACP-APPROVAL")
def test_approval_of_another_hash_does_not_count() -> None:
    world = needing_approval()
    world.do(HUMAN, ApproveHandoff("H"))
    approval = handoff(world).approval
    assert approval is not None
    world.handoffs["H"] = replace(handoff(world), approval=replace(approval, package_hash=HASH))
    again(world, BOB, accept(world), "cause-2")
    assert handoff(world).status == "validating"


@proves("ACP-APPROVAL")
@pytest.mark.parametrize("note", ["", "not to them"])
def test_denial_rejects_as_policy_violation(note: str) -> None:
    world = needing_approval()
    world.do(HUMAN, ApproveHandoff("H"))
    decision = again(world, HUMAN, ApproveHandoff("H", False, note=note), "cause-2")
    rejection = handoff(world).rejection
    assert rejection is not None
    assert (decision.receipt.state, rejection.by, rejection.reason) == (
        "rejected",
        "hub",
        "policy_violation",
    )
    assert rejection.detail == "denied by hera" + (f": {note}" if note else "")
    assert not handoff(world).is_approved
    assert world.code(HUMAN, ApproveHandoff("H")) == "invalid_transition"


@proves("ACP-REPEAT")
def test_second_approval_is_a_no_op() -> None:
    world = needing_approval()
    world.do(HUMAN, ApproveHandoff("H", note="fine"))
    assert events_of(world.do(HUMAN, ApproveHandoff("H", note="fine"))) == []
    assert events_of(world.do(HUMAN, ApproveHandoff("H", note="still fine"))) == []


@proves("ACP-DECIDES-GATE")
def test_repeated_acceptance_of_failed_handoff_is_rejected_again() -> None:
    world = offered()
    failed = (("missing_artifact", "a-1 is not there"),)
    world.do(BOB, accept(world, failed=failed))
    decision = again(world, BOB, accept(world, failed=failed), "cause-2")
    assert (decision.events, decision.receipt.state) == ((), "rejected")
    answer = world.decide(BOB, accept(world, left_out=("a-1",)))
    assert isinstance(answer, Refusal)
    assert answer.code == "invalid_transition"


@proves("ACP-DECIDES-GATE")
def test_passed_checks_are_recorded() -> None:
    world = offered()
    seen = [e for e in events_of(world.do(BOB, accept(world))) if isinstance(e, HandoffVerified)]
    assert seen == [HandoffVerified(("schema",))]


@proves("ACP-REPEAT")
def test_decision_of_a_person_is_repeated_in_later_states() -> None:
    world = needing_approval()
    world.do(HUMAN, ApproveHandoff("H", note="fine"))
    again(world, BOB, accept(world), "cause-2")
    assert again(world, HUMAN, ApproveHandoff("H", note="fine"), "cause-3").events == ()
    assert world.code(HUMAN, ApproveHandoff("H", note="too late")) == "invalid_transition"
    denied = needing_approval()
    denied.do(HUMAN, ApproveHandoff("H", approved=False))
    decision = again(denied, HUMAN, ApproveHandoff("H", approved=False), "cause-2")
    assert (decision.events, decision.receipt.state) == ((), "rejected")
