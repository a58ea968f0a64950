"""Appending: positions, versions and keys; atomic, and invisible before the commit."""

import pytest

from dragoman.core.errors import StoreConflict
from dragoman.engine.ports import (
    Changes,
    IdempotencyRecord,
    NewEntry,
    Store,
    StreamRow,
    Transaction,
)
from dragoman.ledger.stream_state import IndexRow
from tests.conformance.store.changes import (
    EMPTY,
    begin_stream,
    everything,
    make_entry,
    make_lease,
    make_row,
    write,
)
from tests.conformance.store.conftest import OpenStore
from tests.conformance.store.storages import Storage
from tests.requirements import proves

pytestmark = proves("STORE-CONTRACT")


class Interrupted(Exception):
    """Error that a test raises inside a transaction."""


def test_empty_store_has_nothing(store: Store) -> None:
    assert everything(store) == EMPTY
    assert store.stream("task:a") is None
    assert store.history("task:a", 0, 10) == []
    assert store.find_aliases("a") == []
    assert store.expired_leases(10**15, 10) == []
    assert store.streams_in_session("s") == []


@proves("LEDGER-POSITION")
def test_positions_are_gapless_and_in_order_of_the_changes(store: Store) -> None:
    first, second = begin_stream(store, "task:a"), begin_stream(store, "task:b")
    entries = [
        make_entry(second, 2),
        make_entry(first, 2),
        make_entry(second, 3),
        make_entry(first, 3),
    ]

    write(store, Changes(entries=entries))

    found = store.entries(0, 10)
    assert [entry.position for entry in found] == [1, 2, 3, 4, 5, 6]
    assert [(entry.stream, entry.version) for entry in found] == [
        ("task:a", 1),
        ("task:b", 1),
        ("task:b", 2),
        ("task:a", 2),
        ("task:b", 3),
        ("task:a", 3),
    ]
    assert [entry.line for entry in found[2:]] == [entry.line for entry in entries]
    assert store.head() == 6


def test_every_byte_is_read_back(store: Store) -> None:
    number = begin_stream(store, "task:a")
    line, state = bytes(range(256)) * 4_000, bytes(range(255, -1, -1)) * 4_000
    entry = NewEntry(number, 2, "test.happened", line, b"\0" * 32, b"\xff" * 32)
    index_row = IndexRow("ready", "", 3, -1, 2**53, "alice")
    row = StreamRow(number, "task:a", 2, b"\x80" * 32, 7, state, make_lease(), index_row)

    write(store, Changes(entries=[entry], streams=[row], leases=[(number, row.lease)]))

    (found,) = store.history("task:a", 1, 10)
    assert (found.line, found.previous, found.hash) == (line, b"\0" * 32, b"\xff" * 32)
    assert store.stream("task:a") == row
    assert store.transact(lambda session: session.streams(["task:a"])) == [row]


@proves("STORE-ATOMIC", "STORE-INTERLEAVE")
@pytest.mark.parametrize("version", [1, 3], ids=["too low", "too high"])
def test_entry_at_the_wrong_version_is_a_conflict_and_changes_nothing(
    store: Store, version: int
) -> None:
    number = begin_stream(store, "task:a")
    before = everything(store)
    changes = Changes(
        entries=[make_entry(number, version)],
        streams=[make_row(number, "task:a", version, IndexRow("done"))],
        leases=[(number, make_lease())],
        aliases=[("other", "bead", number)],
        answers=[IdempotencyRecord(number, "key", b"f", b"a")],
        daily_numbers={"2026-02-09": 7},
    )

    with pytest.raises(StoreConflict):
        write(store, changes)

    assert everything(store) == before
    assert store.transact(lambda session: session.find_answers([(number, "key")])) == []
    assert store.transact(lambda session: session.last_number("2026-02-09")) == 0


@proves("STORE-ATOMIC", "NAME-ALIAS")
def test_taken_alias_is_a_conflict_and_changes_nothing(store: Store) -> None:
    first, second = begin_stream(store, "task:a"), begin_stream(store, "task:b")
    write(store, Changes(aliases=[("name", "bead", first)]))
    before = everything(store)

    with pytest.raises(StoreConflict):
        write(store, Changes([make_entry(second, 2)], aliases=[("name", "bead", second)]))

    assert everything(store) == before


@proves("NAME-ALIAS")
def test_name_may_have_several_kinds(store: Store) -> None:
    first, second = begin_stream(store, "task:a"), begin_stream(store, "task:b")

    write(store, Changes(aliases=[("name", "jira", second), ("name", "bead", first)]))

    assert store.find_aliases("name") == [("bead", "task:a"), ("jira", "task:b")]
    assert sorted(store.transact(lambda session: session.find_aliases(["name", "none"]))) == [
        ("name", "bead", "task:a"),
        ("name", "jira", "task:b"),
    ]


