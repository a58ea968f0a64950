"""Results: matched, unmatched, repeated, different, late; feedback once; deadlines, updates."""

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.agent import AgentRecord, DescribeAgent
from dragoman.core.attempt import ClaimTask, ExpireLease, ReportOutcome
from dragoman.core.attempt_state import TaskClaimed, TaskRequeued
from dragoman.core.intent.state import (
    MAX_RECENT_UPDATES,
    DelegateIntent,
    ExpireRequest,
    IntentAnomaly,
    IntentCompleted,
    ReceiveResult,
    UpdateIntent,
)
from dragoman.core.limits import MAX_UPDATES
from dragoman.core.read import Decision
from dragoman.core.task_state import CreateTask, EditTask, MoveTask, TaskProgressed
from tests.core.intents import (
    GOAL,
    HOUR,
    anomaly_detail,
    delegate_intent,
    event_names,
    open_request,
    rank_candidates,
    registry,
    reputation_of,
    submit_result,
)
from tests.core.world import (
    ALICE,
    BOB,
    COORDINATOR,
    FILE,
    HUB,
    HUMAN,
    NOW,
    OBSERVER,
    ORCHESTRATOR,
    TTL,
    World,
    events_of,
    lease,
    task,
)
from tests.requirements import proves

pytestmark = proves("CCOS-RECEIPT")

DONE = ReceiveResult("i", "alice", success=True, output={"lines": 3})
FAILED = ReceiveResult("i", "alice", success=False, error="it broke")


def delegated_to_alice(*names: str, **more: Any) -> World:
    """World with an intent whose request is open with alice."""
    world = registry(*names)
    delegate_intent(world, **more)
    return world


@proves("CCOS-FEEDBACK", "CCOS-LIFE")
def test_successful_result_satisfies_intent_and_is_counted() -> None:
    world = delegated_to_alice()
    decision = world.do(ALICE, DONE, NOW + 1_500)
    assert event_names(decision) == [
        "TaskClaimed",
        "TaskReported",
        "TaskTransitioned",
        "TaskTransitioned",
        "IntentCompleted",
        "AgentRated",
        "IntentFeedbackApplied",
        "IntentSatisfied",
    ]
    intent, known = world.intents["i"], reputation_of(world, "alice")
    assert (intent.state, intent.request) == ("Satisfied", None)
    assert (world.tasks["i"].status, decision.receipt.status) == ("done", "done")
    assert (known.successes, known.failures, known.recent, known.open) == (1, 0, "1", 0)
    assert (known.latency_ms, known.rated_at) == (1_500, NOW + 1_500)
    completed = next(e for e in events_of(decision) if isinstance(e, IntentCompleted))
    assert (completed.duration_ms, completed.output) == (1_500, {"lines": 3})
    assert "i" not in world.leases


@proves("CCOS-FEEDBACK")
@pytest.mark.parametrize("result", [DONE, FAILED], ids=["success", "failure"])
def test_self_delegated_result_gives_no_feedback(result: ReceiveResult) -> None:
    world = delegated_to_alice(actor=ALICE)
    decision = world.do(ALICE, result)
    assert "IntentFeedbackApplied" not in event_names(decision)
    known = reputation_of(world, "alice")
    assert (known.successes, known.failures, known.recent, known.open) == (0, 0, "", 0)
    if result is FAILED:  # the next candidate is another agent: its result counts
        submit_result(world)
        assert reputation_of(world, "bob").recent == "1"
    world.do(HUMAN, MoveTask("i", "done"))
    assert world.intents["i"].state == "Satisfied"


@proves("CCOS-FEEDBACK")
def test_result_ends_attempt_and_lease_of_claimed_task() -> None:
    world = delegated_to_alice()
    world.do(ALICE, ClaimTask("i", "alice"))
    decision = world.do(ALICE, DONE)
    assert not any(isinstance(event, TaskClaimed) for event in events_of(decision))
    assert world.leases == {}
    assert world.tasks["i"].attempts == 1


