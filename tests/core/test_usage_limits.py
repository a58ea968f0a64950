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
from tests.core.world import HUB, HUMAN, NOW, World, held
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


def test_agent_that_is_not_known_or_left_alone_is_not_paused(world: World) -> None:
    assert len(world.do(ALICE, LimitAttempt("T", NOW + HOUR, pauses=False)).events) == 1
    assert len(held().do(ALICE, LimitAttempt("T", NOW + HOUR)).events) == 1


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
