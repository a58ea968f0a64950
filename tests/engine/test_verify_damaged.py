"""Verify names what a damaged database no longer gives, or gives as it was never written."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import astuple

from dragoman.core.errors import StoreCorrupt
from dragoman.engine.ports import Columns, Row, StreamHead
from dragoman.engine.verifying.slices import Finding
from dragoman.engine.verifying.verify import check_ledger, check_tail, check_views
from dragoman.ledger.views import FOLD
from tests.engine.lab import OpenStore, checkpoint
from tests.engine.test_verify import HEAD, HONEST, SIGNED, STREAM, ledger, silent
from tests.ledger.released import play
from tests.requirements import proves


class Damaged(OpenStore):
    """A store some parts of which can no longer be read."""

    def __init__(self) -> None:
        super().__init__("honest")
        self.unreadable = 0
        """Position of an entry."""
        self.row = 0
        """Number of a stream."""
        self.spoiled: Callable[[Any], Any] = lambda found: found
        """What became of an entry or of the head of a stream."""

    def columns(self, after: int, until: int, limit: int) -> list[Columns]:
        found = super().columns(after, until, limit)
        _refuse(self.unreadable in [one[0] for one in found])
        return [self.spoiled(one) for one in found]

    def heads(self, after: int, limit: int) -> list[StreamHead]:
        found = super().heads(after, limit)
        _refuse(self.row in [one[0] for one in found])
        return [self.spoiled(one) for one in found]

    def rows(self, after: int, limit: int) -> list[Row]:
        found = super().rows(after, limit)
        _refuse(self.row in [one.number for one in found])
        return found


def _refuse(is_damaged: bool) -> None:
    if is_damaged:
        raise StoreCorrupt("the page is gone")


@pytest.fixture
def store() -> Damaged:
    """Give a store in which nothing is wrong yet."""
    made = Damaged()
    play(made)
    return made


@proves("STORE-TEXT", "VERIFY-HASHES")
@pytest.mark.parametrize("position", [1, 7, HEAD])
def test_the_first_entry_that_cannot_be_read_is_named_and_nothing_behind_it_is_judged(
    store: Damaged, position: int
) -> None:
    store.unreadable = position

    (found,) = check_ledger(store, [checkpoint(HONEST, size) for size in (3, HEAD)], silent)

    assert (found.position, found.problem) == (
        position,
        "the entry cannot be read: the page is gone",
    )


@proves("STORE-TEXT", "VERIFY-HASHES")
@pytest.mark.parametrize(("column", "value"), [(2, None), (4, None), (5, "text"), (6, 7)])
def test_an_entry_of_what_no_column_can_hold_is_named(
    store: Damaged, column: int, value: object
) -> None:
    def spoil(found: tuple[Any, ...]) -> tuple[Any, ...]:
        is_it = found[0] == 7 and len(found) == len(astuple(HONEST.entries(0, 1)[0]))
        return (*found[:column], value, *found[column + 1 :]) if is_it else found

    store.spoiled = spoil

    (found,) = check_ledger(store, [SIGNED], silent)

    assert (found.position, "is damaged" in found.problem) == (7, True)


@proves("STORE-TEXT")
def test_behind_a_checkpoint_too(store: Damaged) -> None:
    signed = checkpoint(HONEST, 5)
    store.unreadable = 7

    (found,) = check_tail(store, signed)

    assert found.position == 7


@proves("STORE-TEXT", "VERIFY-VIEWS")
def test_a_row_that_cannot_be_read_is_named_by_the_one_before_it(store: Damaged) -> None:
    store.row = 4

    for found in (check_ledger(store, [SIGNED], silent), check_views(store, silent)):
        (finding,) = found
        assert finding.problem == (
            "of the streams, the one behind 3 cannot be read: the page is gone"
        )


@proves("STORE-TEXT")
def test_the_head_of_a_stream_without_a_version_is_damaged(store: Damaged) -> None:
    store.spoiled = lambda found: (*found[:2], None, found[3]) if len(found) == 4 else found

    (found,) = check_ledger(store, [SIGNED], silent)

    assert found.problem.startswith("the row of a stream is damaged: it holds (1, ")


@proves("VERIFY-HASHES")
@pytest.mark.parametrize(
    ("entry", "row", "streams"), [(0, 0, 11), (7, 0, 11), (7, 4, 0), (0, 4, 0)]
)
def test_the_streams_are_counted_where_their_rows_can_be_read(
    store: Damaged, entry: int, row: int, streams: int
) -> None:
    store.unreadable, store.row = entry, row
    told: list[int] = []

    def check() -> Iterator[Finding]:
        told.append((yield from check_ledger(store, [SIGNED], silent)))

    assert bool(list(check())) == bool(entry or row)
    assert told == [streams]


@proves("VERIFY-FOLD")
@pytest.mark.parametrize("fold", [FOLD + 1, 99, 0, -1])
def test_a_state_of_rules_that_nobody_has_is_found(fold: int) -> None:
    (found,) = check_views(ledger().row(STREAM, fold=fold), silent)

    assert (found.stream, f"by rules {fold}" in found.problem) == (STREAM, True)
