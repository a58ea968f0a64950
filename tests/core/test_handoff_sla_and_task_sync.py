"""Handoff SLA, notes, and handoffs that follow the status of their task."""

from typing import Any

import msgspec
import pytest

from dragoman.core.actor import Actor
from dragoman.core.attempt import CheckpointTask, ClaimTask, EndAttempt, ExpireLease, ReportOutcome
from dragoman.core.base import Command, Status
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import (
    DEFAULT_SLA_MS,
    AcceptHandoff,
    ActivateHandoff,
    CompleteHandoff,
    EscalateHandoff,
    ExtendHandoff,
    HandoffEscalated,
    HandoffStatus,
    HandoffTransitioned,
    NoteHandoff,
    ReassignHandoff,
    RejectHandoff,
    handoff_list_keys,
)
from dragoman.core.task_state import CreateTask, MoveTask, RewindTask
from dragoman.core.timestamps import TIMESTAMP_RANGE
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
)
from tests.requirements import proves

LATE = DEFAULT_SLA_MS["proposed"]


def escalations_in(decision: Any) -> list[HandoffEscalated]:
    """Escalations in a decision."""
    return [event for event in events_of(decision) if isinstance(event, HandoffEscalated)]


@proves("ACP-SLA")
@pytest.mark.parametrize("state", list(DEFAULT_SLA_MS))
def test_state_over_its_sla_is_escalated_once(state: HandoffStatus) -> None:
    world = at(state)
    due = NOW + DEFAULT_SLA_MS[state]
    assert handoff(world).escalation_due_at == due
    world.cause = "sweep-1"
    assert events_of(world.do(HUB, EscalateHandoff("H"), due - 1)) == []
    (late,) = escalations_in(again(world, HUB, EscalateHandoff("H", ("cora",)), "sweep-2", due + 7))
    assert (late.trigger, late.to, late.task) == ("timeout", "coordinator", "T")
    assert (late.sla_ms, late.elapsed_ms) == (DEFAULT_SLA_MS[state], DEFAULT_SLA_MS[state] + 7)
    assert late.stage.startswith(f"{state}→")
    assert mail_recipients(world, "status.blocked") == [("cora",)]
    (mail,) = (m for m in world.mails.values() if m.kind == "status.blocked")
    body = msgspec.json.decode(mail.body)
    assert body["handoff_id"] == "H"
    assert body["task_id"] == "T"
    assert body["blocking_issue"] == "timeout"
    assert body["escalation_level"] == "coordinator"
    assert body["recommended_action"] in {"reassign", "extend_sla", "close"}
    assert (handoff(world).status, handoff(world).escalation_due_at) == (state, None)
    for n in range(50):
        sweep = EscalateHandoff("H", ("cora",))
        assert events_of(again(world, HUB, sweep, f"again-{n}", due + 10**9)) == []


@proves("ACP-SLA")
def test_escalation_without_registered_coordinator_goes_to_role() -> None:
    world = offered()
    again(world, HUB, EscalateHandoff("H"), "sweep", NOW + LATE)
    assert mail_recipients(world, "status.blocked") == [("coordinator",)]


@proves("ACP-SLA")
def test_next_state_is_escalated_on_its_own() -> None:
    world = offered()
    again(world, HUB, EscalateHandoff("H"), "sweep-1", NOW + LATE)
    accepted_at = NOW + LATE + 1
    again(world, BOB, accept(world), "accept", accepted_at)
    assert handoff(world).escalation_due_at == accepted_at + DEFAULT_SLA_MS["accepted"]
    late = accepted_at + DEFAULT_SLA_MS["accepted"]
    assert len(escalations_in(again(world, HUB, EscalateHandoff("H"), "sweep-2", late))) == 1
    assert len(handoff(world).escalations) == 2


EXITS: list[tuple[HandoffStatus, Actor, Command | None]] = [
    ("proposed", BOB, None),
    ("proposed", BOB, RejectHandoff("H", "other", "no")),
    ("proposed", COORDINATOR, ExtendHandoff("H", 60_000)),
    ("proposed", COORDINATOR, ReassignHandoff("H", "carol")),
    ("validating", BOB, None),
    ("accepted", BOB, ActivateHandoff("H")),
    ("accepted", HUMAN, MoveTask("T", "cancelled")),
    ("activated", COORDINATOR, RejectHandoff("H", "other", "no")),
]
"""State of H, actor and command that end or extend it; None: the acceptance."""


