"""An intent whose task is rewound: it agrees with its task again, and nothing is learned twice."""

import pytest

from dragoman.core.commands import (
    ClaimTask,
    CreateTask,
    LinkTask,
    MoveTask,
    PauseAgent,
    ReceiveResult,
    RewindTask,
)
from dragoman.core.reading import Decision
from dragoman.core.states.intent import IntentState
from dragoman.core.states.task import Task
from tests.core.delegating import answer, delegated, names_of, odd, open_request, registry, standing
from tests.core.world import ALICE, HUMAN, World, task
from tests.requirements import proves

pytestmark = proves("CCOS-REWOUND")


def kept(world: World, version: int) -> None:
    """The task as it stands now is what its stream had at this entry."""
    world.past["i", version] = world.tasks["i"]


def rewound(world: World, version: int) -> Decision:
    """A person goes back to that."""
    return world.do(HUMAN, RewindTask("i", version))


def satisfied() -> World:
    """Alice was asked (entry 1), and has brought the result (entry 2)."""
    world = registry()
    delegated(world)
    kept(world, 1)
    answer(world)
    kept(world, 2)
    return world


def test_what_was_done_and_is_not_any_more_is_asked_for_again() -> None:
    world = satisfied()
    assert names_of(rewound(world, 1), "intent:") == [
        "IntentProposed",
        "IntentApproved",
        "IntentDispatched",
    ]
    assert (open_request(world).id, open_request(world).agent) == ("i.2", "alice")
    answer(world)
    assert (world.intents["i"].state, standing(world, "alice").recent) == ("Satisfied", "11")


def test_back_to_done_it_is_satisfied_and_no_second_success_is_counted() -> None:
    world = satisfied()
    rewound(world, 1)
    assert names_of(rewound(world, 2)) == [
        "TaskRewound",
        "IntentSuperseded",
        "AgentRelieved",
        "IntentSatisfied",
    ]
    assert world.intents["i"].state == "Satisfied"
    assert (standing(world, "alice").recent, standing(world, "alice").open) == ("1", 0)


def test_whoever_works_on_it_loses_it_and_its_result_comes_too_late() -> None:
    world = registry()
    delegated(world)
    kept(world, 1)
    world.do(ALICE, ClaimTask("i", "alice"))
    rewound(world, 1)
    assert open_request(world).id == "i.2"
    odd(world, ALICE, ReceiveResult("i", "alice", True, None, "", "i.1"))
    assert standing(world, "alice").recent == ""


def test_it_goes_back_to_whoever_had_it_then_although_that_one_has_failed_since() -> None:
    world = registry()
    delegated(world)
    kept(world, 1)
    answer(world, success=False)
    assert open_request(world).agent == "bob"
    rewound(world, 1)
    assert (open_request(world).id, open_request(world).agent) == ("i.3", "alice")
    assert (standing(world, "alice").recent, standing(world, "bob").recent) == ("0", "")


def test_governance_is_asked_again() -> None:
    world = satisfied()
    world.do(HUMAN, PauseAgent("alice", "away"))
    rewound(world, 1)
    assert world.intents["i"].state == "DelegationRejected"
    assert "paused" in world.intents["i"].reasons[0]


@pytest.mark.parametrize(
    ("then", "why"),
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
def test_where_nobody_can_be_asked_it_waits_for_somebody(
    then: Task, why: str, before: IntentState
) -> None:
    world = satisfied()
    world.past["i", 3] = then
    if before == "TaskDispatched":
        rewound(world, 1)
    elif before == "NeedsFollowUp":
        world.past["i", 4] = task("i", "blocked", "bob")
        rewound(world, 4)
    assert world.intents["i"].state == before
    rewound(world, 3)
    intent = world.intents["i"]
    assert (intent.state, intent.reasons) == ("NeedsFollowUp", (f"it was rewound: {why}",))
    assert intent.request is None
    assert standing(world, "alice").recent == "1"


def test_what_it_waits_for_is_told() -> None:
    world = satisfied()
    world.do(HUMAN, CreateTask("before", "before", ready=True))
    world.do(HUMAN, LinkTask("i", "blocked-by", "before"))
    rewound(world, 1)
    assert world.intents["i"].reasons == ("it was rewound: its task waits for before",)


def test_from_there_it_goes_on_as_ever() -> None:
    world = satisfied()
    world.past["i", 3] = task("i", "review", "alice", review_required=True)
    rewound(world, 3)
    world.do(HUMAN, MoveTask("i", "done"))
    assert (world.intents["i"].state, standing(world, "alice").recent) == ("Satisfied", "1")


def test_a_task_without_an_intent_is_just_rewound() -> None:
    world = World(task("i", "done"))
    world.past["i", 1] = task("i", "ready")
    assert names_of(rewound(world, 1)) == ["TaskRewound"]
