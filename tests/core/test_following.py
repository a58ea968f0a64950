"""What other dialects do to the task of an intent, the intent follows, in the same breath."""

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    ActivateHandoff,
    AliasTask,
    AnyCommand,
    CheckpointTask,
    ClaimTask,
    CompleteHandoff,
    CreateTask,
    DelegateIntent,
    EditTask,
    EndAttempt,
    ExpireLease,
    LinkTask,
    MoveTask,
    NoteTask,
    ReceiveResult,
    ReleaseTask,
    ReportOutcome,
    UpdateTask,
)
from dragoman.core.events import IntentCompleted, Outcome
from dragoman.core.limits import UPDATES
from dragoman.core.reading import Decision
from tests.core.delegating import (
    CAROL,
    GOAL,
    HOUR,
    delegated,
    names_of,
    odd,
    open_request,
    ranked,
    registry,
    standing,
)
from tests.core.handoffs import accept, offer, package
from tests.core.world import ALICE, BOB, HUB, HUMAN, NOW, TTL, World, events_of, task
from tests.requirements import proves

pytestmark = proves("CCOS-OTHERS")


def taken(*names: str, **more: Any) -> World:
    """Alice was asked, and has claimed the task as any task."""
    world = registry(*names)
    delegated(world, **more)
    world.do(ALICE, ClaimTask("i", "alice"))
    return world


def reported(world: World, outcome: Outcome, notes: str = "so it went") -> list[str]:
    """Alice reports at once; what the intent makes of it."""
    report = ReportOutcome("intent:i", outcome, notes, ("a wall",), apply=True)
    return names_of(world.do(ALICE, report, NOW + 7), "intent:")


def test_a_claim_changes_nothing_for_the_intent() -> None:
    world = registry()
    delegated(world)
    assert names_of(world.do(ALICE, ClaimTask("i", "alice")), "intent:") == []
    assert open_request(world).id == "i.1"


@proves("CCOS-FEEDBACK")
def test_done_in_another_dialect_is_a_success() -> None:
    world = taken()
    assert reported(world, "done") == ["IntentCompleted", "IntentFedBack", "IntentSatisfied"]
    assert standing(world, "alice").recent == "1"


def completed(decision: Decision) -> IntentCompleted:
    """How the request has ended."""
    return next(event for event in events_of(decision) if isinstance(event, IntentCompleted))


@proves("CCOS-TOLD")
def test_what_a_handoff_was_completed_with_is_the_output() -> None:
    world = taken()
    parts = package()
    parts["task"]["task_id"] = "i"
    world.do(ALICE, replace(offer(package=parts), task="i"))
    world.do(BOB, accept(world))
    world.do(BOB, ActivateHandoff("H"))
    ended = completed(world.do(BOB, CompleteHandoff("H", "built")))
    assert (ended.agent, ended.output) == ("bob", {"handoff": "H", "notes": "built"})


@proves("CCOS-TOLD")
def test_what_was_approved_in_the_end_has_the_words_of_its_report() -> None:
    world = taken(review_required=True)
    reported(world, "needs_review")
    assert completed(world.do(HUMAN, MoveTask("i", "done"))).output == {"notes": "so it went"}


@proves("CCOS-TOLD")
def test_done_without_a_word_has_no_output() -> None:
    world = taken()
    ended = completed(world.do(ALICE, ReportOutcome("i", "done", apply=True)))
    assert (ended.output, ended.digest) == (None, "")
    world = taken(review_required=True)
    world.do(ALICE, MoveTask("i", "review"))
    assert completed(world.do(HUMAN, MoveTask("i", "done"))).output is None


@proves("CCOS-PAYLOADS")
def test_an_output_that_is_longer_than_is_kept_is_a_digest() -> None:
    world = taken(kept_bytes=10)
    ended = completed(world.do(ALICE, ReportOutcome("i", "done", "so it went", apply=True)))
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
def test_a_failure_tells_its_kind_once(
    blockers: tuple[str, ...], details: dict[str, object], error: str
) -> None:
    report = ReportOutcome("i", "failed", "", blockers, details, apply=True)
    assert completed(taken().do(ALICE, report)).error == error


@proves("CCOS-TOLD")
def test_word_of_its_agent_is_an_update_while_there_is_time_and_room() -> None:
    world = taken(patience_ms=HOUR)
    word = UpdateTask("i", notes="half")
    assert names_of(world.do(ALICE, word), "intent:") == ["IntentUpdated"]
    assert names_of(world.do(HUMAN, word), "intent:") == []
    world.intents["i"] = replace(world.intents["i"], updates=UPDATES)
    assert names_of(world.do(ALICE, word), "intent:") == []
    over = taken("alice")
    over.do(HUMAN, MoveTask("i", "cancelled"))
    assert names_of(over.do(HUMAN, word), "intent:") == []


