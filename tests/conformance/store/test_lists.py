"""Lists: a stream is listed at the position of its first entry, on any number of lists."""

import threading
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dragoman.core.errors import StoreConflict
from dragoman.engine.ports import Changes, ListItem, ListQuery, Store, StreamRow, Transaction
from dragoman.store.memory import MemoryStore
from dragoman.store.sql import MAX_POSITION
from tests.conformance.store.changes import begin_stream, make_entry, make_lease, make_row, write
from tests.conformance.store.conftest import OpenStore
from tests.conformance.store.storages import Storages
from tests.conformance.store.threads import TIMEOUT_S, run_concurrently, start_thread
from tests.requirements import proves

pytestmark = proves("STORE-CONTRACT", "STORE-LISTS")

STREAMS = tuple(f"mail:{n}" for n in range(5))
LISTS = ("in:bob", "in:bo", "thread:ol-527.1")
ALL = 1_000


class Interrupted(Exception):
    """Error that a test raises inside a transaction."""


def list_members(store: Store, name: str) -> list[tuple[int, str]]:
    """Read the whole list."""
    return [
        (found.position, found.row.name) for found in store.list_page(ListQuery(name, limit=ALL))
    ]


def all_list_items(store: Store) -> list[tuple[str, int, str]]:
    """Read the items of all lists."""
    return store.list_items(("", 0), ALL)


def begin_streams(store: Store, *names: str) -> list[int]:
    """Create streams of one entry each, in this order, and return their numbers."""
    return [begin_stream(store, name) for name in names]


def grow(store: Store, number: int, name: str, version: int) -> None:
    """Append one entry."""
    write(store, Changes([make_entry(number, version)], [make_row(number, name, version)]))


def test_empty_store_has_no_lists(store: Store) -> None:
    assert all_list_items(store) == []
    assert list_members(store, "in:bob") == []
    assert store.list_page(ListQuery("in:bob", before=MAX_POSITION)) == []


def test_new_stream_is_listed_at_its_first_entry(store: Store) -> None:
    begin_stream(store, "task:before")

    def work(session: Transaction) -> None:
        first, second = session.new_stream_number(), session.new_stream_number()
        session.write(
            Changes(
                entries=[make_entry(second, 1), make_entry(first, 1), make_entry(second, 2)],
                streams=[make_row(first, "mail:1"), make_row(second, "mail:2", 2)],
                list_additions=[("in:bob", first), ("in:bob", second), ("from:ann", first)],
            )
        )

    store.transact(work)

    assert list_members(store, "in:bob") == [(2, "mail:2"), (3, "mail:1")]
    assert list_members(store, "from:ann") == [(3, "mail:1")]


def test_transaction_sees_the_members_of_a_list(store: Store) -> None:
    numbers = begin_streams(store, "mail:1", "mail:2", "mail:3")
    write(store, Changes(list_additions=[("waves:open", number) for number in reversed(numbers)]))
    write(store, Changes(list_removals=[("waves:open", numbers[1])]))
    found = store.transact(lambda session: session.list_members("waves:open"))
    assert found == ["mail:1", "mail:3"]
    assert store.transact(lambda session: session.list_members("waves")) == []


def test_late_listed_stream_keeps_the_position_of_its_first_entry(store: Store) -> None:
    one, two, three = begin_streams(store, "mail:1", "mail:2", "mail:3")
    grow(store, one, "mail:1", 2)

    for number in (three, one, two):
        write(store, Changes(list_additions=[("overdue", number)]))

    assert list_members(store, "overdue") == [(1, "mail:1"), (2, "mail:2"), (3, "mail:3")]


@proves("CLI-PAGED")
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_list_is_paged_both_ways(store: Store, limit: int) -> None:
    numbers = begin_streams(store, *STREAMS)
    other = begin_stream(store, "mail:other")
    write(store, Changes(list_additions=[("in:bob", number) for number in reversed(numbers)]))
    write(store, Changes(list_additions=[("in:bo", other), ("in:bobby", other)]))

    forth = pages(store, ListQuery("in:bob", limit=limit), "after")
    back = pages(store, ListQuery("in:bob", before=MAX_POSITION, limit=limit), "before")

    assert [found.row.name for found in forth] == [*STREAMS]
    assert [found.position for found in forth] == [1, 2, 3, 4, 5]
    assert back == forth[::-1]
    between = store.list_page(ListQuery("in:bob", after=1, before=5, limit=limit))
    assert [found.position for found in between] == [4, 3, 2][:limit]


