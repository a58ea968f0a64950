"""Failures of the server and the network: mapped errors, atomicity and recovery."""

import threading

import pytest
from msgspec.structs import replace

from dragoman.core.errors import (
    StoreConflict,
    StoreCorrupt,
    StoreError,
    StoreLost,
    StoreUnavailable,
)
from dragoman.core.task_state import CreateTask, NoteTask
from dragoman.engine.ports import Changes, IdempotencyRecord, Transaction
from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.connect import parse_url
from dragoman.store.postgres.store import MAX_READERS
from dragoman.system.clock import ManualClock, new_id
from tests.conformance.store.changes import begin_stream, write
from tests.conformance.store.hubs import ANN, NOW, Hub
from tests.conformance.store.threads import TIMEOUT_S, run_concurrently, start_thread
from tests.faults.postgres.proxy import Cut, CutAfter, proxy_url, run_proxy
from tests.requirements import proves
from tests.servers import running_postgres
from tests.store.postgres.conftest import Admin

pytestmark = proves("STORE-CONTRACT", "STORE-ATOMIC")

CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'dragoman'"

KILL_ALL_OTHERS = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE application_name = 'dragoman' AND pid <> pg_backend_pid()
"""


def kill_connections(admin: Admin) -> None:
    """Terminate every connection of every store, and wait for their end."""
    admin.execute(KILL_ALL_OTHERS)


def fail_with(admin: Admin, state: str) -> None:
    """Make the server fail with this SQLSTATE when an idempotency answer is written."""
    admin.execute(
        f"""
        CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'as the test wants it' USING ERRCODE = '{state}'; END $$;
        CREATE TRIGGER fail BEFORE INSERT ON answers EXECUTE FUNCTION fail();
        """.encode()
    )


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ("23505", StoreConflict),
        ("40001", StoreConflict),
        ("40P01", StoreConflict),
        ("55P03", StoreConflict),
        ("53100", StoreUnavailable),
        ("53200", StoreUnavailable),
        ("25006", StoreUnavailable),
        ("42501", StoreUnavailable),
        ("22021", StoreUnavailable),
        ("42P01", StoreCorrupt),
        ("XX001", StoreCorrupt),
        ("57P01", StoreLost),
    ],
)
def test_server_error_is_mapped_and_nothing_is_written(
    admin: Admin, store: PostgresStore, state: str, error: type[StoreError]
) -> None:
    number = begin_stream(store, "task:a")
    fail_with(admin, state)

    with pytest.raises(StoreError, match="as the test wants it") as caught:
        write(
            store,
            Changes(
                aliases=[("n", "k", number)], answers=[IdempotencyRecord(number, "k", b"", b"")]
            ),
        )

    assert type(caught.value) is error
    assert store.find_aliases("n") == []
    assert begin_stream(store, "task:b") != number


def test_deadlock_is_a_conflict(store: PostgresStore, postgres_url: str) -> None:
    other = PostgresStore.open(postgres_url, new_id)
    for name in ("task:a", "task:b"):
        begin_stream(store, name)
    both_have_one = threading.Barrier(2)

    def lock(store: PostgresStore, first: str, second: str) -> str:
        def work(session: Transaction) -> str:
            session.streams([first])
            both_have_one.wait(TIMEOUT_S)
            session.streams([second])
            return "done"

        try:
            return store.transact(work)
        except StoreConflict:
            return "conflict"

    waiting = start_thread(lambda: lock(other, "task:b", "task:a"))
    outcomes = [lock(store, "task:a", "task:b"), waiting.result(TIMEOUT_S)]
    other.close()

    assert sorted(outcomes) == ["conflict", "done"]


def test_connection_lost_before_the_commit_is_reported_and_replaced(
    admin: Admin, store: PostgresStore
) -> None:
    number = begin_stream(store, "task:a")

    def work(session: Transaction) -> None:
        session.streams(["task:a"])
        session.write(Changes(aliases=[("n", "k", number)]))
        kill_connections(admin)

    with pytest.raises(StoreLost, match="was lost"):
        store.transact(work)

    assert store.find_aliases("n") == []
    assert begin_stream(store, "task:b") > 0


def test_idle_transaction_is_ended_by_the_server(admin: Admin, postgres_url: str) -> None:
    store = PostgresStore.open(postgres_url, new_id, idle_timeout_ms=500)
    begin_stream(store, "task:a")

    def work(session: Transaction) -> None:
        session.streams(["task:a"])
        while admin.execute(CONNECTIONS).fetchone() != (0,):
            admin.execute("SELECT pg_stat_clear_snapshot()")
        session.streams(["task:a"])

    with pytest.raises(StoreLost, match=r"timeout|closed the connection"):
        store.transact(work)

    assert begin_stream(store, "task:b") > 0
    store.close()


def test_many_readers_share_a_few_connections(admin: Admin, store: PostgresStore) -> None:
    begin_stream(store, "task:a")

    heads = run_concurrently([store.head] * 3 * MAX_READERS)

    assert set(heads) == {1}
    (connections,) = admin.execute(CONNECTIONS).fetchone() or (0,)
    assert connections in range(2, MAX_READERS + 2)


def test_readers_retry_after_their_connections_broke(admin: Admin, store: PostgresStore) -> None:
    begin_stream(store, "task:a")
    assert store.head() == 1

    kill_connections(admin)

    assert store.head() == 1


@proves("ENGINE-HANDLE")
def test_engine_continues_after_connections_broke(admin: Admin, store: PostgresStore) -> None:
    hub = Hub(store, ManualClock(NOW))
    hub.do(ANN, CreateTask("a task", "a"))
    failpoints: list[str] = []

    def break_once(failpoint: str) -> None:
        if failpoint == "written" and not failpoints:
            failpoints.append(failpoint)
            kill_connections(admin)

    hub.on_failpoint = break_once
    hub.do(ANN, NoteTask("a", "in spite of all"))
    hub.do(ANN, NoteTask("a", "and on"))

    assert failpoints == ["written"]
    assert [entry.version for entry in store.history("task:a", 0, 10)] == [1, 2, 3]


@proves("IDEM-REPEAT")
def test_commit_with_a_lost_answer_is_found_and_not_repeated(
    postgres_server: str, store: PostgresStore, schema: str
) -> None:
    hang_up = Cut("close", since="commit", flow="answered", offset=0)
    with run_proxy(postgres_server, iter([hang_up])) as proxy:
        cut_off = PostgresStore(parse_url(proxy_url(proxy, schema)))
        receipt = Hub(cut_off, ManualClock(NOW)).do(ANN, CreateTask("a task", "a"))
        cut_off.close()

    assert proxy.made == [hang_up]
    assert (receipt.task, receipt.status) == ("a", "backlog")
    assert [entry.version for entry in store.history("task:a", 0, 10)] == [1]


@proves("PG-CUTS")
@pytest.mark.parametrize(("since", "offset"), [("begin", 200), ("commit", 0)])
def test_unresponsive_server_times_out(
    postgres_server: str, store: PostgresStore, schema: str, since: CutAfter, offset: int
) -> None:
    stall = Cut("stall", since, flow="asked", offset=offset)
    with run_proxy(postgres_server, iter([stall])) as proxy:
        address = replace(parse_url(proxy_url(proxy, schema)), idle_timeout_ms=200)
        stalled = PostgresStore(address)
        waiting = start_thread(lambda: begin_stream(stalled, "task:a"))
        with pytest.raises(StoreUnavailable, match="timeout"):
            waiting.result(TIMEOUT_S)

        assert begin_stream(stalled, "task:b") > 0
        stalled.close()

    assert [entry.stream for entry in store.entries(0, 10)] == ["task:b"]


def test_closed_store_refuses_use(postgres_url: str) -> None:
    store = PostgresStore.open(postgres_url, new_id)
    store.head()
    store.close()
    store.close()

    with pytest.raises(StoreUnavailable, match="was closed"):
        store.head()
    with pytest.raises(StoreUnavailable, match="was closed"):
        begin_stream(store, "task:a")


def test_stopped_server_is_unavailable_and_then_no_longer_lost(postgres_url: str) -> None:
    with running_postgres() as url:
        store = PostgresStore.open(f"{url}&schema=hub", new_id)
        begin_stream(store, "task:a")
    assert url != postgres_url

    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        store.head()
    with pytest.raises(StoreLost):
        begin_stream(store, "task:b")
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        begin_stream(store, "task:b")
    store.close()