def test_whoever_waits_for_the_task_is_told_first() -> None:
    world = taken()
    world.do(HUMAN, CreateTask("after", "after", ready=True, blocked_by=("i",)))
    reported(world, "done")
    assert world.tasks["after"].open_blockers == ()
    assert world.intents["i"].state == "Satisfied"


@proves("CCOS-RETRY")
def test_failed_in_another_dialect_goes_to_the_next_candidate() -> None:
    world = taken()
    assert reported(world, "failed")[-1] == "IntentDispatched"
    assert open_request(world).agent == "bob"
    assert world.tasks["i"].reserved_for == "bob"
    assert standing(world, "alice").recent == "0"


@proves("CCOS-RETRY")
def test_and_to_the_deadletter_when_there_is_none() -> None:
    world = taken("alice")
    decision = world.do(ALICE, ReportOutcome("i", "failed", apply=True))
    assert world.intents["i"].state == "NeedsFollowUp"
    assert decision.receipt.status == world.tasks["i"].status == "deadletter"
    assert "reported without a word" in world.intents["i"].reasons[0]


def test_blocked_is_a_failure_that_waits_for_somebody() -> None:
    world = taken()
    assert reported(world, "blocked", "") == [
        "IntentCompleted",
        "IntentFedBack",
        "IntentNeedsFollowUp",
    ]
    assert world.intents["i"].reasons == ("its task is blocked",)
    # Who makes it ready says that nothing is in the way any more, although that was a failure.
    assert world.intents["i"].failed == ("alice",)
    world.do(HUMAN, MoveTask("i", "ready"))
    assert (open_request(world).id, open_request(world).agent) == ("i.2", "alice")


@pytest.mark.parametrize("outcome", ["partial", "needs_review"])
def test_half_done_waits_for_the_reviewer(outcome: Outcome) -> None:
    world = taken(review_required=True)
    assert reported(world, outcome) == []
    assert open_request(world).id == "i.1"
    world.do(HUMAN, MoveTask("i", "done"))
    assert world.intents["i"].state == "Satisfied"
    assert standing(world, "alice").recent == "1"


def test_what_is_sent_back_by_a_reviewer_is_asked_for_again() -> None:
    world = taken(review_required=True)
    reported(world, "done")
    assert world.intents["i"].state == "FeedbackApplied"
    world.do(HUMAN, MoveTask("i", "ready"))
    assert (open_request(world).id, open_request(world).agent) == ("i.2", "alice")
    # The report of the attempt before does not answer it.
    world.do(HUMAN, EditTask("i", "another title"))
    assert open_request(world).id == "i.2"
    world.do(ALICE, ClaimTask("i", "alice"))
    reported(world, "done")
    world.do(HUMAN, MoveTask("i", "done"))
    assert (world.intents["i"].state, standing(world, "alice").recent) == ("Satisfied", "11")


def test_a_report_counts_when_it_is_applied() -> None:
    world = taken()
    assert names_of(world.do(ALICE, ReportOutcome("i", "failed")), "intent:") == []
    world.do(ALICE, ReportOutcome("i", "done"))
    world.do(ALICE, EndAttempt("i"))
    assert world.intents["i"].state == "Satisfied"