def pages(store: Store, query: ListQuery, cursor: str) -> list[ListItem]:
    """Read page after page until one is empty."""
    found: list[ListItem] = []
    while page := store.list_page(query):
        assert len(page) <= query.limit
        found += page
        query = replace(query, **{cursor: page[-1].position})
    return found


def test_page_shows_current_streams(store: Store) -> None:
    (number,) = begin_streams(store, "mail:1")
    write(store, Changes(list_additions=[("in:bob", number)]))
    grow(store, number, "mail:1", 2)
    write(store, Changes(leases=[(number, make_lease())]))

    (found,) = store.list_page(ListQuery("in:bob"))

    assert found == ListItem(1, replace(make_row(number, "mail:1", 2), lease=make_lease()))
    assert found.row == store.stream("mail:1")


def test_stream_removed_from_a_list_stays_on_the_others(store: Store) -> None:
    one, two = begin_streams(store, "mail:1", "mail:2")
    write(
        store,
        Changes(
            list_additions=[(name, n) for name in ("in:bob", "unread:bob") for n in (one, two)]
        ),
    )

    write(store, Changes([make_entry(one, 2)], list_removals=[("unread:bob", one)]))

    assert list_members(store, "unread:bob") == [(2, "mail:2")]
    assert list_members(store, "in:bob") == [(1, "mail:1"), (2, "mail:2")]
    write(store, Changes(list_removals=[("unread:bob", two)], list_additions=[("unread:bob", one)]))
    assert list_members(store, "unread:bob") == [(1, "mail:1")]


def test_repeated_list_changes_are_harmless(store: Store) -> None:
    (number,) = begin_streams(store, "mail:1")

    for _ in range(2):
        write(store, Changes(list_additions=[("in:bob", number), ("in:bob", number)]))
        assert all_list_items(store) == [("in:bob", 1, "mail:1")]
    for _ in range(2):
        write(store, Changes(list_removals=[("in:bob", number), ("nowhere", number)]))
        assert all_list_items(store) == []


def test_last_change_in_a_transaction_wins(store: Store) -> None:
    stays, goes, both = begin_streams(store, "mail:stays", "mail:goes", "mail:both")
    write(store, Changes(list_additions=[("in:bob", stays)]))

    def work(session: Transaction) -> None:
        session.write(Changes(list_removals=[("in:bob", stays)], list_additions=[("in:bob", goes)]))
        session.write(Changes(list_removals=[("in:bob", goes)], list_additions=[("in:bob", stays)]))
        session.write(Changes(list_removals=[("in:bob", both)], list_additions=[("in:bob", both)]))

    store.transact(work)

    assert list_members(store, "in:bob") == [(1, "mail:stays"), (3, "mail:both")]


def test_stream_created_and_unlisted_at_once_has_no_item(store: Store) -> None:
    def work(session: Transaction) -> None:
        number = session.new_stream_number()
        born = Changes([make_entry(number, 1)], [make_row(number, "mail:1")])
        session.write(replace(born, list_additions=[("unread:bob", number), ("in:bob", number)]))
        session.write(Changes(list_removals=[("unread:bob", number)]))

    store.transact(work)

    assert all_list_items(store) == [("in:bob", 1, "mail:1")]


def test_stream_without_entries_has_no_item(store: Store) -> None:
    def work(session: Transaction) -> int:
        number = session.new_stream_number()
        session.write(
            Changes(streams=[make_row(number, "actor:a", 0)], list_additions=[("all", number)])
        )
        return number

    number = store.transact(work)

    write(store, Changes(list_removals=[("all", number)]))
    assert all_list_items(store) == []


@proves("STORE-ATOMIC")
def test_rolled_back_list_changes_leave_nothing(store: Store) -> None:
    (number,) = begin_streams(store, "mail:1")
    write(store, Changes(list_additions=[("in:bob", number)]))
    before = all_list_items(store)
    changes = Changes(
        entries=[make_entry(number, 2)],
        streams=[make_row(number, "mail:1", 2)],
        list_additions=[("read:bob", number)],
        list_removals=[("in:bob", number)],
    )

    def fail(session: Transaction) -> None:
        session.write(changes)
        raise Interrupted

    with pytest.raises(Interrupted):
        store.transact(fail)
    with pytest.raises(StoreConflict):
        write(store, replace(changes, entries=[make_entry(number, 1)]))

    assert all_list_items(store) == before
    write(store, changes)
    assert all_list_items(store) == [("read:bob", 1, "mail:1")]


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_all_items_are_shown_in_order(store: Store, limit: int) -> None:
    numbers = begin_streams(store, "mail:1", "mail:2")
    names = ("b", "a", "a'; DROP TABLE lists; --", '"\\%_', "é", "🚀", "x" * 500, "B", "a ")
    write(store, Changes(list_additions=[(name, number) for name in names for number in numbers]))

    found: list[tuple[str, int, str]] = []
    after = ("", 0)
    while page := store.list_items(after, limit):
        found += page
        after = page[-1][:2]

    order = sorted(names, key=str.encode)
    assert found == [(name, n, f"mail:{n}") for name in order for n in (1, 2)]
    assert [list_members(store, name) for name in names] == [[(1, "mail:1"), (2, "mail:2")]] * len(
        names
    )


