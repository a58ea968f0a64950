"""The gate: what was checked decides, and where a person is needed, a person."""

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.commands import AcceptHandoff, ApproveHandoff, CloseHandoff
from dragoman.core.errors import Refusal
from dragoman.core.events import HandoffApproved, HandoffMoved, HandoffNoted, HandoffVerified
from tests.core.handoffs import accept, again, handoff, letters, offered, package, validating
from tests.core.world import ALICE, BOB, HUMAN, ORCHESTRATOR, World, events_of, with_
from tests.requirements import proves

HASH = "0" * 64


def gated(**policy: object) -> World:
    """What alice has offered to bob needs a person's yes."""
    return offered(package=package(**(policy or {"requires_human_approval": True})))


@proves("ACP-DECIDES-GATE")
def test_what_stands_every_check_is_accepted_and_its_sender_is_told() -> None:
    world = offered()
    copies = {"a-1": HASH}
    told = world.do(BOB, accept(world, artifacts=copies, notes="gladly"))
    moves = [(e.from_, e.to) for e in events_of(told) if isinstance(e, HandoffMoved)]
    assert moves == [("proposed", "validating"), ("validating", "accepted")]
    known = handoff(world)
    assert (known.passed, known.failed, known.artifacts) == (("schema",), (), copies)
    assert (told.receipt.state, known.steps[-1].note) == ("accepted", "gladly")
    assert letters(world, "handoff.accept") == [("alice",)]
    assert world.tasks["T"].assignee == "alice"


@proves("ACP-COUNTER-OFFER")
def test_a_part_of_the_artifacts_can_be_left_out() -> None:
    world = offered()
    world.do(BOB, accept(world, left_out=("a-2",)))
    assert handoff(world).left_out == ("a-2",)


@proves("ACP-DECIDES-GATE")
def test_what_fails_is_rejected_by_the_system_for_its_first_reason() -> None:
    world = offered()
    failed = (("policy_violation", "too secret"), ("missing_artifact", "a-1 is not there"))
    told = world.do(BOB, accept(world, failed=failed))
    known = handoff(world)
    assert (known.status, told.receipt.state) == ("rejected", "rejected")
    assert known.failed == ("policy_violation: too secret", "missing_artifact: a-1 is not there")
    assert known.rejection is not None
    assert (known.rejection.by, known.rejection.reason) == ("hub", "policy_violation")
    assert letters(world, "system.error") == [("alice",)]
    assert again(world, ALICE, CloseHandoff("H"), "cause-2").receipt.state == "closed"
    told = again(world, BOB, accept(world, failed=failed), "cause-3")
    assert (told.events, told.receipt.state) == ((), "closed")
    assert world.tasks["T"].handoff is None
    assert (world.tasks["T"].status, world.tasks["T"].assignee) == ("in-progress", "alice")


@proves("ACP-DECIDES-GATE", "ACP-CHAIN")
def test_a_cycle_that_has_come_about_meanwhile_is_found_at_accept() -> None:
    world = with_(offered(), chain=("bob", "alice"))
    world.do(BOB, accept(world))
    said = handoff(world).rejection
    assert said is not None
    assert said.reason == "ownership_conflict"
    once = with_(offered(), chain=("bob", "alice"))
    once.do(BOB, accept(once, failed=(("schema_invalid", "no"),)))
    assert handoff(once).failed == ("schema_invalid: no",)


@proves("ACP-DECIDES-GATE")
def test_what_could_not_be_checked_leaves_it_validating_and_may_be_tried_again() -> None:
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
        assert events_of(world.ask(BOB, other)) != []
    told = again(world, BOB, accept(world), "cause-3")
    moves = [(e.from_, e.to) for e in events_of(told) if isinstance(e, HandoffMoved)]
    assert moves == [("validating", "accepted")]


@proves("ACP-DECIDES-GATE", "ACP-PACKAGE-HASH")
def test_another_package_than_the_one_that_was_looked_at_is_not_accepted() -> None:
    assert offered().code(BOB, AcceptHandoff("H", HASH)) == "hash_mismatch"
    world = offered()
    assert world.code(BOB, accept(world, notes="x" * 70_000)) == "invalid_field"


