"""Refusals about handoffs: who may do what in which state, and what can be done instead."""

from collections.abc import Callable
from typing import Any

import pytest

from dragoman.core.actor import Actor
from dragoman.core.attempt import ReleaseTask, ReportOutcome
from dragoman.core.base import Command
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import (
    LEGAL_ACTIONS,
    AcceptHandoff,
    ActivateHandoff,
    ApproveHandoff,
    CloseHandoff,
    CompleteHandoff,
    ExtendHandoff,
    HandoffStatus,
    ReassignHandoff,
    RejectHandoff,
    WithdrawHandoff,
)
from dragoman.core.intent.state import DelegateIntent
from dragoman.core.read import Decision
from dragoman.core.task_state import EditTask, MoveTask
from tests.core.handoffs import (
    CAROL,
    accept,
    accepted,
    activated,
    again,
    at,
    handoff,
    offer,
    offered,
    package,
)
from tests.core.intents import GOAL, rank_candidates, registry
from tests.core.world import (
    ALICE,
    BOB,
    COORDINATOR,
    HUMAN,
    NOW,
    ORCHESTRATOR,
    TTL,
    World,
    held,
    task,
    with_fields,
)
from tests.requirements import proves

pytestmark = proves("ACP-CALLERS")

LATE = NOW + TTL
"""Time at which the lease of the recipient has expired."""

ACTIONS: dict[str, Callable[[World], Command]] = {
    "accept": lambda world: AcceptHandoff("H", handoff(world).package_hash, notes="yes"),
    "activate": lambda _: ActivateHandoff("H", work_state_update={"status": "other words"}),
    "complete": lambda _: CompleteHandoff("H", "other words"),
    "reject": lambda _: RejectHandoff("H", "other", "other words"),
    "withdraw": lambda _: WithdrawHandoff("H", "other words"),
    "extend_sla": lambda _: ExtendHandoff("H", 60_000),
    "reassign": lambda _: ReassignHandoff("H", "erin"),
    "close": lambda _: CloseHandoff("H", "other words"),
}
APPROVAL: dict[str, Callable[[World], Command]] = {
    "approve": lambda _: ApproveHandoff("H", note="other words"),
    "deny": lambda _: ApproveHandoff("H", approved=False, note="other words"),
}
"""Further actions where human approval is missing."""
ACTORS = (ALICE, BOB, CAROL, COORDINATOR, HUMAN, ORCHESTRATOR)


def awaiting_approval() -> World:
    """World with an offer that a human has to approve."""
    return offered(package=package(requires_human_approval=True))


def accepted_without_approval() -> World:
    """World in which bob accepted before the approval."""
    world = awaiting_approval()
    world.do(BOB, accept(world))
    return world


def approved() -> World:
    """World in which a human has approved."""
    world = accepted_without_approval()
    again(world, HUMAN, ApproveHandoff("H"), "approved")
    return world


def blocked() -> World:
    """World in which a human blocked the task after acceptance."""
    world = accepted()
    world.do(HUMAN, MoveTask("T", "blocked", "legal says stop"))
    return world


def in_deadletter() -> World:
    """World in which the task entered the deadletter after acceptance."""
    return with_fields(accepted(), status="deadletter")


def waiting() -> World:
    """World in which the accepted task has an open blocker."""
    return with_fields(accepted(), open_blockers=("U",))


def blocked_by_recipient() -> World:
    """World in which bob activated the handoff and reported the task blocked."""
    world = activated()
    again(world, BOB, ReportOutcome("T", "blocked", apply=True, blockers=("x",)), "stopped")
    return world


def redelegated() -> World:
    """World in which bob activated H and then offered the task to carol."""
    world = activated()
    again(world, BOB, offer("carol", "H2", supersedes="H"), "passed-on")
    return world


def redelegated_and_rejected() -> World:
    """World in which carol has rejected that offer."""
    world = redelegated()
    again(world, CAROL, RejectHandoff("H2", "other", "busy"), "in-vain")
    return world


