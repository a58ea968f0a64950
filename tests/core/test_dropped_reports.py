"""Pending reports: they decide nothing once their work was taken away, and the taker is told."""

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
from dragoman.core.delegation import RejectDelegation, RequestDelegation
from dragoman.core.handoff.state import ActivateHandoff, ReassignHandoff, RejectHandoff
from dragoman.core.intent.state import IntentCompleted
from dragoman.core.read import Decision
from dragoman.core.task_state import CreateTask, MoveTask, UpdateTask
from tests.core.handoffs import accept, accepted, activated, offer, package
from tests.core.intents import delegate_intent, event_names, open_request, registry
from tests.core.world import (
    ALICE,
    BOB,
    COORDINATOR,
    HUB,
    HUMAN,
    NOW,
    ORCHESTRATOR,
    TTL,
    World,
    events_of,
    held,
)
from tests.requirements import proves

pytestmark = proves("REPORT-PENDING")


def dropped(agent: str, outcome: Outcome, attempt: int = 1) -> str:
    """Remark for whoever takes the work away."""
    return (
        f"the report of {agent} on attempt {attempt} ({outcome}) was still pending and is dropped"
    )


def requested(outcome: Outcome) -> World:
    """World in which alice has the request of an intent and a pending report on its task."""
    world = registry()
    delegate_intent(world, review_required=True)
    world.do(ALICE, ClaimTask("i", "alice"))
    world.do(ALICE, ReportOutcome("i", outcome, "so it went", ("a wall",)))
    return world


TAKEN_AWAY: dict[str, tuple[Actor, Command]] = {
    "release": (ALICE, ReleaseTask("i")),
    "update": (ALICE, UpdateTask("i", "ready")),
    "move": (ORCHESTRATOR, MoveTask("i", "ready")),
    "checkpoint": (ALICE, CheckpointTask("i", "HANDOVER", "c0ffee")),
    "forced checkpoint": (ALICE, CheckpointTask("i", "CONTEXT_HIGH")),
    "review": (HUMAN, MoveTask("i", "review")),
}


@pytest.mark.parametrize("outcome", ["done", "blocked", "failed", "partial"])
@pytest.mark.parametrize("way", TAKEN_AWAY)
def test_pending_report_decides_nothing_once_its_work_was_taken_away(
    way: str, outcome: Outcome
) -> None:
    world = requested(outcome)
    actor, command = TAKEN_AWAY[way]
    decision = world.do(actor, command)
    assert decision.receipt.warning == dropped("alice", outcome)
    assert world.tasks["i"].reported is None
    assert world.tasks["i"].status in ("ready", "review")
    assert "IntentCompleted" not in event_names(decision, "intent:")
    assert open_request(world).agent == "alice"


@pytest.mark.parametrize("outcome", ["done", "blocked"])
def test_cancelled_task_does_not_count_by_its_pending_report(outcome: Outcome) -> None:
    world = requested(outcome)
    decision = world.do(HUMAN, MoveTask("i", "cancelled", "not wanted"))
    assert decision.receipt.warning == dropped("alice", outcome)
    ended = next(one for one in events_of(decision) if isinstance(one, IntentCompleted))
    assert (ended.success, ended.synthetic) == (False, "cancelled")


@pytest.mark.parametrize(
    "command",
    [RejectHandoff("H", "other", "not now"), ReassignHandoff("H", "dave", "elsewhere")],
    ids=["reject", "reassign"],
)
def test_handoff_taken_back_drops_pending_report_and_says_so(command: Command) -> None:
    world = activated()
    world.do(BOB, ReportOutcome("T", "done", "finished"))
    decision = world.do(COORDINATOR, command)
    assert decision.receipt.warning == dropped("bob", "done", 2)
    assert (world.tasks["T"].status, world.tasks["T"].reported) == ("ready", None)
    assert world.do(HUB, EndAttempt("T")).events == ()
    assert world.tasks["T"].status == "ready"


def test_reassigned_work_of_an_intent_is_not_its_success() -> None:
    world = registry("alice", "bob", "dave")
    delegate_intent(world)
    world.do(ALICE, ClaimTask("i", "alice"))
    parts = package()
    parts["task"]["task_id"] = "i"
    world.do(ALICE, replace(offer(package=parts), task="i"))
    world.do(BOB, accept(world))
    world.do(BOB, ActivateHandoff("H"))
    world.do(BOB, ReportOutcome("i", "done", "finished"))
    decision = world.do(COORDINATOR, RejectHandoff("H", "other", "not now"))
    assert decision.receipt.warning == dropped("bob", "done", 2)
    assert "IntentCompleted" not in event_names(decision, "intent:")
    assert world.tasks["i"].status == "ready"


def test_rejected_delegation_drops_the_pending_report_of_its_delegate() -> None:
    world = held()
    world.do(ALICE, CreateTask("a part", id="C", ready=True, parent="T"))
    world.do(ALICE, RequestDelegation("C", "T", "bob", NOW + TTL))
    world.do(BOB, ClaimTask("C", "bob"))
    world.do(BOB, ReportOutcome("C", "done"))
    decision = world.do(BOB, RejectDelegation("C", "not mine"))
    assert decision.receipt.warning == dropped("bob", "done")
    assert (world.tasks["C"].status, world.tasks["C"].obstacle) == ("blocked", "not mine")
    assert world.tasks["C"].reported is None


def test_offer_stays_open_when_work_goes_to_review_without_the_pending_report() -> None:
    world = accepted()
    world.do(ALICE, ReportOutcome("T", "done"))
    decision = world.do(ALICE, UpdateTask("T", "review"))
    assert decision.receipt.warning == dropped("alice", "done")
    assert world.handoffs["H"].status == "accepted"


def _recover(world: World) -> Decision:
    return world.do(HUB, ExpireLease("T"), NOW + TTL)


@proves("ATTEMPT-RESULT")
@pytest.mark.parametrize("end", ["session", "lease"])
def test_pending_report_still_decides_when_its_attempt_ends(end: str) -> None:
    world = held()
    world.do(ALICE, ReportOutcome("T", "done", "finished"))
    decision = world.do(HUB, EndAttempt("T")) if end == "session" else _recover(world)
    assert decision.receipt.warning == ""
    report = world.tasks["T"].reported
    assert (world.tasks["T"].status, report and report.outcome) == ("review", "done")


def test_reason_that_reads_like_a_report_applies_none() -> None:
    world = requested("done")
    decision = world.do(ALICE, ReleaseTask("i", "reported_done"))
    assert world.tasks["i"].reported is None
    assert "IntentCompleted" not in event_names(decision, "intent:")
