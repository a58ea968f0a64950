"""Concurrent clients of a few tasks, which record their requests and answers with their moments."""

from collections.abc import Callable, Sequence
from itertools import count
from random import Random

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, ReleaseTask, RenewLease, ReportOutcome
from dragoman.core.base import Command
from dragoman.core.errors import Refusal
from dragoman.core.task_state import CreateTask, MoveTask, NoteTask
from dragoman.engine.ports import Store
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.request import Outcome
from tests.conformance.store.threads import run_concurrently
from tests.linearizability.checker import MAX_OPERATIONS, Operation
from tests.linearizability.task_model import Answer, Request

CLIENTS = 8
TASKS = 3
HERA = Actor("human", "hera")
_DAY_MS = 86_400_000

Submit = Callable[[Actor, Command], Outcome]


class Window:
    """History of bounded length, of a few new tasks."""

    def __init__(self, seed: str, hubs: Sequence[tuple[Submit, Store]]) -> None:
        self._hubs = hubs
        self._seed = seed
        self._moments = count()
        self.histories: dict[str, list[Operation]] = {
            f"{seed}.{number}": [] for number in range(TASKS)
        }
        self._fences: dict[str, list[int]] = {task: [0] for task in self.histories}
        """Fences known so far: a client may use any of them, by mistake."""

    def run(self, steps: int) -> None:
        """Run all clients at once, each with this many steps."""
        assert CLIENTS * steps <= MAX_OPERATIONS * TASKS
        for task in self.histories:
            self._hubs[0][0](HERA, CreateTask(task, task, ready=True, max_attempts=1_000))
        run_concurrently(
            [lambda number=number: self._client(number, steps) for number in range(CLIENTS)]
        )

    def _client(self, number: int, steps: int) -> None:
        rng = Random(f"{self._seed}:{number}")
        submit, store = self._hubs[number % len(self._hubs)]
        for _ in range(steps):
            task = rng.choice(list(self.histories))
            request = self._choose(rng, task)
            called = next(self._moments)
            answer = (
                read_task(store, task)
                if request.kind == "read"
                else submit_request(submit, task, request)
            )
            ended = next(self._moments)
            if answer[2]:
                self._fences[task].append(answer[2])
            operation = Operation(number, called, ended, request, answer)
            self.histories[task].append(operation)

    def _choose(self, rng: Random, task: str) -> Request:
        kind = rng.choice(
            ("claim", "claim", "claim", "beat", "note", "done", "release", "again", "read", "read")
        )
        return Request(kind, self._fences[task][-rng.choice((1, 1, 1, 2)) :][0])


def read_task(store: Store, task: str) -> Answer:
    """Read a task past the writer."""
    found = find_task(store, task)
    assert not isinstance(found, Refusal)
    return "", found.task.status, found.task.fence


def submit_request(submit: Submit, task: str, request: Request) -> Answer:
    """Submit a request, in the name of the holder of its fence."""
    outcome = submit(*_request(task, request))
    if isinstance(outcome, Refusal):
        return outcome.code, "", 0
    receipt = outcome.receipts[0]
    return "", receipt.status or "", receipt.fence


def _request(task: str, request: Request) -> tuple[Actor, Command]:
    # All clients are one agent: only the fence tells an old attempt from the present one.
    agent, fence = Actor("agent", "ann"), request.fence
    table: dict[str, tuple[Actor, Command]] = {
        "claim": (agent, ClaimTask(task, "ann", ttl_ms=_DAY_MS)),
        "beat": (agent, RenewLease(task, fence)),
        "note": (agent, NoteTask(task, "a note", fence)),
        "done": (agent, ReportOutcome(task, "done", apply=True, fence=fence)),
        "release": (agent, ReleaseTask(task, fence=fence)),
        "again": (HERA, MoveTask(task, "ready")),
    }
    return table[request.kind]