def test_output_may_be_kept_as_digest_only() -> None:
    decision = delegated_to_alice().do(ALICE, replace(DONE, output=None, left_out=9, digest="d"))
    completed = next(e for e in events_of(decision) if isinstance(e, IntentCompleted))
    assert (completed.output, completed.left_out, completed.digest) == (None, 9, "d")
    failure = replace(FAILED, left_out=9, digest="d")
    assert "has an output" in anomaly_detail(delegated_to_alice(), ALICE, failure)


@proves("CCOS-LIFE")
def test_reviewed_intent_is_satisfied_by_approval() -> None:
    world = delegated_to_alice(review_required=True)
    world.do(ALICE, DONE)
    assert world.intents["i"].state == "FeedbackApplied"
    assert world.tasks["i"].status == "review"
    assert world.do(ALICE, DONE).events == ()
    world.do(HUMAN, MoveTask("i", "done"))
    assert world.intents["i"].state == "Satisfied"
    assert reputation_of(world, "alice").successes == 1


@proves("CCOS-LIFE")
def test_result_unblocks_dependent_task() -> None:
    world = delegated_to_alice()
    world.do(HUMAN, CreateTask("after", "after", ready=True, blocked_by=("i",)))
    world.do(ALICE, DONE)
    assert world.tasks["after"].open_blockers == ()


@proves("CCOS-RETRY", "CCOS-FEEDBACK")
def test_failure_goes_to_next_candidate_and_finally_to_deadletter() -> None:
    world = delegated_to_alice(patience_ms=HOUR)
    decision = world.do(ALICE, FAILED, NOW + 5)
    assert event_names(decision, "intent:") == [
        "IntentCompleted",
        "IntentFeedbackApplied",
        "IntentProposed",
        "IntentApproved",
        "IntentDispatched",
    ]
    request = open_request(world)
    assert (request.id, request.agent, request.deadline) == ("i.2", "bob", NOW + 5 + HOUR)
    assert world.tasks["i"].assignee == "bob"
    assert (reputation_of(world, "alice").failures, reputation_of(world, "bob").open) == (1, 1)
    last = world.do(BOB, ReceiveResult("i", "bob", success=False, error="no" * 900), NOW + 9)
    intent = world.intents["i"]
    assert intent.state == "NeedsFollowUp"
    assert intent.reasons[0].startswith("nobody else may have it, the last failed: nono")
    completed = next(e for e in events_of(last) if isinstance(e, IntentCompleted))
    assert len(completed.error) == 500
    assert completed.error.endswith("…")
    assert world.tasks["i"].status == "deadletter"


@proves("CCOS-RETRY", "CCOS-LIFE")
def test_failure_without_eligible_candidates_needs_follow_up() -> None:
    world = registry("alice")
    world.agents["cook"] = AgentRecord("cook", "agent", ("ccos",), NOW)
    world.do(HUMAN, DescribeAgent("cook", ("cook",)))
    delegate_intent(world)
    intent = submit_result(world, success=False)
    assert (intent.state, world.tasks["i"].status) == ("NeedsFollowUp", "deadletter")
    assert intent.reasons == ("nobody else may have it, the last failed: it broke",)


@proves("CCOS-RETRY")
def test_number_of_tries_is_limited() -> None:
    world = delegated_to_alice("a1", "a2", "a3", max_agents=2)
    submit_result(world, success=False)
    intent = submit_result(world, success=False)
    assert intent.reasons == ("2 tries have failed, the last: it broke",)
    once = submit_result(delegated_to_alice("a1", "a2", max_agents=1), success=False)
    assert once.reasons == ("its only try has failed: it broke",)


@proves("CCOS-RETRY")
def test_candidate_without_description_is_skipped() -> None:
    world = delegated_to_alice("a1", "a2", "a3")
    world.reputations["a2"] = replace(reputation_of(world, "a2"), descriptor=None)
    submit_result(world, success=False)
    assert open_request(world).agent == "a3"


