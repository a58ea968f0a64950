"""Intents follow what other dialects do to their task, in the same transaction."""

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.attempt import (
    CheckpointTask,
    ClaimTask,
    EndAttempt,
    ExpireLease,
    ReleaseTask,
    ReportOutcome,
)
from dragoman.core.base import Command, Outcome
from dragoman.core.handoff.state import ActivateHandoff, CompleteHandoff
from dragoman.core.intent.state import DelegateIntent, IntentCompleted, ReceiveResult
from dragoman.core.limits import MAX_UPDATES
from dragoman.core.read import Decision
from dragoman.core.task_state import (
    AliasTask,
    CreateTask,
    EditTask,
    LinkTask,
    MoveTask,
    NoteTask,
    UpdateTask,
)
from tests.core.handoffs import accept, offer, package
from tests.core.intents import (
    CAROL,
    GOAL,
    HOUR,
    anomaly_detail,
    delegate_intent,
    event_names,
    open_request,
    rank_candidates,
    registry,
    reputation_of,
)
from tests.core.world import ALICE, BOB, HUB, HUMAN, NOW, TTL, World, events_of, task
from tests.requirements import proves

pytestmark = proves("CCOS-OTHERS")


def claimed_by_alice(*names: str, **more: Any) -> World:
    """World in which alice has the request and has claimed the task."""
    world = registry(*names)
    delegate_intent(world, **more)
    world.do(ALICE, ClaimTask("i", "alice"))
    return world


def report_by_alice(world: World, outcome: Outcome, notes: str = "so it went") -> list[str]:
    """Events of the intent after a report by alice that is applied at once."""
    report = ReportOutcome("intent:i", outcome, notes, ("a wall",), apply=True)
    return event_names(world.do(ALICE, report, NOW + 7), "intent:")


def test_claim_adds_no_intent_event() -> None:
    world = registry()
    delegate_intent(world)
    assert event_names(world.do(ALICE, ClaimTask("i", "alice")), "intent:") == []
    assert open_request(world).id == "i.1"


@proves("CCOS-FEEDBACK")
def test_report_done_in_another_dialect_satisfies_intent() -> None:
    world = claimed_by_alice()
    assert report_by_alice(world, "done") == [
        "IntentCompleted",
        "IntentFeedbackApplied",
        "IntentSatisfied",
    ]
    assert reputation_of(world, "alice").recent == "1"


def completion_in(decision: Decision) -> IntentCompleted:
    """Completion of the request in a decision."""
    return next(event for event in events_of(decision) if isinstance(event, IntentCompleted))


@proves("CCOS-TOLD")
def test_completion_notes_of_handoff_are_the_output() -> None:
    world = claimed_by_alice()
    parts = package()
    parts["task"]["task_id"] = "i"
    world.do(ALICE, replace(offer(package=parts), task="i"))
    world.do(BOB, accept(world))
    world.do(BOB, ActivateHandoff("H"))
    ended = completion_in(world.do(BOB, CompleteHandoff("H", "built")))
    assert (ended.agent, ended.output) == ("bob", {"handoff": "H", "notes": "built"})


@proves("CCOS-TOLD")
def test_report_notes_are_the_output_after_approval() -> None:
    world = claimed_by_alice(review_required=True)
    report_by_alice(world, "needs_review")
    assert completion_in(world.do(HUMAN, MoveTask("i", "done"))).output == {"notes": "so it went"}


@proves("CCOS-TOLD")
def test_report_without_notes_gives_no_output() -> None:
    world = claimed_by_alice()
    ended = completion_in(world.do(ALICE, ReportOutcome("i", "done", apply=True)))
    assert (ended.output, ended.digest) == (None, "")
    world = claimed_by_alice(review_required=True)
    world.do(ALICE, MoveTask("i", "review"))
    assert completion_in(world.do(HUMAN, MoveTask("i", "done"))).output is None


@proves("CCOS-PAYLOADS")
def test_output_above_size_limit_is_kept_as_digest() -> None:
    world = claimed_by_alice(max_output_bytes=10)
    ended = completion_in(world.do(ALICE, ReportOutcome("i", "done", "so it went", apply=True)))
    assert (ended.output, ended.left_out) == (None, len('{"notes":"so it went"}'))
    assert ended.digest


