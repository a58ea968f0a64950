"""Locks: held and not held during concurrent work; commits become visible in order."""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import suppress

import psycopg
import pytest
from msgspec.structs import replace

from dragoman.core.attempt import ClaimTask
from dragoman.core.base import Command
from dragoman.core.errors import StoreConflict
from dragoman.core.task_state import AdoptTask, CreateTask
from dragoman.core.wave import StartWave, WaveBead
from dragoman.engine.batch_reads import BatchReads, StreamCache
from dragoman.engine.ports import Changes, StreamRow, Transaction
from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.transaction import NUMBERS_PER_RESERVATION, PostgresTransaction
from dragoman.system.clock import ManualClock, new_id
from dragoman.text.search_terms import SearchTerm
from tests.conformance.store.changes import begin_stream, make_entry, make_row
from tests.conformance.store.hubs import ALICE, ANN, BOB, NOW, Hub
from tests.conformance.store.threads import BLOCKED_AFTER_S, TIMEOUT_S, start_thread
from tests.core.handoffs import offer
from tests.requirements import proves
from tests.store.postgres.commit_lock import (
    append,
    block_commits,
    unblock_commits,
    wait_until_blocked,
)
from tests.store.postgres.conftest import Admin

pytestmark = proves("STORE-CONTRACT")


@pytest.fixture
def other(postgres_url: str, store: PostgresStore) -> Generator[PostgresStore]:
    """Second store on the same schema; the first one has created the tables."""
    other = PostgresStore.open(postgres_url, new_id)
    yield other
    other.close()


@proves("STORE-LATE-COMMIT")
def test_ledger_is_not_locked_before_the_commit_is_sent(admin: Admin, store: PostgresStore) -> None:
    number = begin_stream(store, "task:a")

    def work(session: Transaction) -> None:
        session.streams(["task:a"])
        session.last_number("2026-02-09")
        changes = Changes([make_entry(number, 2)], [make_row(number, "task:a", 2)])
        session.write(
            replace(changes, list_additions=[("in:bob", number)], list_removals=[("new", number)])
        )
        # A hub that is stopped here keeps no other hub from writing other streams.
        admin.execute("BEGIN")
        assert admin.execute("SELECT position FROM head FOR UPDATE NOWAIT").fetchall() == [(1,)]
        admin.execute("ROLLBACK")

    store.transact(work)

    assert store.head() == 2
    assert store.list_items(("", 0), 9) == [("in:bob", 1, "task:a")]


@proves("STORE-SEARCH")
def test_words_are_indexed_and_found_during_a_commit(admin: Admin, store: PostgresStore) -> None:
    number = begin_stream(store, "task:a")
    admin.execute("BEGIN")
    admin.execute("SELECT position FROM head FOR UPDATE")
    admin.execute("SELECT number FROM streams WHERE number = %s FOR UPDATE", (number,))

    store.index_texts([(1, ("red",))], 1)

    assert store.indexed_position() == 1
    assert [found.position for found in store.search(((SearchTerm(("red",)),),), None, 9)] == [1]
    admin.execute("ROLLBACK")


@proves("STORE-LATE-COMMIT", "LEDGER-POSITION")
def test_uncommitted_position_holds_back_later_ones(
    admin: Admin, store: PostgresStore, other: PostgresStore
) -> None:
    slow, fast = begin_stream(store, "task:slow"), begin_stream(store, "task:fast")
    block_commits(admin, slow)

    late = start_thread(lambda: append(store, slow, 2))
    wait_until_blocked(admin, "advisory", late)
    early = start_thread(lambda: append(other, fast, 2))
    wait_until_blocked(admin, "transactionid", early)

    assert [entry.position for entry in store.entries(0, 10)] == [1, 2]
    unblock_commits(admin)
    late.result(TIMEOUT_S)
    early.result(TIMEOUT_S)
    seen = [(entry.position, entry.stream) for entry in store.entries(2, 10)]
    assert seen == [(3, "task:slow"), (4, "task:fast")]


@proves("STORE-CLAIM-RACE")
def test_queue_gives_each_hub_other_tasks_without_waiting(
    store: PostgresStore, other: PostgresStore
) -> None:
    hub = Hub(store, ManualClock(NOW))
    for name in ("a", "b", "c"):
        hub.do(ANN, CreateTask("a task", name, ready=True))
        hub.clock.advance(1)
    seen: list[list[str]] = []

    def work(session: Transaction) -> None:
        seen.append([key.name for key in session.ready_page("", None, 2)])
        seen.append(
            other.transact(lambda session: [key.name for key in session.ready_page("", None, 9)])
        )

    store.transact(work)

    assert seen == [["task:a", "task:b"], ["task:c"]]


@proves("RETRY-BACKOFF")
def test_delayed_task_locked_by_another_hub_is_not_promoted(
    store: PostgresStore, other: PostgresStore
) -> None:
    number = begin_stream(store, "task:a")
    begin_stream(store, "task:b")
    store_row = store.stream("task:a")
    assert store_row is not None

    def work(session: Transaction) -> int:
        session.streams(["task:a"])
        return other.transact(lambda session: session.promote_due(10**15, 100))

    assert number == store_row.number
    assert store.transact(work) == 0


@proves("NAME-AOF-ID")
def test_daily_numbers_wait_for_the_hub_that_holds_them(
    admin: Admin, store: PostgresStore, other: PostgresStore
) -> None:
    waiting: list[Future[int]] = []

    def work(session: Transaction) -> int:
        last = session.last_number("2026-02-09")
        waiting.append(
            start_thread(lambda: other.transact(lambda session: session.last_number("2026-02-09")))
        )
        wait_until_blocked(admin, "transactionid", waiting[0])
        session.write(Changes(daily_numbers={"2026-02-09": last + 1}))
        return last

    assert store.transact(work) == 0
    assert waiting[0].result(TIMEOUT_S) == 1


