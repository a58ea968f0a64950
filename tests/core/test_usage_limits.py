"""Usage limits: an attempt that meets one is no failure, and its agent is paused until it ends."""

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.agent import AgentPaused, Pause, PauseAgent, RegisterAgent
from dragoman.core.attempt import (
    LIMIT_MARGIN_MS,
    UNKNOWN_LIMIT_MS,
    ClaimTask,
    LimitAttempt,
)
from dragoman.core.errors import Refusal
from dragoman.core.task_state import TaskTransitioned
from tests.core.world import HUB, HUMAN, NOW, ORCHESTRATOR, World, held, task
from tests.requirements import proves

pytestmark = proves("USAGE-LIMIT")

ALICE, BOB = Actor("agent", "alice"), Actor("agent", "bob")
HOUR = 3_600_000


@pytest.fixture
def world() -> World:
    """World in which alice, who is registered, holds T."""
    world = held()
    world.do(HUMAN, RegisterAgent("alice"))
    return world


@pytest.mark.parametrize("actor", [ALICE, HUB], ids=["agent", "hub"])
def test_limited_work_is_ready_for_others_and_its_agent_pauses(world: World, actor: Actor) -> None:
    world.do(actor, LimitAttempt("T", NOW + HOUR, "You have hit your limit"))

    task, record = world.tasks["T"], world.agents["alice"]
    assert (task.status, task.failures, "T" in world.leases) == ("ready", 0, False)
    assert record.pause == Pause(
        "usage limit of alice until 2026-02-09T15:30:00.000Z", NOW, NOW + HOUR + LIMIT_MARGIN_MS
    )
    assert world.do(BOB, ClaimTask("T", "bob")).events


@pytest.mark.parametrize(
    ("until", "pause"),
    [(NOW - HOUR, LIMIT_MARGIN_MS), (NOW, LIMIT_MARGIN_MS), (0, UNKNOWN_LIMIT_MS)],
    ids=["ended", "ends now", "unknown"],
)
def test_limit_that_has_ended_or_has_no_end_is_a_short_rest(
    world: World, until: int, pause: int
) -> None:
    world.do(ALICE, LimitAttempt("T", until))
    assert world.agents["alice"].pause is not None
    assert world.agents["alice"].pause.until == NOW + pause


@pytest.mark.parametrize(
    ("pauses", "said"),
    [(True, ", tried again at 2026-02-09T14:45:00.000Z"), (False, "")],
)
def test_unknown_end_is_told(world: World, pauses: bool, said: str) -> None:
    events = world.do(ALICE, LimitAttempt("T", pauses=pauses)).events
    moved = events[0][1]
    assert isinstance(moved, TaskTransitioned)
    assert moved.reason == f"usage limit of alice, its end unknown{said}"


def test_longer_pause_stays(world: World) -> None:
    world.do(HUMAN, PauseAgent("alice", "by hand"))
    assert len(world.do(ALICE, LimitAttempt("T", NOW + HOUR)).events) == 1
    assert world.agents["alice"].pause == Pause("by hand", NOW)


def test_shorter_pause_is_replaced_and_a_longer_one_with_an_end_stays(world: World) -> None:
    world.do(HUMAN, PauseAgent("alice", "a while", NOW + 2 * HOUR))
    paused = world.agents["alice"]
    assert len(world.do(ALICE, LimitAttempt("T", NOW + HOUR)).events) == 1
    again = held()
    again.agents["alice"] = replace(paused, pause=Pause("a while", NOW, NOW + 1_000))
    assert isinstance(again.do(ALICE, LimitAttempt("T", NOW + HOUR)).events[-1][1], AgentPaused)


def test_agent_that_is_left_alone_is_not_paused(world: World) -> None:
    assert len(world.do(ALICE, LimitAttempt("T", NOW + HOUR, pauses=False)).events) == 1
    assert world.do(ALICE, ClaimTask("T", "alice")).events


def test_agent_that_is_not_registered_is_paused_as_well() -> None:
    world = held()
    world.do(ALICE, LimitAttempt("T", NOW + HOUR))
    record = world.agents["alice"]
    assert record.role == "agent"
    assert record.active_pause(NOW + HOUR) is not None


def test_person_who_meets_a_limit_is_not_registered_as_an_agent() -> None:
    world = World(task("T"))
    world.do(HUMAN, ClaimTask("T", HUMAN.name))
    assert len(world.do(HUMAN, LimitAttempt("T", NOW + HOUR)).events) == 1


@pytest.mark.parametrize("named", ["T", ""])
def test_paused_agent_gets_no_work_until_its_pause_ends(world: World, named: str) -> None:
    world.do(ALICE, LimitAttempt("T", NOW + HOUR))
    refused = world.decide(ALICE, ClaimTask(named, "alice"))
    assert isinstance(refused, Refusal)
    assert refused == Refusal(
        "nothing_ready",
        "alice is paused until 2026-02-09T15:31:00.000Z: usage limit of alice until "
        "2026-02-09T15:30:00.000Z; `dragoman agent resume alice` ends that",
    )
    assert world.code(ORCHESTRATOR, ClaimTask(named, "alice")) == "nothing_ready"
    ended = NOW + HOUR + LIMIT_MARGIN_MS
    assert world.do(ALICE, ClaimTask(named, "alice"), ended).events


def test_paused_agent_keeps_what_it_holds() -> None:
    world = held()
    world.do(HUMAN, RegisterAgent("alice"))
    world.do(HUMAN, PauseAgent("alice", "by hand"))
    assert world.do(ALICE, ClaimTask("T", "alice", renew_if_held=True)).lease is not None
    assert world.code(ALICE, ClaimTask("T", "alice")) == "nothing_ready"


@pytest.mark.parametrize(
    ("actor", "command", "code"),
    [
        (BOB, LimitAttempt("T"), "unauthorized_agent"),
        (HUMAN, LimitAttempt("T"), "unauthorized_agent"),
        (ALICE, LimitAttempt("T", fence=7), "lease_lost"),
        (ALICE, LimitAttempt("nobody-knows"), "task_not_found"),
        (ALICE, LimitAttempt("T", 1 << 62), "invalid_field"),
        (ALICE, LimitAttempt("T", reason="x" * 5_000), "invalid_field"),
    ],
)
def test_invalid_limit_is_refused(
    world: World, actor: Actor, command: LimitAttempt, code: str
) -> None:
    answer = world.decide(actor, command)
    assert isinstance(answer, Refusal)
    assert answer.code == code