@proves("ACP-APPROVAL")
@pytest.mark.parametrize("policy", [{"requires_human_approval": True}, {"human_gate": "required"}])
def test_without_a_persons_yes_it_stays_validating(policy: dict[str, Any]) -> None:
    world = gated(**policy)
    told = world.do(BOB, accept(world))
    assert (handoff(world).status, told.receipt.state) == ("validating", "validating")
    waits = [event for event in events_of(told) if isinstance(event, HandoffNoted)]
    assert handoff(world).package_hash in waits[0].text
    assert events_of(again(world, BOB, accept(world), "cause-2")) == []
    told = again(world, HUMAN, ApproveHandoff("H"), "cause-3")
    assert [type(event) for event in events_of(told)] == [HandoffApproved]
    assert told.receipt.state == "validating"
    again(world, BOB, accept(world), "cause-4")
    assert handoff(world).status == "accepted"


@proves("ACP-APPROVAL")
def test_a_person_may_say_yes_before_it_is_looked_at() -> None:
    world = gated()
    world.do(HUMAN, ApproveHandoff("H", package_hash=handoff(world).package_hash))
    assert handoff(world).is_approved
    again(world, BOB, accept(world), "cause-2")
    assert handoff(world).status == "accepted"


@proves("ACP-APPROVAL")
def test_an_approval_is_a_third_persons_and_of_this_very_package() -> None:
    world = gated()
    for actor in (ALICE, BOB, ORCHESTRATOR):
        assert world.code(actor, ApproveHandoff("H")) == "not_authorized"
    assert world.code(HUMAN, ApproveHandoff("H", package_hash=HASH)) == "hash_mismatch"
    assert world.code(HUMAN, ApproveHandoff("H", note="x" * 70_000)) == "invalid_field"
    for side in ("sender", "recipient"):
        own = gated()
        own.handoffs["H"] = replace(handoff(own), **{side: HUMAN.name})
        assert own.code(HUMAN, ApproveHandoff("H")) == "not_authorized"


@proves("ACP-APPROVAL")
def test_an_approval_of_another_hash_does_not_count() -> None:
    world = gated()
    world.do(HUMAN, ApproveHandoff("H"))
    said = handoff(world).approval
    assert said is not None
    world.handoffs["H"] = replace(handoff(world), approval=replace(said, package_hash=HASH))
    again(world, BOB, accept(world), "cause-2")
    assert handoff(world).status == "validating"


@proves("ACP-APPROVAL")
@pytest.mark.parametrize("note", ["", "not to them"])
def test_a_no_rejects_as_a_violation_of_the_policy(note: str) -> None:
    world = gated()
    world.do(HUMAN, ApproveHandoff("H"))
    told = again(world, HUMAN, ApproveHandoff("H", False, note=note), "cause-2")
    said = handoff(world).rejection
    assert said is not None
    assert (told.receipt.state, said.by, said.reason) == ("rejected", "hub", "policy_violation")
    assert said.detail == "denied by hera" + (f": {note}" if note else "")
    assert not handoff(world).is_approved
    assert world.code(HUMAN, ApproveHandoff("H")) == "invalid_transition"


@proves("ACP-REPEAT")
def test_a_second_yes_adds_nothing() -> None:
    world = gated()
    world.do(HUMAN, ApproveHandoff("H", note="fine"))
    assert events_of(world.do(HUMAN, ApproveHandoff("H", note="fine"))) == []
    assert events_of(world.do(HUMAN, ApproveHandoff("H", note="still fine"))) == []


@proves("ACP-DECIDES-GATE")
def test_what_the_gate_says_no_to_it_says_no_to_again() -> None:
    world = offered()
    failed = (("missing_artifact", "a-1 is not there"),)
    world.do(BOB, accept(world, failed=failed))
    told = again(world, BOB, accept(world, failed=failed), "cause-2")
    assert (told.events, told.receipt.state) == ((), "rejected")
    answer = world.ask(BOB, accept(world, left_out=("a-1",)))
    assert isinstance(answer, Refusal)
    assert answer.code == "invalid_transition"


@proves("ACP-DECIDES-GATE")
def test_the_checks_are_on_record() -> None:
    world = offered()
    seen = [e for e in events_of(world.do(BOB, accept(world))) if isinstance(e, HandoffVerified)]
    assert seen == [HandoffVerified(("schema",))]
