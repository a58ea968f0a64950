"""Delegation: ranking agents, an intent there and back, and the story of a long one."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

import uvloop
from msgspec import Struct

from bench.callers import Call, drive, open_hub
from bench.raw import RawFront, RawLoop
from dragoman.core.actor import Actor
from dragoman.core.agent import AgentDescriptor, DescribeAgent, RegisterAgent, Reputation
from dragoman.core.intent.candidate import Requirements
from dragoman.core.intent.scoring import AgentRanker
from dragoman.core.intent.state import UpdateIntent
from dragoman.engine.hub import Hub
from dragoman.engine.queries.entries import stream_entries
from dragoman.engine.request import Accepted
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.protocols import ccos
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import new_id

ON_THE_WAY_OUT, ON_THE_WAY_BACK = 8, 8
"""Entries that a delegation and its result with feedback write; a test counts them."""
AGENTS = 8

_PERSON = Actor("human", "reviewer")
_NOW = 1_770_670_500_000
_GOAL = "Translate the manual of the water pump into French and check every table in it"
_STEPS = (0, 1, 3, 4)
"""Steps of the raw loop that write an entry and a state."""
_UPDATES_AT_ONCE = 500


def ranked(agents: int, seconds: float) -> float:
    """Rankings per second of so many agents, for one goal."""
    roster = AgentRanker((_reputation(number) for number in range(agents)), _NOW)
    wish, done, start = Requirements(_GOAL, ("formal",)), 0, perf_counter()
    while (passed := perf_counter() - start) < seconds:
        assert len(roster.rank(wish)) == agents
        done += 1
    return done / passed


def _reputation(number: int) -> Reputation:
    """An agent with five skills, one of which the goal names, and results of its own."""
    skills = ("French", f"skill {number}", "check tables", "summarize reports", "review code")
    descriptor = AgentDescriptor(skills, ("formal",), trust="T1", cost=number % 7)
    recent = "1" * (number % 20) + "0" * (number % 3)
    return Reputation(f"agent-{number:04d}", descriptor, recent=recent, rated_at=_NOW)


def raw_entries(folder: Path, callers: int, seconds: float) -> float:
    """Delegations per second of a loop that only writes as many entries, in two commits each."""

    @asynccontextmanager
    async def lives() -> AsyncGenerator[Call]:
        raw = RawLoop(folder / "raw.db")

        def write(batch: list[list[tuple[int, int]]]) -> None:
            raw.write([pair for item in batch for pair in item])

        front, numbers = RawFront(write), count(AGENTS)

        async def life() -> None:
            task, intent, agent = next(numbers), next(numbers), next(numbers) % AGENTS
            streams = (task, intent, intent, agent)
            for entries in (ON_THE_WAY_OUT, ON_THE_WAY_BACK):
                await front.write([(streams[i % 4], _STEPS[i % 4]) for i in range(entries)])

        yield life
        front.close()
        raw.close()

    return uvloop.run(drive(lives(), callers, seconds))


def there_and_back(folder: Path, callers: int, seconds: float) -> float:
    """Delegations per second: goal, ranking, governance, request, result, feedback."""

    @asynccontextmanager
    async def lives() -> AsyncGenerator[Call]:
        with _open_setup(folder) as setup:

            async def life() -> None:
                await setup.delegate()

            yield life

    return uvloop.run(drive(lives(), callers, seconds))


class Setup(Struct, frozen=True):
    """A hub with some agents that can do the same."""

    hub: Hub
    router: Router

    async def delegate(self) -> None:
        """One intent, from the goal to the feedback."""
        reply = await self._call("ccos.delegate", {"goal": _GOAL}, _PERSON)
        request = reply["request"]
        agent = request["agent_id"]
        result = {"intent_id": reply["intent_id"], "agent_id": agent, "success": True, "output": 1}
        await self._call("ccos.result", result, Actor("agent", agent))

    async def _call(self, operation: str, arguments: dict[str, Any], actor: Actor) -> Any:
        answer = await self.router.call_async(operation, arguments, actor)
        assert isinstance(answer, Accepted), answer
        return answer.reply


@contextmanager
def _open_setup(folder: Path) -> Generator[Setup]:
    with open_hub(SqliteStore.open(folder / "dragoman.db", new_id)) as hub:
        facts = StoreFacts(hub.store, _no_file, now=hub.clock.now)
        for number in range(AGENTS):
            name = f"agent-{number}"
            hub.submit(_PERSON, RegisterAgent(name), DescribeAgent(name, ("French", "translate")))
        yield Setup(hub, Router(hub, (ccos.dialect(),), facts))


def _no_file(task: str, ref: str) -> bool:
    del task, ref
    return False


class LongIntent(Struct, frozen=True):
    """A hub with one long intent."""

    setup: Setup
    intent: str

    def read_per_second(self, seconds: float) -> float:
        """Reads a second of its entries, as they are stored."""
        store = self.setup.hub.store
        return _per_second(
            lambda: sum(1 for _ in stream_entries(store, f"intent:{self.intent}")), seconds
        )

    def explained_per_second(self, seconds: float) -> float:
        """Explanations a second of its tree (`ccos.why`)."""

        def explain() -> None:
            reply = self.setup.router.call("ccos.why", {"intent_id": self.intent}, _PERSON)
            assert isinstance(reply, Accepted), reply

        return _per_second(explain, seconds)


def _per_second(work: Any, seconds: float) -> float:
    done, start = 0, perf_counter()
    while done == 0 or perf_counter() - start < seconds:
        work()
        done += 1
    return done / (perf_counter() - start)


@contextmanager
def open_long_intent(folder: Path, actions: int) -> Generator[LongIntent]:
    """An intent with so many Actions, nearly all of them updates."""
    with _open_setup(folder) as setup:
        answer = setup.router.call("ccos.delegate", {"goal": _GOAL}, _PERSON)
        assert isinstance(answer, Accepted), answer
        intent, request = answer.reply["intent_id"], answer.reply["request"]
        agent = Actor("agent", request["agent_id"])
        for begin in range(4, actions, _UPDATES_AT_ONCE):
            updates = (
                UpdateIntent(intent, agent.name, number % 100, f"page {number}")
                for number in range(begin, min(begin + _UPDATES_AT_ONCE, actions))
            )
            setup.hub.submit(agent, *updates)
        yield LongIntent(setup, intent)
