"""Claim races: one agent gets a task, from whatever thread, process or hub it is claimed."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.task_state import CreateTask
from dragoman.engine.request import Committed, Outcome
from tests.conformance.store.hubs import ANN, Hub, Hubs
from tests.conformance.store.storages import Storage
from tests.conformance.store.threads import TIMEOUT_S, run_concurrently
from tests.requirements import proves

pytestmark = proves("STORE-CONTRACT", "STORE-CLAIM-RACE")

PROJECT = Path(__file__).parents[3]
AGENTS = [f"agent-{n}" for n in range(8)]
TASKS = 40


def claim_call(hub: Hub, agent: str, task: str) -> Callable[[], Outcome]:
    """Make a call that claims a task."""
    return lambda: hub.ask(Actor("agent", agent), ClaimTask(task, agent))


def codes(outcomes: list[Outcome]) -> Counter[str]:
    """Count the outcomes."""
    return Counter(
        "claimed" if isinstance(outcome, Committed) else outcome.code for outcome in outcomes
    )


def test_one_of_many_threads_wins_a_claim(hubs: Hubs) -> None:
    both = hubs.new(), hubs.new()
    for n in range(10):
        task = both[0].do(ANN, CreateTask("a task", f"t{n}", ready=True)).task

        outcomes = run_concurrently(
            [claim_call(both[i % 2], agent, task) for i, agent in enumerate(AGENTS)]
        )

        assert codes(outcomes) == {"claimed": 1, "already_claimed": len(AGENTS) - 1}
    events = Counter(entry.event for entry in both[0].store.entries(0, 1_000))
    assert (events["task.created"], events["task.claimed"]) == (10, 10)


def test_one_of_many_processes_wins_a_claim(database: Storage) -> None:
    hubs = Hubs(database.open)
    task = hubs.new().do(ANN, CreateTask("a task", ready=True)).task
    command = [sys.executable, "-m", "tests.conformance.store.claim_process", database.kind]
    processes = [
        subprocess.Popen(
            [*command, database.location, agent, task],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for agent in AGENTS[:4]
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "prepared\n"

    for process in processes:
        assert process.stdin is not None
        process.stdin.write("now\n")
        process.stdin.flush()
    lines = [process.communicate(timeout=TIMEOUT_S)[0].strip() for process in processes]

    assert Counter(lines) == {"claimed": 1, "already_claimed": 3}
    assert [process.returncode for process in processes] == [0, 0, 0, 0]


@proves("TASK-PRIORITY")
def test_next_task_is_never_claimed_twice_and_none_is_skipped(hubs: Hubs) -> None:
    both = hubs.new(), hubs.new()
    for n in range(TASKS):
        both[n % 2].do(ANN, CreateTask("a task", f"t{n}", ready=True))
    claimed: list[str] = []

    def take_all(hub: Hub, agent: str) -> list[str]:
        mine: list[str] = []
        # A hub may find no task while others hold the last ones for a moment.
        while len(claimed) < TASKS:
            outcome = claim_call(hub, agent, "")()
            if isinstance(outcome, Committed):
                mine.append(outcome.receipts[0].task)
                claimed.append(mine[-1])
        return mine

    claimed_by_hub = run_concurrently(
        [
            lambda hub=both[i % 2], agent=agent: take_all(hub, agent)
            for i, agent in enumerate(AGENTS)
        ]
    )

    assert sorted(task for mine in claimed_by_hub for task in mine) == sorted(
        f"t{n}" for n in range(TASKS)
    )
    assert both[0].store.status_counts() == {"in-progress": TASKS}
