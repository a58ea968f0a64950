"""Intents whose task is rewound: intent and task agree again, without feedback twice."""

import pytest

from dragoman.core.agent import PauseAgent
from dragoman.core.attempt import ClaimTask
from dragoman.core.intent.state import IntentState, ReceiveResult
from dragoman.core.read import Decision
from dragoman.core.task_state import CreateTask, LinkTask, MoveTask, RewindTask, Task
from tests.core.intents import (
    anomaly_detail,
    delegate_intent,
    event_names,
    open_request,
    registry,
    reputation_of,
    submit_result,
)
from tests.core.world import ALICE, HUMAN, World, task
from tests.requirements import proves

pytestmark = proves("CCOS-REWOUND")


def store_version(world: World, version: int) -> None:
    """Store the present task as the state at this version of its stream."""
    world.past["i", version] = world.tasks["i"]


def rewind_to(world: World, version: int) -> Decision:
    """Rewind the task to this version."""
    return world.do(HUMAN, RewindTask("i", version))


def satisfied_by_alice() -> World:
    """World in which alice was dispatched (version 1) and has succeeded (version 2)."""
    world = registry()
    delegate_intent(world)
    store_version(world, 1)
    submit_result(world)
    store_version(world, 2)
    return world


def test_rewind_from_done_dispatches_again() -> None:
    world = satisfied_by_alice()
    assert event_names(rewind_to(world, 1), "intent:") == [
        "IntentProposed",
        "IntentApproved",
        "IntentDispatched",
    ]
    assert (open_request(world).id, open_request(world).agent) == ("i.2", "alice")
    submit_result(world)
    assert (world.intents["i"].state, reputation_of(world, "alice").recent) == ("Satisfied", "11")


def test_rewind_to_done_satisfies_without_second_feedback() -> None:
    world = satisfied_by_alice()
    rewind_to(world, 1)
    assert event_names(rewind_to(world, 2)) == [
        "TaskRewound",
        "IntentSuperseded",
        "AgentRelieved",
        "IntentSatisfied",
    ]
    assert world.intents["i"].state == "Satisfied"
    assert (reputation_of(world, "alice").recent, reputation_of(world, "alice").open) == ("1", 0)


def test_rewind_supersedes_request_and_its_result_is_an_anomaly() -> None:
    world = registry()
    delegate_intent(world)
    store_version(world, 1)
    world.do(ALICE, ClaimTask("i", "alice"))
    rewind_to(world, 1)
    assert open_request(world).id == "i.2"
    anomaly_detail(world, ALICE, ReceiveResult("i", "alice", True, None, "", "i.1"))
    assert reputation_of(world, "alice").recent == ""


def test_rewind_dispatches_former_agent_despite_later_failure() -> None:
    world = registry()
    delegate_intent(world)
    store_version(world, 1)
    submit_result(world, success=False)
    assert open_request(world).agent == "bob"
    rewind_to(world, 1)
    assert (open_request(world).id, open_request(world).agent) == ("i.3", "alice")
    assert (reputation_of(world, "alice").recent, reputation_of(world, "bob").recent) == ("0", "")


def test_rewind_checks_governance_again() -> None:
    world = satisfied_by_alice()
    world.do(HUMAN, PauseAgent("alice", "away"))
    rewind_to(world, 1)
    assert world.intents["i"].state == "DelegationRejected"
    assert "paused" in world.intents["i"].reasons[0]


@pytest.mark.parametrize(
    ("past", "reason"),
    [
        (task("i", "backlog", "alice"), "its task is backlog"),
        (task("i", "ready"), "its task has no owner"),
        (task("i", "review", "alice"), "its task is review"),
        (task("i", "blocked", "alice"), "its task is blocked"),
        (task("i", "deadletter"), "its task is deadletter"),
        (task("i", "cancelled"), "its task is cancelled"),
    ],
    ids=lambda value: getattr(value, "status", ""),
)
@pytest.mark.parametrize("before", ["Satisfied", "TaskDispatched", "NeedsFollowUp"])
def test_rewind_to_undispatchable_task_needs_follow_up(
    past: Task, reason: str, before: IntentState
) -> None:
    world = satisfied_by_alice()
    world.past["i", 3] = past
    if before == "TaskDispatched":
        rewind_to(world, 1)
    elif before == "NeedsFollowUp":
        world.past["i", 4] = task("i", "blocked", "bob")
        rewind_to(world, 4)
    assert world.intents["i"].state == before
    rewind_to(world, 3)
    intent = world.intents["i"]
    assert (intent.state, intent.reasons) == ("NeedsFollowUp", (f"it was rewound: {reason}",))
    assert intent.request is None
    assert reputation_of(world, "alice").recent == "1"


def test_rewind_names_open_blockers_as_reason() -> None:
    world = satisfied_by_alice()
    world.do(HUMAN, CreateTask("before", "before", ready=True))
    world.do(HUMAN, LinkTask("i", "blocked-by", "before"))
    rewind_to(world, 1)
    assert world.intents["i"].reasons == ("it was rewound: its task waits for before",)


def test_intent_continues_normally_after_rewind() -> None:
    world = satisfied_by_alice()
    world.past["i", 3] = task("i", "review", "alice", review_required=True)
    rewind_to(world, 3)
    world.do(HUMAN, MoveTask("i", "done"))
    assert (world.intents["i"].state, reputation_of(world, "alice").recent) == ("Satisfied", "1")


def test_task_without_intent_is_rewound_alone() -> None:
    world = World(task("i", "done"))
    world.past["i", 1] = task("i", "ready")
    assert event_names(rewind_to(world, 1)) == ["TaskRewound"]