WORLDS: dict[str, Callable[[], World]] = {
    **{state: lambda state=state: at(state) for state in ("proposed", "validating", "accepted")},
    **{state: lambda state=state: at(state) for state in ("activated", "rejected", "completed")},
    "closed": lambda: at("closed"),
    "awaiting approval": awaiting_approval,
    "accepted without approval": accepted_without_approval,
    "approved": approved,
    "blocked": blocked,
    "in deadletter": in_deadletter,
    "with open blocker": waiting,
    "blocked by recipient": blocked_by_recipient,
    "redelegated": redelegated,
    "redelegated and rejected": redelegated_and_rejected,
}
COORDINATION = ("reject", "extend_sla", "reassign")
ALLOWED_WITHOUT_APPROVAL: dict[str, tuple[str, ...]] = {
    "alice": ("withdraw",),
    "bob": ("reject",),
    HUMAN.name: ("approve", "deny", *COORDINATION),
    "": COORDINATION,
}
ALLOWED: dict[str, dict[str, tuple[str, ...]]] = {
    "proposed": {"alice": ("withdraw",), "bob": ("accept", "reject"), "": COORDINATION},
    "validating": {"alice": ("withdraw",), "bob": ("accept", "reject"), "": COORDINATION},
    "accepted": {"alice": ("withdraw",), "bob": ("activate", "reject"), "": COORDINATION},
    "activated": {"bob": ("complete", "reject"), "": COORDINATION},
    "lease expired": {"bob": ("activate", "reject"), "": COORDINATION},
    "rejected": {"alice": ("close",), "": ("close",)},
    "completed": {"alice": ("close",), "": ("close",)},
    "closed": {},
    "awaiting approval": ALLOWED_WITHOUT_APPROVAL,
    "accepted without approval": ALLOWED_WITHOUT_APPROVAL,
    "approved": {"alice": ("withdraw",), "bob": ("accept", "reject"), "": COORDINATION},
    "blocked": {"alice": ("withdraw",), "bob": ("reject",), "": COORDINATION},
    "in deadletter": {"alice": ("withdraw",), "bob": ("reject",), "": COORDINATION},
    "with open blocker": {"alice": ("withdraw",), "bob": ("reject",), "": COORDINATION},
    "blocked by recipient": {"bob": ("reject",), "": COORDINATION},
    "redelegated": {"alice": ("close",), "": ("close",)},
    "redelegated and rejected": {},
}
"""State of the handoff H of T from alice to bob -> reader -> actions that are allowed.

The empty name stands for coordinators. A reader that is missing can do nothing.
"""


@pytest.mark.parametrize("actor", ACTORS, ids=lambda reader: reader.name)
@pytest.mark.parametrize("state", ALLOWED)
def test_actions_are_allowed_to_their_callers_only(state: str, actor: Actor) -> None:
    build, now = (WORLDS["activated"], LATE) if state == "lease expired" else (WORLDS[state], NOW)
    fallback = () if actor.role == "agent" else ALLOWED[state].get("", ())
    expected = ALLOWED[state].get(actor.name, fallback)
    is_allowed: dict[str, bool] = {}
    approval = APPROVAL if ALLOWED[state] is ALLOWED_WITHOUT_APPROVAL else {}
    for action, make_command in {**ACTIONS, **approval}.items():
        world = build()
        world.cause = "cause-9"
        answer = world.decide(actor, make_command(world), now)
        still_validating = ("accept", "validating")
        is_allowed[action] = (
            isinstance(answer, Decision) and (action, answer.receipt.state) != still_validating
        )
    assert {action for action, allowed in is_allowed.items() if allowed} == set(expected)


@pytest.mark.parametrize("state", [state for state in LEGAL_ACTIONS if state != "draft"])
def test_refusal_in_wrong_state_names_legal_actions(state: HandoffStatus) -> None:
    legal = LEGAL_ACTIONS[state]
    for action in ACTIONS.keys() - set(legal):
        world = at(state)
        world.cause = "cause-9"
        answer = world.decide(CAROL, ACTIONS[action](world))
        assert isinstance(answer, Refusal)
        assert answer.code == "invalid_transition"
        ending = f"now it is time for {', '.join(legal)}" if legal else "it is final"
        assert answer.detail.endswith(f"; {ending}")


def test_refusal_names_superseding_handoff() -> None:
    answer = redelegated_and_rejected().decide(BOB, RejectHandoff("H", "other", "too hard"))
    assert isinstance(answer, Refusal)
    assert answer.detail == (
        "H is completed, and H2 has taken its place: reject is for proposed, validating, accepted, "
        "activated; now it is time for close"
    )