@pytest.mark.parametrize("command", [DONE, replace(DONE, request_id="i.1")])
def test_repeated_result_is_a_no_op(command: ReceiveResult) -> None:
    world = delegated_to_alice()
    world.do(ALICE, command)
    for repeat in (DONE, replace(DONE, request_id="i.1")):
        decision = world.decide(ALICE, repeat, NOW + 9)
        assert isinstance(decision, Decision)
        assert (decision.events, decision.refusal) == ((), None)
        assert decision.receipt.is_repeat
    assert reputation_of(world, "alice").successes == 1


@pytest.mark.parametrize(
    ("first", "second", "is_repeat"),
    [
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": [-0.0, "1.0", 2.5]}, {"a": [0, "1.0", 2.5]}, True),
        (1.0, 1, True),
        ({"a": "1.0"}, {"a": "1"}, False),
        (1.5, 1, False),
        (2.0**60, 2.0**61, False),
    ],
)
def test_equal_numbers_make_equal_results(first: object, second: object, is_repeat: bool) -> None:
    world = delegated_to_alice()
    world.do(ALICE, replace(DONE, output=first))
    decision = world.decide(ALICE, replace(DONE, output=second), NOW + 9)
    assert isinstance(decision, Decision)
    assert decision.receipt.is_repeat is is_repeat


@proves("CCOS-FEEDBACK")
def test_repeated_failure_during_next_request_is_a_no_op() -> None:
    world = delegated_to_alice()
    world.do(ALICE, FAILED)
    assert world.do(ALICE, FAILED).events == ()
    assert reputation_of(world, "alice").failures == 1


@pytest.mark.parametrize(
    ("command", "actor", "detail"),
    [
        (replace(DONE, agent="bob"), BOB, "i.1 is open with alice, not with bob"),
        (replace(DONE, agent="b b"), HUB, "i.1 is open with alice, not with 'b b'"),
        (DONE, BOB, "bob may not speak for alice"),
        (replace(DONE, agent="bob"), ALICE, "alice may not speak for bob"),
        (replace(DONE, request_id="i.2"), ALICE, "i.1 is open, not 'i.2'"),
        (replace(DONE, attempt=7), ALICE, "i.1 is attempt 1, not 7"),
        (replace(DONE, fault="it has both"), ALICE, "it has both"),
    ],
)
def test_result_that_does_not_match_request_is_an_anomaly(
    command: Any, actor: Actor, detail: str
) -> None:
    world = delegated_to_alice()
    before = world.intents["i"].request
    assert anomaly_detail(world, actor, command) == f"i: {detail}"
    intent = world.intents["i"]
    assert (intent.state, intent.request) == ("TaskDispatched", before)
    assert reputation_of(world, "alice").recent == ""


@proves("CCOS-RESULT")
@pytest.mark.parametrize(
    ("command", "detail"),
    [
        (replace(DONE, error="x"), "it is a success and has an error"),
        (replace(FAILED, output=1), "it is a failure and has an output"),
        (replace(FAILED, error=""), "it is a failure and has no error"),
    ],
)
def test_result_has_either_output_or_error(command: ReceiveResult, detail: str) -> None:
    assert anomaly_detail(delegated_to_alice(), ALICE, command) == f"i: {detail}"


def test_second_result_and_result_without_request_are_anomalies() -> None:
    world = delegated_to_alice()
    world.do(ALICE, DONE)
    another = replace(DONE, output={"lines": 4})
    assert anomaly_detail(world, ALICE, another) == "i: i.1 has another result already"
    assert (
        anomaly_detail(world, BOB, replace(DONE, agent="bob"))
        == "i: i has no open request: it is Satisfied"
    )
    assert reputation_of(world, "alice").recent == "1"


@proves("CCOS-OWNER")
def test_result_after_change_of_owner_is_an_anomaly() -> None:
    world = delegated_to_alice()
    world.do(HUMAN, MoveTask("i", "backlog"))
    assert anomaly_detail(world, ALICE, DONE) == "i: i.1 was superseded by a change of the task"