def test_stream_numbers_are_reserved_by_the_hundred(
    admin: Admin, store: PostgresStore, other: PostgresStore
) -> None:
    numbers = [begin_stream(store, f"task:{n}") for n in range(NUMBERS_PER_RESERVATION + 1)]
    theirs = begin_stream(other, "task:theirs")

    assert numbers == list(range(1, NUMBERS_PER_RESERVATION + 2))
    assert theirs == 2 * NUMBERS_PER_RESERVATION + 1
    step = admin.execute(
        "SELECT seqincrement FROM pg_sequence WHERE seqrelid = %s::regclass", ("stream_numbers",)
    )
    assert step.fetchall() == [(NUMBERS_PER_RESERVATION,)]


@proves("STORE-ATOMIC")
def test_prepared_statements_survive_a_rollback(store: PostgresStore) -> None:
    number = begin_stream(store, "task:a")
    for version in (2, 3, 4):
        with pytest.raises(ZeroDivisionError):
            store.transact(lambda session: [session.streams(["task:a"]), 1 // 0])
        append(store, number, version)

    assert store.head() == 4


@proves("STORE-ATOMIC")
def test_transaction_with_a_failed_statement_is_never_committed(
    store: PostgresStore,
) -> None:
    number = begin_stream(store, "task:a")

    def work(session: Transaction) -> str:
        with suppress(psycopg.Error):
            session.streams(["task:\0"])
        return "as if nothing had happened"

    with pytest.raises(StoreConflict, match="nothing was written"):
        store.transact(work)

    append(store, number, 2)


@proves("ENGINE-BATCH-POISON")
def test_text_that_postgresql_cannot_store_fails_alone(store: PostgresStore) -> None:
    number = begin_stream(store, "task:a")

    with pytest.raises(Exception, match="0x00"):
        store.transact(lambda session: session.write(Changes(aliases=[("a\0b", "k", number)])))

    append(store, number, 2)
    assert store.aliases(("", ""), 10) == []


@proves("TASK-PRIORITY")
def test_batch_of_claims_reads_ahead_in_the_queue(store: PostgresStore) -> None:
    hub = Hub(store, ManualClock(NOW))
    names = [f"t{n:02d}" for n in range(20)]
    for name in names:
        hub.do(ANN, CreateTask("a task", name, ready=True))
        hub.clock.advance(1)

    receipts = hub.ask(ALICE, *(ClaimTask("", "alice") for _ in range(10)))
    others = hub.ask(BOB, *(ClaimTask("", "bob") for _ in range(10)))

    assert [receipt.task for receipt in getattr(receipts, "receipts", ())] == names[:10]
    assert [receipt.task for receipt in getattr(others, "receipts", ())] == names[10:]


def test_lock_wait_happens_on_the_server_and_ends_with_the_lock(
    admin: Admin, store: PostgresStore
) -> None:
    begin_stream(store, "task:a")
    admin.execute("BEGIN")
    admin.execute("SELECT 1 FROM streams FOR UPDATE")
    waiting = start_thread(lambda: store.transact(lambda session: session.streams(["task:a"])))

    with pytest.raises(TimeoutError):
        waiting.result(BLOCKED_AFTER_S)
    admin.execute("COMMIT")

    assert [row.name for row in waiting.result(TIMEOUT_S)] == ["task:a"]
    with pytest.raises(psycopg.errors.NoActiveSqlTransaction):
        admin.execute("SAVEPOINT none_is_open")


def test_stream_created_during_a_lookup_is_read_again(
    store: PostgresStore, other: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rival, read = Hub(store, ManualClock(NOW)), PostgresTransaction.streams
    late = [AdoptTask("bead", "T")]

    def streams(session: PostgresTransaction, names: Sequence[str]) -> list[StreamRow]:
        """Read rows, right before another hub creates a missing task."""
        rows = read(session, names)
        if late and "task:T" in names:
            rival.do(ANN, late.pop())
        return rows

    monkeypatch.setattr(PostgresTransaction, "streams", streams)
    assert Hub(other, ManualClock(NOW)).do(BOB, AdoptTask("bead", "T")).task == "T"


LOOKUPS: dict[str, tuple[str, Command, Callable[[BatchReads], object]]] = {
    "by alias": ("task:T", AdoptTask("bead", "T"), lambda view: view.task("bead:T")),
    "in a queue": (
        "task:T",
        AdoptTask("bead", "T"),
        lambda view: view.next_ready(("",), NOW, lambda _: True),
    ),
    "held in a session": (
        "task:T",
        AdoptTask("bead", "T", claim_for="bob", session="s"),
        lambda view: view.held("s", "bob"),
    ),
    "on a list": ("wave:W", StartWave((WaveBead("T"),), 1, "W"), lambda view: view.open_waves()),
    "by task": ("handoff:H", offer(), lambda view: view.task("T")),
}


@pytest.mark.parametrize(("stream", "command", "read"), LOOKUPS.values(), ids=list(LOOKUPS))
def test_view_of_two_moments_is_a_conflict(
    store: PostgresStore,
    other: PostgresStore,
    stream: str,
    command: Command,
    read: Callable[[BatchReads], object],
) -> None:
    rival = Hub(store, ManualClock(NOW))
    if stream != "task:T":
        rival.do(ANN, CreateTask("T", "T", ready=True))

    def work(session: Transaction) -> None:
        view = BatchReads(session, StreamCache(), NOW, b"secret")
        view.load_streams((stream,))
        rival.do(ANN, command)
        read(view)

    with pytest.raises(StoreConflict, match=f"created {stream} after it was looked up"):
        other.transact(work)