def refusal_detail(world: World, actor: Actor, command: Any) -> str:
    world.cause = "cause-9"
    answer = world.decide(actor, command)
    assert isinstance(answer, Refusal), answer
    return answer.detail


BEFORE = (
    "alice has owned it before (alice → bob): work goes back by reject, or a person, an "
    "orchestrator or a coordinator assigns it"
)


def test_return_to_sender_suggests_reject() -> None:
    world = activated()
    assert refusal_detail(world, BOB, offer("alice", "H2", supersedes="H")) == BEFORE
    world.do(BOB, RejectHandoff("H", "other", "back"))
    assert world.tasks["T"].assignee == "alice"


@pytest.mark.parametrize("actor", [HUMAN, COORDINATOR, ORCHESTRATOR], ids=lambda who: who.name)
def test_return_after_failed_redelegation_suggests_assignment(actor: Actor) -> None:
    world = redelegated_and_rejected()
    assert refusal_detail(world, BOB, offer("alice", "H3", supersedes="H2")) == BEFORE
    again(world, BOB, ReleaseTask("T"), "release")
    again(world, actor, EditTask("T", assignee="alice"), "assign")
    assert world.tasks["T"].assignee == "alice"


def test_reassignment_to_sender_suggests_reject() -> None:
    assert refusal_detail(activated(), COORDINATOR, ReassignHandoff("H", "alice")) == BEFORE
    detail = refusal_detail(accepted(), COORDINATOR, ReassignHandoff("H", "alice"))
    assert detail == "alice has it now: name somebody else"
    detail = refusal_detail(accepted(), COORDINATOR, ReassignHandoff("H", "bob"))
    assert detail == "bob is the recipient of H: name another one"


def test_refusal_names_successor() -> None:
    detail = refusal_detail(redelegated_and_rejected(), BOB, offer("erin", "H4", supersedes="H"))
    assert detail == "supersedes: H2 has taken the place of H"


@pytest.mark.parametrize(
    ("build", "position", "withdrawal"),
    [
        (accepted, "being handed over to bob", ", or its sender withdraw it"),
        (activated, "bob's", ""),
    ],
)
def test_assignment_during_handoff_suggests_ending_it(
    build: Callable[[], World], position: str, withdrawal: str
) -> None:
    world = build()
    edit = EditTask("T", assignee="carol")
    assert refusal_detail(world, HUMAN, edit) == (
        f"T is {position} by H: bob or a coordinator has to reject that handoff first{withdrawal}"
    )
    world.do(COORDINATOR, RejectHandoff("H", "other", "back"))
    assert world.tasks["T"].handoff is None
    if withdrawal:
        build().do(ALICE, WithdrawHandoff("H"))


@pytest.mark.parametrize(
    ("build", "actor", "position", "may"),
    [
        (lambda: at("proposed"), ALICE, "being handed over to bob", True),
        (lambda: at("proposed"), BOB, "being handed over to bob", False),
        (accepted, BOB, "being handed over to bob", True),
        (activated, BOB, "bob's", True),
        (activated, ALICE, "bob's", False),
    ],
)
def test_superseding_offer_is_suggested_to_permitted_actors(
    build: Callable[[], World], actor: Actor, position: str, may: bool
) -> None:
    world = build()
    suggestion = ": supersede that offer (supersedes H)" if may else ""
    assert (
        refusal_detail(world, actor, offer("carol", "H2"))
        == f"T is {position} already, by H{suggestion}"
    )
    code = world.code(actor, offer("carol", "H2", supersedes="H"))
    assert code == ("" if may else "ownership_conflict")


def test_delegation_during_handoff_suggests_ending_it() -> None:
    world = registry()
    world.put(task("T", "ready"))
    world.do(ALICE, offer())
    command = DelegateIntent(GOAL, "T", candidates=rank_candidates(world))
    assert refusal_detail(world, HUMAN, command).startswith("T is being handed over to bob by H: ")


