"""Verification of lists: missing, wrong and unexpected items, also during writes."""

from collections.abc import Callable

import pytest

from dragoman.engine import verify
from dragoman.engine.ports import StreamRow
from dragoman.engine.verify import Finding
from tests.engine.lab import OpenStore, findings
from tests.engine.letters import post, read
from tests.requirements import proves

pytestmark = proves("VERIFY-VIEWS", "STORE-LISTS")

Places = dict[str, dict[int, str]]


def store_with_letters() -> OpenStore:
    """Make a store with three letters, one of them read."""
    store = OpenStore("letters")
    post(store, "1")
    post(store, "2", to="carol")
    read(store, "1")
    post(store, "3")
    return store


def test_honest_lists_have_no_findings() -> None:
    store = store_with_letters()
    assert findings(store) == []
    lists = [(name, position) for name, position, _ in store.list_items(("", 0), 99)]
    assert ("in:bob", 1) in lists
    assert ("unread:bob", 1) not in lists
    assert ("unread:bob", 4) in lists


@pytest.mark.parametrize("size", [1, 2])
def test_page_size_does_not_matter(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "_PAGE", size)
    assert findings(store_with_letters()) == []


def swap(lists: Places) -> None:
    """Swap two streams on a list."""
    lists["in:bob"] = {1: "mail:3", 4: "mail:1"}


TAMPERED: dict[str, tuple[Callable[[Places], object], list[Finding]]] = {
    "removed": (
        lambda lists: lists["in:bob"].pop(1),
        [Finding("it is missing on the list in:bob at 1", stream="mail:1")],
    ),
    "missing list": (
        lambda lists: lists.pop("in:carol"),
        [Finding("it is missing on the list in:carol at 2", stream="mail:2")],
    ),
    "unread again": (
        lambda lists: lists["unread:bob"].update({1: "mail:1"}),
        [Finding("nothing in the ledger put it on the list unread:bob at 1", stream="mail:1")],
    ),
    "on another agent's list": (
        lambda lists: lists.update({"in:mallory": {2: "mail:2"}}),
        [Finding("nothing in the ledger put it on the list in:mallory at 2", stream="mail:2")],
    ),
    "listed twice": (
        lambda lists: lists["in:bob"].update({3: "mail:1"}),
        [Finding("nothing in the ledger put it on the list in:bob at 3", stream="mail:1")],
    ),
    "without a stream": (
        lambda lists: lists["in:bob"].update({9: ""}),
        [Finding("nothing in the ledger put it on the list in:bob at 9")],
    ),
    "swapped": (
        swap,
        [
            Finding("it is missing on the list in:bob at 1", stream="mail:1"),
            Finding("it is missing on the list in:bob at 4", stream="mail:3"),
            Finding("nothing in the ledger put it on the list in:bob at 1", stream="mail:3"),
            Finding("nothing in the ledger put it on the list in:bob at 4", stream="mail:1"),
        ],
    ),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_every_change_to_a_list_is_found(case: str) -> None:
    tamper, expected = TAMPERED[case]
    store = store_with_letters()
    tamper(store.tables.lists)
    assert findings(store) == expected
    assert findings(store.copy()) == expected


class BusyStore(OpenStore):
    """Store in which a letter is read between the reads of a verification."""

    def __init__(self) -> None:
        super().__init__()
        self.unread: list[str] = []

    def list_items(self, after: tuple[str, int], limit: int) -> list[tuple[str, int, str]]:
        """Return a page that is outdated when it arrives."""
        page = super().list_items(after, limit)
        if self.unread and after == ("", 0):
            read(self, self.unread.pop())
        return page


def test_concurrent_reads_raise_no_findings() -> None:
    store = BusyStore()
    post(store, "1")
    post(store, "2")
    store.unread = ["1", "2"]
    assert findings(store) == []
    assert store.unread == ["1"]
    assert findings(store) == []


class ReadingStore(OpenStore):
    """Store in which a letter is read right after verification has loaded its row."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def stream(self, name: str) -> StreamRow | None:
        """Load the row; the last one of the first pass is outdated."""
        row = super().stream(name)
        self.reads += 1
        if self.reads == len(super().list_items(("", 0), 99)):
            read(self, "1")
        return row


def test_stream_that_changes_during_the_check_is_checked_again() -> None:
    store = ReadingStore()
    post(store, "1")
    places = store.list_items(("", 0), 99)
    assert places[-1] == ("unread:bob", 1, "mail:1")
    assert findings(store) == []
    assert store.list_items(("", 0), 99) == places[:-1]
    assert store.reads == len(places) + 3, "twice for the last place, each time before and after"