@proves("STORE-ATOMIC", "IDEM-SCOPE")
def test_answered_key_is_a_conflict_within_its_scope_only(store: Store) -> None:
    first, second = begin_stream(store, "task:a"), begin_stream(store, "task:b")
    answer = IdempotencyRecord(first, "schlüssel 🔑", b"\0f", b"\xffa")
    write(store, Changes(answers=[answer]))
    before = everything(store)

    with pytest.raises(StoreConflict):
        write(store, Changes([make_entry(first, 2)], answers=[answer]))

    assert everything(store) == before
    other = IdempotencyRecord(second, answer.key, b"other", b"answer")
    write(store, Changes(answers=[other]))
    requested = [(second, answer.key), (first, "unknown"), (first, answer.key)]
    found = store.transact(lambda session: session.find_answers(requested))
    assert sorted(found, key=lambda found: found.scope) == [answer, other]


@proves("NAME-AOF-ID")
def test_daily_numbers_are_kept_by_day(store: Store) -> None:
    write(store, Changes(daily_numbers={"2026-02-09": 7}))
    write(store, Changes(daily_numbers={"2026-02-09": 8, "2026-02-10": 1}))

    def last_numbers(session: Transaction) -> list[int]:
        days = ("2026-02-09", "2026-02-10", "2026-02-11")
        return [session.last_number(day) for day in days]

    assert store.transact(last_numbers) == [8, 1, 0]
    assert store.transact(last_numbers) == [8, 1, 0]


@proves("LEASE-OFF-LEDGER")
def test_lease_is_written_renewed_and_ended_without_an_entry(store: Store) -> None:
    number = begin_stream(store, "task:a")

    for lease in (make_lease(), make_lease("bob", 2, "s-2", 10), None, None):
        write(store, Changes(leases=[(number, lease)]))

        row = store.stream("task:a")
        assert row is not None
        assert row.lease == lease
        assert store.transact(lambda session: session.streams(["task:a"])) == [row]
    assert store.head() == 1


@proves("STORE-ATOMIC")
def test_transaction_that_fails_after_its_write_leaves_nothing(store: Store) -> None:
    def work(session: Transaction) -> None:
        number = session.new_stream_number()
        session.write(
            Changes(
                entries=[make_entry(number, 1)],
                streams=[make_row(number, "task:a")],
                leases=[(number, make_lease())],
                aliases=[("name", "bead", number)],
                answers=[IdempotencyRecord(number, "key", b"f", b"a")],
                daily_numbers={"2026-02-09": 7},
            )
        )
        raise Interrupted

    with pytest.raises(Interrupted):
        store.transact(work)

    assert everything(store) == EMPTY
    assert begin_stream(store, "task:b") > 0
    assert store.head() == 1


@proves("STORE-ATOMIC")
def test_read_only_transaction_leaves_the_store_usable(store: Store) -> None:
    def only_read(session: Transaction) -> int:
        session.streams(["task:a"])
        return session.last_number("2026-02-09")

    assert store.transact(only_read) == 0
    assert store.transact(lambda _: "nothing at all") == "nothing at all"
    assert everything(store) == EMPTY


def test_existing_streams_are_returned_and_missing_ones_omitted(store: Store) -> None:
    for name in ("task:a", "task:b", "task:c"):
        begin_stream(store, name)

    def work(session: Transaction) -> list[str]:
        requested = ["task:c", "task:none", "task:a"]
        return [row.name for row in session.streams(requested)]

    assert sorted(store.transact(work)) == ["task:a", "task:c"]
    assert store.transact(lambda session: session.streams([])) == []


@proves("STORE-ATOMIC")
def test_readers_see_only_committed_data(open_store: OpenStore) -> None:
    writer, reader = open_store(), open_store()
    number = begin_stream(writer, "task:a")
    before = everything(reader)
    seen: list[object] = []

    def work(session: Transaction) -> None:
        session.write(
            Changes(
                [make_entry(number, 2)],
                [make_row(number, "task:a", 2)],
                aliases=[("n", "k", number)],
            )
        )
        seen.append(everything(reader))

    writer.transact(work)

    assert seen == [before]
    assert everything(reader) == everything(writer) != before


def test_second_opening_finds_the_same_ledger(open_store: OpenStore) -> None:
    first = open_store()
    begin_stream(first, "task:a")
    second = open_store()

    assert second.ledger_id() == first.ledger_id() != ""
    assert everything(second) == everything(first)


def test_new_streams_have_unique_numbers(open_store: OpenStore) -> None:
    stores = [open_store(), open_store()]

    numbers = [begin_stream(stores[n % 2], f"task:{n}") for n in range(250)]

    assert len(set(numbers)) == 250
    assert min(numbers) > 0


@proves("STORE-INTERLEAVE")
def test_second_stream_of_the_same_name_is_a_conflict(database: Storage) -> None:
    store = database.open()
    begin_stream(store, "task:a")
    before = everything(store)

    with pytest.raises(StoreConflict):
        begin_stream(store, "task:a")

    assert everything(store) == before
