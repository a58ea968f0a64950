"""Transition table of handoffs: actions of each state, and who may take them."""

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.base import Command
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import (
    HANDOFF_TRANSITIONS,
    LEGAL_ACTIONS,
    ActivateHandoff,
    ApproveHandoff,
    CloseHandoff,
    CompleteHandoff,
    EscalateHandoff,
    ExtendHandoff,
    HandoffStatus,
    HandoffTransitioned,
    NoteHandoff,
    ReassignHandoff,
    RejectHandoff,
    WithdrawHandoff,
)
from tests.core.handoffs import accept, at, held, offer
from tests.core.world import (
    ALICE,
    BOB,
    COORDINATOR,
    HUB,
    HUMAN,
    NOW,
    OBSERVER,
    ORCHESTRATOR,
    World,
    events_of,
)
from tests.requirements import proves

EVE = Actor("agent", "eve")
STATES: tuple[HandoffStatus, ...] = tuple(
    state
    for state in HANDOFF_TRANSITIONS
    if state != "draft"  # which is local to its sender
)

ACTIONS: dict[str, tuple[Actor, Command]] = {
    "activate": (BOB, ActivateHandoff("H", work_state_update={"status": "new"})),
    "complete": (BOB, CompleteHandoff("H", "another word")),
    "reject": (BOB, RejectHandoff("H", "other", "no")),
    "withdraw": (ALICE, WithdrawHandoff("H")),
    "close": (ALICE, CloseHandoff("H", "over and out")),
    "extend_sla": (COORDINATOR, ExtendHandoff("H", 60_000)),
    "reassign": (COORDINATOR, ReassignHandoff("H", "carol")),
}
STATE_AFTER: dict[str, HandoffStatus] = {
    "accept": "accepted",
    "activate": "activated",
    "complete": "completed",
    "reject": "rejected",
    "withdraw": "rejected",
    "reassign": "rejected",
    "close": "closed",
}


def permitted(action: str, world: World) -> tuple[Actor, Command]:
    """Action with an actor that may take it."""
    if action == "accept":
        package_hash = world.handoffs["H"].package_hash or "0" * 64
        return BOB, accept(world, package_hash=package_hash, notes="gladly")
    return ACTIONS[action]


@proves("ACP-STATES")
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("action", ["accept", *ACTIONS])
def test_action_is_refused_or_leads_to_its_state(action: str, state: HandoffStatus) -> None:
    world = at(state)
    actor, command = permitted(action, world)
    world.cause = "cause-2"
    answer = world.decide(actor, command)
    if action not in LEGAL_ACTIONS[state]:
        assert isinstance(answer, Refusal)
        assert answer.code == "invalid_transition"
        return
    world.do(actor, command)
    after = world.handoffs["H"]
    assert after.status == STATE_AFTER.get(action, state)
    assert after.entered_at == (NOW if after.status != state else after.steps[-1].at)


@proves("ACP-STATES")
@pytest.mark.parametrize("state", STATES)
def test_transitions_are_recorded_and_in_the_table(state: HandoffStatus) -> None:
    reached: set[str] = {"draft"}
    for action in ("accept", *ACTIONS):
        world = at(state)
        actor, command = permitted(action, world)
        world.cause = "cause-2"
        if action not in LEGAL_ACTIONS[state]:
            continue
        status: str = state
        for stream, event in world.do(actor, command).events:
            if stream == "handoff:H" and isinstance(event, HandoffTransitioned):
                assert event.from_ == status
                assert event.to in HANDOFF_TRANSITIONS[event.from_]
                assert event.by
                status = event.to
                reached.add(status)
        assert world.handoffs["H"].status == status
        assert [step.to for step in world.handoffs["H"].steps][-1] == status
    expected = {"validating", "accepted", "rejected"} if state == "proposed" else set[str]()
    assert expected <= reached


@proves("ACP-CALLERS")
@pytest.mark.parametrize(
    ("action", "state", "allowed"),
    [
        ("accept", "proposed", {"bob"}),
        ("activate", "accepted", {"bob"}),
        ("complete", "activated", {"bob"}),
        ("withdraw", "accepted", {"alice"}),
        ("reject", "activated", {"bob", "cora", "olga", "hera", "hub"}),
        ("close", "rejected", {"alice", "cora", "olga", "hera", "hub"}),
        ("extend_sla", "proposed", {"cora", "olga", "hera", "hub"}),
        ("reassign", "proposed", {"cora", "olga", "hera", "hub"}),
        ("note", "proposed", {"alice", "bob", "cora", "olga", "hera", "hub"}),
        ("escalate", "proposed", {"olga", "hera", "hub"}),
        ("approve", "proposed", {"hera"}),
    ],
)
def test_actions_are_limited_to_their_callers(
    action: str, state: HandoffStatus, allowed: set[str]
) -> None:
    others: dict[str, Command] = {
        "note": NoteHandoff("H", "remark", "x"),
        "escalate": EscalateHandoff("H"),
        "approve": ApproveHandoff("H"),
    }
    for actor in (ALICE, BOB, EVE, COORDINATOR, ORCHESTRATOR, HUMAN, OBSERVER, HUB):
        world = at(state)
        command = others[action] if action in others else permitted(action, world)[1]
        world.cause = "cause-2"
        code = world.code(actor, command)
        assert code == ("" if actor.name in allowed else "not_authorized"), actor


@proves("ACP-CALLERS")
def test_observer_may_not_accept_reject_or_note() -> None:
    world = at("proposed")
    reader = Actor("observer", "bob")
    assert world.code(reader, accept(world)) == "not_authorized"
    assert world.code(reader, RejectHandoff("H", "other", "no")) == "not_authorized"
    assert world.code(reader, NoteHandoff("H", "remark", "x")) == "not_authorized"


@proves("ACP-STATES")
@pytest.mark.parametrize("action", ["accept", "escalate", "note", "approve", *ACTIONS])
def test_unknown_and_malformed_handoff_ids_are_refused(action: str) -> None:
    world = at("proposed")
    commands: dict[str, tuple[Actor, Command]] = {
        "note": (ALICE, NoteHandoff("H", "remark", "x")),
        "escalate": (HUB, EscalateHandoff("H")),
        "approve": (HUMAN, ApproveHandoff("H")),
    }
    actor, command = commands[action] if action in commands else permitted(action, world)
    for name, code in (("none", "handoff_not_found"), ("../H", "invalid_id")):
        answer = world.decide(actor, replace(command, handoff=name))
        assert isinstance(answer, Refusal)
        assert answer.code == code


@proves("ACP-STATES")
def test_missing_task_is_reported() -> None:
    world = at("proposed")
    del world.tasks["T"]
    assert world.code(BOB, accept(world)) == "task_not_found"


@proves("ACP-STATES")
def test_proposal_is_recorded_as_its_own_entry() -> None:
    world = held()
    names = [type(event).__name__ for event in events_of(world.do(ALICE, offer()))]
    assert names == ["TaskEdited", "HandoffProposed", "TaskHandedOver", "MailPosted"]
    assert world.handoffs["H"].steps[0].by == "alice"
    assert world.handoffs["H"].created_at == NOW
