"""Diagnosis of handoffs: summaries are true, and suggested steps are accepted."""

from collections.abc import Callable

import pytest

from dragoman.core.agent import RegisterAgent
from dragoman.core.attempt import CheckpointTask, ReportOutcome
from dragoman.core.base import Command
from dragoman.core.handoff.state import (
    AcceptHandoff,
    ActivateHandoff,
    ApproveHandoff,
    CloseHandoff,
    CompleteHandoff,
    ExtendHandoff,
    ReassignHandoff,
    RejectHandoff,
    WithdrawHandoff,
)
from dragoman.core.task_state import MoveTask
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.handoff_diagnosis import (
    HandoffDiagnosis,
    NextStep,
    diagnose_handoff,
)
from tests.engine.handoffs import COORDINATOR, accept, activate, make, offer, package, state
from tests.engine.lab import ALICE, BOB, CAROL, HUMAN, Lab
from tests.requirements import proves

pytestmark = proves("ACP-DIAGNOSE")

ACTORS = {actor.name: actor for actor in (ALICE, BOB, CAROL, COORDINATOR, HUMAN)}
OPEN = "; the record of this handoff is still open"


def offered(lab: Lab) -> None:
    """Handoff that alice has offered to bob."""
    lab.do(HUMAN, RegisterAgent("carl", role="coordinator"))
    make(lab)
    offer(lab)


def accepted(lab: Lab) -> None:
    """Handoff that bob has accepted."""
    offered(lab)
    accept(lab)


def activated(lab: Lab) -> None:
    """Handoff that bob has activated."""
    accepted(lab)
    activate(lab)


def unapproved(lab: Lab) -> None:
    """Handoff that bob would accept, but that needs an approval."""
    make(lab)
    policy = {"classification": "internal", "requires_human_approval": True}
    offer(lab, package=package(policy=policy))
    accept(lab)


def approved(lab: Lab) -> None:
    """Handoff that bob tried to accept before a person approved it."""
    unapproved(lab)
    lab.do(HUMAN, ApproveHandoff("h1"))


def rejected(lab: Lab) -> None:
    """Handoff that bob has rejected."""
    offered(lab)
    lab.do(BOB, RejectHandoff("h1", "other", "busy"))


def completed(lab: Lab) -> None:
    """Handoff that bob has completed."""
    activated(lab)
    lab.do(BOB, CompleteHandoff("h1"))


def checkpointed(lab: Lab) -> None:
    """Activated handoff whose task bob has checkpointed for a successor."""
    activated(lab)
    lab.do(BOB, CheckpointTask("t1", "PAUSE", "abc1234"))


def lease_expired(lab: Lab) -> None:
    """Activated handoff whose recipient's lease has expired."""
    activated(lab)
    lab.clock.advance(10 * 60_000)


def blocked(lab: Lab) -> None:
    """Accepted handoff whose task a person has blocked."""
    accepted(lab)
    lab.do(HUMAN, MoveTask("t1", "blocked", "legal says stop"))


def blocked_in_progress(lab: Lab) -> None:
    """Activated handoff whose task bob has reported as blocked."""
    activated(lab)
    lab.do(BOB, ReportOutcome("t1", "blocked", apply=True, blockers=("x",)))


def in_backlog(lab: Lab) -> None:
    """Activated handoff whose task a person has moved to the backlog."""
    activated(lab)
    lab.do(HUMAN, MoveTask("t1", "ready"))
    lab.do(HUMAN, MoveTask("t1", "backlog"))


def in_backlog_before_start(lab: Lab) -> None:
    """Accepted handoff whose task a person has moved to the backlog."""
    accepted(lab)
    lab.do(HUMAN, MoveTask("t1", "backlog"))


def deadlettered(lab: Lab) -> None:
    """Accepted handoff whose task a person has moved to the deadletter."""
    accepted(lab)
    lab.do(HUMAN, MoveTask("t1", "deadletter"))


def extra_fields(lab: Lab) -> None:
    """Activated handoff that bob has passed on to carol."""
    activated(lab)
    offer(lab, "h2", to="carol", by=BOB, supersedes="h1")


def passed_on_and_started(lab: Lab) -> None:
    """Passed-on handoff that carol has activated."""
    extra_fields(lab)
    accept(lab, "h2", CAROL)
    activate(lab, "h2", CAROL)


def passed_on_and_rejected(lab: Lab) -> None:
    """Passed-on handoff that carol has rejected."""
    extra_fields(lab)
    lab.do(CAROL, RejectHandoff("h2", "other", "busy"))


def rejected_and_closed(lab: Lab) -> None:
    """Rejected handoff whose record is closed."""
    passed_on_and_rejected(lab)
    lab.do(BOB, CloseHandoff("h2"))


