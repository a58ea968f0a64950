"""Clients that work on a few tasks at once, and write down what they asked and were told, when."""

from collections.abc import Callable, Sequence
from itertools import count
from random import Random

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    AnyCommand,
    ClaimTask,
    CreateTask,
    MoveTask,
    NoteTask,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
)
from dragoman.core.errors import Refusal
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import find_task
from dragoman.engine.request import Outcome
from tests.conformance.store.threads import at_once
from tests.linearizability.checker import MOST, Operation
from tests.linearizability.tasks import Asked, Told

CLIENTS = 8
TASKS = 3
HERA = Actor("human", "hera")
_DAY_MS = 86_400_000

Ask = Callable[[Actor, AnyCommand], Outcome]


class Window:
    """A history of bounded length, of a few tasks that begin anew."""

    def __init__(self, seed: str, doors: Sequence[tuple[Ask, Store]]) -> None:
        self._doors = doors
        self._seed = seed
        self._moments = count()
        self.histories: dict[str, list[Operation]] = {
            f"{seed}.{number}": [] for number in range(TASKS)
        }
        self._fences: dict[str, list[int]] = {task: [0] for task in self.histories}
        """The tokens that were told so far: anybody may use any of them, by mistake."""

    def run(self, steps: int) -> None:
        """All clients at once, each so many steps."""
        assert CLIENTS * steps <= MOST * TASKS
        for task in self.histories:
            self._doors[0][0](HERA, CreateTask(task, task, ready=True, max_attempts=1_000))
        at_once([lambda number=number: self._client(number, steps) for number in range(CLIENTS)])

    def _client(self, number: int, steps: int) -> None:
        chance = Random(f"{self._seed}:{number}")
        ask, store = self._doors[number % len(self._doors)]
        for _ in range(steps):
            task = chance.choice(list(self.histories))
            asked = self._choose(chance, task)
            called = next(self._moments)
            told = look(store, task) if asked.what == "read" else do(ask, task, asked)
            ended = next(self._moments)
            if told[2]:
                self._fences[task].append(told[2])
            operation = Operation(number, called, ended, asked, told)
            self.histories[task].append(operation)

    def _choose(self, chance: Random, task: str) -> Asked:
        what = chance.choice(
            ("claim", "claim", "claim", "beat", "note", "done", "release", "again", "read", "read")
        )
        return Asked(what, self._fences[task][-chance.choice((1, 1, 1, 2)) :][0])


def look(store: Store, task: str) -> Told:
    """What a reader sees."""
    found = find_task(store, task)
    assert not isinstance(found, Refusal)
    return "", found.task.status, found.task.fence


def do(ask: Ask, task: str, asked: Asked) -> Told:
    """What a client is told; it speaks in the name of whoever has the token that it shows."""
    outcome = ask(*_request(task, asked))
    if isinstance(outcome, Refusal):
        return outcome.code, "", 0
    receipt = outcome.receipts[0]
    return "", receipt.status or "", receipt.fence


def _request(task: str, asked: Asked) -> tuple[Actor, AnyCommand]:
    # All speak as one agent: nothing but the token tells an old attempt from the present one.
    agent, fence = Actor("agent", "ann"), asked.fence
    table: dict[str, tuple[Actor, AnyCommand]] = {
        "claim": (agent, ClaimTask(task, "ann", ttl_ms=_DAY_MS)),
        "beat": (agent, RenewLease(task, fence)),
        "note": (agent, NoteTask(task, "a note", fence)),
        "done": (agent, ReportOutcome(task, "done", apply=True, fence=fence)),
        "release": (agent, ReleaseTask(task, fence=fence)),
        "again": (HERA, MoveTask(task, "ready")),
    }
    return table[asked.what]