@proves("CCOS-TOLD")
@pytest.mark.parametrize(
    ("blockers", "details", "error"),
    [
        (("a wall",), {"failure_type": "TESTS_FAIL"}, "TESTS_FAIL: a wall"),
        (("TESTS_FAIL",), {"failure_type": "TESTS_FAIL"}, "TESTS_FAIL"),
        ((), {"failure_type": "TESTS_FAIL"}, "TESTS_FAIL"),
        (("a wall",), {"failure_type": 7}, "a wall"),
    ],
)
def test_failure_type_is_named_once_in_error(
    blockers: tuple[str, ...], details: dict[str, object], error: str
) -> None:
    report = ReportOutcome("i", "failed", "", blockers, details, apply=True)
    assert completion_in(claimed_by_alice().do(ALICE, report)).error == error


@proves("CCOS-TOLD")
def test_task_update_by_agent_is_recorded_as_intent_update() -> None:
    world = claimed_by_alice(patience_ms=HOUR)
    update = UpdateTask("i", notes="half")
    assert event_names(world.do(ALICE, update), "intent:") == ["IntentUpdated"]
    assert event_names(world.do(HUMAN, update), "intent:") == []
    world.intents["i"] = replace(world.intents["i"], updates=MAX_UPDATES)
    assert event_names(world.do(ALICE, update), "intent:") == []
    over = claimed_by_alice("alice")
    over.do(HUMAN, MoveTask("i", "cancelled"))
    assert event_names(over.do(HUMAN, update), "intent:") == []


def test_dependent_task_is_unblocked_when_intent_is_satisfied() -> None:
    world = claimed_by_alice()
    world.do(HUMAN, CreateTask("after", "after", ready=True, blocked_by=("i",)))
    report_by_alice(world, "done")
    assert world.tasks["after"].open_blockers == ()
    assert world.intents["i"].state == "Satisfied"


@proves("CCOS-RETRY")
def test_failed_report_dispatches_next_candidate() -> None:
    world = claimed_by_alice()
    assert report_by_alice(world, "failed")[-1] == "IntentDispatched"
    assert open_request(world).agent == "bob"
    assert world.tasks["i"].reserved_for == "bob"
    assert reputation_of(world, "alice").recent == "0"


@proves("CCOS-RETRY")
def test_failed_report_without_candidates_moves_task_to_deadletter() -> None:
    world = claimed_by_alice("alice")
    decision = world.do(ALICE, ReportOutcome("i", "failed", apply=True))
    assert world.intents["i"].state == "NeedsFollowUp"
    assert decision.receipt.status == world.tasks["i"].status == "deadletter"
    assert "reported without blockers or notes" in world.intents["i"].reasons[0]


def test_blocked_report_needs_follow_up_until_task_is_ready() -> None:
    world = claimed_by_alice()
    assert report_by_alice(world, "blocked", "") == [
        "IntentCompleted",
        "IntentFeedbackApplied",
        "IntentNeedsFollowUp",
    ]
    assert world.intents["i"].reasons == ("its task is blocked",)
    # Making the task ready lifts the block, although it counted as a failure.
    assert world.intents["i"].failed == ("alice",)
    world.do(HUMAN, MoveTask("i", "ready"))
    assert (open_request(world).id, open_request(world).agent) == ("i.2", "alice")


@pytest.mark.parametrize("outcome", ["partial", "needs_review"])
def test_partial_result_waits_for_review(outcome: Outcome) -> None:
    world = claimed_by_alice(review_required=True)
    assert report_by_alice(world, outcome) == []
    assert open_request(world).id == "i.1"
    world.do(HUMAN, MoveTask("i", "done"))
    assert world.intents["i"].state == "Satisfied"
    assert reputation_of(world, "alice").recent == "1"


