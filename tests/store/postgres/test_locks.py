"""Locks: what is held while others work, what is not, and that commits become visible in order."""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import suppress

import psycopg
import pytest
from msgspec.structs import replace

from dragoman.core.commands import (
    AdoptTask,
    AnyCommand,
    ClaimTask,
    CreateTask,
    StartWave,
)
from dragoman.core.errors import StoreConflict
from dragoman.core.events import WaveBead
from dragoman.engine.ports import Changes, Row, Session
from dragoman.engine.snapshots import Cache
from dragoman.engine.view import View
from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.session import NUMBERS_AT_ONCE, PostgresSession
from dragoman.system.clock import HandClock
from dragoman.system.ids import new_id
from dragoman.text.words import Term
from tests.conformance.store.changes import a_row, an_entry, begin_stream
from tests.conformance.store.hubs import ALICE, ANN, BOB, NOW, Hub
from tests.conformance.store.threads import A_WHILE, PATIENCE, begin
from tests.core.handoffs import offer
from tests.requirements import proves
from tests.store.postgres.conftest import Admin
from tests.store.postgres.gate import append, open_gate, shut_gate, wait_until_it_waits

pytestmark = proves("STORE-CONTRACT")


@pytest.fixture
def other(postgres_url: str, store: PostgresStore) -> Generator[PostgresStore]:
    """A second store on the same schema; the first one has made the tables."""
    other = PostgresStore.open(postgres_url, new_id)
    yield other
    other.close()


@proves("STORE-LATE-COMMIT")
def test_the_ledger_is_not_locked_before_the_commit_is_sent(
    admin: Admin, store: PostgresStore
) -> None:
    number = begin_stream(store, "task:a")

    def work(session: Session) -> None:
        session.streams(["task:a"])
        session.last_number("2026-02-09")
        changes = Changes([an_entry(number, 2)], [a_row(number, "task:a", 2)])
        session.write(replace(changes, listed=[("in:bob", number)], unlisted=[("new", number)]))
        # A hub that is stopped here keeps nobody else from writing other streams.
        admin.execute("BEGIN")
        assert admin.execute("SELECT position FROM head FOR UPDATE NOWAIT").fetchall() == [(1,)]
        admin.execute("ROLLBACK")

    store.transact(work)

    assert store.head() == 2
    assert store.places(("", 0), 9) == [("in:bob", 1, "task:a")]


@proves("STORE-SEARCH")
def test_words_are_indexed_and_found_while_somebody_commits(
    admin: Admin, store: PostgresStore
) -> None:
    number = begin_stream(store, "task:a")
    admin.execute("BEGIN")
    admin.execute("SELECT position FROM head FOR UPDATE")
    admin.execute("SELECT number FROM streams WHERE number = %s FOR UPDATE", (number,))

    store.index([(1, ("red",))], 1)

    assert store.indexed() == 1
    assert [found.position for found in store.search(((Term(("red",)),),), None, 9)] == [1]
    admin.execute("ROLLBACK")


@proves("STORE-LATE-COMMIT", "LEDGER-POSITION")
def test_who_has_a_position_and_has_not_committed_holds_back_those_after_it(
    admin: Admin, store: PostgresStore, other: PostgresStore
) -> None:
    slow, fast = begin_stream(store, "task:slow"), begin_stream(store, "task:fast")
    shut_gate(admin, slow)

    late = begin(lambda: append(store, slow, 2))
    wait_until_it_waits(admin, "advisory", late)
    early = begin(lambda: append(other, fast, 2))
    wait_until_it_waits(admin, "transactionid", early)

    assert [entry.position for entry in store.entries(0, 10)] == [1, 2]
    open_gate(admin)
    late.result(PATIENCE)
    early.result(PATIENCE)
    seen = [(entry.position, entry.stream) for entry in store.entries(2, 10)]
    assert seen == [(3, "task:slow"), (4, "task:fast")]


@proves("STORE-CLAIM-RACE")
def test_a_queue_gives_each_hub_other_tasks_and_keeps_nobody_waiting(
    store: PostgresStore, other: PostgresStore
) -> None:
    hub = Hub(store, HandClock(NOW))
    for name in ("a", "b", "c"):
        hub.do(ANN, CreateTask("a task", name, ready=True))
        hub.clock.advance(1)
    seen: list[list[str]] = []

    def work(session: Session) -> None:
        seen.append([key.name for key in session.ready("", None, 2)])
        seen.append(
            other.transact(lambda session: [key.name for key in session.ready("", None, 9)])
        )

    store.transact(work)

    assert seen == [["task:a", "task:b"], ["task:c"]]


@proves("RETRY-BACKOFF")
def test_a_resting_task_that_another_hub_has_is_not_promoted(
    store: PostgresStore, other: PostgresStore
) -> None:
    number = begin_stream(store, "task:a")
    begin_stream(store, "task:b")
    store_row = store.stream("task:a")
    assert store_row is not None

    def work(session: Session) -> int:
        session.streams(["task:a"])
        return other.transact(lambda session: session.promote(10**15, 100))

    assert number == store_row.number
    assert store.transact(work) == 0


@proves("NAME-AOF-ID")
def test_numbers_of_a_day_wait_for_the_hub_that_has_them(
    admin: Admin, store: PostgresStore, other: PostgresStore
) -> None:
    waiting: list[Future[int]] = []

    def work(session: Session) -> int:
        last = session.last_number("2026-02-09")
        waiting.append(
            begin(lambda: other.transact(lambda session: session.last_number("2026-02-09")))
        )
        wait_until_it_waits(admin, "transactionid", waiting[0])
        session.write(Changes(numbers={"2026-02-09": last + 1}))
        return last

    assert store.transact(work) == 0
    assert waiting[0].result(PATIENCE) == 1