SUMMARIES: tuple[tuple[Callable[[Lab], None], str, str], ...] = (
    (offered, "h1", "bob has to accept or reject it"),
    (accepted, "h1", "bob has accepted it and has to begin"),
    (unapproved, "h1", "a person has to approve this package, then bob has to accept it"),
    (approved, "h1", "approved by hera; bob may accept now"),
    (rejected, "h1", f"bob has rejected it (other: busy){OPEN}"),
    (activated, "h1", "bob works on it; its lease lasts until 2026-02-09T14:35:00.000Z"),
    (lease_expired, "h1", "bob has no valid lease: it has to activate again, or is gone"),
    (completed, "h1", f"bob has done its part{OPEN}"),
    (checkpointed, "h1", f"bob has done its part{OPEN}"),
    (
        blocked,
        "h1",
        (
            "bob has accepted it, and cannot go on: t1 is blocked: alice, a person, a "
            "coordinator or an orchestrator has to make it ready first"
        ),
    ),
    (
        deadlettered,
        "h1",
        (
            "bob has accepted it, and cannot go on: t1 is in the deadletter: a person, a "
            "coordinator or an orchestrator has to make it ready"
        ),
    ),
    (
        blocked_in_progress,
        "h1",
        (
            "bob has accepted it, and cannot go on: t1 is blocked: bob, a person, a "
            "coordinator or an orchestrator has to make it ready first"
        ),
    ),
    (
        in_backlog,
        "h1",
        (
            "bob has accepted it, and cannot go on: t1 is in the backlog: a person, a "
            "coordinator or an orchestrator has to make it ready first"
        ),
    ),
    (
        in_backlog_before_start,
        "h1",
        (
            "bob has accepted it, and cannot go on: t1 is in the backlog: a person, a "
            "coordinator or an orchestrator has to make it ready first"
        ),
    ),
    (extra_fields, "h1", f"bob has done its part; h2 has taken its place{OPEN}"),
    (passed_on_and_started, "h1", f"bob has done its part; h2 has taken its place{OPEN}"),
    (passed_on_and_rejected, "h2", f"carol has rejected it (other: busy){OPEN}"),
    (rejected_and_closed, "h2", "it is closed: carol has rejected it (other: busy)"),
)
"""State of a handoff, its id -> expected summary."""

COMMANDS: dict[str, Callable[[Lab, str], Command]] = {
    "accept": lambda lab, id: AcceptHandoff(id, state(lab, id).package_hash),
    "activate": lambda _, id: ActivateHandoff(id),
    "approve": lambda _, id: ApproveHandoff(id),
    "deny": lambda _, id: ApproveHandoff(id, approved=False),
    "close": lambda _, id: CloseHandoff(id),
    "complete": lambda _, id: CompleteHandoff(id),
    "extend_sla": lambda _, id: ExtendHandoff(id, 60_000),
    "reassign": lambda _, id: ReassignHandoff(id, "erin"),
    "reject": lambda _, id: RejectHandoff(id, "other", "no"),
    "withdraw": lambda _, id: WithdrawHandoff(id),
}


def diagnose_now(lab: Lab, id: str) -> HandoffDiagnosis:
    """Diagnose a handoff at the lab's time."""
    return diagnose_handoff(lab.store, state(lab, id), lab.clock.now())


def run_step(build: Callable[[Lab], None], id: str, step: NextStep) -> None:
    """Run a step as each actor that it names, each in a new lab."""
    for name in step.who or (HUMAN.name,):
        lab = Lab()
        build(lab)
        lab.do(ACTORS[name], COMMANDS[step.action](lab, id))


@pytest.mark.parametrize(
    ("build", "id", "summary"),
    SUMMARIES,
    ids=[f"{build.__name__}-{id}" for build, id, _ in SUMMARIES],
)
def test_summary_matches_and_every_suggested_step_is_accepted(
    build: Callable[[Lab], None], id: str, summary: str
) -> None:
    lab = Lab()
    build(lab)
    diagnosis = diagnose_now(lab, id)
    assert diagnosis.summary == summary
    is_over = state(lab, id).status == "closed"
    assert bool(diagnosis.steps) != is_over
    for step in diagnosis.steps:
        run_step(build, id, step)


def test_suggested_commands_name_their_actor() -> None:
    lab = Lab()
    offered(lab)
    assert [step.command for step in diagnose_now(lab, "h1").steps] == [
        "dragoman handoff accept h1 --as bob",
        "dragoman handoff reject h1 --reason other --detail TEXT --as bob",
        "dragoman handoff withdraw h1 --as alice",
    ]


def test_acceptance_is_not_suggested_before_approval() -> None:
    def offered_without_approval(lab: Lab) -> None:
        make(lab)
        policy = {"classification": "internal", "requires_human_approval": True}
        offer(lab, package=package(policy=policy))

    for build in (offered_without_approval, unapproved):
        lab = Lab()
        build(lab)
        assert [step.action for step in diagnose_now(lab, "h1").steps] == [
            "approve",
            "deny",
            "reject",
            "withdraw",
        ]


@pytest.mark.parametrize(
    "build", [offered, accepted, activated, lease_expired, blocked, blocked_in_progress]
)
def test_suggested_steps_for_an_overdue_handoff_are_accepted(
    build: Callable[[Lab], None],
) -> None:
    def late(lab: Lab) -> None:
        build(lab)
        lab.clock.advance(25 * 3_600_000)

    lab = Lab()
    late(lab)
    diagnosis = diagnose_now(lab, "h1")
    assert diagnosis.late
    due_by = state(lab, "h1").stage_due_at
    assert due_by is not None
    assert diagnosis.due_by == to_rfc3339(due_by)
    by_carl = {step.action for step in diagnosis.steps if "carl" in step.who}
    assert by_carl == {"extend_sla", "reassign", "reject"}
    for step in diagnosis.steps:
        run_step(late, "h1", step)