def test_task_sent_back_by_reviewer_gets_new_request() -> None:
    world = claimed_by_alice(review_required=True)
    report_by_alice(world, "done")
    assert world.intents["i"].state == "FeedbackApplied"
    world.do(HUMAN, MoveTask("i", "ready"))
    assert (open_request(world).id, open_request(world).agent) == ("i.2", "alice")
    # The report of the attempt before does not answer it.
    world.do(HUMAN, EditTask("i", "another title"))
    assert open_request(world).id == "i.2"
    world.do(ALICE, ClaimTask("i", "alice"))
    report_by_alice(world, "done")
    world.do(HUMAN, MoveTask("i", "done"))
    assert (world.intents["i"].state, reputation_of(world, "alice").recent) == ("Satisfied", "11")


def test_report_counts_when_it_is_applied() -> None:
    world = claimed_by_alice()
    assert event_names(world.do(ALICE, ReportOutcome("i", "failed")), "intent:") == []
    world.do(ALICE, ReportOutcome("i", "done"))
    world.do(ALICE, EndAttempt("i"))
    assert world.intents["i"].state == "Satisfied"


@proves("CCOS-OWNER")
def test_new_assignee_gets_its_own_request_without_feedback() -> None:
    world = registry()
    delegate_intent(world, patience_ms=HOUR)
    decision = world.do(HUMAN, EditTask("i", assignee="carol"), NOW + 9)
    assert event_names(decision) == [
        "TaskEdited",
        "IntentSuperseded",
        "AgentRelieved",
        "IntentProposed",
        "IntentApproved",
        "IntentDispatched",
        "AgentAssigned",
    ]
    request = open_request(world)
    assert (request.id, request.agent, request.deadline) == ("i.2", "carol", NOW + 9 + HOUR)
    assert (reputation_of(world, "alice").recent, reputation_of(world, "alice").open) == ("", 0)
    assert reputation_of(world, "carol").open == 1
    why = anomaly_detail(world, ALICE, ReceiveResult("i", "alice", success=True))
    assert why == "i: i.1 was superseded by a change of the task"
    world.do(CAROL, ReceiveResult("i", "carol", success=True))
    assert world.intents["i"].state == "Satisfied"


@proves("CCOS-OWNER")
def test_unassigned_task_has_no_request_until_claimed() -> None:
    world = registry()
    delegate_intent(world)
    world.do(HUMAN, EditTask("i", assignee=""))
    assert world.intents["i"].request is None
    world.do(BOB, ClaimTask("i", "bob"))
    request = open_request(world)
    assert (request.agent, request.after) == ("bob", 0)
    world.do(BOB, ReportOutcome("i", "done", apply=True))
    assert reputation_of(world, "bob").recent == "1"


def claimed_by_bob() -> World:
    """World in which the task was unassigned, and bob has claimed it."""
    world = registry()
    delegate_intent(world, review_required=True, patience_ms=HOUR)
    world.do(HUMAN, EditTask("i", assignee=""))
    world.do(BOB, ClaimTask("i", "bob"))
    return world


@proves("CCOS-OWNER")
@pytest.mark.parametrize(
    ("commands", "request_id"),
    [
        ([(HUB, ExpireLease("i"))], "i.2"),
        ([(BOB, ReleaseTask("i"))], "i.2"),
        ([(BOB, CheckpointTask("i", "PAUSE", "abc1234"))], "i.3"),
        ([(BOB, MoveTask("i", "review")), (HUMAN, MoveTask("i", "ready"))], "i.3"),
    ],
)
def test_claimant_of_unassigned_task_keeps_it(
    commands: list[tuple[Actor, Command]], request_id: str
) -> None:
    world = claimed_by_bob()
    for actor, command in commands:
        world.do(actor, command, NOW + TTL if actor is HUB else NOW)
    assert (open_request(world).agent, open_request(world).id) == ("bob", request_id)
    assert (world.tasks["i"].status, world.tasks["i"].assignee) == ("ready", "bob")


