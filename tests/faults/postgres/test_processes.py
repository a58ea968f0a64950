"""Several hub processes on one PostgreSQL: competing, stopped, and with a reader beside them."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from dragoman.core.attempt import ClaimTask, ExpireLease
from dragoman.core.backoff import Backoff
from dragoman.core.task_state import CreateTask, NoteTask
from dragoman.engine.verify import check_ledger, check_stored_states
from dragoman.store.postgres import PostgresStore
from dragoman.system.clock import ManualClock
from tests.conformance.store.hubs import ALICE, ANN, BOB, HUB, NOW, Hub
from tests.conformance.store.tails import Tail, reading_errors
from tests.conformance.store.threads import TIMEOUT_S
from tests.faults.postgres.workload import BOARD
from tests.requirements import proves
from tests.store.postgres.conftest import Admin

ROOT = Path(__file__).parents[3]
HUBS = 4
TASKS = 24
SEED = 3570
LATER = 10**7
"""Milliseconds after which every lease has ended."""

IDLE_IN_TRANSACTION = """
SELECT count(*) FROM pg_stat_activity
WHERE application_name = 'dragoman' AND state = 'idle in transaction'
"""


@proves("PG-PROCESSES", "STORE-CLAIM-RACE", "STORE-LATE-COMMIT", "LEDGER-POSITION")
def test_competing_hubs_claim_each_task_once(store: PostgresStore, postgres_url: str) -> None:
    """The incident gastownhall/beads#3570, with processes."""
    hub = Hub(store, ManualClock(NOW))
    hub.do(ANN, CreateTask("for everyone", BOARD))
    tasks = [f"t{n}" for n in range(TASKS)]
    for task in tasks:
        hub.do(ANN, CreateTask("a task", task, ready=True))
    tail = Tail(store)

    command = [sys.executable, "-m", "tests.faults.postgres.competing_hubs", postgres_url]
    done = subprocess.run(
        [*command, str(HUBS), str(SEED), *tasks],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    tail.finish()

    assert done.returncode == 0, f"seed {SEED}: {done.stderr}"
    results = [json.loads(line) for line in done.stdout.splitlines()]
    winners = {task: result["agent"] for result in results for task in result["won"]}
    assert Counter(task for result in results for task in result["won"]) == Counter(tasks)
    claims = [entry.stream for entry in store.entries(0, 10_000) if entry.event == "task.claimed"]
    assert sorted(claims) == sorted(f"task:{task}" for task in tasks)
    held = {row.name: row.lease.holder for row in store.rows(0, 1_000) if row.lease is not None}
    assert held == {f"task:{task}": winner for task, winner in winners.items()}
    assert list(reading_errors(tail.seen, store)) == []
    assert len([entry for entry in tail.seen if entry[1] == f"task:{BOARD}"]) == 1 + HUBS * TASKS
    check_sound(store)


@proves("PG-STOPPED", "STORE-CONTRACT")
def test_hub_stopped_in_transaction_loses_its_lock(
    admin: Admin, store: PostgresStore, postgres_url: str
) -> None:
    hub = Hub(store, ManualClock(NOW))
    for task in ("held", "other"):
        hub.do(ANN, CreateTask("a task", task, ready=True))
    hub.do(ALICE, ClaimTask("held", "alice"))
    command = [sys.executable, "-m", "tests.faults.postgres.stopped_hub", postgres_url, "held"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as stopped:
        os.waitpid(stopped.pid, os.WUNTRACED)

        hub.do(BOB, ClaimTask("other", "bob"))
        assert admin.execute(IDLE_IN_TRANSACTION).fetchone() == (1,)
        # This waits until the server has released the lock.
        hub.clock.advance(LATER)
        hub.do(HUB, ExpireLease("held", Backoff(0, 0)))
        hub.do(BOB, ClaimTask("held", "bob"))
        os.kill(stopped.pid, signal.SIGCONT)
        output, _ = stopped.communicate(timeout=TIMEOUT_S)

    # It had decided before it stopped; none of that is written, and it decides again.
    assert output.split() == ["lease_lost", "done"]
    row = store.stream("task:held")
    assert row is not None
    assert row.lease is not None
    assert row.lease.holder == "bob"
    events = [entry.event for entry in store.history("task:held", 0, 100)]
    assert events.count("task.reported") == 0
    assert events.count("task.noted") == 1
    hub.do(BOB, NoteTask("held", "still mine"))
    check_sound(store)


def check_sound(store: PostgresStore) -> None:
    """Verify the ledger and its views."""
    assert list(check_ledger(store, (), lambda _: None)) == []
    assert list(check_stored_states(store, lambda _: None)) == []
