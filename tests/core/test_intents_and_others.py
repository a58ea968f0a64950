"""Where a person or another dialect touches the task of an intent: its time, its policy, its tries.

However the task is moved, the deadline stands, nobody has it whom governance keeps it from, and
only who has failed was tried.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    ActivateHandoff,
    CancelIntent,
    CheckpointTask,
    ClaimTask,
    CreateTask,
    DescribeAgent,
    EditTask,
    EndAttempt,
    ExpireRequest,
    MoveTask,
    ReceiveResult,
    ReleaseTask,
    ReportOutcome,
    RequestDelegation,
    UpdateTask,
)
from dragoman.core.errors import Refusal
from dragoman.core.events import IntentApproved, IntentCompleted, IntentRejected
from dragoman.core.offers import Policy
from dragoman.core.reading import Decision
from dragoman.core.rules.governance import POLICY
from dragoman.core.states.agent import AgentRecord
from tests.core.delegating import (
    CAROL,
    HOUR,
    answer,
    delegated,
    names_of,
    odd,
    open_request,
    registry,
    standing,
)
from tests.core.handoffs import accept, offer
from tests.core.world import ALICE, BOB, FILE, HUB, HUMAN, NOW, World, events_of
from tests.requirements import proves

LATE = NOW + HOUR
LOW = Actor("agent", "low")
FORBIDDEN = "forbidden goal: it comes with the words 'delete production'"
TIMED_OUT = ["IntentCompleted", "IntentFedBack"]


def taken(*names: str, **more: Any) -> World:
    """Alice was asked, has an hour, and has claimed the task as any task."""
    world = registry(*names)
    delegated(world, patience_ms=HOUR, **more)
    world.do(ALICE, ClaimTask("i", "alice", ttl_ms=2 * HOUR))
    return world


def too_late(world: World, actor: Actor, command: Any) -> list[str]:
    """It is an anomaly, and what the intent makes of it."""
    decision = world.ask(actor, command, LATE)
    assert isinstance(decision, Decision)
    assert decision.refusal is not None
    assert decision.refusal.code == "anomaly"
    assert decision.refusal.detail == "i: it is late: i.1 ended at 2026-02-09T15:30:00.000Z"
    world.follow(decision, LATE)
    assert standing(world, "alice").recent == "0"
    return names_of(decision, "intent:")


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
def test_what_an_agent_does_after_its_time_is_an_anomaly_in_any_dialect(command: Any) -> None:
    world = taken()
    told = too_late(world, ALICE, command)
    assert told[:2] == TIMED_OUT
    assert told[-2:] == ["IntentDispatched", "IntentAnomaly"]
    assert (open_request(world).agent, world.tasks["i"].status) == ("bob", "ready")
    assert "i" not in world.leases
    # What it does then it does to another's task.
    assert isinstance(world.ask(ALICE, command, LATE), Refusal)


@proves("CCOS-DEADLINE-DOORS")
def test_a_claim_after_its_time_is_too_late_and_who_takes_what_comes_gets_the_next() -> None:
    world = registry()
    delegated(world, patience_ms=HOUR)
    world.do(HUMAN, CreateTask("other", "other", ready=True))
    got = world.ask(ALICE, ClaimTask("", "alice"), LATE)
    assert isinstance(got, Decision)
    assert got.receipt.task == "other"
    assert too_late(world, ALICE, ClaimTask("i", "alice"))[-1] == "IntentAnomaly"


@proves("CCOS-DEADLINE-DOORS")
def test_a_recipient_does_not_take_over_what_is_overdue() -> None:
    world = registry()
    delegated(world, patience_ms=HOUR)
    world.do(ALICE, replace(offer("carol"), task="i"))
    world.do(CAROL, accept(world))
    too_late(world, CAROL, ActivateHandoff("H"))
    assert (open_request(world).agent, world.handoffs["H"].status) == ("bob", "closed")
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
def test_a_persons_word_after_the_deadline_stands_and_so_does_the_deadline(command: Any) -> None:
    world = registry()
    delegated(world, patience_ms=HOUR)
    world.do(HUMAN, command, LATE)
    intent = world.intents["i"]
    assert (intent.state, standing(world, "alice").recent) == ("NeedsFollowUp", "0")
    assert intent.closed[-1].synthetic == "deadline"


@proves("CCOS-DEADLINE-DOORS")
def test_whom_a_person_gives_it_after_the_deadline_is_asked() -> None:
    world = registry()
    delegated(world, patience_ms=HOUR)
    world.do(HUMAN, EditTask("i", assignee="carol"), LATE)
    assert (open_request(world).agent, standing(world, "alice").recent) == ("carol", "0")


@proves("CCOS-DEADLINE-DOORS")
def test_what_a_person_takes_to_a_review_after_the_deadline_was_not_in_time() -> None:
    world = taken()
    assert names_of(world.do(HUMAN, MoveTask("i", "review"), LATE), "intent:") == TIMED_OUT
    world.do(HUMAN, MoveTask("i", "done"), LATE)
    assert (world.intents["i"].state, standing(world, "alice").recent) == ("Satisfied", "0")


@proves("CCOS-DEADLINE-DOORS")
def test_what_changes_nothing_for_the_request_is_left_to_the_duty() -> None:
    world = taken()
    world.do(HUMAN, EditTask("i", "another title"), LATE)
    assert open_request(world).id == "i.1"
    world.do(HUB, ExpireRequest("i"), LATE)
    assert open_request(world).agent == "bob"
    world = registry()
    delegated(world, patience_ms=HOUR)
    world.do(HUMAN, CheckpointTask("i", "RESUME", "abc1234"), LATE)
    assert open_request(world).id == "i.1"


@proves("CCOS-DEADLINE-DOORS")
def test_what_was_reported_in_time_counts_when_its_session_ends() -> None:
    world = taken()
    world.do(ALICE, ReportOutcome("i", "done", "here"), LATE - 1)
    assert names_of(world.do(HUB, ExpireRequest("i"), LATE)) == []
    world.do(ALICE, EndAttempt("i"), LATE)
    assert (world.intents["i"].state, standing(world, "alice").recent) == ("Satisfied", "1")


@proves("CCOS-DEADLINE-DOORS")
def test_who_ends_another_task_is_not_held_up_by_what_is_overdue() -> None:
    world = registry()
    delegated(world, patience_ms=HOUR)
    world.do(HUMAN, CreateTask("first", "first", ready=True, review_required=False))
    world.do(BOB, ClaimTask("first", "bob", ttl_ms=2 * HOUR))
    world.put(replace(world.tasks["i"], open_blockers=("first",), blocked_by=("first",)))
    world.put(replace(world.tasks["first"], blocks=("i",)))
    world.do(BOB, ReportOutcome("first", "done", apply=True), LATE)
    assert world.tasks["first"].status == "done"
    assert open_request(world).id == "i.1"


def guarded(floor: Any = "T1") -> World:
    """Alice and bob are trusted enough, low is not; alice has the intent."""
    world = registry(trust="T2")
    world.agents["low"] = AgentRecord("low", "agent", ("ccos",), NOW)
    world.do(HUMAN, DescribeAgent("low", ("python", "tests"), trust="T0"))
    policy = Policy(trust_floor=floor, forbidden_goals=("delete production",))
    delegated(world, policy=policy)
    return world


@proves("CCOS-GOVERNED-DOORS")
@pytest.mark.parametrize("actor", [FILE, HUMAN])
def test_nobody_is_given_it_by_hand_whom_the_policy_keeps_it_from(actor: Actor) -> None:
    world = guarded()
    no = world.ask(actor, EditTask("i", assignee="low"))
    assert isinstance(no, Refusal)
    why = "low may not have the intent i: trust: it has T0, and T1 is the least"
    assert (no.code, no.detail) == ("policy_violation", why)
    assert world.code(actor, EditTask("i", assignee="carol")) == "policy_violation"
    given = world.do(actor, EditTask("i", assignee="bob"))
    approved = next(one for one in events_of(given) if isinstance(one, IntentApproved))
    assert (approved.agent, approved.checks) == ("bob", ("forbidden goal", *POLICY))
    assert open_request(world).agent == "bob"


@proves("CCOS-GOVERNED-DOORS")
def test_nobody_claims_it_whom_governance_keeps_it_from() -> None:
    world = guarded()
    world.do(HUMAN, EditTask("i", assignee=""))
    before = world.intents["i"]
    assert world.code(LOW, ClaimTask("i", "low")) == "policy_violation"
    assert world.intents["i"] == before
    # Who takes what comes is not held up by it.
    assert world.code(LOW, ClaimTask("", "low")) == "nothing_ready"
    world.do(HUMAN, CreateTask("other", "other", ready=True))
    got = world.ask(LOW, ClaimTask("", "low"))
    assert isinstance(got, Decision)
    assert got.receipt.task == "other"
    got = world.do(BOB, ClaimTask("", "bob"))
    assert (got.receipt.task, open_request(world).agent) == ("i", "bob")


@proves("CCOS-GOVERNED-DOORS")
def test_what_is_sent_back_by_a_reviewer_goes_to_another_owner_by_the_policy_only() -> None:
    world = guarded()
    world.put(replace(world.tasks["i"], review_required=True))
    answer(world)
    world.do(HUMAN, EditTask("i", assignee="low"))
    world.do(HUMAN, MoveTask("i", "ready"))
    intent = world.intents["i"]
    assert (intent.state, intent.request) == ("DelegationRejected", None)
    assert intent.reasons == ("trust: it has T0, and T1 is the least",)


@proves("CCOS-GOVERNED-DOORS")
def test_words_that_a_task_has_by_now_are_asked_about_again() -> None:
    world = guarded()
    world.do(ALICE, ClaimTask("i", "alice"))
    world.do(FILE, EditTask("i", "delete production"))
    decision = world.do(ALICE, ReceiveResult("i", "alice", success=False, error="it broke"))
    rejected = next(one for one in events_of(decision) if isinstance(one, IntentRejected))
    assert rejected.reasons == (FORBIDDEN,)
    intent = world.intents["i"]
    assert (intent.state, intent.request) == ("NeedsFollowUp", None)
    assert intent.reasons == (f"{FORBIDDEN}; the last failed: it broke",)
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
def test_what_nobody_has_begun_is_asked_of_nobody_once_its_words_are_forbidden(
    actor: Actor, command: Any
) -> None:
    world = guarded()
    world.do(HUMAN, CreateTask("whole", "whole", ready=True))
    world.put(replace(world.tasks["i"], parent="whole"))
    world.do(actor, command)
    intent = world.intents["i"]
    assert (intent.state, intent.request) == ("DelegationRejected", None)
    assert intent.reasons == (FORBIDDEN,)
    assert (standing(world, "alice").recent, standing(world, "alice").open) == ("", 0)
    no = world.ask(ALICE, ClaimTask("i", "alice"))
    assert isinstance(no, Refusal)
    why = f"alice may not have the intent i: {FORBIDDEN}"
    assert (no.code, no.detail) == ("policy_violation", why)
    got = world.ask(ALICE, ClaimTask("", "alice"))
    assert isinstance(got, Decision)
    assert got.receipt.task == "whole"
    assert "was superseded" in odd(world, ALICE, ReceiveResult("i", "alice", success=True))


@proves("CCOS-FORBIDDEN-SINCE")
def test_other_words_make_it_somebodys_work_again() -> None:
    world = guarded()
    world.do(HUMAN, EditTask("i", "delete production"))
    world.do(HUMAN, EditTask("i", "keep production"))
    world.do(ALICE, ClaimTask("i", "alice"))
    assert open_request(world).agent == "alice"


@proves("CCOS-FORBIDDEN-SINCE")
def test_what_is_under_way_is_brought_to_its_end_and_asked_of_nobody_after_it() -> None:
    world = guarded()
    world.do(ALICE, ClaimTask("i", "alice"))
    world.do(HUMAN, EditTask("i", "delete production"))
    assert answer(world).state == "Satisfied"
    world = guarded()
    world.do(ALICE, ClaimTask("i", "alice"))
    world.do(HUMAN, EditTask("i", "delete production"))
    world.do(ALICE, ReleaseTask("i"))
    assert world.intents["i"].reasons == (FORBIDDEN,)


@proves("CCOS-FORBIDDEN-SINCE")
def test_a_deadline_that_has_passed_before_stands() -> None:
    world = registry()
    delegated(world, patience_ms=HOUR, policy=Policy(forbidden_goals=("delete production",)))
    world.do(HUMAN, EditTask("i", "delete production"), LATE)
    assert (world.intents["i"].reasons, standing(world, "alice").recent) == ((FORBIDDEN,), "0")


@proves("CCOS-GOVERNED-DOORS")
def test_and_so_when_a_reviewer_sends_it_back() -> None:
    world = guarded()
    world.do(ALICE, ClaimTask("i", "alice"))
    world.do(ALICE, MoveTask("i", "review"))
    world.do(HUMAN, EditTask("i", "delete production"))
    world.do(HUMAN, MoveTask("i", "ready"))
    assert world.intents["i"].state == "DelegationRejected"


@proves("CCOS-GOVERNED-DOORS")
def test_nor_is_one_asked_again_who_is_trusted_no_more() -> None:
    world = guarded()
    world.do(ALICE, ClaimTask("i", "alice"))
    world.do(ALICE, MoveTask("i", "review"))
    world.do(HUMAN, DescribeAgent("alice", ("cooking",), trust="T0"))
    world.do(HUMAN, MoveTask("i", "ready"))
    intent = world.intents["i"]
    assert (intent.state, intent.request) == ("DelegationRejected", None)
    assert intent.reasons == ("trust: it has T0, and T1 is the least",)


@proves("CCOS-TRIES")
def test_who_was_stopped_by_a_person_was_not_tried() -> None:
    world = registry("a1", "a2", "a3")
    delegated(world, tries=2)
    world.do(HUMAN, MoveTask("i", "blocked"))
    world.do(HUMAN, MoveTask("i", "ready"))
    assert [open_request(world).agent, answer(world, success=False).state] == [
        "a1",
        "TaskDispatched",
    ]
    assert open_request(world).agent == "a2"
    assert answer(world, success=False).reasons == ("2 tries have failed, the last: it broke",)


@proves("CCOS-TRIES")
def test_who_has_handed_it_over_was_not_tried() -> None:
    world = registry("alice", "bob", "carol")
    delegated(world, tries=2)
    world.do(ALICE, replace(offer("bob"), task="i"))
    world.do(BOB, accept(world))
    world.do(BOB, ActivateHandoff("H"))
    answer(world, success=False)
    assert open_request(world).agent == "carol"


@proves("CCOS-TRIES")
def test_who_has_failed_it_by_an_older_ledger_is_passed_over() -> None:
    world = registry("alice", "bob", "carol")
    delegated(world)
    # Another owner was not proposed once, and stayed among the candidates.
    world.intents["i"] = replace(world.intents["i"], failed=("bob",))
    answer(world, success=False)
    assert open_request(world).agent == "carol"


@proves("CCOS-ANEW")
def test_what_is_sent_back_without_a_report_is_a_new_request_too() -> None:
    world = taken()
    world.do(ALICE, MoveTask("i", "review"))
    world.do(HUMAN, MoveTask("i", "ready"), LATE)
    request = open_request(world)
    assert (request.id, request.agent, request.deadline) == ("i.2", "alice", LATE + HOUR)


@proves("CCOS-ANEW")
@pytest.mark.parametrize("actor", [ALICE, HUMAN])
def test_whoever_goes_on_from_a_checkpoint_has_a_new_request_in_the_time_of_the_first(
    actor: Actor,
) -> None:
    world = taken() if actor is ALICE else registry()
    if actor is not ALICE:
        delegated(world, patience_ms=HOUR)
    left = world.do(actor, CheckpointTask("i", "PAUSE", "abc1234"), NOW + 9)
    assert names_of(left, "intent:") == ["IntentSuperseded", "IntentDispatched"]
    request = open_request(world)
    assert (request.id, request.agent, request.deadline) == ("i.2", "alice", NOW + HOUR)


@proves("CCOS-UNSENT")
@pytest.mark.parametrize(("is_called", "counted"), [(True, ""), (False, "0")])
def test_what_the_hub_has_not_handed_over_counts_for_nobody(
    *, is_called: bool, counted: str
) -> None:
    world = registry()
    delegated(world, patience_ms=HOUR)
    world.do(HUB, ExpireRequest("i", is_called), LATE)
    assert (open_request(world).agent, standing(world, "alice").recent) == ("bob", counted)
    assert standing(world, "alice").open == 0
    world.do(BOB, ClaimTask("i", "bob"), LATE)
    world.do(HUB, ExpireRequest("i", is_called), LATE + HOUR)
    assert standing(world, "bob").recent == "0"


def unreached(world: World, times: int, at: int = NOW) -> None:
    """Alice was claimed for so often, and could not be reached."""
    for _ in range(times):
        world.do(HUB, ClaimTask("i", "alice"), at)
        fence = world.tasks["i"].fence
        world.do(HUB, ReleaseTask("i", "not started: refused", fence, unstarted=True), at)


@proves("CCOS-UNSENT")
@pytest.mark.parametrize("times", [1, 3])
def test_whom_the_hub_could_not_reach_is_not_blamed(times: int) -> None:
    world = registry()
    delegated(world, patience_ms=HOUR)
    unreached(world, times)
    decision = world.do(HUB, ExpireRequest("i", is_called=True), LATE)
    completed = next(one for one in events_of(decision) if isinstance(one, IntentCompleted))
    assert (completed.synthetic, completed.error) == (
        "unsent",
        "the hub had not handed it over by 2026-02-09T15:30:00.000Z: not started: refused",
    )
    assert (open_request(world).agent, standing(world, "alice").recent) == ("bob", "")


@proves("CCOS-UNSENT")
@pytest.mark.parametrize("is_reached_first", [False, True])
def test_whoever_was_reached_once_is(*, is_reached_first: bool) -> None:
    world = registry("alice")
    delegated(world, patience_ms=HOUR)
    if not is_reached_first:
        unreached(world, 2)
    world.do(HUB, ClaimTask("i", "alice"))
    world.do(ALICE, ReleaseTask("i"))
    if is_reached_first:
        unreached(world, 2)
    world.do(HUB, ExpireRequest("i", is_called=True), LATE)
    assert standing(world, "alice").recent == "0"


@proves("CCOS-UNSENT")
def test_what_could_not_be_begun_after_its_time_is_no_word_of_the_agent() -> None:
    world = registry()
    delegated(world, patience_ms=HOUR)
    world.do(HUB, ClaimTask("i", "alice", ttl_ms=2 * HOUR))
    late = world.do(HUB, ReleaseTask("i", "not started: refused", 1, unstarted=True), LATE)
    assert names_of(late) == ["TaskTransitioned"]
    world.do(HUB, ExpireRequest("i", is_called=True), LATE)
    assert (open_request(world).agent, standing(world, "alice").recent) == ("bob", "")
