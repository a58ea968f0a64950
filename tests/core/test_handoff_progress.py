"""Progress and end of handoffs: activate, complete, close, reject, withdraw, redelegate."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.attempt import (
    CheckpointTask,
    ClaimTask,
    EndAttempt,
    ExpireLease,
    RenewLease,
    ReportOutcome,
)
from dragoman.core.attempt_state import TaskClaimed, TaskReported
from dragoman.core.base import Command, Outcome
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import (
    ActivateHandoff,
    CloseHandoff,
    CompleteHandoff,
    HandoffNoted,
    HandoffTransitioned,
    ReassignHandoff,
    RejectHandoff,
    WithdrawHandoff,
)
from dragoman.core.task_state import (
    EditTask,
    MoveTask,
    RewindTask,
    TaskHandedOver,
    TaskTransitioned,
    UpdateTask,
)
from tests.core.handoffs import (
    CAROL,
    accept,
    accepted,
    activated,
    again,
    at,
    handoff,
    mail_recipients,
    offer,
    offered,
)
from tests.core.world import (
    ALICE,
    BOB,
    COORDINATOR,
    HUB,
    HUMAN,
    NOW,
    TTL,
    World,
    events_of,
    held,
    task,
    with_fields,
)
from tests.requirements import proves


def moves_in(decision: Any) -> list[tuple[str, str]]:
    """Status changes of the task in a decision."""
    return [(e.from_, e.to) for e in events_of(decision) if isinstance(e, TaskTransitioned)]


@proves("ACP-OWNER")
def test_activation_starts_attempt_and_invalidates_senders_fence() -> None:
    world = accepted()
    update: dict[str, object] = {"percent_complete": 50}
    command = ActivateHandoff("H", "s-bob", 60_000, update)
    decision = again(world, BOB, command, "cause-2", NOW + 5)
    found, lease = world.tasks["T"], world.leases["T"]
    assert (found.status, found.assignee, found.attempts, found.fence) == (
        "in-progress",
        "bob",
        2,
        2,
    )
    assert (lease.holder, lease.fence, lease.session) == ("bob", 2, "s-bob")
    assert (decision.receipt.fence, decision.receipt.expires_at) == (2, NOW + 5 + 60_000)
    assert (decision.receipt.state, decision.receipt.attempt) == ("activated", 2)
    assert moves_in(decision) == [("in-progress", "ready")]
    assert found.chain == ("alice", "bob")
    assert handoff(world).notes[-1].data == update
    assert world.code(ALICE, RenewLease("T", 1)) == "lease_lost"
    assert world.code(ALICE, ReportOutcome("T", "done")) == "lease_lost"


@proves("ACP-OWNER")
@pytest.mark.parametrize(
    ("status", "expected_moves"),
    [
        ("ready", []),
        ("review", []),
        ("blocked", [("blocked", "ready")]),
        ("backlog", [("backlog", "ready")]),
    ],
)
def test_activation_of_unheld_task_moves_it_to_in_progress(
    status: Any, expected_moves: Any
) -> None:
    world = World(replace(task("T", status, "alice"), reserved_for="alice"))
    world.do(ALICE, offer())
    world.do(BOB, accept(world))
    decision = again(world, BOB, ActivateHandoff("H"), "cause-2")
    assert moves_in(decision) == expected_moves
    (claimed,) = (event for event in events_of(decision) if isinstance(event, TaskClaimed))
    assert claimed.from_ == ("review" if status == "review" else "ready")
    assert world.tasks["T"].status == "in-progress"


@proves("ACP-BLOCK")
def test_block_since_offer_is_not_lifted_by_recipient() -> None:
    world = accepted()
    world.do(HUMAN, MoveTask("T", "blocked", "legal says stop"), NOW + 1)
    assert world.code(BOB, ActivateHandoff("H"), NOW + 2) == "not_ready"
    assert world.tasks["T"].status == "blocked"
    world.do(BOB, offer(id="H2", recipient="carol", supersedes="H"), NOW + 3)
    world.do(CAROL, accept(world, "H2"), NOW + 3)
    assert world.code(CAROL, ActivateHandoff("H2"), NOW + 3) == "not_ready"


@proves("ACP-BLOCK")
def test_block_in_same_millisecond_as_offer_counts_as_later() -> None:
    world = World(replace(task("T", "blocked", "alice"), reserved_for="alice"))
    world.do(ALICE, offer())
    world.do(BOB, accept(world))
    assert world.code(BOB, ActivateHandoff("H")) == ""
    world.do(HUMAN, MoveTask("T", "ready"))
    world.do(HUMAN, MoveTask("T", "blocked", "legal says stop"))
    assert world.code(BOB, ActivateHandoff("H")) == "not_ready"


@proves("ACP-BLOCK")
@pytest.mark.parametrize(("is_since", "code"), [(True, "not_ready"), (False, "")])
@pytest.mark.parametrize("held_back", ["blocked", "backlog"])
def test_reassignment_keeps_block_made_since_the_offer(
    held_back: Any, is_since: bool, code: str
) -> None:
    status = "ready" if is_since else held_back
    world = World(replace(task("T", status, "alice"), reserved_for="alice"))
    world.do(ALICE, offer())
    if is_since:
        world.do(HUMAN, MoveTask("T", held_back, "legal says stop"), NOW + 1)
    again(world, COORDINATOR, ReassignHandoff("H", "carol"), "H2", NOW + 2)
    world.do(CAROL, accept(world, "H2"), NOW + 3)
    assert world.code(CAROL, ActivateHandoff("H2"), NOW + 4) == code


@proves("ACP-BLOCK")
def test_task_blocked_by_recipient_stays_blocked_after_reassignment() -> None:
    world = activated()
    again(world, BOB, ReportOutcome("T", "blocked", apply=True, blockers=("x",)), "cause-2")
    decision = again(world, COORDINATOR, ReassignHandoff("H", "carol"), "H2", NOW + 1)
    found = world.tasks["T"]
    assert (found.status, found.assignee, decision.receipt.status) == (
        "blocked",
        "alice",
        "blocked",
    )
    world.do(CAROL, accept(world, "H2"), NOW + 2)
    assert world.code(CAROL, ActivateHandoff("H2"), NOW + 3) == "not_ready"
    assert world.code(ALICE, MoveTask("T", "ready"), NOW + 4) == "lease_lost"
    world.do(HUMAN, MoveTask("T", "ready"), NOW + 4)
    world.do(CAROL, ActivateHandoff("H2"), NOW + 5)
    assert world.tasks["T"].assignee == "carol"


@proves("ACP-BLOCK")
def test_rejection_by_recipient_unblocks_task() -> None:
    world = activated()
    again(world, BOB, ReportOutcome("T", "blocked", apply=True, blockers=("x",)), "cause-2")
    decision = again(world, BOB, RejectHandoff("H", "other", "not for me"), "cause-3")
    assert (world.tasks["T"].status, decision.receipt.status) == ("ready", "ready")


@proves("ACP-BLOCK")
def test_rewind_to_blocked_task_restores_the_block() -> None:
    blocked = replace(task("T", "blocked", "alice"), reserved_for="alice")
    world = World(blocked)
    world.do(ALICE, offer())
    world.do(BOB, accept(world))
    world.past["T", 1] = replace(blocked, title="as it was")
    world.do(HUMAN, RewindTask("T", 1, "e" * 40, "rewind/T"))
    assert world.tasks["T"].handoff is not None
    assert world.code(BOB, ActivateHandoff("H")) == "not_ready"


@proves("ACP-OWNER")
def test_activation_is_refused_while_task_is_in_backlog() -> None:
    world = activated()
    world.do(HUMAN, MoveTask("T", "ready"))
    world.do(HUMAN, MoveTask("T", "backlog"))
    assert world.code(BOB, ActivateHandoff("H")) == "not_ready"


@proves("ACP-BLOCK")
def test_task_moved_to_backlog_since_offer_is_activated_once_ready() -> None:
    world = World(replace(task("T", "ready", "alice"), reserved_for="alice"))
    world.do(ALICE, offer())
    world.do(HUMAN, MoveTask("T", "backlog"))
    world.do(BOB, accept(world))
    assert world.decide(BOB, ActivateHandoff("H")) == Refusal(
        "not_ready",
        "T is in the backlog: a person, a coordinator or an orchestrator has to make it ready "
        "first",
    )
    again(world, HUMAN, MoveTask("T", "ready"), "cause-2")
    again(world, BOB, ActivateHandoff("H"), "cause-3")
    assert world.tasks["T"].assignee == "bob"


@proves("ACP-BLOCK")
def test_reassigned_task_in_backlog_is_activated_once_ready() -> None:
    world = activated()
    world.do(HUMAN, MoveTask("T", "ready"))
    world.do(HUMAN, MoveTask("T", "backlog"))
    again(world, COORDINATOR, ReassignHandoff("H", "carol"), "H2")
    world.do(CAROL, accept(world, "H2"))
    assert world.code(CAROL, ActivateHandoff("H2")) == "not_ready"
    again(world, HUMAN, MoveTask("T", "ready"), "cause-2")
    again(world, CAROL, ActivateHandoff("H2"), "cause-3")
    assert world.tasks["T"].assignee == "carol"


@proves("ACP-BLOCK")
@pytest.mark.parametrize("status", ["blocked", "backlog"])
def test_task_offered_at_rest_is_activated_by_next_recipient(
    status: Any,
) -> None:
    world = World(replace(task("T", status, "alice"), reserved_for="alice"))
    world.do(ALICE, offer())
    world.do(BOB, accept(world))
    again(world, BOB, offer("carol", "H2", supersedes="H"), "cause-2")
    world.do(CAROL, accept(world, "H2"))
    again(world, CAROL, ActivateHandoff("H2"), "cause-3")
    assert world.tasks["T"].status == "in-progress"


@proves("ACP-BLOCK")
def test_unblocked_task_is_activated() -> None:
    world = accepted()
    world.do(HUMAN, MoveTask("T", "blocked", "legal says stop"), NOW + 1)
    world.do(HUMAN, MoveTask("T", "ready"), NOW + 3)
    decision = again(world, BOB, ActivateHandoff("H"), "cause-4", NOW + 4)
    assert moves_in(decision) == []
    assert world.tasks["T"].assignee == "bob"


@proves("ACP-REPORTED")
@pytest.mark.parametrize(("outcome", "becomes"), [("done", "closed"), ("blocked", "accepted")])
def test_activation_waits_until_report_of_holder_is_applied(outcome: Outcome, becomes: str) -> None:
    world = accepted()
    world.do(ALICE, ReportOutcome("T", outcome, blockers=("no key",)))
    too_early = world.decide(BOB, ActivateHandoff("H"))
    assert isinstance(too_early, Refusal)
    assert too_early.code == "not_ready"
    assert f"alice has reported T {outcome}" in too_early.detail
    again(world, ALICE, EndAttempt("T"), "cause-2")
    assert handoff(world).status == becomes
    assert world.tasks["T"].attempts == 1


@proves("ACP-REPORTED")
@pytest.mark.parametrize("outcome", ["partial", "needs_review"])
def test_activation_proceeds_after_partial_report(outcome: Outcome) -> None:
    world = accepted()
    world.do(ALICE, ReportOutcome("T", outcome))
    again(world, BOB, ActivateHandoff("H"), "cause-2")
    assert world.leases["T"].holder == "bob"


@proves("ACP-OWNER")
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"ttl_ms": 1}, "invalid_field"),
        ({"session": "a b"}, "invalid_id"),
        ({"work_state_update": {"n": 2**53}}, "invalid_field"),
        ({"failed": (("hash_mismatch", "the copy of a-1 is not what it was"),)}, "hash_mismatch"),
    ],
)
def test_invalid_activation_is_refused(fields: dict[str, Any], code: str) -> None:
    world = accepted()
    assert world.code(BOB, replace(ActivateHandoff("H"), **fields)) == code


@proves("ACP-OWNER")
def test_activation_is_refused_in_deadletter_and_with_open_blockers() -> None:
    dead = with_fields(accepted(), status="deadletter")
    assert dead.code(BOB, ActivateHandoff("H")) == "invalid_transition"
    waiting = with_fields(accepted(), open_blockers=("U",))
    assert waiting.code(BOB, ActivateHandoff("H")) == "blocked_by_dependency"


@proves("ACP-GOES-ON")
@pytest.mark.parametrize("is_seen", [True, False])
def test_recipient_with_expired_lease_can_activate_again(is_seen: bool) -> None:
    world = activated()
    late = NOW + TTL
    if is_seen:
        again(world, HUB, ExpireLease("T"), "cause-2", late)
    answer = world.decide(BOB, CompleteHandoff("H"), late)
    assert isinstance(answer, Refusal)
    assert (answer.code, "activate H again" in answer.detail) == ("lease_lost", True)
    assert world.code(CAROL, ActivateHandoff("H"), late) == "not_authorized"
    decision = again(world, BOB, ActivateHandoff("H", "s-2"), "cause-3", late)
    assert (decision.receipt.state, decision.receipt.attempt, decision.receipt.fence) == (
        "activated",
        3,
        3,
    )
    assert moves_in(decision) == ([] if is_seen else [("in-progress", "ready")])
    assert not any(
        isinstance(event, HandoffTransitioned | TaskHandedOver) for event in events_of(decision)
    )
    found = world.tasks["T"]
    assert (found.status, found.assignee, found.chain) == ("in-progress", "bob", ("alice", "bob"))
    assert (world.leases["T"].fence, world.leases["T"].session) == (3, "s-2")
    assert handoff(world).entered_at == NOW
    assert again(world, BOB, ActivateHandoff("H"), "cause-4", late + 1).events == ()
    again(world, BOB, CompleteHandoff("H"), "cause-5", late + 2)
    assert handoff(world).status == "completed"


@proves("ACP-GOES-ON")
def test_blocked_recipient_can_activate_again_once_ready() -> None:
    world = activated()
    again(world, BOB, ReportOutcome("T", "blocked", apply=True, blockers=("x",)), "cause-2")
    assert world.code(BOB, ActivateHandoff("H")) == "not_ready"
    again(world, HUMAN, MoveTask("T", "ready"), "cause-3")
    update: dict[str, object] = {"percent_complete": 10}
    again(world, BOB, ActivateHandoff("H", work_state_update=update), "cause-4", NOW + 1)
    assert handoff(world).notes[-1].data == update
    same = ActivateHandoff("H", work_state_update=update)
    assert again(world, BOB, same, "cause-5", NOW + 2).events == ()
    again(world, BOB, CompleteHandoff("H"), "cause-6", NOW + 3)
    gone = activated()
    del gone.tasks["T"]
    assert gone.code(BOB, ActivateHandoff("H")) == "task_not_found"


@proves("ACP-OWNER")
def test_completion_reports_the_attempt() -> None:
    world = activated()
    artifact: dict[str, object] = {"artifact_id": "out"}
    command = CompleteHandoff("H", "it works", (artifact,))
    decision = again(world, BOB, command, "cause-2")
    found = world.tasks["T"]
    assert (found.status, found.handoff, found.chain) == ("review", None, ("alice", "bob"))
    assert found.reported is not None
    assert (found.reported.outcome, found.reported.notes) == ("done", "it works")
    assert (decision.receipt.state, decision.receipt.status) == ("completed", "review")
    assert decision.receipt.stream == "handoff:H"
    assert "T" not in world.leases
    note = handoff(world).notes[-1]
    assert (note.kind, note.text, note.data) == (
        "completion_notes",
        "it works",
        {"final_artifacts": [artifact]},
    )
    assert mail_recipients(world, "handoff.complete") == [("alice",)]
    assert handoff(world).resolved_at == NOW


@proves("ACP-COMPLETE-TOLD")
@pytest.mark.parametrize(
    ("actor", "command", "by"),
    [
        (BOB, ReportOutcome("T", "done", apply=True), "bob"),
        (BOB, MoveTask("T", "review"), "bob"),
        (HUMAN, MoveTask("T", "review"), "hub"),
    ],
)
def test_sender_is_notified_of_completion_in_every_dialect(
    actor: Actor, command: Command, by: str
) -> None:
    world = activated()
    again(world, actor, command, "cause-2")
    assert handoff(world).status == "completed"
    (mail,) = (one for one in world.mails.values() if one.kind == "handoff.complete")
    assert (mail.sender, mail.to, set(msgspec.json.decode(mail.body))) == (
        by,
        ("alice",),
        {"handoff_id", "package_hash"},
    )


@proves("ACP-COMPLETE-TOLD")
def test_report_applied_by_recovery_notifies_sender() -> None:
    world = activated()
    again(world, BOB, ReportOutcome("T", "done"), "cause-2")
    assert mail_recipients(world, "handoff.complete") == []
    again(world, HUB, ExpireLease("T"), "cause-3", NOW + TTL)
    assert mail_recipients(world, "handoff.complete") == [("alice",)]


@proves("ACP-COMPLETE-TOLD")
def test_checkpoint_by_recipient_notifies_sender() -> None:
    world = activated()
    again(world, BOB, CheckpointTask("T", "CONTEXT_HIGH", "0a1b2c3", "half of it"), "cause-2")
    (mail,) = (one for one in world.mails.values() if one.kind == "handoff.complete")
    assert msgspec.json.decode(mail.body)["note"] == "checkpoint: CONTEXT_HIGH: half of it"


@proves("ACP-COMPLETE-TOLD")
def test_sender_that_ended_task_itself_is_not_notified() -> None:
    world = activated()
    again(world, replace(ALICE, role="orchestrator"), MoveTask("T", "review"), "cause-2")
    assert handoff(world).status == "completed"
    assert mail_recipients(world, "handoff.complete") == []


@proves("ACP-OWNER")
def test_report_needs_activation_and_completion_needs_lease() -> None:
    assert accepted().code(BOB, ReportOutcome("T", "done")) == "unauthorized_agent"
    world = activated()
    del world.leases["T"]
    world = with_fields(world, status="ready")
    lost = world.decide(BOB, CompleteHandoff("H"))
    assert isinstance(lost, Refusal)
    assert lost.code == "lease_lost"
    assert lost.detail == "bob does not hold T any more: activate H again, then complete it"
    assert world.code(CAROL, ClaimTask("T", "carol")) == "reserved_for_other"
    assert world.code(ALICE, ClaimTask("T", "alice")) == "reserved_for_other"
    world.do(BOB, ClaimTask("T", "bob"))
    assert world.code(BOB, CompleteHandoff("H", "x" * 70_000)) == "invalid_field"
    again(world, BOB, CompleteHandoff("H"), "cause-2")


@proves("ACP-BLOCK")
def test_completion_of_blocked_task_is_refused_with_remedy() -> None:
    world = activated()
    world.do(HUMAN, MoveTask("T", "blocked", "wait for the audit"))
    lost = world.decide(BOB, CompleteHandoff("H"))
    assert isinstance(lost, Refusal)
    assert lost.code == "lease_lost"
    assert lost.detail == (
        "bob does not hold T any more: T is blocked: a person, a coordinator or an orchestrator "
        "has to make it ready first; then activate H again, then complete it"
    )
    assert world.code(BOB, ActivateHandoff("H")) == "not_ready"
    world.do(HUMAN, MoveTask("T", "ready"))
    again(world, BOB, ActivateHandoff("H"), "cause-2")
    again(world, BOB, CompleteHandoff("H"), "cause-3")


@proves("ACP-STATES")
def test_close_records_closure_note() -> None:
    world = at("completed")
    decision = again(world, ALICE, CloseHandoff("H", "thanks"), "cause-2")
    assert (decision.receipt.state, handoff(world).steps[-1].note) == ("closed", "thanks")
    assert at("rejected").code(ALICE, CloseHandoff("H", "x" * 70_000)) == "invalid_field"


@proves("ACP-REJECT")
def test_rejection_records_reason_and_notifies_sender() -> None:
    world = offered()
    fix = "give it to carol, " * 100
    command = RejectHandoff("H", "capability_mismatch", "no Rust here", fix)
    decision = again(world, BOB, command, "cause-2")
    rejection = handoff(world).rejection
    assert rejection is not None
    assert (rejection.reason, rejection.detail, rejection.suggested_fix) == (
        "capability_mismatch",
        "no Rust here",
        fix,
    )
    assert decision.receipt.state == "rejected"
    (mail,) = (m for m in world.mails.values() if m.kind == "system.error")
    assert (mail.to, mail.sender) == (("alice",), "hub")
    assert msgspec.json.decode(mail.body) == {
        "handoff_id": "H",
        "package_hash": handoff(world).package_hash,
        "reason": "capability_mismatch",
        "detail": "no Rust here",
        "suggested_fix": fix,
    }
    found = world.tasks["T"]
    assert (found.status, found.assignee, found.chain) == ("in-progress", "alice", ("alice",))
    assert "T" in world.leases


@proves("ACP-REJECT")
def test_longest_rejection_texts_are_mailed_whole() -> None:
    longest = "x" + "\x01" * 65_535
    world = offered()
    again(world, BOB, RejectHandoff("H", "success_criteria_ambiguous", longest, longest), "cause-2")
    (mail,) = (m for m in world.mails.values() if m.kind == "system.error")
    body = msgspec.json.decode(mail.body)
    assert (body["detail"], body["suggested_fix"]) == (longest, longest)


@proves("ACP-REJECT")
@pytest.mark.parametrize(("detail", "fix"), [("", ""), (" ", ""), ("x", "x" * 70_000)])
def test_rejection_without_detail_is_refused(detail: str, fix: str) -> None:
    assert offered().code(BOB, RejectHandoff("H", "other", detail, fix)) == "invalid_field"


@proves("ACP-REJECT", "ACP-CHAIN")
@pytest.mark.parametrize("status", ["in-progress", "ready", "blocked"])
def test_rejected_activated_task_is_ready_for_sender(status: Any) -> None:
    world = activated()
    if status != "in-progress":
        del world.leases["T"]
        with_fields(world, status=status)
    decision = again(world, BOB, RejectHandoff("H", "timeout_risk", "not by then"), "cause-2")
    found = world.tasks["T"]
    assert (found.status, found.assignee, found.reserved_for) == ("ready", "alice", "alice")
    assert (found.chain, found.handoff) == (("alice",), None)
    assert decision.receipt.status == "ready"
    assert "T" not in world.leases
    again(world, ALICE, offer("bob", "H2", supersedes="H"), "cause-3")


@proves("ACP-REJECT")
def test_rejected_task_stays_in_deadletter() -> None:
    world = activated()
    del world.leases["T"]
    with_fields(world, status="deadletter", failures=5)
    decision = again(world, BOB, RejectHandoff("H", "other", "no"), "cause-2")
    found = world.tasks["T"]
    assert (found.status, found.assignee, found.failures) == ("deadletter", "alice", 5)
    assert (found.chain, decision.receipt.status) == (("alice",), "deadletter")


@proves("ACP-REJECT")
def test_forced_rejection_notifies_both_sides() -> None:
    world = activated()
    again(world, COORDINATOR, RejectHandoff("H", "other", "stop"), "cause-2")
    assert world.tasks["T"].assignee == "alice"
    assert mail_recipients(world, "system.error") == [("alice", "bob")]


@proves("ACP-REJECT")
@pytest.mark.parametrize(("note", "detail"), [("", "withdrawn"), ("oops", "withdrawn: oops")])
def test_withdrawal_rejects_handoff_and_notifies_recipient(note: str, detail: str) -> None:
    world = accepted()
    again(world, ALICE, WithdrawHandoff("H", note), "cause-2")
    rejection = handoff(world).rejection
    assert rejection is not None
    assert (rejection.by, rejection.reason, rejection.detail) == ("alice", "other", detail)
    assert mail_recipients(world, "system.error") == [("bob",)]
    assert world.tasks["T"].handoff is None
    assert accepted().code(ALICE, WithdrawHandoff("H", "x" * 70_000)) == "invalid_field"


@proves("ACP-REDELEGATE")
def test_redelegation_of_activated_handoff_is_one_transaction() -> None:
    world = activated()
    decision = again(world, BOB, offer("carol", "H2", supersedes="H"), "cause-2")
    old, new = handoff(world), handoff(world, "H2")
    assert (old.status, old.superseded_by) == ("completed", "H2")
    assert old.steps[-1].note == "re-delegated as H2"
    assert (new.status, new.chain, new.sender) == ("proposed", ("alice", "bob"), "bob")
    assert decision.receipt.state == "proposed"
    found = world.tasks["T"]
    assert (found.status, found.assignee, found.reported) == ("in-progress", "bob", None)
    assert world.leases["T"].holder == "bob"
    again(world, CAROL, accept(world, "H2"), "cause-3")
    again(world, CAROL, ActivateHandoff("H2"), "cause-4")
    assert world.tasks["T"].chain == ("alice", "bob", "carol")
    again(world, CAROL, RejectHandoff("H2", "other", "no"), "cause-5")
    assert (world.tasks["T"].assignee, world.tasks["T"].chain) == ("bob", ("alice", "bob"))


@proves("ACP-REDELEGATE")
def test_redelegation_of_accepted_handoff_keeps_owner() -> None:
    world = accepted()
    again(world, BOB, offer("carol", "H2", supersedes="H"), "cause-2")
    old, new = handoff(world), handoff(world, "H2")
    assert (old.status, old.superseded_by) == ("rejected", "H2")
    assert (new.sender, new.chain) == ("bob", ("alice",))
    found = world.tasks["T"]
    assert (found.assignee, found.handoff and found.handoff.claimant) == ("alice", "alice")
    again(world, CAROL, accept(world, "H2"), "cause-3")
    again(world, CAROL, ActivateHandoff("H2"), "cause-4")
    assert world.tasks["T"].chain == ("alice", "carol")
    again(world, CAROL, RejectHandoff("H2", "other", "no"), "cause-5")
    assert (world.tasks["T"].assignee, world.tasks["T"].chain) == ("alice", ("alice",))


@proves("ACP-REDELEGATE", "ACP-REJECT")
@pytest.mark.parametrize("has_begun", [False, True])
def test_owner_is_notified_when_redelegation_is_rejected(has_begun: bool) -> None:
    world = accepted()
    again(world, BOB, offer("carol", "H2", supersedes="H"), "cause-2")
    if has_begun:
        again(world, CAROL, accept(world, "H2"), "cause-3")
        again(world, CAROL, ActivateHandoff("H2"), "cause-4")
    again(world, CAROL, RejectHandoff("H2", "other", "busy"), "cause-5")
    assert mail_recipients(world, "system.error")[-1] == ("bob", "alice")
    assert world.tasks["T"].assignee == "alice"


@proves("ACP-REDELEGATE", "ACP-CHAIN")
def test_work_passed_on_is_not_offered_back() -> None:
    world = activated()
    again(world, BOB, offer("carol", "H2", supersedes="H"), "cause-2")
    again(world, CAROL, RejectHandoff("H2", "other", "busy"), "cause-3")
    world.cause = "cause-4"
    assert world.code(BOB, offer("alice", "H3", supersedes="H2")) == "ownership_conflict"
    assert world.code(BOB, offer("dave", "H3", supersedes="H2")) == ""


@proves("ACP-CHAIN")
def test_handoff_chain_ends_with_current_owner() -> None:
    assert handoff(accepted()).owners == ("alice",)
    assert handoff(activated()).owners == ("alice", "bob")
    assert handoff(at("closed")).owners == ("alice", "bob")
    given_back = activated()
    again(given_back, BOB, RejectHandoff("H", "other", "no"), "cause-2")
    assert handoff(given_back).owners == given_back.tasks["T"].chain == ("alice",)
    cancelled = activated()
    again(cancelled, HUMAN, MoveTask("T", "cancelled"), "cause-2")
    assert handoff(cancelled).status == "closed"
    assert handoff(cancelled).owners == cancelled.tasks["T"].chain == ("alice", "bob")


@proves("ACP-FROM-REVIEW")
def test_task_in_review_can_be_handed_off_by_owner() -> None:
    world = at("completed")
    assert world.tasks["T"].status == "review"
    again(world, BOB, offer("carol", "H2"), "cause-2")
    again(world, CAROL, accept(world, "H2"), "cause-3")
    again(world, CAROL, ActivateHandoff("H2"), "cause-4")
    found = world.tasks["T"]
    assert (found.status, found.assignee) == ("in-progress", "carol")
    assert found.chain == ("alice", "bob", "carol")


@proves("ACP-CHAIN")
def test_chain_changed_by_human_is_kept() -> None:
    world = with_fields(activated(), chain=("alice", "bob", "zoe"))
    again(world, BOB, RejectHandoff("H", "other", "no"), "cause-2")
    assert world.tasks["T"].chain == ("alice", "bob", "zoe")


@proves("ACP-REPEAT")
@pytest.mark.parametrize(
    ("state", "actor", "command", "others"),
    [
        ("proposed", BOB, RejectHandoff("H", "other", "no"), [RejectHandoff("H", "other", "nah")]),
        ("accepted", ALICE, WithdrawHandoff("H"), [WithdrawHandoff("H", "why")]),
        (
            "accepted",
            BOB,
            ActivateHandoff("H", work_state_update={"a": 1}),
            [ActivateHandoff("H")],
        ),
        (
            "activated",
            BOB,
            CompleteHandoff("H", "done", ({"a": 1},)),
            [CompleteHandoff("H", "done"), CompleteHandoff("H", "Done", ({"a": 1},))],
        ),
        ("completed", ALICE, CloseHandoff("H", "fine"), [CloseHandoff("H")]),
    ],
)
def test_repeated_action_is_a_no_op(state: Any, actor: Any, command: Any, others: Any) -> None:
    world = at(state)
    first = again(world, actor, command, "cause-2")
    repeated = again(world, actor, command, "cause-3")
    assert repeated.events == ()
    assert (repeated.receipt.stream, repeated.receipt.state) == ("handoff:H", first.receipt.state)
    for other in others:
        assert world.code(actor, other) == "invalid_transition"
    assert world.code(HUMAN, command) != ""


@proves("ACP-REPEAT")
def test_repeated_action_is_a_no_op_in_later_states() -> None:
    world = accepted()
    assert world.do(BOB, accept(world)).events == ()
    assert world.code(BOB, accept(world, notes="gladly")) == "invalid_transition"
    assert world.code(ALICE, accept(world)) == "invalid_transition"
    over = at("closed")
    for command in (accept(over), ActivateHandoff("H"), CompleteHandoff("H", "done")):
        decision = again(over, BOB, command, "cause-2")
        assert (decision.events, decision.receipt.state) == ((), "closed")
    back = at("rejected")
    again(back, ALICE, CloseHandoff("H"), "cause-2")
    same = RejectHandoff("H", "capacity_unavailable", "too much to do")
    assert again(back, BOB, same, "cause-3").events == ()


@proves("ACP-REPEAT")
def test_action_before_rejection_is_not_a_repeat() -> None:
    world = activated()
    again(world, BOB, RejectHandoff("H", "other", "no"), "cause-2")
    assert world.code(BOB, accept(world)) == "invalid_transition"
    assert world.code(BOB, ActivateHandoff("H")) == "invalid_transition"


@proves("ACP-OWNER")
def test_update_by_recipient_counts_and_renews_lease() -> None:
    world = activated()
    decision = world.do(BOB, UpdateTask("T", progress="half"), NOW + TTL - 1)
    assert decision.receipt.status == "in-progress"
    assert world.code(ALICE, UpdateTask("T", progress="half")) == "lease_lost"
    answer = world.decide(HUMAN, EditTask("T", assignee="zoe"))
    assert isinstance(answer, Refusal)
    assert answer.kind == "active_handoff"
    assert held().code(HUMAN, MoveTask("T", "ready")) == ""


@proves("ACP-CLOSED-ENTRIES")
@pytest.mark.parametrize("is_confidential", [True, False])
def test_confidential_completion_leaves_its_notes_with_the_handoff(is_confidential: bool) -> None:
    world = activated()
    artifacts: tuple[dict[str, object], ...] = ({"artifact_id": "a"},)
    events = events_of(world.do(BOB, CompleteHandoff("H", "merged", artifacts, is_confidential)))
    (report,) = [event for event in events if isinstance(event, TaskReported)]
    public = {"handoff": "H", "final_artifacts": [{"artifact_id": "a"}]}
    assert (report.notes, report.details) == (
        ("", {"handoff": "H"}) if is_confidential else ("merged", public)
    )
    (note,) = [event for event in events if isinstance(event, HandoffNoted)]
    assert (note.text, note.data) == ("merged", {"final_artifacts": [{"artifact_id": "a"}]})