@proves("ACP-SLA")
@pytest.mark.parametrize("number", range(len(EXITS)))
def test_state_left_late_is_recorded_as_breach(number: int) -> None:
    state, actor, command = EXITS[number]
    world = at(state)
    before = mail_recipients(world, "status.blocked")
    due = NOW + DEFAULT_SLA_MS[state]
    (late,) = escalations_in(again(world, actor, command or accept(world), "leaves", due))
    assert late.stage.startswith(f"{state}→")
    assert (late.trigger, late.sla_ms) == ("timeout", DEFAULT_SLA_MS[state])
    assert [one.stage for one in handoff(world).escalations] == [late.stage]
    # Recorded only: no recipient, no recommended action, no letter.
    assert (late.to, late.recommended, mail_recipients(world, "status.blocked")) == ("", "", before)


@proves("ACP-SLA")
@pytest.mark.parametrize("number", range(len(EXITS)))
def test_breach_is_not_recorded_early_or_twice(number: int) -> None:
    state, actor, command = EXITS[number]
    due = NOW + DEFAULT_SLA_MS[state]
    world = at(state)
    assert escalations_in(again(world, actor, command or accept(world), "leaves", due - 1)) == []
    world = at(state)
    again(world, HUB, EscalateHandoff("H"), "sweep", due)
    assert escalations_in(again(world, actor, command or accept(world), "leaves", due + 1)) == []


@proves("ACP-SLA")
def test_clock_set_back_escalates_neither_early_nor_twice() -> None:
    world = offered()
    assert escalations_in(world.do(HUB, EscalateHandoff("H"), NOW - 10**9)) == []
    again(world, HUB, EscalateHandoff("H"), "sweep-1", NOW + LATE)
    assert escalations_in(world.do(HUB, EscalateHandoff("H"), NOW)) == []
    again(world, COORDINATOR, ExtendHandoff("H", 60_000), "extend", NOW - 10**9)
    (late,) = escalations_in(
        again(world, HUB, EscalateHandoff("H"), "sweep-2", NOW - 10**9 + 60_000)
    )
    assert late.elapsed_ms == 0


@proves("ACP-SLA")
def test_handoff_may_have_its_own_sla_and_deadline() -> None:
    world = offered(sla_ms={"proposed": 60_000, "activated": 120_000})
    assert handoff(world).escalation_due_at == NOW + 60_000
    world = activated(sla_ms={"activated": 120_000})
    assert handoff(world).escalation_due_at == NOW + 120_000
    world = activated(sla_ms={"activated": 120_000}, due_at=NOW + 5_000)
    assert (handoff(world).escalation_due_at, handoff(world).stage_sla_ms) == (NOW + 5_000, 5_000)
    world = activated(due_at=NOW - 5_000)
    assert (handoff(world).escalation_due_at, handoff(world).stage_sla_ms) == (NOW, 0)
    assert handoff(offered(due_at=TIMESTAMP_RANGE[1])).escalation_due_at == NOW + LATE
    assert handoff(at("closed")).stage_sla_ms == 0


@proves("ACP-COORDINATE")
@pytest.mark.parametrize("stage", ["", "proposed", "proposed→validating"])
def test_coordinator_extends_sla(stage: str) -> None:
    world = offered()
    again(world, COORDINATOR, ExtendHandoff("H", 60_000, stage), "extend-1")
    assert handoff(world).escalation_due_at == NOW + LATE + 60_000
    again(world, HUB, EscalateHandoff("H"), "sweep-1", NOW + LATE + 60_000)
    later = NOW + LATE + 70_000
    again(world, COORDINATOR, ExtendHandoff("H", 60_000, stage), "extend-2", later)
    assert handoff(world).escalation_due_at == later + 60_000
    (late,) = escalations_in(again(world, HUB, EscalateHandoff("H"), "sweep-2", later + 60_000))
    assert (late.sla_ms, late.elapsed_ms) == (LATE + 130_000, LATE + 130_000)


