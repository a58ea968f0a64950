"""Searching mail: found as soon as it was sent, and nothing else of the ledger is."""

from collections.abc import Sequence

import pytest

from dragoman.core.commands import CreateTask, NoteTask
from dragoman.core.errors import LedgerError, Refusal, StoreUnavailable
from dragoman.core.events import MailPosted
from dragoman.engine.ports import Listed
from dragoman.engine.reads.search import bring_level, search_mail
from dragoman.ledger.entry import Entry
from dragoman.text.words import Words
from tests.engine.lab import HUMAN, Lab, OpenStore
from tests.engine.letters import post, read, record
from tests.requirements import proves

pytestmark = proves("STORE-SEARCH")


class Watched(OpenStore):
    """A store that notes down how much was read and indexed at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: list[int] = []
        self.indexings: list[int] = []

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        """A page of entries."""
        page = super().entries(after, limit, until=until)
        self.pages.append(len(page))
        return page

    def index(self, texts: Sequence[tuple[int, Words]], until: int) -> None:
        """What is indexed."""
        self.indexings.append(len(texts))
        super().index(texts, until)


def found(store: OpenStore, query: str, before: int | None = None, limit: int = 9) -> list[str]:
    """The letters that a query finds."""
    page = search_mail(store, query, before, limit)
    assert not isinstance(page, Refusal), page
    return [one.row.name.removeprefix("mail:") for one in page]


def test_a_letter_is_found_as_soon_as_it_was_sent() -> None:
    store = OpenStore()
    for n in (1, 2, 3):
        assert found(store, "token") == [str(sent) for sent in range(n - 1, 0, -1)]
        post(store, str(n), "Token expired", "again")
    assert found(store, '"token expired"', limit=2) == ["3", "2"]


def test_where_nothing_can_be_written_what_was_indexed_before_is_found() -> None:
    class Unwritable(OpenStore):
        is_unwritable = False

        def index(self, texts: Sequence[tuple[int, Words]], until: int) -> None:
            if self.is_unwritable:
                raise StoreUnavailable("the disk is read-only")
            super().index(texts, until)

    store = Unwritable()
    post(store, "1", "Token expired", "again")
    assert found(store, "token") == ["1"]
    store.is_unwritable = True
    post(store, "2", "Token expired", "again")
    assert found(store, "token") == ["1"]


@pytest.mark.parametrize("query", ["ann", "bob", "carol", "dave", "subject", "body"])
def test_sender_recipients_subject_and_body_are_searched(query: str) -> None:
    store = OpenStore()
    letter = MailPosted("1", "ann", ("bob",), "t", "DONE", "Subject", "Body", ("carol",), ("dave",))
    record(store, "1", letter)
    assert found(store, query) == ["1"]


def test_what_follows_a_letter_changes_what_is_shown_and_not_what_is_found() -> None:
    store = OpenStore()
    post(store, "1", "red")
    first = search_mail(store, "red", None, 9)
    read(store, "1")
    again = search_mail(store, "red", None, 9)
    row = store.stream("mail:1")
    assert row is not None
    assert row.version == 2
    assert first != again == [Listed(1, row)]


def test_tasks_and_their_notes_are_not_mail() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("red", "T"))
    lab.do(HUMAN, NoteTask("T", "red"))
    post(lab.store, "1", "red")
    assert found(lab.store, "red") == ["1"]
    assert lab.store.indexed() == lab.store.head()


def test_a_long_ledger_is_taken_in_pages_and_only_once() -> None:
    store = Watched()
    for n in range(250):
        post(store, str(n), f"letter {n}")
    assert found(store, "letter", limit=500) == [str(n) for n in range(249, -1, -1)]
    assert store.pages == [100, 100, 50, 0]
    assert store.indexings == [100, 100, 50]

    bring_level(store)

    assert store.pages[4:] == [0]
    assert len(store.indexings) == 3, "what is level is not written again"


def test_long_letters_are_indexed_a_few_at_a_time() -> None:
    store = Watched()
    for n in range(5):
        post(store, str(n), body=" ".join(f"w{n}x{word}" for word in range(12_000)))
    assert found(store, "ann") == ["4", "3", "2", "1", "0"]
    assert store.indexings == [2, 2, 1]
    assert found(store, "w3x11999") == ["3"]


def test_pages_of_a_search_go_back_in_time() -> None:
    store = OpenStore()
    for n in range(1, 6):
        post(store, str(n), "red")
    assert found(store, "red", None, 2) == ["5", "4"]
    assert found(store, "red", 4, 2) == ["3", "2"]


@proves("SEARCH-WORDS")
def test_a_query_that_wants_nothing_is_refused_before_anything_is_read() -> None:
    store = Watched()
    post(store, "1", "red")
    for query in ("", "-red", "x " * 33):
        answer = search_mail(store, query, None, 9)
        assert isinstance(answer, Refusal)
        assert answer.code == "invalid_field"
    assert store.pages == []


@proves("VERIFY-HASHES")
def test_a_letter_that_cannot_be_read_is_told_and_not_passed_over() -> None:
    store = OpenStore()
    post(store, "1", "red")
    whole = store.tables.entries[0]
    store.tables.entries[0] = Entry(1, whole.stream, 1, whole.event, b"{}", b"", b"")
    with pytest.raises(LedgerError):
        search_mail(store, "red", None, 9)
    assert store.indexed() == 0
