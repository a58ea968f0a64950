"""Hubs in processes of their own that compete for tasks: `competing_hubs URL COUNT SEED TASK…`.

They are forked from one process that has loaded everything, and begin at the same moment. Each
claims every task by its name, in an order of its own, and whatever is next in the queue; a line of
JSON lists the tasks it has won.
"""

import json
import os
import random
import sys
from collections.abc import Iterator, Sequence
from functools import partial

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.base import Command
from dragoman.core.task_state import NoteTask
from dragoman.engine.request import Committed
from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.connect import parse_url
from dragoman.system.clock import ManualClock
from tests.conformance.store.hubs import NOW, Hub
from tests.faults.postgres.workload import BOARD
from tests.forked import fork


def main(url: str, count: int, seed: int, tasks: Sequence[str]) -> None:
    """Fork the hubs, start them, and wait for their end."""
    waiting, start_pipe = os.pipe()

    def compete(n: int) -> None:
        os.close(start_pipe)
        _compete(url, f"agent-{n}", tasks, random.Random(seed + n), waiting)

    children = [fork(partial(compete, n)) for n in range(count)]
    os.close(waiting)
    os.close(start_pipe)
    ended = [os.waitpid(child, 0)[1] for child in children]
    sys.exit(any(ended))


def _compete(url: str, name: str, tasks: Sequence[str], rng: random.Random, waiting: int) -> None:
    """Run one hub."""
    store = PostgresStore(parse_url(url))
    hub, agent = Hub(store, ManualClock(NOW)), Actor("agent", name)
    assert store.head()
    os.read(waiting, 1)
    won: list[str] = []
    for command in _commands(name, tasks, rng):
        outcome = hub.ask(agent, command)
        if isinstance(command, ClaimTask) and isinstance(outcome, Committed):
            won.append(outcome.receipts[0].task)
    store.close()
    # In one write, so that lines of several do not mix.
    os.write(1, json.dumps({"agent": name, "won": won}).encode() + b"\n")


def _commands(name: str, tasks: Sequence[str], rng: random.Random) -> Iterator[Command]:
    for n, task in enumerate(rng.sample(tasks, len(tasks))):
        yield ClaimTask(task, name)
        yield NoteTask(BOARD, f"{name} {n}")
        yield ClaimTask("", name)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