@proves("ACP-REPEAT")
def test_repeated_extension_is_a_no_op() -> None:
    world = offered()
    world.do(COORDINATOR, ExtendHandoff("H", 60_000))
    assert events_of(world.do(COORDINATOR, ExtendHandoff("H", 60_000))) == []
    assert events_of(world.do(COORDINATOR, ExtendHandoff("H", 60_000, "proposed"))) == []
    assert events_of(world.do(COORDINATOR, ExtendHandoff("H", 60_000, "proposed→validating"))) == []
    assert events_of(world.decide(COORDINATOR, ExtendHandoff("H", 61_000))) != []
    assert events_of(world.decide(HUMAN, ExtendHandoff("H", 60_000))) != []


@proves("ACP-REPEAT")
@pytest.mark.parametrize("stage", ["proposed", "proposed→validating"])
def test_repeated_extension_of_left_stage_is_a_no_op(stage: str) -> None:
    world = offered()
    world.do(COORDINATOR, ExtendHandoff("H", 60_000, stage))
    for onward in (accept(world), RejectHandoff("H", "other", "no")):
        world.do(BOB, onward)
        assert events_of(world.do(COORDINATOR, ExtendHandoff("H", 60_000, stage))) == []
        assert world.code(COORDINATOR, ExtendHandoff("H", 70_000, stage)) == "invalid_transition"
        assert world.code(HUMAN, ExtendHandoff("H", 60_000, stage)) == "invalid_transition"
    assert world.code(COORDINATOR, ExtendHandoff("H", 60_000, "accepted")) == "invalid_transition"


@proves("ACP-COORDINATE")
@pytest.mark.parametrize(("by_ms", "stage"), [(1, ""), (10**12, ""), (60_000, "closed")])
def test_invalid_extension_is_refused(by_ms: int, stage: str) -> None:
    assert offered().code(COORDINATOR, ExtendHandoff("H", by_ms, stage)) == "invalid_field"


@proves("ACP-COORDINATE")
@pytest.mark.parametrize("stage", ["validating", "activated", "accepted→activated"])
def test_extension_of_another_stage_is_refused(stage: str) -> None:
    answer = offered().decide(COORDINATOR, ExtendHandoff("H", 60_000, stage))
    assert isinstance(answer, Refusal)
    assert answer.code == "invalid_transition"
    assert answer.detail.startswith(f"H is proposed, not {stage}: ")
    assert "extend_sla" in answer.detail


@proves("ACP-REPEAT")
def test_repeated_reassignment_returns_new_handoff() -> None:
    world = offered()
    again(world, COORDINATOR, ReassignHandoff("H", "carol"), "N")
    repeated = again(world, COORDINATOR, ReassignHandoff("H", "carol"), "cause-3")
    assert (repeated.events, repeated.receipt.stream) == ((), "handoff:N")
    assert world.code(COORDINATOR, ReassignHandoff("H", "dave")) == "invalid_transition"
    assert world.code(COORDINATOR, ReassignHandoff("H", "carol", "hurry")) == "invalid_transition"
    assert world.code(HUMAN, ReassignHandoff("H", "carol")) == "invalid_transition"
    again(world, CAROL, RejectHandoff("N", "other", "no"), "cause-4")
    repeated = again(world, COORDINATOR, ReassignHandoff("H", "carol"), "cause-5")
    assert (repeated.events, repeated.receipt.state) == ((), "rejected")
    again(world, ALICE, offer("dave", "H3", supersedes="N"), "cause-6")
    repeated = again(world, COORDINATOR, ReassignHandoff("H", "carol"), "cause-7")
    assert (repeated.events, repeated.receipt.stream) == ((), "handoff:N")


@proves("ACP-BESIDE")
def test_notes_do_not_change_package_hash() -> None:
    world = activated()
    before = handoff(world).package_hash
    world.do(BOB, NoteHandoff("H", "remark", "half done", {"percent": 50}))
    world.do(HUB, NoteHandoff("H", "workq_integration", "degraded"))
    known = handoff(world)
    assert (known.notes[-2].text, known.workq) == ("half done", "degraded")
    assert known.package_hash == before
    for n in range(100):
        world.do(BOB, NoteHandoff("H", "remark", str(n)))
    assert len(handoff(world).notes) == 64


