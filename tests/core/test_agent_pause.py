"""Pauses of agents: no work is started until the pause ends or is lifted."""

import pytest

from dragoman.core.actor import Actor
from dragoman.core.agent import (
    AgentPaused,
    AgentResumed,
    Pause,
    PauseAgent,
    RegisterAgent,
    ResumeAgent,
)
from tests.core.world import HUB, HUMAN, NOW, ORCHESTRATOR, World
from tests.requirements import proves

pytestmark = proves("AGENT-PAUSE")

DAY = 86_400_000


@pytest.fixture
def world() -> World:
    """World in which alice is registered."""
    known = World()
    known.do(HUMAN, RegisterAgent("alice"))
    return known


def test_pause_lasts_until_its_end_or_resume(world: World) -> None:
    world.do(HUB, PauseAgent("alice", "it is enough", NOW + DAY))
    record = world.agents["alice"]
    assert record.active_pause(NOW + DAY - 1) == Pause("it is enough", NOW, NOW + DAY)
    assert record.active_pause(NOW + DAY) is None
    world.do(ORCHESTRATOR, PauseAgent("alice"))
    assert world.agents["alice"].active_pause(NOW + 365 * DAY) == Pause("paused by hand", NOW)
    answer = world.do(HUMAN, ResumeAgent("alice"))
    assert answer.events == (("agent:alice", AgentResumed()),)
    assert world.agents["alice"].pause is None


def test_repeated_pause_and_resume_are_no_ops(world: World) -> None:
    pause = PauseAgent("alice", "it is enough", NOW + DAY)
    assert world.do(HUMAN, pause).events == (
        ("agent:alice", AgentPaused("it is enough", NOW + DAY)),
    )
    assert world.do(HUB, pause).events == ()
    world.do(HUMAN, ResumeAgent("alice"))
    assert world.do(HUMAN, ResumeAgent("alice")).events == ()


@pytest.mark.parametrize(
    ("actor", "command", "code"),
    [
        (HUMAN, PauseAgent("nobody"), "agent_not_found"),
        (HUMAN, ResumeAgent("nobody"), "agent_not_found"),
        (HUMAN, PauseAgent("a b"), "invalid_id"),
        (HUMAN, PauseAgent("alice", ""), "invalid_field"),
        (HUMAN, PauseAgent("alice", "x", 1 << 62), "invalid_field"),
        (HUB, ResumeAgent("alice"), "not_authorized"),
        (Actor("agent", "alice"), ResumeAgent("alice"), "not_authorized"),
        (Actor("agent", "alice"), PauseAgent("alice"), "not_authorized"),
    ],
    ids=range(8),
)
def test_unauthorized_or_invalid_pause_is_refused(
    world: World, actor: Actor, command: PauseAgent | ResumeAgent, code: str
) -> None:
    assert world.code(actor, command) == code