def test_stream_numbers_come_from_the_server_by_the_hundred(
    admin: Admin, store: PostgresStore, other: PostgresStore
) -> None:
    numbers = [begin_stream(store, f"task:{n}") for n in range(NUMBERS_AT_ONCE + 1)]
    theirs = begin_stream(other, "task:theirs")

    assert numbers == list(range(1, NUMBERS_AT_ONCE + 2))
    assert theirs == 2 * NUMBERS_AT_ONCE + 1
    step = admin.execute(
        "SELECT seqincrement FROM pg_sequence WHERE seqrelid = %s::regclass", ("stream_numbers",)
    )
    assert step.fetchall() == [(NUMBERS_AT_ONCE,)]


@proves("STORE-ATOMIC")
def test_prepared_statements_outlive_a_rollback(store: PostgresStore) -> None:
    number = begin_stream(store, "task:a")
    for version in (2, 3, 4):
        with pytest.raises(ZeroDivisionError):
            store.transact(lambda session: [session.streams(["task:a"]), 1 // 0])
        append(store, number, version)

    assert store.head() == 4


@proves("STORE-ATOMIC")
def test_a_transaction_in_which_a_statement_failed_is_never_taken_for_committed(
    store: PostgresStore,
) -> None:
    number = begin_stream(store, "task:a")

    def work(session: Session) -> str:
        with suppress(psycopg.Error):
            session.streams(["task:\0"])
        return "as if nothing had happened"

    with pytest.raises(StoreConflict, match="nothing was written"):
        store.transact(work)

    append(store, number, 2)


@proves("ENGINE-BATCH-POISON")
def test_a_text_that_postgresql_cannot_keep_fails_alone(store: PostgresStore) -> None:
    number = begin_stream(store, "task:a")

    with pytest.raises(Exception, match="0x00"):
        store.transact(lambda session: session.write(Changes(names=[("a\0b", "k", number)])))

    append(store, number, 2)
    assert store.names(("", ""), 10) == []


@proves("TASK-PRIORITY")
def test_a_batch_of_claims_reads_ahead_in_the_queue(store: PostgresStore) -> None:
    hub = Hub(store, HandClock(NOW))
    names = [f"t{n:02d}" for n in range(20)]
    for name in names:
        hub.do(ANN, CreateTask("a task", name, ready=True))
        hub.clock.advance(1)

    receipts = hub.ask(ALICE, *(ClaimTask("", "alice") for _ in range(10)))
    others = hub.ask(BOB, *(ClaimTask("", "bob") for _ in range(10)))

    assert [receipt.task for receipt in getattr(receipts, "receipts", ())] == names[:10]
    assert [receipt.task for receipt in getattr(others, "receipts", ())] == names[10:]


def test_the_wait_for_a_lock_is_the_servers_and_ends_with_it(
    admin: Admin, store: PostgresStore
) -> None:
    begin_stream(store, "task:a")
    admin.execute("BEGIN")
    admin.execute("SELECT 1 FROM streams FOR UPDATE")
    waiting = begin(lambda: store.transact(lambda session: session.streams(["task:a"])))

    with pytest.raises(TimeoutError):
        waiting.result(A_WHILE)
    admin.execute("COMMIT")

    assert [row.name for row in waiting.result(PATIENCE)] == ["task:a"]
    with pytest.raises(psycopg.errors.NoActiveSqlTransaction):
        admin.execute("SAVEPOINT none_is_open")


def test_what_is_made_while_it_is_looked_for_is_read_anew(
    store: PostgresStore, other: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rival, read = Hub(store, HandClock(NOW)), PostgresSession.streams
    late = [AdoptTask("bead", "T")]

    def streams(session: PostgresSession, names: Sequence[str]) -> list[Row]:
        """As they are, just before another hub makes a task that was not among them."""
        rows = read(session, names)
        if late and "task:T" in names:
            rival.do(ANN, late.pop())
        return rows

    monkeypatch.setattr(PostgresSession, "streams", streams)
    assert Hub(other, HandClock(NOW)).do(BOB, AdoptTask("bead", "T")).task == "T"


SIGHTS: dict[str, tuple[str, AnyCommand, Callable[[View], object]]] = {
    "by another name": ("task:T", AdoptTask("bead", "T"), lambda view: view.task("bead:T")),
    "in a queue": (
        "task:T",
        AdoptTask("bead", "T"),
        lambda view: view.next_ready(("",), NOW, lambda _: True),
    ),
    "in hand": (
        "task:T",
        AdoptTask("bead", "T", claim_for="bob", session="s"),
        lambda view: view.held("s", "bob"),
    ),
    "on a list": ("wave:W", StartWave((WaveBead("T"),), 1, "W"), lambda view: view.open_waves()),
    "by its task": ("handoff:H", offer(), lambda view: view.task("T")),
}


@pytest.mark.parametrize(("stream", "made", "look"), SIGHTS.values(), ids=list(SIGHTS))
def test_no_view_is_of_two_moments(
    store: PostgresStore,
    other: PostgresStore,
    stream: str,
    made: AnyCommand,
    look: Callable[[View], object],
) -> None:
    rival = Hub(store, HandClock(NOW))
    if stream != "task:T":
        rival.do(ANN, CreateTask("T", "T", ready=True))

    def work(session: Session) -> None:
        view = View(session, Cache(), NOW, b"secret")
        view.load_streams((stream,))
        rival.do(ANN, made)
        look(view)

    with pytest.raises(StoreConflict, match=f"begun {stream} after it was looked for"):
        other.transact(work)