@proves("CCOS-OWNER")
def test_another_owner_gets_a_request_of_its_own_and_nothing_is_learned() -> None:
    world = registry()
    delegated(world, patience_ms=HOUR)
    decision = world.do(HUMAN, EditTask("i", assignee="carol"), NOW + 9)
    assert names_of(decision) == [
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
    assert (standing(world, "alice").recent, standing(world, "alice").open) == ("", 0)
    assert standing(world, "carol").open == 1
    why = odd(world, ALICE, ReceiveResult("i", "alice", success=True))
    assert why == "i: i.1 was superseded by what became of the task"
    world.do(CAROL, ReceiveResult("i", "carol", success=True))
    assert world.intents["i"].state == "Satisfied"


@proves("CCOS-OWNER")
def test_a_task_of_nobody_has_no_request_until_somebody_takes_it() -> None:
    world = registry()
    delegated(world)
    world.do(HUMAN, EditTask("i", assignee=""))
    assert world.intents["i"].request is None
    world.do(BOB, ClaimTask("i", "bob"))
    request = open_request(world)
    assert (request.agent, request.after) == ("bob", 0)
    world.do(BOB, ReportOutcome("i", "done", apply=True))
    assert standing(world, "bob").recent == "1"


def claimed_by_bob() -> World:
    """The task was nobody's, and bob has claimed it."""
    world = registry()
    delegated(world, review_required=True, patience_ms=HOUR)
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
def test_who_takes_what_nobody_had_keeps_it(
    commands: list[tuple[Actor, AnyCommand]], request_id: str
) -> None:
    world = claimed_by_bob()
    for actor, command in commands:
        world.do(actor, command, NOW + TTL if actor is HUB else NOW)
    assert (open_request(world).agent, open_request(world).id) == ("bob", request_id)
    assert (world.tasks["i"].status, world.tasks["i"].assignee) == ("ready", "bob")


@proves("CCOS-LIFE")
@pytest.mark.parametrize("claimed", [True, False])
def test_cancelling_ends_the_request_without_feedback(*, claimed: bool) -> None:
    world = registry()
    delegated(world)
    if claimed:
        world.do(ALICE, ClaimTask("i", "alice"))
    decision = world.do(HUMAN, MoveTask("intent:i", "cancelled"), NOW + 9)
    assert names_of(decision)[-3:] == ["IntentCompleted", "AgentRelieved", "IntentNeedsFollowUp"]
    completed = next(e for e in events_of(decision) if isinstance(e, IntentCompleted))
    assert (completed.success, completed.synthetic) == (False, "cancelled")
    assert completed.error == f"cancelled by {HUMAN.label}"
    known = standing(world, "alice")
    assert (known.recent, known.open) == ("", 0)
    why = odd(world, ALICE, ReceiveResult("i", "alice", success=True))
    assert why == "i: i.1 was ended at 2026-02-09T14:30:00.009Z (cancelled)"


@pytest.mark.parametrize("status", ["blocked", "deadletter"])
def test_a_persons_word_says_nothing_about_the_agent(status: Any) -> None:
    world = registry()
    delegated(world)
    world.do(HUMAN, MoveTask("i", status))
    assert world.intents["i"].state == "NeedsFollowUp"
    assert standing(world, "alice").recent == ""


def test_silence_is_borne_until_the_task_is_given_up() -> None:
    world = taken("alice", "bob")
    world.put(replace(world.tasks["i"], max_attempts=2))
    world.do(HUB, ExpireLease("i"), NOW + TTL)
    assert open_request(world).id == "i.1"
    again = NOW + 10 * TTL
    world.do(ALICE, ClaimTask("i", "alice"), again)
    world.do(HUB, ExpireLease("i"), again + TTL)
    assert standing(world, "alice").recent == "0"
    # Then the next one is asked, and the task is given up when there is none.
    assert (open_request(world).agent, world.tasks["i"].status) == ("bob", "ready")
    assert world.tasks["i"].reserved_for == "bob"
    for later in (again + 20 * TTL, again + 40 * TTL):
        world.do(BOB, ClaimTask("i", "bob"), later)
        world.do(HUB, ExpireLease("i"), later + TTL)
    assert world.tasks["i"].status == "deadletter"
    assert world.intents["i"].state == "NeedsFollowUp"


def test_given_back_it_stays_with_its_agent() -> None:
    world = taken()
    world.do(ALICE, ReleaseTask("i"))
    assert open_request(world).id == "i.1"
    assert names_of(world.do(ALICE, NoteTask("i", "hm")), "intent:") == []


def test_an_alias_alone_makes_no_intent() -> None:
    world = registry()
    delegated(world)
    world.put(replace(task("UU", "ready"), aliases=("intent:none", "bead:b")))
    world.put(replace(task("VVV", "ready"), aliases=("bead:c",)))
    world.put(replace(task("WWWW", "ready"), aliases=("intent:i",)))
    for name in ("UU", "VVV", "WWWW"):
        assert names_of(world.do(HUMAN, MoveTask(name, "blocked")), "intent:") == []
    assert world.intents["i"].state == "TaskDispatched"


def test_two_intents_of_one_agent_are_counted_apart() -> None:
    world = registry()
    delegated(world, "i")
    delegated(world, "j")
    assert standing(world, "alice").open == 2
    world.do(ALICE, ReceiveResult("i", "alice", success=True, output=GOAL))
    world.do(ALICE, ReceiveResult("j", "alice", success=True, output=GOAL))
    known = standing(world, "alice")
    assert (known.successes, known.open, known.latency_ms) == (2, 0, 0)


@proves("CCOS-RECEIPT")
def test_what_is_sent_back_from_a_review_gets_its_time_anew() -> None:
    world = taken(review_required=True, patience_ms=HOUR)
    reported(world, "needs_review")
    world.do(HUMAN, MoveTask("i", "ready"), NOW + 10 * HOUR)
    request = open_request(world)
    assert (request.id, request.agent, request.deadline) == ("i.2", "alice", NOW + 11 * HOUR)
    assert (standing(world, "alice").recent, standing(world, "alice").open) == ("", 1)


@proves("CCOS-OWNER")
def test_a_task_without_an_owner_needs_somebody_to_see_to_it() -> None:
    world = registry()
    delegated(world)
    world.do(HUMAN, EditTask("i", assignee=""))
    assert world.intents["i"].reasons == ("its task has no owner",)
    delegated(world)
    assert open_request(world).id == "i.2"


@proves("CCOS-REOPENED")
def test_what_a_person_takes_out_of_the_deadletter_is_asked_of_its_owner_again() -> None:
    world = registry("alice")
    delegated(world)
    world.do(ALICE, ReceiveResult("i", "alice", success=False, error="no"))
    assert world.tasks["i"].status == "deadletter"
    world.do(HUMAN, MoveTask("i", "ready"))
    assert (open_request(world).id, open_request(world).agent) == ("i.2", "alice")
    world.do(ALICE, ReceiveResult("i", "alice", success=True))
    assert world.intents["i"].state == "Satisfied"


@proves("CCOS-REOPENED")
def test_whoever_failed_it_is_not_asked_again_when_another_was_in_the_way() -> None:
    world = registry("alice", "bob")
    delegated(world)
    world.do(ALICE, ReceiveResult("i", "alice", success=False, error="no"))
    assert open_request(world).agent == "bob"
    world.do(HUMAN, MoveTask("i", "blocked"))
    world.do(HUMAN, EditTask("i", assignee="alice"))
    world.do(HUMAN, MoveTask("i", "ready"))
    intent = world.intents["i"]
    assert (intent.state, intent.request) == ("DelegationRejected", None)
    assert "it has failed this before" in intent.reasons


def test_governance_looks_also_at_who_has_it_by_hand() -> None:
    world = registry("alice")
    delegated(world)
    world.do(HUMAN, MoveTask("i", "blocked"))
    world.do(HUMAN, EditTask("i", assignee="carol"))
    world.do(HUMAN, MoveTask("i", "ready"))
    assert world.intents["i"].request is None
    assert "nobody in the registry is called carol" in world.intents["i"].reasons[0]


@proves("CCOS-RETRY")
def test_whom_a_person_blocked_is_asked_again() -> None:
    world = registry()
    delegated(world)
    world.do(HUMAN, MoveTask("i", "blocked"))
    assert world.intents["i"].failed == ()
    delegated(world)
    assert open_request(world).agent == "alice"


def test_what_waits_for_others_is_asked_of_nobody_until_it_can_begin() -> None:
    world = registry()
    delegated(world, patience_ms=HOUR)
    world.do(HUMAN, CreateTask("first", "first", ready=True))
    world.do(HUMAN, CreateTask("next", "next", ready=True, blocked_by=("first",)))
    assert world.code(HUMAN, DelegateIntent(GOAL, "next")) == "waits_for"
    world.do(HUMAN, LinkTask("i", "blocked-by", "first"))
    intent = world.intents["i"]
    assert (intent.request, intent.reasons) == (None, ("its task waits for first",))
    again = DelegateIntent(GOAL, "i", candidates=ranked(world))
    assert world.code(HUMAN, again) == "waits_for"
    world.do(HUMAN, MoveTask("i", "blocked"))
    world.do(HUMAN, MoveTask("i", "ready"))
    assert world.intents["i"].request is None
    world.do(HUMAN, MoveTask("first", "cancelled"))
    assert open_request(world).agent == "alice"


def test_a_strangers_name_does_not_part_an_intent_from_its_task() -> None:
    world = registry()
    world.do(HUMAN, CreateTask(GOAL, "T", ready=True, review_required=False))
    assert world.code(BOB, AliasTask("T", "intent:zzz")) == "not_authorized"
    assert world.code(BOB, CreateTask("x", "x", aliases=("intent:zzz",))) == "not_authorized"
    world.do(HUMAN, AliasTask("T", "intent:zzz"))
    delegated(world, "T")
    assert world.code(HUMAN, DelegateIntent("x", world.tasks["T"].aof_id)) == "already_exists"
    world.do(ALICE, ClaimTask("T", "alice"))
    world.do(ALICE, ReportOutcome("T", "done", apply=True))
    assert world.intents["T"].state == "Satisfied"
