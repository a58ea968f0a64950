"""Deadline, policy and tries of an intent whose task is changed by people and other dialects.

However the task is moved, the deadline applies, no agent outside the policy gets it, and only a
failure counts as a try.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.agent import AgentRecord, DescribeAgent
from dragoman.core.attempt import CheckpointTask, ClaimTask, EndAttempt, ReleaseTask, ReportOutcome
from dragoman.core.delegation import RequestDelegation
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import ActivateHandoff
from dragoman.core.intent.candidate import Policy
from dragoman.core.intent.governance import POLICY_RULES
from dragoman.core.intent.state import (
    CancelIntent,
    ExpireRequest,
    IntentApproved,
    IntentCompleted,
    IntentRejected,
    ReceiveResult,
)
from dragoman.core.read import Decision
from dragoman.core.task_state import CreateTask, EditTask, MoveTask, UpdateTask
from tests.core.handoffs import accept, offer
from tests.core.intents import (
    CAROL,
    HOUR,
    anomaly_detail,
    delegate_intent,
    event_names,
    open_request,
    registry,
    reputation_of,
    submit_result,
)
from tests.core.world import ALICE, BOB, FILE, HUB, HUMAN, NOW, World, events_of
from tests.requirements import proves

LATE = NOW + HOUR
LOW = Actor("agent", "low")
FORBIDDEN_REASON = "forbidden goal: it comes with the words 'delete production'"
TIMED_OUT = ["IntentCompleted", "IntentFeedbackApplied"]


def claimed_by_alice(*names: str, **more: Any) -> World:
    """World in which alice has one hour for the request and has claimed the task."""
    world = registry(*names)
    delegate_intent(world, patience_ms=HOUR, **more)
    world.do(ALICE, ClaimTask("i", "alice", ttl_ms=2 * HOUR))
    return world


def refuse_late(world: World, actor: Actor, command: Any) -> None:
    """Check that a command is refused as late; the hub then ends the request."""
    refusal = world.decide(actor, command, LATE)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "anomaly"
    assert refusal.detail == "i: it is late: i.1 ended at 2026-02-09T15:30:00.000Z"
    world.do(HUB, ExpireRequest("i"), LATE)
    assert reputation_of(world, "alice").recent == "0"
    assert open_request(world).agent == "bob"


@proves("CCOS-DEADLINE-DOORS")
@pytest.mark.parametrize(
    "command",
    [
        ReportOutcome("i", "done", "here", apply=True),
        ReportOutcome("i", "done", "here"),
        ReportOutcome("i", "failed", apply=True),
        MoveTask("i", "review"),
        UpdateTask("i", notes="half"),
        CheckpointTask("i", "PAUSE", "abc1234"),
    ],
)
def test_action_after_deadline_is_an_anomaly_in_every_dialect(command: Any) -> None:
    world = claimed_by_alice()
    refuse_late(world, ALICE, command)
    assert world.tasks["i"].status == "ready"
    assert "i" not in world.leases
    # The same command again is about the task of another agent.
    assert isinstance(world.decide(ALICE, command, LATE), Refusal)


@proves("CCOS-DEADLINE-DOORS")
def test_claim_after_deadline_is_late_and_queue_skips_the_task() -> None:
    world = registry()
    delegate_intent(world, patience_ms=HOUR)
    world.do(HUMAN, CreateTask("other", "other", ready=True))
    claimed = world.decide(ALICE, ClaimTask("", "alice"), LATE)
    assert isinstance(claimed, Decision)
    assert claimed.receipt.task == "other"
    refuse_late(world, ALICE, ClaimTask("i", "alice"))


@proves("CCOS-DEADLINE-DOORS")
def test_overdue_task_is_not_activated_by_recipient() -> None:
    world = registry()
    delegate_intent(world, patience_ms=HOUR)
    world.do(ALICE, replace(offer("carol"), task="i"))
    world.do(CAROL, accept(world))
    refuse_late(world, CAROL, ActivateHandoff("H"))
    assert world.handoffs["H"].status == "closed"
    assert world.tasks["i"].handoff is None


@proves("CCOS-DEADLINE-DOORS")
@pytest.mark.parametrize(
    "command",
    [
        CancelIntent("i"),
        MoveTask("i", "backlog"),
        MoveTask("i", "blocked"),
        EditTask("i", assignee=""),
    ],
)
def test_human_action_after_deadline_ends_request_as_missed(command: Any) -> None:
    world = registry()
    delegate_intent(world, patience_ms=HOUR)
    world.do(HUMAN, command, LATE)
    intent = world.intents["i"]
    assert (intent.state, reputation_of(world, "alice").recent) == ("NeedsFollowUp", "0")
    assert intent.closed[-1].synthetic == "deadline"


@proves("CCOS-DEADLINE-DOORS")
def test_assignee_set_after_deadline_is_dispatched() -> None:
    world = registry()
    delegate_intent(world, patience_ms=HOUR)
    world.do(HUMAN, EditTask("i", assignee="carol"), LATE)
    assert (open_request(world).agent, reputation_of(world, "alice").recent) == ("carol", "0")


@proves("CCOS-DEADLINE-DOORS")
def test_task_moved_to_review_after_deadline_counts_as_missed() -> None:
    world = claimed_by_alice()
    assert event_names(world.do(HUMAN, MoveTask("i", "review"), LATE), "intent:") == TIMED_OUT
    world.do(HUMAN, MoveTask("i", "done"), LATE)
    assert (world.intents["i"].state, reputation_of(world, "alice").recent) == ("Satisfied", "0")


@proves("CCOS-DEADLINE-DOORS")
def test_unrelated_change_after_deadline_leaves_request_open() -> None:
    world = claimed_by_alice()
    world.do(HUMAN, EditTask("i", "another title"), LATE)
    assert open_request(world).id == "i.1"
    world.do(HUB, ExpireRequest("i"), LATE)
    assert open_request(world).agent == "bob"
    world = registry()
    delegate_intent(world, patience_ms=HOUR)
    world.do(HUMAN, CheckpointTask("i", "RESUME", "abc1234"), LATE)
    assert open_request(world).id == "i.1"


@proves("CCOS-DEADLINE-DOORS")
def test_report_before_deadline_counts_at_session_end() -> None:
    world = claimed_by_alice()
    world.do(ALICE, ReportOutcome("i", "done", "here"), LATE - 1)
    assert event_names(world.do(HUB, ExpireRequest("i"), LATE)) == []
    world.do(ALICE, EndAttempt("i"), LATE)
    assert (world.intents["i"].state, reputation_of(world, "alice").recent) == ("Satisfied", "1")


@proves("CCOS-DEADLINE-DOORS")
def test_end_of_another_task_is_independent_of_overdue_intent() -> None:
    world = registry()
    delegate_intent(world, patience_ms=HOUR)
    world.do(HUMAN, CreateTask("first", "first", ready=True, review_required=False))
    world.do(BOB, ClaimTask("first", "bob", ttl_ms=2 * HOUR))
    world.put(replace(world.tasks["i"], open_blockers=("first",), blocked_by=("first",)))
    world.put(replace(world.tasks["first"], blocks=("i",)))
    world.do(BOB, ReportOutcome("first", "done", apply=True), LATE)
    assert world.tasks["first"].status == "done"
    assert open_request(world).id == "i.1"


def under_policy(floor: Any = "T1") -> World:
    """World in which alice has the intent; alice and bob are within its policy, low is not."""
    world = registry(trust="T2")
    world.agents["low"] = AgentRecord("low", "agent", ("ccos",), NOW)
    world.do(HUMAN, DescribeAgent("low", ("python", "tests"), trust="T0"))
    policy = Policy(trust_floor=floor, forbidden_goals=("delete production",))
    delegate_intent(world, policy=policy)
    return world


@proves("CCOS-GOVERNED-DOORS")
@pytest.mark.parametrize("actor", [FILE, HUMAN])
def test_assignment_outside_policy_is_refused(actor: Actor) -> None:
    world = under_policy()
    refusal = world.decide(actor, EditTask("i", assignee="low"))
    assert isinstance(refusal, Refusal)
    reason = "low may not have the intent i: trust: it has T0, and T1 is the least"
    assert (refusal.code, refusal.detail) == ("policy_violation", reason)
    assert world.code(actor, EditTask("i", assignee="carol")) == "policy_violation"
    assigned = world.do(actor, EditTask("i", assignee="bob"))
    approved = next(one for one in events_of(assigned) if isinstance(one, IntentApproved))
    assert (approved.agent, approved.checks) == ("bob", ("forbidden goal", *POLICY_RULES))
    assert open_request(world).agent == "bob"


@proves("CCOS-GOVERNED-DOORS")
def test_claim_outside_policy_is_refused() -> None:
    world = under_policy()
    world.do(HUMAN, EditTask("i", assignee=""))
    before = world.intents["i"]
    assert world.code(LOW, ClaimTask("i", "low")) == "policy_violation"
    assert world.intents["i"] == before
    # The queue skips the task for an agent outside its policy.
    assert world.code(LOW, ClaimTask("", "low")) == "nothing_ready"
    world.do(HUMAN, CreateTask("other", "other", ready=True))
    claimed = world.decide(LOW, ClaimTask("", "low"))
    assert isinstance(claimed, Decision)
    assert claimed.receipt.task == "other"
    claimed = world.do(BOB, ClaimTask("", "bob"))
    assert (claimed.receipt.task, open_request(world).agent) == ("i", "bob")


@proves("CCOS-GOVERNED-DOORS")
def test_task_sent_back_to_assignee_outside_policy_is_rejected() -> None:
    world = under_policy()
    world.put(replace(world.tasks["i"], review_required=True))
    submit_result(world)
    world.do(HUMAN, EditTask("i", assignee="low"))
    world.do(HUMAN, MoveTask("i", "ready"))
    intent = world.intents["i"]
    assert (intent.state, intent.request) == ("DelegationRejected", None)
    assert intent.reasons == ("trust: it has T0, and T1 is the least",)


@proves("CCOS-GOVERNED-DOORS")
def test_edited_task_text_is_checked_before_next_candidate() -> None:
    world = under_policy()
    world.do(ALICE, ClaimTask("i", "alice"))
    world.do(FILE, EditTask("i", "delete production"))
    decision = world.do(ALICE, ReceiveResult("i", "alice", success=False, error="it broke"))
    rejected = next(one for one in events_of(decision) if isinstance(one, IntentRejected))
    assert rejected.reasons == (FORBIDDEN_REASON,)
    intent = world.intents["i"]
    assert (intent.state, intent.request) == ("NeedsFollowUp", None)
    assert intent.reasons == (f"{FORBIDDEN_REASON}; the last failed: it broke",)
    assert world.tasks["i"].status == "deadletter"


@proves("CCOS-FORBIDDEN-SINCE")
@pytest.mark.parametrize(
    ("actor", "command"),
    [
        (FILE, EditTask("i", "delete production")),
        (HUMAN, EditTask("i", body="then delete production")),
        (HUMAN, CheckpointTask("i", "RESUME", next_steps="delete production")),
        (HUMAN, RequestDelegation("i", "whole", "alice", LATE, ("delete production",))),
    ],
)
def test_unclaimed_task_with_forbidden_text_is_withdrawn(actor: Actor, command: Any) -> None:
    world = under_policy()
    world.do(HUMAN, CreateTask("whole", "whole", ready=True))
    world.put(replace(world.tasks["i"], parent="whole"))
    world.do(actor, command)
    intent = world.intents["i"]
    assert (intent.state, intent.request) == ("DelegationRejected", None)
    assert intent.reasons == (FORBIDDEN_REASON,)
    assert (reputation_of(world, "alice").recent, reputation_of(world, "alice").open) == ("", 0)
    refusal = world.decide(ALICE, ClaimTask("i", "alice"))
    assert isinstance(refusal, Refusal)
    reason = f"alice may not have the intent i: {FORBIDDEN_REASON}"
    assert (refusal.code, refusal.detail) == ("policy_violation", reason)
    claimed = world.decide(ALICE, ClaimTask("", "alice"))
    assert isinstance(claimed, Decision)
    assert claimed.receipt.task == "whole"
    assert "was superseded" in anomaly_detail(
        world, ALICE, ReceiveResult("i", "alice", success=True)
    )


@proves("CCOS-FORBIDDEN-SINCE")
def test_allowed_text_dispatches_task_again() -> None:
    world = under_policy()
    world.do(HUMAN, EditTask("i", "delete production"))
    world.do(HUMAN, EditTask("i", "keep production"))
    world.do(ALICE, ClaimTask("i", "alice"))
    assert open_request(world).agent == "alice"


@proves("CCOS-FORBIDDEN-SINCE")
def test_running_task_with_forbidden_text_ends_without_successor() -> None:
    world = under_policy()
    world.do(ALICE, ClaimTask("i", "alice"))
    world.do(HUMAN, EditTask("i", "delete production"))
    assert submit_result(world).state == "Satisfied"
    world = under_policy()
    world.do(ALICE, ClaimTask("i", "alice"))
    world.do(HUMAN, EditTask("i", "delete production"))
    world.do(ALICE, ReleaseTask("i"))
    assert world.intents["i"].reasons == (FORBIDDEN_REASON,)


@proves("CCOS-FORBIDDEN-SINCE")
def test_deadline_missed_before_forbidden_edit_counts() -> None:
    world = registry()
    delegate_intent(world, patience_ms=HOUR, policy=Policy(forbidden_goals=("delete production",)))
    world.do(HUMAN, EditTask("i", "delete production"), LATE)
    assert (world.intents["i"].reasons, reputation_of(world, "alice").recent) == (
        (FORBIDDEN_REASON,),
        "0",
    )


@proves("CCOS-GOVERNED-DOORS")
def test_task_with_forbidden_text_sent_back_by_reviewer_is_rejected() -> None:
    world = under_policy()
    world.do(ALICE, ClaimTask("i", "alice"))
    world.do(ALICE, MoveTask("i", "review"))
    world.do(HUMAN, EditTask("i", "delete production"))
    world.do(HUMAN, MoveTask("i", "ready"))
    assert world.intents["i"].state == "DelegationRejected"


@proves("CCOS-GOVERNED-DOORS")
def test_agent_below_trust_floor_is_not_dispatched_again() -> None:
    world = under_policy()
    world.do(ALICE, ClaimTask("i", "alice"))
    world.do(ALICE, MoveTask("i", "review"))
    world.do(HUMAN, DescribeAgent("alice", ("cooking",), trust="T0"))
    world.do(HUMAN, MoveTask("i", "ready"))
    intent = world.intents["i"]
    assert (intent.state, intent.request) == ("DelegationRejected", None)
    assert intent.reasons == ("trust: it has T0, and T1 is the least",)


@proves("CCOS-TRIES")
def test_block_by_human_counts_as_no_try() -> None:
    world = registry("a1", "a2", "a3")
    delegate_intent(world, max_agents=2)
    world.do(HUMAN, MoveTask("i", "blocked"))
    world.do(HUMAN, MoveTask("i", "ready"))
    assert [open_request(world).agent, submit_result(world, success=False).state] == [
        "a1",
        "TaskDispatched",
    ]
    assert open_request(world).agent == "a2"
    assert submit_result(world, success=False).reasons == (
        "2 tries have failed, the last: it broke",
    )


@proves("CCOS-TRIES")
def test_handoff_by_agent_counts_as_no_try() -> None:
    world = registry("alice", "bob", "carol")
    delegate_intent(world, max_agents=2)
    world.do(ALICE, replace(offer("bob"), task="i"))
    world.do(BOB, accept(world))
    world.do(BOB, ActivateHandoff("H"))
    submit_result(world, success=False)
    assert open_request(world).agent == "carol"


@proves("CCOS-TRIES")
def test_agent_that_failed_in_older_ledger_is_skipped() -> None:
    world = registry("alice", "bob", "carol")
    delegate_intent(world)
    # Older hubs did not propose another assignee, which stayed among the candidates.
    world.intents["i"] = replace(world.intents["i"], failed=("bob",))
    submit_result(world, success=False)
    assert open_request(world).agent == "carol"


@proves("CCOS-ANEW")
def test_task_sent_back_without_report_gets_new_request() -> None:
    world = claimed_by_alice()
    world.do(ALICE, MoveTask("i", "review"))
    world.do(HUMAN, MoveTask("i", "ready"), LATE)
    request = open_request(world)
    assert (request.id, request.agent, request.deadline) == ("i.2", "alice", LATE + HOUR)


@proves("CCOS-ANEW")
@pytest.mark.parametrize("actor", [ALICE, HUMAN])
def test_checkpoint_opens_new_request_with_same_deadline(
    actor: Actor,
) -> None:
    world = claimed_by_alice() if actor is ALICE else registry()
    if actor is not ALICE:
        delegate_intent(world, patience_ms=HOUR)
    decision = world.do(actor, CheckpointTask("i", "PAUSE", "abc1234"), NOW + 9)
    assert event_names(decision, "intent:") == ["IntentSuperseded", "IntentDispatched"]
    request = open_request(world)
    assert (request.id, request.agent, request.deadline) == ("i.2", "alice", NOW + HOUR)


@proves("CCOS-UNSENT")
@pytest.mark.parametrize(("is_called", "feedback"), [(True, ""), (False, "0")])
def test_undelivered_request_gives_no_feedback(*, is_called: bool, feedback: str) -> None:
    world = registry()
    delegate_intent(world, patience_ms=HOUR)
    world.do(HUB, ExpireRequest("i", is_called), LATE)
    assert (open_request(world).agent, reputation_of(world, "alice").recent) == ("bob", feedback)
    assert reputation_of(world, "alice").open == 0
    world.do(BOB, ClaimTask("i", "bob"), LATE)
    world.do(HUB, ExpireRequest("i", is_called), LATE + HOUR)
    assert reputation_of(world, "bob").recent == "0"


def fail_starts(world: World, times: int, at: int = NOW) -> None:
    """Fail to start alice this many times."""
    for _ in range(times):
        world.do(HUB, ClaimTask("i", "alice"), at)
        fence = world.tasks["i"].fence
        world.do(HUB, ReleaseTask("i", "not started: refused", fence, failed_to_start=True), at)


@proves("CCOS-UNSENT")
@pytest.mark.parametrize("times", [1, 3])
def test_unreachable_agent_gets_no_negative_feedback(times: int) -> None:
    world = registry()
    delegate_intent(world, patience_ms=HOUR)
    fail_starts(world, times)
    decision = world.do(HUB, ExpireRequest("i", is_called=True), LATE)
    completed = next(one for one in events_of(decision) if isinstance(one, IntentCompleted))
    assert (completed.synthetic, completed.error) == (
        "unsent",
        "the hub had not delivered it by 2026-02-09T15:30:00.000Z: not started: refused",
    )
    assert (open_request(world).agent, reputation_of(world, "alice").recent) == ("bob", "")


@proves("CCOS-UNSENT")
@pytest.mark.parametrize("is_reached_first", [False, True])
def test_agent_reached_once_gets_feedback_for_timeout(*, is_reached_first: bool) -> None:
    world = registry("alice")
    delegate_intent(world, patience_ms=HOUR)
    if not is_reached_first:
        fail_starts(world, 2)
    world.do(HUB, ClaimTask("i", "alice"))
    world.do(ALICE, ReleaseTask("i"))
    if is_reached_first:
        fail_starts(world, 2)
    world.do(HUB, ExpireRequest("i", is_called=True), LATE)
    assert reputation_of(world, "alice").recent == "0"


@proves("CCOS-UNSENT")
def test_failed_start_after_deadline_is_no_action_of_agent() -> None:
    world = registry()
    delegate_intent(world, patience_ms=HOUR)
    world.do(HUB, ClaimTask("i", "alice", ttl_ms=2 * HOUR))
    late = world.do(HUB, ReleaseTask("i", "not started: refused", 1, failed_to_start=True), LATE)
    assert event_names(late) == ["TaskTransitioned"]
    world.do(HUB, ExpireRequest("i", is_called=True), LATE)
    assert (open_request(world).agent, reputation_of(world, "alice").recent) == ("bob", "")
