"""The memory store as oracle: after the same requests every reader of a store agrees with it."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import TypeVar, get_args

from msgspec.structs import astuple, replace

from dragoman.core.base import Status
from dragoman.engine.ports import (
    ListItem,
    ListQuery,
    ReadyKey,
    Store,
    StreamRow,
    TaskQuery,
    Transaction,
)
from dragoman.ledger.entry import Entry

Item = TypeVar("Item")
Cursor = TypeVar("Cursor")

PAGES = (1, 3, 100)
EXPIRY_OFFSETS = (0, 1_000, 60_000, 10**9)
"""Milliseconds after which expired leases are read again."""


def compare(found: Store, oracle: Store, agents: Sequence[str], now: int) -> None:
    """Compare every reader of both stores, with several page sizes."""
    assert found.head() == oracle.head()
    assert found.status_counts() == oracle.status_counts()
    assert found.queue_counts() == oracle.queue_counts()
    for read in _readers(agents, now):
        assert read(found) == read(oracle)


def _readers(agents: Sequence[str], now: int) -> list[Callable[[Store], object]]:
    return [
        *(lambda store, n=n: _all_entries(store, n, None) for n in PAGES),
        *(lambda store, end=end: _all_entries(store, 3, end) for end in (0, 1, 5)),
        *(lambda store, n=n: _all_columns(store, n) for n in PAGES),
        *(lambda store, n=n: _all_rows(store, n) for n in PAGES),
        *(lambda store, n=n: _all_heads(store, n) for n in PAGES),
        *(lambda store, n=n: _all_names(store, n) for n in PAGES),
        *(lambda store, n=n: _all_places(store, n) for n in PAGES),
        *(lambda store, n=n: _lists(store, n) for n in PAGES),
        *(lambda store, n=n: _all_of_kinds(store, n) for n in PAGES),
        *(lambda store, n=n: _task_pages(store, agents, n) for n in PAGES),
        lambda store: [_histories(store, until) for until in (None, 0, 4)],
        lambda store: [store.expired_leases(now + later, 100) for later in EXPIRY_OFFSETS],
        lambda store: store.expired_leases(now + EXPIRY_OFFSETS[-1], 2),
        lambda store: [store.overdue_streams(now + later, 100) for later in EXPIRY_OFFSETS],
        lambda store: store.overdue_streams(now + EXPIRY_OFFSETS[-1], 2),
        lambda store: [store.streams_in_session(f"s-{agent}") for agent in agents],
        lambda store: [_all_claims(store, f"s-{one}", n) for one, n in product(agents, PAGES)],
        lambda store: [_ready(store, queue, n) for queue, n in product(("", *agents), PAGES)],
        lambda store: [store.stream(row.name) is not None for row in store.rows(0, 1_000)],
        lambda store: [store.find_aliases(name) for name, _, _ in store.aliases(("", ""), 1_000)],
    ]


def _all_entries(store: Store, limit: int, until: int | None) -> list[Entry]:
    return _pages(
        lambda after: store.entries(after, limit, until=until), lambda entry: entry.position, 0
    )


def _all_claims(store: Store, session: str, limit: int) -> list[Entry]:
    """Read the claims of a session, and check them against those read backwards."""
    found = _pages(lambda after: store.claims(session, after, limit), lambda one: one.position, 0)
    last = store.last_claims(session, store.head() + 1, limit)
    before = last[-1].position if last else 0
    assert [*last, *store.last_claims(session, before, 1_000)] == found[::-1]
    return found


def _all_columns(store: Store, limit: int) -> list[Entry]:
    """Read all entries as columns, and check that nothing after `until` is returned."""
    end = store.head() - 1
    found = _pages(
        lambda after: list(store.entry_columns(after, end, limit)), lambda one: one[0], 0
    )
    assert found == [astuple(entry) for entry in store.entries(0, 1_000, until=end)]
    return [Entry(*columns) for columns in found]


def _all_heads(store: Store, limit: int) -> list[tuple[str, int, bytes]]:
    heads = _pages(lambda after: list(store.heads(after, limit)), lambda head: head[0], 0)
    rows = store.rows(0, 1_000)
    assert heads == [(row.number, row.name, row.version, row.hash) for row in rows]
    return [head[1:] for head in heads]


def _all_rows(store: Store, limit: int) -> list[StreamRow]:
    rows = _pages(lambda after: store.rows(after, limit), lambda row: row.number, 0)
    return _unnumbered(rows)


def _all_names(store: Store, limit: int) -> list[tuple[str, str, str]]:
    return _pages(
        lambda after: store.aliases(after, limit), lambda found: (found[0], found[1]), ("", "")
    )


def _all_places(store: Store, limit: int) -> list[tuple[str, int, str]]:
    return _pages(
        lambda after: store.list_items(after, limit), lambda found: (found[0], found[1]), ("", 0)
    )


def _lists(store: Store, limit: int) -> list[list[ListItem]]:
    names = dict.fromkeys(name for name, _, _ in store.list_items(("", 0), 1_000))
    lists = (
        _pages(
            lambda after, name=name: store.list_page(ListQuery(name, after, limit=limit)),
            lambda found: found.position,
            0,
        )
        for name in names
    )
    return [[replace(one, row=replace(one.row, number=0)) for one in found] for found in lists]


def _all_of_kinds(store: Store, limit: int) -> list[list[StreamRow]]:
    return [
        _unnumbered(
            _pages(
                lambda after, kind=kind: store.streams_of_kind(kind, after, limit),
                lambda row: row.name.partition(":")[2],
                "",
            )
        )
        for kind in ("agent", "actor", "task", "nothing")
    ]


def _task_pages(store: Store, agents: Sequence[str], limit: int) -> list[list[StreamRow]]:
    statuses: tuple[Status | None, ...] = (None, *get_args(Status))
    return [
        _unnumbered(_all_tasks(store, TaskQuery(status, owner, limit=limit)))
        for status, owner in product(statuses, (None, *agents))
    ]


def _all_tasks(store: Store, query: TaskQuery) -> list[StreamRow]:
    rows: list[StreamRow] = []
    while page := store.task_page(query):
        rows += page
        query = replace(query, before=page[-1].number)
    return rows


def _histories(store: Store, until: int | None) -> list[list[Entry]]:
    return [
        _pages(
            lambda after, name=row.name: store.history(name, after, 2, until=until),
            lambda entry: entry.version,
            0,
        )
        for row in store.rows(0, 1_000)
    ]


def _ready(store: Store, queue: str, limit: int) -> list[str]:
    """Read the names in a queue without claiming a task."""

    def work(session: Transaction) -> list[str]:
        names: list[str] = []
        after: ReadyKey | None = None
        while page := session.ready_page(queue, after, limit):
            names += [key.name for key in page]
            after = page[-1]
        return names

    return store.transact(work)


def _pages(
    read: Callable[[Cursor], list[Item]], cursor_of: Callable[[Item], Cursor], after: Cursor
) -> list[Item]:
    """Read page after page, each starting after the last item of the previous one."""
    found: list[Item] = []
    while page := read(after):
        found += page
        after = cursor_of(page[-1])
    return found


def _unnumbered(rows: Sequence[StreamRow]) -> list[StreamRow]:
    """Drop the stream numbers: stores choose them freely, but in the same order."""
    return [replace(row, number=0) for row in rows]