@proves("ACP-BESIDE")
@pytest.mark.parametrize(
    "command",
    [
        NoteHandoff("H", "", "x"),
        NoteHandoff("H", "remark", "x" * 70_000),
        NoteHandoff("H", "remark", data={"n": 2**53}),
        NoteHandoff("H", "superseded_by", "H9"),
        NoteHandoff("H", "completion_notes", "done"),
        NoteHandoff("H", "waiting", "long"),
    ],
)
def test_invalid_note_is_refused(command: NoteHandoff) -> None:
    assert activated().code(BOB, command) == "invalid_field"


@proves("ACP-STATES")
def test_handoff_is_indexed_by_teamspace_task_agents_and_status() -> None:
    assert handoff_list_keys(handoff(offered())) == (
        "handoffs",
        "handoffs.space:default",
        "handoffs.task:T",
        "handoffs.from:alice",
        "handoffs.to:bob",
        "handoffs.status:proposed",
    )


@proves("ACP-FOLLOWS-TASK")
@pytest.mark.parametrize(
    ("command", "status"),
    [
        (ReportOutcome("T", "done", apply=True), "completed"),
        (ReportOutcome("T", "needs_review", apply=True), "completed"),
        (ReportOutcome("T", "partial", apply=True), "completed"),
        (ReportOutcome("T", "blocked", apply=True, blockers=("x",)), "activated"),
        (ReportOutcome("T", "failed", apply=True), "activated"),
        (CheckpointTask("T", "MANUAL", "c0ffee"), "completed"),
        (CheckpointTask("T", "TIMEOUT"), "completed"),
    ],
)
def test_report_by_recipient_completes_handoff_by_outcome(
    command: Any, status: HandoffStatus
) -> None:
    world = activated()
    decision = again(world, BOB, command, "cause-2")
    assert handoff(world).status == status
    assert escalations_in(decision) == []
    assert (world.tasks["T"].handoff is None) == (status == "completed")
    assert mail_recipients(world, "handoff.complete") == (
        [("alice",)] if status == "completed" else []
    )


@proves("ACP-WHOSE-WORD")
def test_completion_is_attributed_to_recipient_with_its_notes() -> None:
    for end in (EndAttempt("T"), ExpireLease("T")):
        world = activated()
        again(world, BOB, ReportOutcome("T", "done", "merged as 4f2a"), "cause-2")
        assert handoff(world).status == "activated"
        again(world, HUMAN, end, "cause-3", NOW + 3_600_000)
        step, note = handoff(world).steps[-1], handoff(world).notes[-1]
        assert (step.to, step.by, step.note) == ("completed", "bob", "merged as 4f2a")
        assert (note.kind, note.by, note.text) == ("completion_notes", "bob", "merged as 4f2a")
        (mail,) = (one for one in world.mails.values() if one.kind == "handoff.complete")
        assert (mail.sender, mail.to) == ("hub", ("alice",))


@proves("ACP-WHOSE-WORD")
def test_completion_by_human_move_is_attributed_to_human() -> None:
    world = activated()
    again(world, HUMAN, MoveTask("T", "review", "looks done to me"), "cause-2")
    step = handoff(world).steps[-1]
    assert (step.to, step.by, step.note) == ("completed", HUMAN.name, "looks done to me")
    assert mail_recipients(world, "handoff.complete") == [("alice",)]


@proves("ACP-WHOSE-WORD")
def test_sender_that_moves_task_itself_is_not_notified() -> None:
    world = World(task("T"))
    world.do(HUMAN, offer())
    world.do(BOB, accept(world))
    world.do(BOB, ActivateHandoff("H"))
    again(world, HUMAN, MoveTask("T", "review"), "cause-2")
    assert handoff(world).status == "completed"
    assert mail_recipients(world, "handoff.complete") == []