@proves("CCOS-LIFE")
@pytest.mark.parametrize("claimed", [True, False])
def test_cancelling_ends_request_without_feedback(*, claimed: bool) -> None:
    world = registry()
    delegate_intent(world)
    if claimed:
        world.do(ALICE, ClaimTask("i", "alice"))
    decision = world.do(HUMAN, MoveTask("intent:i", "cancelled"), NOW + 9)
    assert event_names(decision)[-3:] == ["IntentCompleted", "AgentRelieved", "IntentNeedsFollowUp"]
    completion = next(e for e in events_of(decision) if isinstance(e, IntentCompleted))
    assert (completion.success, completion.synthetic) == (False, "cancelled")
    assert completion.error == f"cancelled by {HUMAN.label}"
    known = reputation_of(world, "alice")
    assert (known.recent, known.open) == ("", 0)
    why = anomaly_detail(world, ALICE, ReceiveResult("i", "alice", success=True))
    assert why == "i: i.1 was ended at 2026-02-09T14:30:00.009Z (cancelled)"


@pytest.mark.parametrize("status", ["blocked", "deadletter"])
def test_block_by_person_gives_no_feedback(status: Any) -> None:
    world = registry()
    delegate_intent(world)
    world.do(HUMAN, MoveTask("i", status))
    assert world.intents["i"].state == "NeedsFollowUp"
    assert reputation_of(world, "alice").recent == ""


def test_expired_leases_fail_request_at_attempt_limit() -> None:
    world = claimed_by_alice("alice", "bob")
    world.put(replace(world.tasks["i"], max_attempts=2))
    world.do(HUB, ExpireLease("i"), NOW + TTL)
    assert open_request(world).id == "i.1"
    second_claim_at = NOW + 10 * TTL
    world.do(ALICE, ClaimTask("i", "alice"), second_claim_at)
    world.do(HUB, ExpireLease("i"), second_claim_at + TTL)
    assert reputation_of(world, "alice").recent == "0"
    # Then the next candidate is dispatched; without one the task goes to the deadletter.
    assert (open_request(world).agent, world.tasks["i"].status) == ("bob", "ready")
    assert world.tasks["i"].reserved_for == "bob"
    for later in (second_claim_at + 20 * TTL, second_claim_at + 40 * TTL):
        world.do(BOB, ClaimTask("i", "bob"), later)
        world.do(HUB, ExpireLease("i"), later + TTL)
    assert world.tasks["i"].status == "deadletter"
    assert world.intents["i"].state == "NeedsFollowUp"


def test_released_task_keeps_its_request() -> None:
    world = claimed_by_alice()
    world.do(ALICE, ReleaseTask("i"))
    assert open_request(world).id == "i.1"
    assert event_names(world.do(ALICE, NoteTask("i", "hm")), "intent:") == []


def test_intent_alias_alone_creates_no_intent() -> None:
    world = registry()
    delegate_intent(world)
    world.put(replace(task("UU", "ready"), aliases=("intent:none", "bead:b")))
    world.put(replace(task("VVV", "ready"), aliases=("bead:c",)))
    world.put(replace(task("WWWW", "ready"), aliases=("intent:i",)))
    for name in ("UU", "VVV", "WWWW"):
        assert event_names(world.do(HUMAN, MoveTask(name, "blocked")), "intent:") == []
    assert world.intents["i"].state == "TaskDispatched"


def test_two_intents_of_one_agent_are_counted_separately() -> None:
    world = registry()
    delegate_intent(world, "i")
    delegate_intent(world, "j")
    assert reputation_of(world, "alice").open == 2
    world.do(ALICE, ReceiveResult("i", "alice", success=True, output=GOAL))
    world.do(ALICE, ReceiveResult("j", "alice", success=True, output=GOAL))
    known = reputation_of(world, "alice")
    assert (known.successes, known.open, known.latency_ms) == (2, 0, 0)


@proves("CCOS-RECEIPT")
def test_request_after_review_gets_a_new_deadline() -> None:
    world = claimed_by_alice(review_required=True, patience_ms=HOUR)
    report_by_alice(world, "needs_review")
    world.do(HUMAN, MoveTask("i", "ready"), NOW + 10 * HOUR)
    request = open_request(world)
    assert (request.id, request.agent, request.deadline) == ("i.2", "alice", NOW + 11 * HOUR)
    assert (reputation_of(world, "alice").recent, reputation_of(world, "alice").open) == ("", 1)


