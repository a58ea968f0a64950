"""Mutant stores: each is detected by the checks."""

import pytest
from msgspec.structs import replace

from dragoman.core.task_state import CreateTask
from dragoman.engine.ports import Store
from dragoman.engine.subscribe import follow
from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.connect import Address, parse_url
from dragoman.system.clock import ManualClock
from tests.conformance.store.changes import begin_stream
from tests.conformance.store.hubs import ANN, NOW, Hub
from tests.conformance.store.tails import Seen, reading_errors
from tests.conformance.store.threads import TIMEOUT_S, start_thread
from tests.faults.postgres.mutants import PLAIN_SEQUENCE, WITHOUT_ANSWERS, Mutant
from tests.faults.postgres.proxy import plan_cuts, proxy_url, run_proxy
from tests.faults.postgres.workload import BOARD, Workload, find_violations
from tests.requirements import proves
from tests.store.postgres.commit_lock import (
    append,
    block_commits,
    unblock_commits,
    wait_until_blocked,
)
from tests.store.postgres.conftest import Admin

pytestmark = proves("PG-TEETH")


@pytest.fixture
def address(store: PostgresStore, postgres_url: str) -> Address:
    """Address of a schema that has its tables."""
    return parse_url(postgres_url)


def test_store_without_answers_is_detected(
    postgres_server: str, store: PostgresStore, schema: str
) -> None:
    Hub(store, ManualClock(NOW)).do(ANN, CreateTask("for everyone", BOARD))
    with run_proxy(postgres_server, plan_cuts(seed=1)) as proxy:
        proxied = replace(parse_url(proxy_url(proxy, schema)), idle_timeout_ms=2_000)
        mutant = Mutant(proxied, WITHOUT_ANSWERS)
        workload = Workload(mutant)
        workload.run(4, lambda: len(proxy.made) >= 30)
        mutant.close()

    assert [fault for fault in find_violations(store, workload) if "is there 2 times" in fault]


def read_on(store: Store, seen: list[Seen]) -> None:
    """Read to the end, from the last one seen on."""
    after = seen[-1][0] if seen else 0
    new = follow(store.entries, after, lambda: False)
    seen += [(entry.position, entry.stream, entry.version) for entry in new]


def late_commit(
    admin: Admin, reader: Store, late: PostgresStore, early: PostgresStore
) -> list[str]:
    """Let one hub take positions and commit late, another commit first, and a reader read on."""
    slow, fast = begin_stream(late, "task:slow"), begin_stream(late, "task:fast")
    seen: list[Seen] = []
    read_on(reader, seen)
    block_commits(admin, slow)
    first = start_thread(lambda: append(late, slow, 2))
    wait_until_blocked(admin, "advisory", first)
    second = start_thread(lambda: append(early, fast, 2))
    wait_until_blocked(admin, "transactionid", second)
    read_on(reader, seen)
    unblock_commits(admin)
    for commit in (first, second):
        commit.result(TIMEOUT_S)
    read_on(reader, seen)
    return list(reading_errors(seen, reader))


@proves("STORE-LATE-COMMIT")
def test_reader_misses_no_late_commit(admin: Admin, store: PostgresStore, address: Address) -> None:
    late, early = PostgresStore(address), PostgresStore(address)

    assert late_commit(admin, store, late, early) == []

    late.close()
    early.close()


def test_store_with_plain_sequence_is_detected(
    admin: Admin, store: PostgresStore, address: Address
) -> None:
    admin.execute("CREATE SEQUENCE positions")
    late, early = Mutant(address, PLAIN_SEQUENCE), Mutant(address, PLAIN_SEQUENCE)

    assert late_commit(admin, store, late, early) == ["missed (3, 'task:slow', 2)"]

    late.close()
    early.close()
