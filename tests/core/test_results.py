"""Results: matched, unmatched, repeated, different, late; feedback once; deadlines, updates."""

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    ClaimTask,
    CreateTask,
    DelegateIntent,
    DescribeAgent,
    EditTask,
    ExpireLease,
    ExpireRequest,
    MoveTask,
    ReceiveResult,
    ReportOutcome,
    UpdateIntent,
)
from dragoman.core.errors import Refusal
from dragoman.core.events import IntentAnomaly, IntentCompleted, TaskClaimed, TaskRequeued
from dragoman.core.limits import UPDATES
from dragoman.core.reading import Decision
from dragoman.core.states.agent import AgentRecord
from dragoman.core.states.intent import ANOMALIES_PER_MINUTE, REMEMBERED_RUNS
from tests.core.delegating import (
    GOAL,
    HOUR,
    answer,
    delegated,
    names_of,
    odd,
    open_request,
    ranked,
    registry,
    standing,
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


def given(*names: str, **more: Any) -> World:
    """An intent that alice, the first of them, was asked for."""
    world = registry(*names)
    delegated(world, **more)
    return world


@proves("CCOS-FEEDBACK", "CCOS-LIFE")
def test_a_success_satisfies_the_intent_and_is_counted() -> None:
    world = given()
    decision = world.do(ALICE, DONE, NOW + 1_500)
    assert names_of(decision) == [
        "TaskClaimed",
        "TaskReported",
        "TaskTransitioned",
        "TaskTransitioned",
        "IntentCompleted",
        "AgentRated",
        "IntentFedBack",
        "IntentSatisfied",
    ]
    intent, known = world.intents["i"], standing(world, "alice")
    assert (intent.state, intent.request) == ("Satisfied", None)
    assert (world.tasks["i"].status, decision.receipt.status) == ("done", "done")
    assert (known.successes, known.failures, known.recent, known.open) == (1, 0, "1", 0)
    assert (known.latency_ms, known.rated_at) == (1_500, NOW + 1_500)
    completed = next(e for e in events_of(decision) if isinstance(e, IntentCompleted))
    assert (completed.duration_ms, completed.output) == (1_500, {"lines": 3})
    assert "i" not in world.leases


@proves("CCOS-FEEDBACK")
@pytest.mark.parametrize("said", [DONE, FAILED], ids=["success", "failure"])
def test_what_an_agent_has_asked_of_itself_makes_no_record(said: ReceiveResult) -> None:
    world = given(actor=ALICE)
    decision = world.do(ALICE, said)
    assert "IntentFedBack" not in names_of(decision)
    known = standing(world, "alice")
    assert (known.successes, known.failures, known.recent, known.open) == (0, 0, "", 0)
    if said is FAILED:  # the next candidate is another one: what it brings counts
        assert answer(world).state == "Satisfied"
        assert standing(world, "bob").recent == "1"
    assert world.intents["i"].state == "Satisfied"


@proves("CCOS-FEEDBACK")
def test_the_attempt_that_was_claimed_before_ends_with_its_lease() -> None:
    world = given()
    world.do(ALICE, ClaimTask("i", "alice"))
    decision = world.do(ALICE, DONE)
    assert not any(isinstance(event, TaskClaimed) for event in events_of(decision))
    assert world.leases == {}
    assert world.tasks["i"].attempts == 1


def test_where_policy_says_so_the_output_is_a_digest_only() -> None:
    decision = given().do(ALICE, replace(DONE, output=None, left_out=9, digest="d"))
    completed = next(e for e in events_of(decision) if isinstance(e, IntentCompleted))
    assert (completed.output, completed.left_out, completed.digest) == (None, 9, "d")
    failure = replace(FAILED, left_out=9, digest="d")
    assert "has an output" in odd(given(), ALICE, failure)


@proves("CCOS-LIFE")
def test_an_intent_that_is_reviewed_is_satisfied_by_the_approval() -> None:
    world = given(review_required=True)
    world.do(ALICE, DONE)
    assert world.intents["i"].state == "FeedbackApplied"
    assert world.tasks["i"].status == "review"
    assert world.do(ALICE, DONE).events == ()
    world.do(HUMAN, MoveTask("i", "done"))
    assert world.intents["i"].state == "Satisfied"
    assert standing(world, "alice").successes == 1


@proves("CCOS-LIFE")
def test_whoever_waits_for_the_task_is_told() -> None:
    world = given()
    world.do(HUMAN, CreateTask("after", "after", ready=True, blocked_by=("i",)))
    world.do(ALICE, DONE)
    assert world.tasks["after"].open_blockers == ()


@proves("CCOS-RETRY", "CCOS-FEEDBACK")
def test_a_failure_goes_to_the_next_candidate_and_at_last_to_the_deadletter() -> None:
    world = given(patience_ms=HOUR)
    decision = world.do(ALICE, FAILED, NOW + 5)
    assert names_of(decision, "intent:") == [
        "IntentCompleted",
        "IntentFedBack",
        "IntentProposed",
        "IntentApproved",
        "IntentDispatched",
    ]
    request = open_request(world)
    assert (request.id, request.agent, request.deadline) == ("i.2", "bob", NOW + 5 + HOUR)
    assert world.tasks["i"].assignee == "bob"
    assert (standing(world, "alice").failures, standing(world, "bob").open) == (1, 1)
    last = world.do(BOB, ReceiveResult("i", "bob", success=False, error="no" * 900), NOW + 9)
    intent = world.intents["i"]
    assert intent.state == "NeedsFollowUp"
    assert intent.reasons[0].startswith("nobody else may have it, the last failed: nono")
    completed = next(e for e in events_of(last) if isinstance(e, IntentCompleted))
    assert len(completed.error) == 500
    assert completed.error.endswith("…")
    assert world.tasks["i"].status == "deadletter"


@proves("CCOS-RETRY", "CCOS-LIFE")
def test_what_has_failed_needs_a_follow_up_also_when_the_others_may_not_have_it() -> None:
    world = registry("alice")
    world.agents["cook"] = AgentRecord("cook", "agent", ("ccos",), NOW)
    world.do(HUMAN, DescribeAgent("cook", ("cook",)))
    delegated(world)
    intent = answer(world, success=False)
    assert (intent.state, world.tasks["i"].status) == ("NeedsFollowUp", "deadletter")
    assert intent.reasons == ("nobody else may have it, the last failed: it broke",)


@proves("CCOS-RETRY")
def test_so_many_are_tried_and_no_more() -> None:
    world = given("a1", "a2", "a3", tries=2)
    answer(world, success=False)
    intent = answer(world, success=False)
    assert intent.reasons == ("2 tries have failed, the last: it broke",)
    once = answer(given("a1", "a2", tries=1), success=False)
    assert once.reasons == ("its only try has failed: it broke",)


@proves("CCOS-RETRY")
def test_a_candidate_that_has_become_unfit_is_passed_over() -> None:
    world = given("a1", "a2", "a3")
    world.standings["a2"] = replace(standing(world, "a2"), descriptor=None)
    answer(world, success=False)
    assert open_request(world).agent == "a3"


@pytest.mark.parametrize("command", [DONE, replace(DONE, request_id="i.1")])
def test_an_equal_repeat_is_a_no_op(command: ReceiveResult) -> None:
    world = given()
    world.do(ALICE, command)
    for repeat in (DONE, replace(DONE, request_id="i.1")):
        decision = world.ask(ALICE, repeat, NOW + 9)
        assert isinstance(decision, Decision)
        assert (decision.events, decision.refusal) == ((), None)
        assert decision.receipt.before
    assert standing(world, "alice").successes == 1


@pytest.mark.parametrize(
    ("said", "again", "is_repeat"),
    [
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": [-0.0, "1.0", 2.5]}, {"a": [0, "1.0", 2.5]}, True),
        (1.0, 1, True),
        ({"a": "1.0"}, {"a": "1"}, False),
        (1.5, 1, False),
        (2.0**60, 2.0**61, False),
    ],
)
def test_a_whole_number_is_the_same_however_it_is_written(
    said: object, again: object, is_repeat: bool
) -> None:
    world = given()
    world.do(ALICE, replace(DONE, output=said))
    decision = world.ask(ALICE, replace(DONE, output=again), NOW + 9)
    assert isinstance(decision, Decision)
    assert decision.receipt.before is is_repeat


@proves("CCOS-FEEDBACK")
def test_a_failure_repeated_while_another_agent_works_is_a_no_op_too() -> None:
    world = given()
    world.do(ALICE, FAILED)
    assert world.do(ALICE, FAILED).events == ()
    assert standing(world, "alice").failures == 1


@pytest.mark.parametrize(
    ("command", "actor", "why"),
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
def test_what_does_not_match_is_an_anomaly(command: Any, actor: Actor, why: str) -> None:
    world = given()
    before = world.intents["i"].request
    assert odd(world, actor, command) == f"i: {why}"
    intent = world.intents["i"]
    assert (intent.state, intent.request) == ("TaskDispatched", before)
    assert standing(world, "alice").recent == ""


@proves("CCOS-RESULT")
@pytest.mark.parametrize(
    ("command", "why"),
    [
        (replace(DONE, error="x"), "it is a success and has an error"),
        (replace(FAILED, output=1), "it is a failure and has an output"),
        (replace(FAILED, error=""), "it is a failure and has no error"),
    ],
)
def test_a_result_has_an_output_or_an_error(command: ReceiveResult, why: str) -> None:
    assert odd(given(), ALICE, command) == f"i: {why}"


def test_a_second_result_and_one_without_a_request_are_anomalies() -> None:
    world = given()
    world.do(ALICE, DONE)
    another = replace(DONE, output={"lines": 4})
    assert odd(world, ALICE, another) == "i: i.1 has another result already"
    assert (
        odd(world, BOB, replace(DONE, agent="bob")) == "i: i has no open request: it is Satisfied"
    )
    assert standing(world, "alice").recent == "1"


@proves("CCOS-OWNER")
def test_a_result_after_the_owner_has_changed_is_an_anomaly() -> None:
    world = given()
    world.do(HUMAN, MoveTask("i", "backlog"))
    assert odd(world, ALICE, DONE) == "i: i.1 was superseded by what became of the task"


@proves("CCOS-DEADLINE")
def test_after_the_deadline_the_synthetic_failure_stands() -> None:
    world = given(patience_ms=HOUR)
    assert world.do(HUB, ExpireRequest("i"), NOW + HOUR - 1).events == ()
    world.do(ALICE, ClaimTask("i", "alice"))
    decision = world.do(HUB, ExpireRequest("i"), NOW + HOUR)
    completed = next(e for e in events_of(decision) if isinstance(e, IntentCompleted))
    assert (completed.success, completed.synthetic) == (False, "deadline")
    assert completed.error == "no result had come by 2026-02-09T15:30:00.000Z"
    assert any(isinstance(event, TaskRequeued) for event in events_of(decision))
    assert world.leases == {}
    assert standing(world, "alice").failures == 1
    assert open_request(world).agent == "bob"
    why = odd(world, ALICE, DONE, NOW + HOUR)
    assert why == "i: it is late: i.1 was ended at 2026-02-09T15:30:00.000Z (deadline)"
    assert world.do(HUB, ExpireRequest("i"), NOW + HOUR).events == ()


@proves("CCOS-TAKEN-BACK")
def test_a_result_after_a_block_is_not_called_late() -> None:
    world = given()
    world.do(HUMAN, MoveTask("i", "blocked", "wait"))
    why = odd(world, ALICE, DONE, NOW + 1)
    assert why == "i: i.1 was ended at 2026-02-09T14:30:00.000Z (blocked)"


@proves("CCOS-DEADLINE")
@proves("CCOS-DUE")
def test_a_moment_that_was_said_stands_for_whoever_is_asked_before_it() -> None:
    world = registry("alice", "bob", "carol")
    due = NOW + HOUR
    delegated(world, patience_ms=HOUR, due_by=due)
    assert open_request(world).deadline == due
    answer(world, success=False, now=NOW + 60_000)
    assert (open_request(world).agent, open_request(world).deadline) == ("bob", due)
    world.do(HUMAN, EditTask("i", assignee="carol"), NOW + 120_000)
    assert (open_request(world).agent, open_request(world).deadline) == ("carol", due)


@proves("CCOS-DUE", "CCOS-RETRY")
def test_who_is_tried_after_it_has_as_much_time_again() -> None:
    world = given(patience_ms=HOUR, due_by=NOW + HOUR)
    world.do(HUB, ExpireRequest("i"), NOW + HOUR + 60_000)
    assert open_request(world).agent == "bob"
    assert open_request(world).deadline == NOW + 2 * HOUR + 60_000


@proves("CCOS-DUE", "CCOS-GOVERNANCE")
def test_who_takes_longer_than_is_left_until_then_is_passed_over() -> None:
    world = registry("alice", "bob", latency_ms=HOUR // 2)
    delegated(world, patience_ms=HOUR, due_by=NOW + HOUR)
    answer(world, success=False, now=NOW + HOUR // 2 + 1_000)
    assert world.intents["i"].state == "NeedsFollowUp"


@proves("CCOS-DUE")
def test_delegated_anew_another_moment_counts_or_none() -> None:
    world = given("alice", patience_ms=HOUR, due_by=NOW + HOUR)
    answer(world, success=False)
    world.agents["bob"] = AgentRecord("bob", "agent", ("ccos",), NOW)
    world.do(HUMAN, DescribeAgent("bob", ("python", "tests")))
    delegated(world, patience_ms=2 * HOUR)
    assert (world.intents["i"].due_by, open_request(world).deadline) == (0, NOW + 2 * HOUR)


def test_a_late_result_ends_the_request_itself_if_nobody_has_seen_to_it() -> None:
    world = given("alice", patience_ms=HOUR)
    why = odd(world, ALICE, DONE, NOW + HOUR)
    assert why == "i: it is late: i.1 ended at 2026-02-09T15:30:00.000Z"
    assert world.intents["i"].state == "NeedsFollowUp"
    assert standing(world, "alice").recent == "0"
    assert world.tasks["i"].status == "deadletter"
    assert world.do(HUB, ExpireRequest("i"), NOW + HOUR).events == ()


@proves("CCOS-DEADLINE")
def test_a_review_takes_as_long_as_it_takes() -> None:
    world = given(patience_ms=HOUR, review_required=True)
    world.do(ALICE, ClaimTask("i", "alice"))
    world.do(ALICE, ReportOutcome("i", "partial", "half", apply=True))
    assert world.tasks["i"].status == "review"
    assert world.do(HUB, ExpireRequest("i"), NOW + 2 * HOUR).events == ()
    assert world.intents["i"].request is not None
    assert "its task is review" in odd(world, ALICE, DONE, NOW + 2 * HOUR)
    assert (world.tasks["i"].status, standing(world, "alice").recent) == ("review", "")


@proves("CCOS-DEADLINE")
def test_who_may_end_a_request_and_which() -> None:
    world = given()
    for actor, code in ((ALICE, "not_authorized"), (COORDINATOR, "not_authorized"), (HUB, "")):
        assert world.code(actor, ExpireRequest("i")) == code
    assert world.code(HUB, ExpireRequest("none")) == "intent_not_found"
    assert world.code(HUB, ExpireRequest("n o")) == "invalid_id"


def test_about_an_unknown_intent_nothing_is_written() -> None:
    world = registry()
    assert world.code(ALICE, DONE) == "anomaly"
    assert world.code(ALICE, UpdateIntent("i", "alice")) == "anomaly"
    assert world.code(ALICE, replace(DONE, intent="a b")) == "invalid_id"


@proves("CCOS-ATTEMPT")
@pytest.mark.parametrize("command", [DONE, UpdateIntent("i", "alice", 10)])
def test_what_an_attempt_says_about_another_intent_is_an_anomaly_of_that(command: Any) -> None:
    world = given("alice")
    delegated(world, "j")
    world.do(ALICE, ClaimTask("j", "alice"))
    attempt = Actor("agent", "alice", "http", "j", 1)
    assert "an attempt on j only" in odd(world, attempt, command)
    assert world.intents["i"].state == "TaskDispatched"
    assert world.code(attempt, replace(command, intent="j")) == ""
    assert world.code(replace(attempt, fence=2), command) == "lease_lost"


@proves("CCOS-ATTEMPT")
@pytest.mark.parametrize("command", [DONE, UpdateIntent("i", "alice", 10)])
def test_and_about_none_one_of_what_it_was_asked_for(command: Any) -> None:
    world = given("alice")
    world.do(ALICE, ClaimTask("i", "alice"))
    attempt = Actor("agent", "alice", "http", "i", 1)
    answer = world.ask(attempt, replace(command, intent="other"))
    assert isinstance(answer, Decision)
    assert answer.refusal is not None
    assert answer.refusal.code == "anomaly"
    assert names_of(answer) == ["IntentAnomaly"]
    assert "no intent other, and i was asked for" in answer.refusal.detail
    assert world.code(attempt, replace(command, intent="a b")) == "invalid_id"


@proves("CCOS-ATTEMPT")
def test_of_an_attempt_on_what_is_no_intent_s_it_stands_with_its_agent() -> None:
    world = registry("alice")
    world.put(task("T", "in-progress", "alice", attempts=1))
    world.leases["T"] = lease("alice", 1)
    assert world.code(Actor("agent", "alice", "http", "T", 1), DONE) == "anomaly"


ATTEMPT = Actor("agent", "alice", "http", "i", 1)


@proves("CCOS-RECEIPT", "CCOS-ATTEMPT")
def test_what_an_attempt_says_after_its_result_is_a_repeat_or_an_anomaly() -> None:
    world = given()
    world.do(ALICE, ClaimTask("i", "alice"))
    world.do(ATTEMPT, DONE)
    again = world.do(ATTEMPT, DONE)
    assert (again.events, again.receipt.before) == ((), True)
    other = replace(DONE, output=8)
    assert odd(world, ATTEMPT, other) == "i: i.1 has another result already"
    told = odd(world, ATTEMPT, UpdateIntent("i", "alice", 10, "", "i.1", 1))
    assert told == "i: i.1 has a result already"


@proves("CCOS-RECEIPT", "CCOS-ATTEMPT")
@pytest.mark.parametrize("is_seen_to", [False, True])
def test_what_an_attempt_says_after_the_deadline_is_an_anomaly(is_seen_to: bool) -> None:
    world = given(patience_ms=HOUR)
    world.do(ALICE, ClaimTask("i", "alice"))
    if is_seen_to:
        world.do(HUB, ExpireRequest("i"), NOW + HOUR)
    assert odd(world, ATTEMPT, DONE, NOW + HOUR).startswith("i: it is late: i.1")


@proves("LEASE-LOST")
@pytest.mark.parametrize("is_requeued", [False, True])
@pytest.mark.parametrize("command", [DONE, UpdateIntent("i", "alice", 10)])
def test_an_attempt_that_has_lost_its_lease_ends_no_open_request(
    command: Any, is_requeued: bool
) -> None:
    world = given()
    world.do(ALICE, ClaimTask("i", "alice", ttl_ms=TTL))
    if is_requeued:
        world.do(HUB, ExpireLease("i"), NOW + TTL)
    assert world.code(ATTEMPT, command, NOW + TTL) == "lease_lost"
    assert open_request(world).id == "i.1"


@pytest.mark.parametrize("actor", [OBSERVER, COORDINATOR, FILE])
def test_who_may_deliver(actor: Actor) -> None:
    assert given().code(actor, DONE) == "not_authorized"


def test_a_carrier_may_deliver_and_is_on_record_as_such() -> None:
    world = given()
    decision = world.do(ORCHESTRATOR, DONE)
    claimed = next(e for e in events_of(decision) if isinstance(e, TaskClaimed))
    assert (claimed.agent, claimed.dispatched_by) == ("alice", "olga")


def test_a_repeated_anomaly_adds_nothing_and_a_flood_is_cut_off() -> None:
    world = given()
    wrong = replace(DONE, agent="bob")
    odd(world, BOB, wrong)
    again = world.ask(BOB, wrong)
    assert isinstance(again, Decision)
    assert again.events == ()
    assert again.refusal is not None
    for number in range(ANOMALIES_PER_MINUTE - 1):
        odd(world, ALICE, replace(DONE, request_id=f"x{number}"))
    flood = world.ask(ALICE, replace(DONE, request_id="one-too-many"))
    assert isinstance(flood, Refusal)  # and so it is on record with whoever said it
    assert flood.code == "anomaly"
    odd(world, ALICE, replace(DONE, request_id="one-too-many"), NOW + 60_000)
    assert world.intents["i"].in_minute == 1


def test_what_an_anomaly_says_is_made_harmless() -> None:
    world = given()
    decision = world.ask(HUB, replace(DONE, request_id="\u202e" * 999, agent="x" * 999))
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
def test_what_cannot_be_stored_is_refused(command: Any) -> None:
    assert given().code(ALICE, command) == "invalid_field"


def test_an_update_is_on_record_and_a_sign_of_life() -> None:
    world = given()
    world.do(ALICE, ClaimTask("i", "alice"))
    decision = world.do(ALICE, UpdateIntent("i", "alice", 50, "half", "i.1", 1, "x"), NOW + 9)
    assert names_of(decision) == ["IntentUpdated"]
    assert world.leases["i"].expires_at > NOW + 300_000
    assert (world.intents["i"].updates, world.intents["i"].state) == (1, "TaskDispatched")


def test_an_update_of_another_or_of_nothing_is_an_anomaly() -> None:
    world = given()
    assert "is open with alice" in odd(world, BOB, UpdateIntent("i", "bob"))
    assert "bob may not speak for alice" in odd(world, BOB, UpdateIntent("i", "alice"))
    world.do(ALICE, DONE)
    assert "has a result already" in odd(world, ALICE, UpdateIntent("i", "alice"))


@proves("CCOS-UPDATES")
def test_of_updates_with_one_number_the_first_counts_whatever_the_others_say() -> None:
    world = given()
    assert not world.do(ALICE, UpdateIntent("i", "alice", 50, sequence=5)).receipt.before
    for later in (
        UpdateIntent("i", "alice", 50, sequence=5),
        UpdateIntent("i", "alice", 60, sequence=5),
    ):
        told = world.do(ALICE, later)
        assert (told.events, told.receipt.before) == ((), True)
    world.do(ALICE, UpdateIntent("i", "alice", 10, sequence=2))  # they may come in any order
    for _ in range(2):
        world.do(ALICE, UpdateIntent("i", "alice", 70))  # without a number each one counts
    assert world.intents["i"].updates == 4
    assert open_request(world).pieces == ((2, 2), (5, 5))


@proves("CCOS-UPDATES")
def test_a_number_that_never_came_counts_however_many_came_after_it() -> None:
    world = given()
    many = 2 * REMEMBERED_RUNS
    for number in range(many, 0, -1):
        if number != 2:
            world.do(ALICE, UpdateIntent("i", "alice", sequence=number))
    assert open_request(world).pieces == ((1, 1), (3, many))
    for number in (1, 3, many):
        assert world.do(ALICE, UpdateIntent("i", "alice", sequence=number)).receipt.before
    assert world.do(ALICE, UpdateIntent("i", "alice", sequence=2)).events != ()
    assert world.do(ALICE, UpdateIntent("i", "alice", sequence=2)).receipt.before
    assert open_request(world).pieces == ((1, many),)


@proves("CCOS-UPDATES")
def test_only_so_many_gaps_are_remembered_and_the_lowest_is_closed() -> None:
    world = given()
    for number in range(1, 2 * REMEMBERED_RUNS + 2, 2):
        world.do(ALICE, UpdateIntent("i", "alice", sequence=number))
    runs = open_request(world).pieces
    assert (len(runs), runs[:2]) == (REMEMBERED_RUNS, ((1, 3), (5, 5)))
    assert world.do(ALICE, UpdateIntent("i", "alice", sequence=2)).receipt.before
    assert world.do(ALICE, UpdateIntent("i", "alice", sequence=4)).events != ()
    world.do(ALICE, FAILED)
    assert open_request(world).pieces == ()  # the next one counts from the beginning
    assert world.do(BOB, UpdateIntent("i", "bob", sequence=1)).events != ()


@proves("CCOS-UPDATES")
def test_an_update_after_the_deadline_ends_the_request_like_a_late_result() -> None:
    world = given("alice", patience_ms=HOUR)
    why = odd(world, ALICE, UpdateIntent("i", "alice", 99), NOW + HOUR)
    assert why == "i: it is late: i.1 ended at 2026-02-09T15:30:00.000Z"
    assert (world.intents["i"].updates, world.intents["i"].state) == (0, "NeedsFollowUp")


@proves("CCOS-UPDATES")
def test_an_intent_keeps_so_many_updates_and_no_more() -> None:
    world = given()
    world.intents["i"] = replace(world.intents["i"], updates=UPDATES)
    assert world.code(ALICE, UpdateIntent("i", "alice", 1)) == "invalid_field"
    assert world.do(ALICE, DONE).events != ()


@proves("CCOS-RESEND")
def test_only_one_execution_counts() -> None:
    """The request was sent twice, and both have run: with one result, or with two."""
    world = given()
    world.do(ALICE, replace(DONE, request_id="i.1"))
    assert world.do(ALICE, replace(DONE, request_id="i.1")).events == ()
    odd(world, ALICE, replace(DONE, request_id="i.1", output={"lines": 5}))
    assert standing(world, "alice").recent == "1"


def test_results_of_long_ago_are_forgotten_in_order() -> None:
    names = [f"a{number:02d}" for number in range(16)]
    world = registry(*names)
    for _ in range(3):
        for name in names:
            world.agents[name] = AgentRecord(name, "agent", (), NOW)
        world.do(HUMAN, DelegateIntent(GOAL, "i", candidates=ranked(world), tries=16))
        while world.intents["i"].request is not None:
            answer(world, success=False)
        world.intents["i"] = replace(world.intents["i"], failed=())
    assert len(world.intents["i"].closed) == 32
    assert world.intents["i"].requests == 48


def test_a_task_that_cannot_be_read_is_told_as_that() -> None:
    world = given()
    del world.tasks["i"]
    world.names.clear()
    assert world.code(ALICE, DONE) == "task_not_found"


@proves("CCOS-NEWCOMERS")
def test_a_failing_agent_loses_its_place_and_wins_it_back() -> None:
    world = registry()
    for number in range(3):
        delegated(world, f"f{number}", candidates=ranked(world)[:1])
        answer(world, success=open_request(world, f"f{number}").agent != "alice", id=f"f{number}")
    assert ranked(world)[0].agent == "bob"
    for number in range(40):
        world.do(HUMAN, DescribeAgent("bob", ("python", "tests")))
        one = next(found for found in ranked(world) if found.agent == "alice")
        delegated(world, f"w{number}", candidates=(replace(one, score=1.0),))
        answer(world, id=f"w{number}")
    assert ranked(world)[0].agent == "alice"


@proves("CCOS-RECEIPT")
def test_a_copy_of_the_first_result_does_not_answer_the_second_request() -> None:
    world = given(review_required=True)
    world.do(ALICE, DONE)
    world.do(HUMAN, MoveTask("i", "ready"))
    assert world.do(ALICE, DONE).events == ()
    assert (open_request(world).id, standing(world, "alice").successes) == ("i.2", 1)
    world.do(ALICE, replace(DONE, request_id="i.2"))
    assert standing(world, "alice").successes == 2


@proves("CCOS-ATTEMPT")
@pytest.mark.parametrize("said", [DONE, FAILED], ids=["success", "failure"])
def test_an_attempt_may_say_what_an_earlier_one_has_said(said: ReceiveResult) -> None:
    world = given("alice", review_required=True)
    world.do(ALICE, ClaimTask("i", "alice"))
    world.do(ATTEMPT, said)
    assert world.do(ATTEMPT, said).receipt.before
    world.do(HUMAN, MoveTask("i", "ready"))
    assert world.do(ATTEMPT, said).receipt.before, "the first attempt says it once more"
    world.do(ALICE, ClaimTask("i", "alice"))
    second = replace(ATTEMPT, fence=2)
    decision = world.do(second, said)
    assert "IntentFedBack" in names_of(decision)
    assert world.intents["i"].closed[-1].id == "i.2"
    assert len(standing(world, "alice").recent) == 2
    assert world.do(second, said).receipt.before


def test_a_result_of_what_cannot_be_claimed_is_an_anomaly() -> None:
    world = given()
    world.put(replace(world.tasks["i"], open_blockers=("first",)))
    assert odd(world, ALICE, DONE) == "i: i waits for first"
    late = NOW + HOUR
    world.intents["i"] = replace(
        world.intents["i"], request=replace(open_request(world), deadline=late)
    )
    world.do(HUB, ExpireRequest("i"), late)
    assert world.intents["i"].reasons == ("its task waits for first",)
