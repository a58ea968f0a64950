"""Server killed under load and restarted: nothing is lost, doubled or stranded."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.backoff import Backoff
from dragoman.core.errors import StoreError
from dragoman.core.task_state import CreateTask
from dragoman.engine.hub import Hub as WholeHub
from dragoman.services.timers import LeaseExpiry
from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.connect import parse_url
from dragoman.system.clock import ManualClock, new_id
from tests.conformance.store.hubs import ANN, NOW, Hub
from tests.conformance.store.threads import TIMEOUT_S, start_thread
from tests.faults.postgres.mutants import Mutant
from tests.faults.postgres.workload import BOARD, Workload, find_violations
from tests.requirements import proves
from tests.servers import MortalServer

KILLS = 3
ANSWERS_PER_KILL = 25
"""Number of answers between two kills."""
HOLDERS = 12
LATER = 10**7
"""Milliseconds after which every lease has ended."""


def run_with_kills(server: MortalServer, store: PostgresStore, kills: int) -> Workload:
    """Run a workload on a server that is killed and restarted meanwhile."""
    is_up, is_over = threading.Event(), threading.Event()
    is_up.set()
    workload = Workload(store, lambda: is_up.wait(TIMEOUT_S))

    def kill_repeatedly() -> None:
        for _ in range(kills):
            answered = len(workload.answers) + ANSWERS_PER_KILL
            while len(workload.answers) < answered and not is_over.is_set():
                threading.Event().wait(0.001)
            is_up.clear()
            try:
                server.kill()
                server.start()
            finally:
                is_up.set()

    killer: Future[None] = start_thread(kill_repeatedly)
    try:
        workload.run(6, killer.done)
    finally:
        is_over.set()
    killer.result(TIMEOUT_S)
    store.close()
    return workload


@proves("PG-KILLED", "STORE-DURABLE", "IDEM-REPEAT")
def test_killed_server_loses_and_doubles_nothing(server: MortalServer, url: str) -> None:
    store = PostgresStore.open(url, new_id)
    Hub(store, ManualClock(NOW)).do(ANN, CreateTask("for everyone", BOARD))

    workload = run_with_kills(server, PostgresStore(parse_url(url)), KILLS)

    assert find_violations(store, workload) == []
    store.close()


@proves("PG-TEETH")
def test_store_that_answers_before_commit_is_detected(server: MortalServer, url: str) -> None:
    store = PostgresStore.open(url, new_id)
    Hub(store, ManualClock(NOW)).do(ANN, CreateTask("for everyone", BOARD))

    workload = run_with_kills(server, Mutant(parse_url(url), answers_early=True), kills=1)

    assert [
        fault
        for fault in find_violations(store, workload)
        if "refused" in fault or "has lived" in fault
    ]
    store.close()


@proves("PG-KILLED")
def test_lease_expiry_interrupted_by_server_death_strands_no_task(
    server: MortalServer, url: str
) -> None:
    """The incident dbos-inc/dbos-transact-py#716."""
    clock, store = ManualClock(NOW), PostgresStore.open(url, new_id)
    hub = Hub(store, clock)
    for n in range(HOLDERS):
        agent = Actor("agent", f"agent-{n}")
        hub.do(ANN, CreateTask("a task", f"t{n}", ready=True))
        hub.do(agent, ClaimTask(f"t{n}", agent.name))
    clock.advance(LATER)
    recovery = LeaseExpiry(WholeHub(hub.engine, new_id), Backoff())

    hub.on_failpoint = on_nth_pass(HOLDERS // 2, "written", server.kill)
    with pytest.raises(StoreError):
        recovery.run_once(clock.now())
    server.start()
    recovery.run_once(clock.now())

    assert store.expired_leases(clock.now(), 100) == []
    events = Counter((entry.stream, entry.event) for entry in store.entries(0, 1_000))
    assert {events[f"task:t{n}", "task.requeued"] for n in range(HOLDERS)} == {1}
    assert "in-progress" not in store.status_counts()
    store.close()


def on_nth_pass(number: int, failpoint: str, action: Callable[[], None]) -> Callable[[str], None]:
    """Do something at a certain pass of a failpoint."""
    left = number

    def on_failpoint(passed: str) -> None:
        nonlocal left
        left -= passed == failpoint
        if left == 0 and passed == failpoint:
            action()

    return on_failpoint
