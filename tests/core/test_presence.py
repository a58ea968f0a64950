"""Presence: what sessions of an agent say of themselves."""

import pytest

from dragoman.core.actor import Actor
from dragoman.core.agent import RegisterAgent
from dragoman.core.errors import Refusal
from dragoman.core.presence import (
    MAX_SESSIONS,
    PRESENCE_MS,
    Presence,
    PresenceReported,
    ReportPresence,
)
from tests.core.world import HUMAN, NOW, World
from tests.requirements import proves

pytestmark = proves("AGENT-PRESENCE")

ALICE = Actor("agent", "alice")


@pytest.fixture
def world() -> World:
    """World in which alice is registered."""
    known = World()
    known.do(HUMAN, RegisterAgent("alice"))
    return known


def test_session_waits_until_its_next_turn(world: World) -> None:
    asked = world.do(ALICE, ReportPresence("alice", "s-1", "waiting", "Run the tests?"))
    assert asked.events == (("agent:alice", PresenceReported("s-1", "waiting", "Run the tests?")),)
    world.do(HUMAN, ReportPresence("alice", "s-2", "working"))
    assert world.agents["alice"].sessions == (
        Presence("s-1", "waiting", NOW, "Run the tests?"),
        Presence("s-2", "working", NOW),
    )
    world.do(ALICE, ReportPresence("alice", "s-1", "working"))
    assert [one.state for one in world.agents["alice"].sessions] == ["working", "working"]


def test_the_same_again_is_no_entry(world: World) -> None:
    waiting = ReportPresence("alice", "s-1", "waiting", "Run the tests?")
    world.do(ALICE, waiting)
    assert world.do(ALICE, waiting).events == ()
    assert world.do(ALICE, ReportPresence("alice", "s-1", "waiting", "Really?")).events
    world.do(ALICE, ReportPresence("alice", "s-1", "ended"))
    assert world.agents["alice"].sessions == ()
    assert world.do(ALICE, ReportPresence("alice", "s-1", "ended")).events == ()


def test_session_that_was_killed_counts_for_a_day(world: World) -> None:
    waiting = ReportPresence("alice", "s-1", "waiting")
    world.do(ALICE, waiting)
    record = world.agents["alice"]
    assert record.current_sessions(NOW + PRESENCE_MS - 1) == record.sessions
    assert record.current_sessions(NOW + PRESENCE_MS) == ()


def test_last_sessions_are_kept(world: World) -> None:
    for number in range(MAX_SESSIONS + 5):
        world.do(ALICE, ReportPresence("alice", f"s-{number}", "idle"))
    kept = [one.session for one in world.agents["alice"].sessions]
    assert kept == [f"s-{number}" for number in range(5, MAX_SESSIONS + 5)]


@pytest.mark.parametrize(
    ("actor", "command", "code"),
    [
        (HUMAN, ReportPresence("nobody", "s", "idle"), "agent_not_found"),
        (HUMAN, ReportPresence("a b", "s", "idle"), "invalid_id"),
        (ALICE, ReportPresence("alice", "", "idle"), "invalid_id"),
        (ALICE, ReportPresence("alice", "s", "idle", "x" * 5_000), "invalid_field"),
        (Actor("agent", "bob"), ReportPresence("alice", "s", "idle"), "not_authorized"),
        (Actor("observer", "alice"), ReportPresence("alice", "s", "idle"), "not_authorized"),
    ],
)
def test_invalid_report_is_refused(
    world: World, actor: Actor, command: ReportPresence, code: str
) -> None:
    answer = world.decide(actor, command)
    assert isinstance(answer, Refusal)
    assert answer.code == code
