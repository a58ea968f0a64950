"""Verification of a damaged database: unreadable or impossible entries and rows."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import astuple

from dragoman.core.errors import StoreCorrupt
from dragoman.engine.ports import EntryColumns, StreamHead, StreamRow
from dragoman.engine.verify import Finding, check_ledger, check_stored_states, check_tail
from dragoman.ledger.stream_state import FOLD_VERSION
from tests.engine.lab import OpenStore, checkpoint
from tests.engine.test_verify import HEAD, HONEST, SIGNED, STREAM, copy_ledger, no_progress
from tests.ledger.released import play
from tests.requirements import proves


class DamagedStore(OpenStore):
    """Store with unreadable parts."""

    def __init__(self) -> None:
        super().__init__("honest")
        self.unreadable = 0
        """Position of an unreadable entry."""
        self.row = 0
        """Number of an unreadable stream."""
        self.damage: Callable[[Any], Any] = lambda found: found
        """Function that alters entries and stream heads when they are read."""

    def entry_columns(self, after: int, until: int, limit: int) -> list[EntryColumns]:
        found = super().entry_columns(after, until, limit)
        _fail_if(self.unreadable in [one[0] for one in found])
        return [self.damage(one) for one in found]

    def heads(self, after: int, limit: int) -> list[StreamHead]:
        found = super().heads(after, limit)
        _fail_if(self.row in [one[0] for one in found])
        return [self.damage(one) for one in found]

    def rows(self, after: int, limit: int) -> list[StreamRow]:
        found = super().rows(after, limit)
        _fail_if(self.row in [one.number for one in found])
        return found


def _fail_if(is_damaged: bool) -> None:
    if is_damaged:
        raise StoreCorrupt("the page is gone")


@pytest.fixture
def store() -> DamagedStore:
    """Store without damage."""
    made = DamagedStore()
    play(made)
    return made


@proves("STORE-TEXT", "VERIFY-HASHES")
@pytest.mark.parametrize("position", [1, 7, HEAD])
def test_first_unreadable_entry_is_reported_and_nothing_after_it(
    store: DamagedStore, position: int
) -> None:
    store.unreadable = position

    (found,) = check_ledger(store, [checkpoint(HONEST, size) for size in (3, HEAD)], no_progress)

    assert (found.position, found.problem) == (
        position,
        "the entry cannot be read: the page is gone",
    )


@proves("STORE-TEXT", "VERIFY-HASHES")
@pytest.mark.parametrize(("column", "value"), [(2, None), (4, None), (5, "text"), (6, 7)])
def test_entry_with_an_impossible_column_is_reported(
    store: DamagedStore, column: int, value: object
) -> None:
    def damage(found: tuple[Any, ...]) -> tuple[Any, ...]:
        is_it = found[0] == 7 and len(found) == len(astuple(HONEST.entries(0, 1)[0]))
        return (*found[:column], value, *found[column + 1 :]) if is_it else found

    store.damage = damage

    (found,) = check_ledger(store, [SIGNED], no_progress)

    assert (found.position, "is damaged" in found.problem) == (7, True)


@proves("STORE-TEXT")
def test_unreadable_entry_after_a_checkpoint_is_reported(store: DamagedStore) -> None:
    signed = checkpoint(HONEST, 5)
    store.unreadable = 7

    (found,) = check_tail(store, signed)

    assert found.position == 7


@proves("STORE-TEXT", "VERIFY-VIEWS")
def test_unreadable_row_is_reported_by_its_predecessor(store: DamagedStore) -> None:
    store.row = 4

    for found in (
        check_ledger(store, [SIGNED], no_progress),
        check_stored_states(store, no_progress),
    ):
        (finding,) = found
        assert finding.problem == (
            "the row after 3 of the streams cannot be read: the page is gone"
        )


@proves("STORE-TEXT")
def test_stream_head_without_a_version_is_reported(store: DamagedStore) -> None:
    store.damage = lambda found: (*found[:2], None, found[3]) if len(found) == 4 else found

    (found,) = check_ledger(store, [SIGNED], no_progress)

    assert found.problem.startswith("the row of a stream is damaged: it holds (1, ")


@proves("VERIFY-HASHES")
@pytest.mark.parametrize(
    ("entry", "row", "streams"), [(0, 0, 12), (7, 0, 12), (7, 4, 0), (0, 4, 0)]
)
def test_streams_are_counted_where_rows_are_readable(
    store: DamagedStore, entry: int, row: int, streams: int
) -> None:
    store.unreadable, store.row = entry, row
    counts: list[int] = []

    def check() -> Iterator[Finding]:
        counts.append((yield from check_ledger(store, [SIGNED], no_progress)))

    assert bool(list(check())) == bool(entry or row)
    assert counts == [streams]


@proves("VERIFY-FOLD")
@pytest.mark.parametrize("fold", [FOLD_VERSION + 1, 99, 0, -1])
def test_state_of_unknown_fold_rules_is_found(fold: int) -> None:
    (found,) = check_stored_states(copy_ledger().row(STREAM, fold_version=fold), no_progress)

    assert (found.stream, f"fold version {fold}" in found.problem) == (STREAM, True)