@proves("ACP-WHOSE-WORD", "ACP-CHECKPOINT")
@pytest.mark.parametrize(
    ("description", "note"), [("", "checkpoint: MANUAL"), ("half", "checkpoint: MANUAL: half")]
)
def test_checkpoint_is_noted_with_its_description(description: str, note: str) -> None:
    world = activated()
    again(world, BOB, CheckpointTask("T", "MANUAL", "c0ffee", description), "cause-2")
    assert handoff(world).steps[-1].note == note
    (mail,) = (one for one in world.mails.values() if one.kind == "handoff.complete")
    assert msgspec.json.decode(mail.body)["note"] == note


@proves("ACP-CHECKPOINT")
@pytest.mark.parametrize(("reason", "commit"), [("MANUAL", "c0ffee"), ("TIMEOUT", "")])
def test_checkpoint_by_recipient_frees_the_task(reason: str, commit: str) -> None:
    world = activated()
    again(world, BOB, CheckpointTask("T", reason, commit, next_steps="the rest"), "cause-2")
    released = world.tasks["T"]
    assert (released.status, released.assignee, released.reserved_for) == ("ready", "", "")
    assert released.chain == ("alice", "bob")
    again(world, CAROL, ClaimTask("T", "carol"), "cause-3", NOW + 3_600_000)
    assert world.tasks["T"].assignee == "carol"
    assert world.tasks["T"].checkpoint is not None


@proves("ACP-CHECKPOINT")
def test_task_assigned_by_human_stays_reserved_after_checkpoint() -> None:
    world = World()
    again(world, HUMAN, CreateTask("Fix it", id="T", ready=True, assignee="bob"), "cause-1")
    again(world, BOB, ClaimTask("T", "bob"), "cause-2")
    again(world, BOB, CheckpointTask("T", "MANUAL", "c0ffee"), "cause-3")
    released = world.tasks["T"]
    assert (released.status, released.reserved_for) == ("ready", "bob")


@proves("ACP-FOLLOWS-TASK")
@pytest.mark.parametrize(
    ("outcome", "is_over"),
    [("done", True), ("needs_review", False), ("partial", False), ("blocked", False)],
)
def test_report_done_by_sender_closes_handoff(outcome: Any, is_over: bool) -> None:
    world = accepted()
    command = ReportOutcome("T", outcome, apply=True, blockers=("x",))
    again(world, ALICE, command, "cause-2")
    known = handoff(world)
    assert known.status == ("closed" if is_over else "accepted")
    if is_over:
        assert known.rejection is not None
        assert (known.rejection.by, known.rejection.reason) == ("hub", "other")
        assert mail_recipients(world, "system.error") == [("bob",)]
    assert world.tasks["T"].status == ("blocked" if outcome == "blocked" else "review")


@proves("ACP-FOLLOWS-TASK")
@pytest.mark.parametrize("state", ["proposed", "validating", "accepted", "activated"])
def test_cancelling_task_closes_handoff(state: HandoffStatus) -> None:
    world = at(state)
    decision = again(world, HUMAN, MoveTask("T", "cancelled"), "cause-2")
    found = world.tasks["T"]
    assert (found.status, found.handoff) == ("cancelled", None)
    assert handoff(world).status == "closed"
    steps = [(e.from_, e.to) for e in events_of(decision) if isinstance(e, HandoffTransitioned)]
    assert steps == [(state, "rejected"), ("rejected", "closed")]
    assert mail_recipients(world, "system.error") == [("alice", "bob")]
    owner = "bob" if state == "activated" else "alice"
    assert (found.assignee, found.chain[-1]) == (owner, owner)


@proves("ACP-FOLLOWS-TASK", "REWIND-HANDOFF")
@pytest.mark.parametrize("state", ["proposed", "accepted", "activated"])
@pytest.mark.parametrize("to", ["done", "cancelled", "ready", "review"])
def test_rewind_closes_handoff_unless_task_keeps_its_owner(
    state: HandoffStatus, to: Status
) -> None:
    world = at(state)
    world.past["T", 1] = task("T", to, "alice")
    again(world, HUMAN, RewindTask("T", 1), "cause-2")
    found = world.tasks["T"]
    assert (found.status, found.assignee) == (to, "alice")
    is_kept = to in ("ready", "review") and state != "activated"
    assert handoff(world).status == (state if is_kept else "closed")
    assert (found.handoff is not None) is is_kept