@proves("CCOS-OWNER")
def test_unassigned_task_can_be_delegated_again() -> None:
    world = registry()
    delegate_intent(world)
    world.do(HUMAN, EditTask("i", assignee=""))
    assert world.intents["i"].reasons == ("its task has no owner",)
    delegate_intent(world)
    assert open_request(world).id == "i.2"


@proves("CCOS-REOPENED")
def test_task_leaving_deadletter_is_dispatched_to_owner_again() -> None:
    world = registry("alice")
    delegate_intent(world)
    world.do(ALICE, ReceiveResult("i", "alice", success=False, error="no"))
    assert world.tasks["i"].status == "deadletter"
    world.do(HUMAN, MoveTask("i", "ready"))
    assert (open_request(world).id, open_request(world).agent) == ("i.2", "alice")
    world.do(ALICE, ReceiveResult("i", "alice", success=True))
    assert world.intents["i"].state == "Satisfied"


@proves("CCOS-REOPENED")
def test_failed_agent_is_not_dispatched_again_by_unblocking() -> None:
    world = registry("alice", "bob")
    delegate_intent(world)
    world.do(ALICE, ReceiveResult("i", "alice", success=False, error="no"))
    assert open_request(world).agent == "bob"
    world.do(HUMAN, MoveTask("i", "blocked"))
    world.do(HUMAN, EditTask("i", assignee="alice"))
    world.do(HUMAN, MoveTask("i", "ready"))
    intent = world.intents["i"]
    assert (intent.state, intent.request) == ("DelegationRejected", None)
    assert "it has failed this before" in intent.reasons


def test_governance_checks_assignee_set_by_person() -> None:
    world = registry("alice")
    delegate_intent(world)
    world.do(HUMAN, MoveTask("i", "blocked"))
    world.do(HUMAN, EditTask("i", assignee="carol"))
    world.do(HUMAN, MoveTask("i", "ready"))
    assert world.intents["i"].request is None
    assert "nobody in the registry is called carol" in world.intents["i"].reasons[0]


@proves("CCOS-RETRY")
def test_agent_blocked_by_person_can_be_chosen_again() -> None:
    world = registry()
    delegate_intent(world)
    world.do(HUMAN, MoveTask("i", "blocked"))
    assert world.intents["i"].failed == ()
    delegate_intent(world)
    assert open_request(world).agent == "alice"


def test_task_with_open_blockers_gets_no_request() -> None:
    world = registry()
    delegate_intent(world, patience_ms=HOUR)
    world.do(HUMAN, CreateTask("first", "first", ready=True))
    world.do(HUMAN, CreateTask("next", "next", ready=True, blocked_by=("first",)))
    assert world.code(HUMAN, DelegateIntent(GOAL, "next")) == "blocked_by_dependency"
    world.do(HUMAN, LinkTask("i", "blocked-by", "first"))
    intent = world.intents["i"]
    assert (intent.request, intent.reasons) == (None, ("its task waits for first",))
    again = DelegateIntent(GOAL, "i", candidates=rank_candidates(world))
    assert world.code(HUMAN, again) == "blocked_by_dependency"
    world.do(HUMAN, MoveTask("i", "blocked"))
    world.do(HUMAN, MoveTask("i", "ready"))
    assert world.intents["i"].request is None
    world.do(HUMAN, MoveTask("first", "cancelled"))
    assert open_request(world).agent == "alice"


def test_foreign_intent_alias_does_not_detach_intent_from_task() -> None:
    world = registry()
    world.do(HUMAN, CreateTask(GOAL, "T", ready=True, review_required=False))
    assert world.code(BOB, AliasTask("T", "intent:zzz")) == "not_authorized"
    assert world.code(BOB, CreateTask("x", "x", aliases=("intent:zzz",))) == "not_authorized"
    world.do(HUMAN, AliasTask("T", "intent:zzz"))
    delegate_intent(world, "T")
    assert world.code(HUMAN, DelegateIntent("x", world.tasks["T"].aof_id)) == "already_exists"
    world.do(ALICE, ClaimTask("T", "alice"))
    world.do(ALICE, ReportOutcome("T", "done", apply=True))
    assert world.intents["T"].state == "Satisfied"
