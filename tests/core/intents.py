"""Registered agents with skills, and intents that are delegated to them."""

from typing import Any

from dragoman.core.actor import Actor
from dragoman.core.agent import AgentRecord, DescribeAgent, Reputation
from dragoman.core.base import Event
from dragoman.core.errors import Refusal
from dragoman.core.intent.candidate import Candidate, Requirements
from dragoman.core.intent.scoring import AgentRanker
from dragoman.core.intent.state import DelegateIntent, Intent, OpenRequest, ReceiveResult
from dragoman.core.read import Decision
from tests.core.world import HUMAN, NOW, World

GOAL = "Write python tests for the parser"
HOUR = 3_600_000
CAROL = Actor("agent", "carol")


def registry(*names: str, **terms: Any) -> World:
    """World in which these agents can write python tests, on equal terms."""
    world = World()
    for name in names or ("alice", "bob"):
        world.agents[name] = AgentRecord(name, "agent", ("ccos",), NOW)
        world.do(HUMAN, DescribeAgent(name, ("python", "tests"), **terms))
    return world


def rank_candidates(world: World, goal: str = GOAL, now: int = NOW) -> tuple[Candidate, ...]:
    """Rank the agents of the world for a goal."""
    return AgentRanker(world.reputations.values(), now).rank(Requirements(goal))


def delegate_intent(world: World, id: str = "i", actor: Actor = HUMAN, **more: Any) -> Intent:
    """Delegate an intent to the best candidate."""
    more.setdefault("goal", GOAL)
    more.setdefault("candidates", rank_candidates(world))
    world.do(actor, DelegateIntent(id=id, **more))
    return world.intents[id]


def submit_result(world: World, *, success: bool = True, now: int = NOW, id: str = "i") -> Intent:
    """Submit a result as the agent of the open request."""
    request = open_request(world, id)
    error = "" if success else "it broke"
    actor = Actor("agent", request.agent)
    world.do(actor, ReceiveResult(id, request.agent, success, None, error, request.id), now)
    return world.intents[id]


def open_request(world: World, id: str = "i") -> OpenRequest:
    """Open request of an intent."""
    request = world.intents[id].request
    assert request is not None
    return request


def anomaly_detail(world: World, actor: Actor, command: Any, now: int = NOW) -> str:
    """Detail of an anomaly, which must change nothing except that it is recorded."""
    before = world.intents[command.intent]
    decision = world.decide(actor, command, now)
    assert isinstance(decision, Decision), decision
    assert isinstance(decision.refusal, Refusal)
    assert decision.refusal.code == "anomaly"
    world.apply(decision, now)
    after = world.intents[command.intent]
    assert after.anomalies == before.anomalies + 1
    return decision.refusal.detail


def event_names(decision: Decision, stream: str = "") -> list[str]:
    """Names of the events of a decision, in order."""
    events: list[tuple[str, Event]] = [
        (name, event) for name, event in decision.events if name.startswith(stream)
    ]
    return [type(event).__name__ for _, event in events]


def reputation_of(world: World, name: str) -> Reputation:
    """Reputation of an agent."""
    return world.reputations[name]