@proves("ACP-FOLLOWS-TASK")
def test_approved_review_closes_offer_made_from_it() -> None:
    world = at("completed")
    again(world, BOB, offer("carol", "H2"), "cause-2")
    again(world, HUMAN, MoveTask("T", "done"), "cause-3")
    assert handoff(world, "H2").status == "closed"
    assert handoff(world).status == "completed"


@proves("ACP-FOLLOWS-TASK")
def test_expired_lease_of_recipient_is_escalated_and_task_kept() -> None:
    world = activated()
    late, after = NOW + TTL, 7
    expire = ExpireLease("T", notify=("cora",))
    (lost,) = escalations_in(again(world, HUB, expire, "cause-2", late + after))
    assert (lost.trigger, lost.recommended) == ("lease_lost", "reassign")
    assert (lost.sla_ms, lost.elapsed_ms) == (TTL, TTL + after)
    (mail,) = (m for m in world.mails.values() if m.kind == "status.blocked")
    assert mail.to == ("cora",)
    assert msgspec.json.decode(mail.body)["blocking_issue"] == "lease_lost"
    known, found = handoff(world), world.tasks["T"]
    assert (known.status, known.is_escalated) == ("activated", False)
    assert (found.status, found.assignee) == ("ready", "bob")
    assert world.code(ALICE, ClaimTask("T", "alice"), late + after) == "reserved_for_other"
    world.do(BOB, ClaimTask("T", "bob"), late + after)


@proves("ACP-FOLLOWS-TASK")
def test_coordinator_may_reclaim_only_task_handed_to_it() -> None:
    world = offered(recipient="cora")
    again(world, COORDINATOR, accept(world), "cause-2")
    again(world, COORDINATOR, ActivateHandoff("H"), "cause-3")
    late = NOW + TTL
    again(world, HUB, ExpireLease("T"), "cause-4", late)
    for other in (
        ClaimTask("T", "bob"),
        ClaimTask("T", "cora", queues=("cora",)),
        ClaimTask("", "cora"),
        ClaimTask("nothing", "cora"),
    ):
        assert world.code(COORDINATOR, other, late) == "not_authorized"
    assert held().code(COORDINATOR, ClaimTask("T", "cora")) == "not_authorized"
    world.do(COORDINATOR, ClaimTask("T", "cora"), late)
    again(world, COORDINATOR, CompleteHandoff("H"), "cause-5", late)


@proves("ACP-FOLLOWS-TASK")
def test_expired_lease_of_sender_leaves_handoff_unchanged() -> None:
    world = accepted()
    assert escalations_in(again(world, HUB, ExpireLease("T"), "cause-2", NOW + TTL)) == []
    found = world.tasks["T"]
    assert (found.status, found.assignee) == ("ready", "alice")
    assert handoff(world).status == "accepted"
    assert world.code(CAROL, ClaimTask("T", "carol"), NOW + TTL) == "reserved_for_other"


@proves("ACP-FOLLOWS-TASK")
def test_checkpoint_of_unheld_task_leaves_handoff_unchanged() -> None:
    world = activated()
    again(world, HUB, ExpireLease("T"), "cause-2", NOW + TTL)
    orchestrator = Actor("orchestrator", "olga")
    again(world, orchestrator, CheckpointTask("T", "MANUAL", "c0ffee"), "cause-3")
    assert handoff(world).status == "activated"
    before = accepted()
    again(before, ALICE, CheckpointTask("T", "MANUAL", "c0ffee"), "cause-2")
    assert handoff(before).status == "accepted"


@proves("ACP-FOLLOWS-TASK")
def test_task_with_missing_handoff_can_be_cancelled() -> None:
    world = accepted()
    del world.handoffs["H"]
    again(world, HUMAN, MoveTask("T", "cancelled"), "cause-2")
    assert world.tasks["T"].status == "cancelled"
    alone = World(*held().tasks.values())
    assert alone.code(HUMAN, AcceptHandoff("H", "")) == "handoff_not_found"