@pytest.mark.parametrize("status", ["backlog", "blocked", "review", "deadletter"])
@pytest.mark.parametrize("helper", [HUMAN, COORDINATOR, ORCHESTRATOR], ids=lambda who: who.name)
@pytest.mark.parametrize("is_given", [False, True])
def test_offer_of_unowned_task_suggests_ready_or_assignment(
    status: Any, helper: Actor, is_given: bool
) -> None:
    world = World(task("T", status))
    assert refusal_detail(world, ALICE, offer()) == (
        f"T is {status} and nobody's: a person, an orchestrator or a coordinator has to make it "
        "ready, or give it to alice, before alice can hand it over"
    )
    world.do(helper, EditTask("T", assignee="alice") if is_given else MoveTask("T", "ready"))
    world.do(ALICE, offer())


@pytest.mark.parametrize("helper", [HUMAN, COORDINATOR, ORCHESTRATOR])
def test_suggested_roles_can_make_blocked_task_ready(helper: Actor) -> None:
    world = blocked()
    assert refusal_detail(world, BOB, ActivateHandoff("H")) == (
        "T is blocked: a person, a coordinator or an orchestrator has to make it ready first"
    )
    world.do(helper, MoveTask("T", "ready"))
    world.do(BOB, ActivateHandoff("H"))


def test_owner_that_blocked_task_itself_can_make_it_ready() -> None:
    world = accepted()
    world.do(ALICE, MoveTask("T", "blocked", "waiting for a key"))
    assert refusal_detail(world, BOB, ActivateHandoff("H")) == (
        "T is blocked: alice, a person, a coordinator or an orchestrator has to make it ready first"
    )
    world.do(ALICE, MoveTask("T", "ready"))
    world.do(BOB, ActivateHandoff("H"))


def test_offer_of_a_task_taken_from_its_owner_does_not_lift_its_block() -> None:
    world = held()
    world.do(HUMAN, MoveTask("T", "blocked", "legal says stop"))
    world.do(ALICE, offer())
    world.do(BOB, accept(world))
    assert world.code(BOB, ActivateHandoff("H")) == "not_ready"


@pytest.mark.parametrize("helper", [HUMAN, COORDINATOR, ORCHESTRATOR])
def test_suggested_roles_can_take_task_out_of_deadletter(helper: Actor) -> None:
    world = in_deadletter()
    del world.leases["T"]
    assert refusal_detail(world, BOB, ActivateHandoff("H")) == (
        "T is in the deadletter: a person, a coordinator or an orchestrator has to make it ready"
    )
    world.do(helper, MoveTask("T", "ready"))
    world.do(BOB, ActivateHandoff("H"))


def test_blocked_task_is_completed_by_following_suggestions() -> None:
    world = blocked_by_recipient()
    assert refusal_detail(world, BOB, CompleteHandoff("H")) == (
        "bob does not hold T any more: T is blocked: bob, a person, a coordinator or an "
        "orchestrator has to make it ready first; then activate H again, then complete it"
    )
    again(world, BOB, MoveTask("T", "ready"), "ready")
    again(world, BOB, ActivateHandoff("H"), "again")
    again(world, BOB, CompleteHandoff("H"), "done")


@pytest.mark.parametrize(
    ("state", "action", "callers"),
    [
        ("proposed", "accept", "bob"),
        ("proposed", "withdraw", "alice"),
        ("accepted", "activate", "bob"),
        ("activated", "complete", "bob"),
        ("activated", "reject", "bob or a coordinator"),
        ("activated", "reassign", "a coordinator"),
        ("activated", "extend_sla", "a coordinator"),
        ("rejected", "close", "alice or a coordinator"),
    ],
)
def test_refusal_to_stranger_names_permitted_callers(state: str, action: str, callers: str) -> None:
    world = WORLDS[state]()
    assert refusal_detail(world, CAROL, ACTIONS[action](world)) == (
        f"agent:carol may not {action} H: that is for {callers}"
    )
    for name, actor in (("alice", ALICE), ("bob", BOB), ("coordinator", COORDINATOR)):
        if name in callers:
            assert world.code(actor, ACTIONS[action](world)) == ""


def test_approval_refusal_names_permitted_person() -> None:
    detail = refusal_detail(at("proposed"), BOB, ApproveHandoff("H"))
    assert detail.endswith("that is for a person other than its sender and its recipient")