@proves("CCOS-DEADLINE")
def test_missed_deadline_ends_request_with_synthetic_failure() -> None:
    world = delegated_to_alice(patience_ms=HOUR)
    assert world.do(HUB, ExpireRequest("i"), NOW + HOUR - 1).events == ()
    world.do(ALICE, ClaimTask("i", "alice"))
    decision = world.do(HUB, ExpireRequest("i"), NOW + HOUR)
    completed = next(e for e in events_of(decision) if isinstance(e, IntentCompleted))
    assert (completed.success, completed.synthetic) == (False, "deadline")
    assert completed.error == "no result had come by 2026-02-09T15:30:00.000Z"
    assert any(isinstance(event, TaskRequeued) for event in events_of(decision))
    assert world.leases == {}
    assert reputation_of(world, "alice").failures == 1
    assert open_request(world).agent == "bob"
    detail = anomaly_detail(world, ALICE, DONE, NOW + HOUR)
    assert detail == "i: it is late: i.1 was ended at 2026-02-09T15:30:00.000Z (deadline)"
    assert world.do(HUB, ExpireRequest("i"), NOW + HOUR).events == ()


@proves("CCOS-TAKEN-BACK")
def test_result_after_block_is_not_called_late() -> None:
    world = delegated_to_alice()
    world.do(HUMAN, MoveTask("i", "blocked", "wait"))
    detail = anomaly_detail(world, ALICE, DONE, NOW + 1)
    assert detail == "i: i.1 was ended at 2026-02-09T14:30:00.000Z (blocked)"


@proves("CCOS-DEADLINE")
@proves("CCOS-DUE")
def test_fixed_deadline_applies_to_every_candidate_before_it() -> None:
    world = registry("alice", "bob", "carol")
    due = NOW + HOUR
    delegate_intent(world, patience_ms=HOUR, due_by=due)
    assert open_request(world).deadline == due
    submit_result(world, success=False, now=NOW + 60_000)
    assert (open_request(world).agent, open_request(world).deadline) == ("bob", due)
    world.do(HUMAN, EditTask("i", assignee="carol"), NOW + 120_000)
    assert (open_request(world).agent, open_request(world).deadline) == ("carol", due)


@proves("CCOS-DUE", "CCOS-RETRY")
def test_candidate_after_fixed_deadline_gets_full_patience() -> None:
    world = delegated_to_alice(patience_ms=HOUR, due_by=NOW + HOUR)
    world.do(HUB, ExpireRequest("i"), NOW + HOUR + 60_000)
    assert open_request(world).agent == "bob"
    assert open_request(world).deadline == NOW + 2 * HOUR + 60_000