@proves("STORE-LATE-COMMIT")
def test_reader_continuing_from_its_position_misses_nothing(open_store: OpenStore) -> None:
    """Two concurrent writers with new streams: none is listed before the last seen position."""
    writers, reader = (open_store(), open_store()), open_store()
    is_written = threading.Event()
    seen: list[int] = []

    def tail() -> None:
        is_last = False
        while True:
            after = seen[-1] if seen else 0
            page = reader.list_page(ListQuery("in:bob", after=after, limit=7))
            seen.extend(found.position for found in page)
            if not page and is_last:
                return
            is_last = not page and is_written.wait(0.001)

    def send(store: Store, name: str) -> None:
        for n in range(20):
            store.transact(lambda session, n=n: letter(session, f"mail:{name}-{n}"))

    tailing = start_thread(tail)
    run_concurrently([lambda n=n: send(writers[n % 2], str(n)) for n in range(4)])
    is_written.set()
    tailing.result(TIMEOUT_S)

    assert len(seen) == 80
    assert seen == [found.position for found in reader.list_page(ListQuery("in:bob", limit=ALL))]
    assert seen == [entry.position for entry in reader.entries(0, ALL) if entry.version == 1]


def letter(session: Transaction, name: str) -> None:
    """Create a stream of two entries on a list."""
    number = session.new_stream_number()
    entries = [make_entry(number, 1), make_entry(number, 2)]
    session.write(
        Changes(entries, [make_row(number, name, 2)], list_additions=[("in:bob", number)])
    )


@proves("STORE-INTERLEAVE")
def test_concurrent_writers_change_lists_consistently(open_store: OpenStore) -> None:
    stores = open_store(), open_store()
    numbers = begin_streams(stores[0], *STREAMS)
    write(stores[0], Changes(list_additions=[("unread:bob", number) for number in numbers]))

    def read(store: Store, number: int, name: str, box: str) -> None:
        def work(session: Transaction) -> None:
            (row,) = session.streams([name])
            session.write(
                Changes(
                    entries=[make_entry(number, row.version + 1)],
                    streams=[replace(row, version=row.version + 1)],
                    list_removals=[("unread:bob", number)],
                    list_additions=[(box, number)],
                )
            )

        store.transact(work)

    works: list[Callable[[], None]] = [
        lambda store=store, number=number, name=name, box=box: read(store, number, name, box)
        for number, name in zip(numbers, STREAMS, strict=True)
        for store, box in zip(stores, ("read:1", "read:2"), strict=True)
    ]
    run_concurrently(works)

    assert list_members(stores[0], "unread:bob") == []
    assert (
        list_members(stores[0], "read:1")
        == list_members(stores[1], "read:2")
        == [*enumerate(STREAMS, 1)]
    )


Move = tuple[bool, str, int]
"""True to list or False to unlist, the list, and the index of the stream."""

moves = st.lists(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from(LISTS), st.integers(0, len(STREAMS) - 1)),
        max_size=6,
    ),
    max_size=6,
)


@given(batches=moves)
def test_any_changes_give_the_same_lists_in_every_store(
    storages: Storages, batches: Sequence[Sequence[Move]]
) -> None:
    oracle = MemoryStore("oracle")
    with storages.new() as storage:
        store = storage.open()

        shown = [play(batches, one) for one in (store, oracle)]

        assert shown[0] == shown[1]
        assert all_list_items(store) == all_list_items(oracle)


def play(batches: Sequence[Sequence[Move]], store: Store) -> list[list[tuple[int, StreamRow]]]:
    """Apply the changes batch by batch, and return the lists."""
    numbers = begin_streams(store, *STREAMS)
    for batch in batches:
        changes = Changes()
        for is_put, name, stream in batch:
            (changes.list_additions if is_put else changes.list_removals).append(
                (name, numbers[stream])
            )
        write(store, changes)
    queries = [
        query
        for name in LISTS
        for query in (ListQuery(name), ListQuery(name, before=4), ListQuery(name, after=2, limit=1))
    ]
    return [
        [(found.position, replace(found.row, number=0)) for found in store.list_page(query)]
        for query in queries
    ]
