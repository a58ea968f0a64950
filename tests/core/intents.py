"""A small registry of agents, and intents that are given to them."""

from typing import Any

from dragoman.core.actors import Actor
from dragoman.core.commands import DelegateIntent, DescribeAgent, ReceiveResult
from dragoman.core.errors import Refusal
from dragoman.core.events import AnyEvent
from dragoman.core.offers import Candidate, Wish
from dragoman.core.reading import Decision
from dragoman.core.rules.scoring import Roster
from dragoman.core.states.agent import AgentRecord
from dragoman.core.states.intent import Intent, OpenRequest
from dragoman.core.states.standing import Standing
from tests.core.world import HUMAN, NOW, World

GOAL = "Write python tests for the parser"
HOUR = 3_600_000
CAROL = Actor("agent", "carol")


def registry(*names: str, **terms: Any) -> World:
    """A world in which these agents can write python tests, on equal terms."""
    world = World()
    for name in names or ("alice", "bob"):
        world.agents[name] = AgentRecord(name, "agent", ("ccos",), NOW)
        world.do(HUMAN, DescribeAgent(name, ("python", "tests"), **terms))
    return world


def rank_candidates(world: World, goal: str = GOAL, now: int = NOW) -> tuple[Candidate, ...]:
    """The candidates, as the world knows them."""
    return Roster(world.standings.values(), now).rank(Wish(goal))


def delegate_intent(world: World, id: str = "i", actor: Actor = HUMAN, **more: Any) -> Intent:
    """An intent that was given to whoever is first."""
    more.setdefault("goal", GOAL)
    more.setdefault("candidates", rank_candidates(world))
    world.do(actor, DelegateIntent(id=id, **more))
    return world.intents[id]


def submit_result(world: World, *, success: bool = True, now: int = NOW, id: str = "i") -> Intent:
    """The agent that has the open request brings a result."""
    request = open_request(world, id)
    error = "" if success else "it broke"
    actor = Actor("agent", request.agent)
    world.do(actor, ReceiveResult(id, request.agent, success, None, error, request.id), now)
    return world.intents[id]


def open_request(world: World, id: str = "i") -> OpenRequest:
    """The request that waits for an answer."""
    request = world.intents[id].request
    assert request is not None
    return request


def anomaly_detail(world: World, actor: Actor, command: Any, now: int = NOW) -> str:
    """Why something is an anomaly; it changes nothing but that it is on record."""
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
    """What happened, in order, by the names of the events."""
    events: list[tuple[str, AnyEvent]] = [
        (name, event) for name, event in decision.events if name.startswith(stream)
    ]
    return [type(event).__name__ for _, event in events]


def standing_of(world: World, name: str) -> Standing:
    """How an agent stands."""
    return world.standings[name]