@proves("CCOS-DUE", "CCOS-GOVERNANCE")
def test_candidate_too_slow_for_fixed_deadline_is_skipped() -> None:
    world = registry("alice", "bob", latency_ms=HOUR // 2)
    delegate_intent(world, patience_ms=HOUR, due_by=NOW + HOUR)
    submit_result(world, success=False, now=NOW + HOUR // 2 + 1_000)
    assert world.intents["i"].state == "NeedsFollowUp"


@proves("CCOS-DUE")
def test_new_delegation_replaces_fixed_deadline() -> None:
    world = delegated_to_alice("alice", patience_ms=HOUR, due_by=NOW + HOUR)
    submit_result(world, success=False)
    world.agents["bob"] = AgentRecord("bob", "agent", ("ccos",), NOW)
    world.do(HUMAN, DescribeAgent("bob", ("python", "tests")))
    delegate_intent(world, patience_ms=2 * HOUR)
    assert (world.intents["i"].due_by, open_request(world).deadline) == (0, NOW + 2 * HOUR)


def test_late_result_ends_request_that_is_still_open() -> None:
    world = delegated_to_alice("alice", patience_ms=HOUR)
    detail = anomaly_detail(world, ALICE, DONE, NOW + HOUR)
    assert detail == "i: it is late: i.1 ended at 2026-02-09T15:30:00.000Z"
    assert world.intents["i"].state == "NeedsFollowUp"
    assert reputation_of(world, "alice").recent == "0"
    assert world.tasks["i"].status == "deadletter"
    assert world.do(HUB, ExpireRequest("i"), NOW + HOUR).events == ()


@proves("CCOS-DEADLINE")
def test_deadline_does_not_apply_during_review() -> None:
    world = delegated_to_alice(patience_ms=HOUR, review_required=True)
    world.do(ALICE, ClaimTask("i", "alice"))
    world.do(ALICE, ReportOutcome("i", "partial", "half", apply=True))
    assert world.tasks["i"].status == "review"
    assert world.do(HUB, ExpireRequest("i"), NOW + 2 * HOUR).events == ()
    assert world.intents["i"].request is not None
    assert "its task is review" in anomaly_detail(world, ALICE, FAILED, NOW + 2 * HOUR)
    assert (world.tasks["i"].status, reputation_of(world, "alice").recent) == ("review", "")


@proves("DIALECTS-MEET")
def test_result_of_work_in_review_counts_and_leaves_the_review() -> None:
    world = delegated_to_alice(review_required=True)
    world.do(ALICE, ClaimTask("i", "alice"))
    assert reputation_of(world, "alice").open == 1
    world.do(ALICE, ReportOutcome("i", "needs_review", "look", apply=True))
    assert reputation_of(world, "alice").open == 0, "work in review takes up no capacity"
    world.do(ALICE, DONE)
    rated = reputation_of(world, "alice")
    assert (rated.recent, rated.open, rated.in_review) == ("1", 0, ())
    assert (world.tasks["i"].status, world.intents["i"].state) == ("review", "FeedbackApplied")


@proves("DIALECTS-MEET")
def test_work_that_is_sent_back_takes_up_capacity_again() -> None:
    world = delegated_to_alice(review_required=True)
    world.do(ALICE, ClaimTask("i", "alice"))
    world.do(ALICE, ReportOutcome("i", "needs_review", "look", apply=True))
    world.do(HUMAN, MoveTask("i", "ready", "again"))
    assert (reputation_of(world, "alice").open, reputation_of(world, "alice").in_review) == (1, ())


@proves("CCOS-DEADLINE")
def test_request_expiry_depends_on_role_and_intent() -> None:
    world = delegated_to_alice()
    for actor, code in ((ALICE, "not_authorized"), (COORDINATOR, "not_authorized"), (HUB, "")):
        assert world.code(actor, ExpireRequest("i")) == code
    assert world.code(HUB, ExpireRequest("none")) == "intent_not_found"
    assert world.code(HUB, ExpireRequest("n o")) == "invalid_id"


def test_result_for_unknown_intent_is_not_recorded() -> None:
    world = registry()
    assert world.code(ALICE, DONE) == "anomaly"
    assert world.code(ALICE, UpdateIntent("i", "alice")) == "anomaly"
    assert world.code(ALICE, replace(DONE, intent="a b")) == "invalid_id"


@proves("CCOS-ATTEMPT")
@pytest.mark.parametrize("command", [DONE, UpdateIntent("i", "alice", 10)])
def test_attempt_result_for_another_intent_is_an_anomaly_of_that_intent(command: Any) -> None:
    world = delegated_to_alice("alice")
    delegate_intent(world, "j")
    world.do(ALICE, ClaimTask("j", "alice"))
    attempt = Actor("agent", "alice", "http", "j", 1)
    assert "an attempt on j only" in anomaly_detail(world, attempt, command)
    assert world.intents["i"].state == "TaskDispatched"
    assert world.code(attempt, replace(command, intent="j")) == ""
    assert world.code(replace(attempt, fence=2), command) == "lease_lost"


@proves("CCOS-ATTEMPT")
@pytest.mark.parametrize("command", [DONE, UpdateIntent("i", "alice", 10)])
def test_attempt_result_for_unknown_intent_is_an_anomaly_of_its_own_intent(command: Any) -> None:
    world = delegated_to_alice("alice")
    world.do(ALICE, ClaimTask("i", "alice"))
    attempt = Actor("agent", "alice", "http", "i", 1)
    answer = world.decide(attempt, replace(command, intent="other"))
    assert isinstance(answer, Decision)
    assert answer.refusal is not None
    assert answer.refusal.code == "anomaly"
    assert event_names(answer) == ["IntentAnomaly"]
    assert "no intent other, and this attempt works on i" in answer.refusal.detail
    assert world.code(attempt, replace(command, intent="a b")) == "invalid_id"


@proves("CCOS-ATTEMPT")
def test_attempt_result_without_intent_is_refused() -> None:
    world = registry("alice")
    world.put(task("T", "in-progress", "alice", attempts=1))
    world.leases["T"] = lease("alice", 1)
    assert world.code(Actor("agent", "alice", "http", "T", 1), DONE) == "anomaly"


ATTEMPT = Actor("agent", "alice", "http", "i", 1)


@proves("CCOS-RECEIPT", "CCOS-ATTEMPT")
def test_attempt_message_after_result_is_repeat_or_anomaly() -> None:
    world = delegated_to_alice()
    world.do(ALICE, ClaimTask("i", "alice"))
    world.do(ATTEMPT, DONE)
    repeated = world.do(ATTEMPT, DONE)
    assert (repeated.events, repeated.receipt.is_repeat) == ((), True)
    other = replace(DONE, output=8)
    assert anomaly_detail(world, ATTEMPT, other) == "i: i.1 has another result already"
    detail = anomaly_detail(world, ATTEMPT, UpdateIntent("i", "alice", 10, "", "i.1", 1))
    assert detail == "i: i.1 has a result already"


@proves("CCOS-RECEIPT", "CCOS-ATTEMPT")
@pytest.mark.parametrize("is_expired", [False, True])
def test_attempt_result_after_deadline_is_an_anomaly(is_expired: bool) -> None:
    world = delegated_to_alice(patience_ms=HOUR)
    world.do(ALICE, ClaimTask("i", "alice"))
    if is_expired:
        world.do(HUB, ExpireRequest("i"), NOW + HOUR)
    assert anomaly_detail(world, ATTEMPT, DONE, NOW + HOUR).startswith("i: it is late: i.1")


@proves("LEASE-LOST")
@pytest.mark.parametrize("is_requeued", [False, True])
@pytest.mark.parametrize("command", [DONE, UpdateIntent("i", "alice", 10)])
def test_attempt_with_lost_lease_ends_no_request(command: Any, is_requeued: bool) -> None:
    world = delegated_to_alice()
    world.do(ALICE, ClaimTask("i", "alice", ttl_ms=TTL))
    if is_requeued:
        world.do(HUB, ExpireLease("i"), NOW + TTL)
    assert world.code(ATTEMPT, command, NOW + TTL) == "lease_lost"
    assert open_request(world).id == "i.1"


@pytest.mark.parametrize("actor", [OBSERVER, COORDINATOR, FILE])
def test_result_delivery_depends_on_role(actor: Actor) -> None:
    assert delegated_to_alice().code(actor, DONE) == "not_authorized"


def test_orchestrator_may_deliver_result_and_is_recorded() -> None:
    world = delegated_to_alice()
    decision = world.do(ORCHESTRATOR, DONE)
    claimed = next(e for e in events_of(decision) if isinstance(e, TaskClaimed))
    assert (claimed.agent, claimed.dispatched_by) == ("alice", "olga")


def test_anomaly_texts_are_escaped_and_shortened() -> None:
    world = delegated_to_alice()
    decision = world.decide(HUB, replace(DONE, request_id="\u202e" * 999, agent="x" * 999))
    assert isinstance(decision, Decision)
    event = decision.events[-1][1]
    assert isinstance(event, IntentAnomaly)
    assert event.request_id.isascii()
    assert len(event.agent) < 50


@pytest.mark.parametrize(
    "command",
    [
        replace(DONE, output={"x": float("inf")}),
        replace(FAILED, error="\ud800"),
        replace(FAILED, error="x" * 70_000),
        UpdateIntent("i", "alice", 101),
        UpdateIntent("i", "alice", -1),
        UpdateIntent("i", "alice", float("nan")),
        UpdateIntent("i", "alice", message="x" * 70_000),
        UpdateIntent("i", "alice", sequence=-1),
        UpdateIntent("i", "alice", partial=float("nan")),
    ],
)
def test_unstorable_result_is_refused(command: Any) -> None:
    assert delegated_to_alice().code(ALICE, command) == "invalid_field"


def test_update_is_recorded_and_renews_lease() -> None:
    world = delegated_to_alice()
    world.do(ALICE, ClaimTask("i", "alice"))
    decision = world.do(ALICE, UpdateIntent("i", "alice", 50, "half", "i.1", 1, "x"), NOW + 9)
    assert event_names(decision) == ["IntentUpdated", "TaskProgressed"]
    assert decision.events[1][1] == TaskProgressed("50 %", "half")
    assert world.leases["i"].expires_at > NOW + 300_000
    assert (world.intents["i"].updates, world.intents["i"].state) == (1, "TaskDispatched")
    chunk = world.do(ALICE, UpdateIntent("i", "alice", sequence=2, partial="y"), NOW + 9)
    assert event_names(chunk) == ["IntentUpdated"]  # it says nothing in words
    assert world.tasks["i"].notes == 1


def test_update_by_another_or_without_request_is_an_anomaly() -> None:
    world = delegated_to_alice()
    assert "is open with alice" in anomaly_detail(world, BOB, UpdateIntent("i", "bob"))
    assert "bob may not speak for alice" in anomaly_detail(world, BOB, UpdateIntent("i", "alice"))
    world.do(ALICE, DONE)
    assert "has a result already" in anomaly_detail(world, ALICE, UpdateIntent("i", "alice"))


@proves("CCOS-UPDATES")
def test_first_update_of_each_sequence_number_counts() -> None:
    world = delegated_to_alice()
    assert not world.do(ALICE, UpdateIntent("i", "alice", 50, sequence=5)).receipt.is_repeat
    for later in (
        UpdateIntent("i", "alice", 50, sequence=5),
        UpdateIntent("i", "alice", 60, sequence=5),
    ):
        decision = world.do(ALICE, later)
        assert (decision.events, decision.receipt.is_repeat) == ((), True)
    world.do(ALICE, UpdateIntent("i", "alice", 10, sequence=2))  # they may come in any order
    for _ in range(2):
        world.do(ALICE, UpdateIntent("i", "alice", 70))  # without a sequence number each one counts
    assert world.intents["i"].updates == 4
    assert open_request(world).sequences == (5, 2)
    for number in range(10, 10 + MAX_RECENT_UPDATES):
        world.do(ALICE, UpdateIntent("i", "alice", sequence=number))
    assert len(open_request(world).sequences) == MAX_RECENT_UPDATES
    world.do(ALICE, FAILED)
    assert world.do(BOB, UpdateIntent("i", "bob", sequence=10)).events != ()


@proves("CCOS-UPDATES")
def test_late_update_ends_request_like_late_result() -> None:
    world = delegated_to_alice("alice", patience_ms=HOUR)
    detail = anomaly_detail(world, ALICE, UpdateIntent("i", "alice", 99), NOW + HOUR)
    assert detail == "i: it is late: i.1 ended at 2026-02-09T15:30:00.000Z"
    assert (world.intents["i"].updates, world.intents["i"].state) == (0, "NeedsFollowUp")


@proves("CCOS-UPDATES")
def test_number_of_updates_is_limited() -> None:
    world = delegated_to_alice()
    world.intents["i"] = replace(world.intents["i"], updates=MAX_UPDATES)
    assert world.code(ALICE, UpdateIntent("i", "alice", 1)) == "invalid_field"
    assert world.do(ALICE, DONE).events != ()


@proves("CCOS-RESEND")
def test_only_one_execution_counts() -> None:
    """The request was sent twice, and both executions ran: with one result, or with two."""
    world = delegated_to_alice()
    world.do(ALICE, replace(DONE, request_id="i.1"))
    assert world.do(ALICE, replace(DONE, request_id="i.1")).events == ()
    anomaly_detail(world, ALICE, replace(DONE, request_id="i.1", output={"lines": 5}))
    assert reputation_of(world, "alice").recent == "1"


def test_oldest_results_are_forgotten() -> None:
    names = [f"a{number:02d}" for number in range(16)]
    world = registry(*names)
    for _ in range(3):
        for name in names:
            world.agents[name] = AgentRecord(name, "agent", (), NOW)
        world.do(HUMAN, DelegateIntent(GOAL, "i", candidates=rank_candidates(world), max_agents=16))
        while world.intents["i"].request is not None:
            submit_result(world, success=False)
        world.intents["i"] = replace(world.intents["i"], failed=())
    assert len(world.intents["i"].closed) == 32
    assert world.intents["i"].requests == 48


def test_result_for_missing_task_is_refused() -> None:
    world = delegated_to_alice()
    del world.tasks["i"]
    world.names.clear()
    assert world.code(ALICE, DONE) == "task_not_found"


@proves("CCOS-NEWCOMERS")
def test_failing_agent_loses_rank_and_regains_it() -> None:
    world = registry()
    for number in range(3):
        delegate_intent(world, f"f{number}", candidates=rank_candidates(world)[:1])
        submit_result(
            world, success=open_request(world, f"f{number}").agent != "alice", id=f"f{number}"
        )
    assert rank_candidates(world)[0].agent == "bob"
    for number in range(40):
        world.do(HUMAN, DescribeAgent("bob", ("python", "tests")))
        one = next(found for found in rank_candidates(world) if found.agent == "alice")
        delegate_intent(world, f"w{number}", candidates=(replace(one, score=1.0),))
        submit_result(world, id=f"w{number}")
    assert rank_candidates(world)[0].agent == "alice"


@proves("CCOS-RECEIPT")
def test_copy_of_first_result_does_not_end_second_request() -> None:
    world = delegated_to_alice(review_required=True)
    world.do(ALICE, DONE)
    world.do(HUMAN, MoveTask("i", "ready"))
    assert world.do(ALICE, DONE).events == ()
    assert (open_request(world).id, reputation_of(world, "alice").successes) == ("i.2", 1)
    world.do(ALICE, replace(DONE, request_id="i.2"))
    assert reputation_of(world, "alice").successes == 2


@proves("CCOS-ATTEMPT")
@pytest.mark.parametrize("result", [DONE, FAILED], ids=["success", "failure"])
def test_second_attempt_may_deliver_same_result(result: ReceiveResult) -> None:
    world = delegated_to_alice("alice", review_required=True)
    world.do(ALICE, ClaimTask("i", "alice"))
    world.do(ATTEMPT, result)
    assert world.do(ATTEMPT, result).receipt.is_repeat
    world.do(HUMAN, MoveTask("i", "ready"))
    assert world.do(ATTEMPT, result).receipt.is_repeat, "the first attempt says it once more"
    world.do(ALICE, ClaimTask("i", "alice"))
    second = replace(ATTEMPT, fence=2)
    decision = world.do(second, result)
    assert "IntentFeedbackApplied" in event_names(decision)
    assert world.intents["i"].closed[-1].id == "i.2"
    assert len(reputation_of(world, "alice").recent) == 2
    assert world.do(second, result).receipt.is_repeat


def test_result_for_unclaimable_task_is_an_anomaly() -> None:
    world = delegated_to_alice()
    world.put(replace(world.tasks["i"], open_blockers=("first",)))
    assert anomaly_detail(world, ALICE, DONE) == "i: i waits for first"
    late = NOW + HOUR
    world.intents["i"] = replace(
        world.intents["i"], request=replace(open_request(world), deadline=late)
    )
    world.do(HUB, ExpireRequest("i"), late)
    assert world.intents["i"].reasons == ("its task waits for first",)
