"""Mail search: a letter is found right after it was sent; other streams are not searched."""

from collections.abc import Sequence

import pytest

from dragoman.core.errors import LedgerError, Refusal, StoreUnavailable
from dragoman.core.mail import MailPosted
from dragoman.core.task_state import CreateTask, NoteTask
from dragoman.engine.ports import ListItem
from dragoman.engine.queries.search import search_mail, update_index
from dragoman.ledger.entry import Entry
from dragoman.text.search_terms import Words
from tests.engine.lab import HUMAN, Lab, OpenStore
from tests.engine.letters import post, read, record
from tests.requirements import proves

pytestmark = proves("STORE-SEARCH")


class RecordingStore(OpenStore):
    """Store that records the sizes of pages read and of batches indexed."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: list[int] = []
        self.indexed_batches: list[int] = []

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        page = super().entries(after, limit, until=until)
        self.pages.append(len(page))
        return page

    def index_texts(self, texts: Sequence[tuple[int, Words]], until: int) -> None:
        self.indexed_batches.append(len(texts))
        super().index_texts(texts, until)


def found(store: OpenStore, query: str, before: int | None = None, limit: int = 9) -> list[str]:
    """List the letters that a query finds."""
    page = search_mail(store, query, before, limit)
    assert not isinstance(page, Refusal), page
    return [one.row.name.removeprefix("mail:") for one in page]


def test_letter_is_found_right_after_it_was_sent() -> None:
    store = OpenStore()
    for n in (1, 2, 3):
        assert found(store, "token") == [str(sent) for sent in range(n - 1, 0, -1)]
        post(store, str(n), "Token expired", "again")
    assert found(store, '"token expired"', limit=2) == ["3", "2"]


def test_read_only_store_still_finds_indexed_letters() -> None:
    class ReadOnlyStore(OpenStore):
        is_read_only = False

        def index_texts(self, texts: Sequence[tuple[int, Words]], until: int) -> None:
            if self.is_read_only:
                raise StoreUnavailable("the disk is read-only")
            super().index_texts(texts, until)

    store = ReadOnlyStore()
    post(store, "1", "Token expired", "again")
    assert found(store, "token") == ["1"]
    store.is_read_only = True
    post(store, "2", "Token expired", "again")
    assert found(store, "token") == ["1"]


@pytest.mark.parametrize("query", ["ann", "bob", "carol", "dave", "subject", "body"])
def test_sender_recipients_subject_and_body_are_searched(query: str) -> None:
    store = OpenStore()
    letter = MailPosted("1", "ann", ("bob",), "t", "DONE", "Subject", "Body", ("carol",), ("dave",))
    record(store, "1", letter)
    assert found(store, query) == ["1"]


def test_later_events_change_the_shown_letter_not_the_match() -> None:
    store = OpenStore()
    post(store, "1", "red")
    first = search_mail(store, "red", None, 9)
    read(store, "1")
    again = search_mail(store, "red", None, 9)
    row = store.stream("mail:1")
    assert row is not None
    assert row.version == 2
    assert first != again == [ListItem(1, row)]


def test_tasks_and_notes_are_not_searched() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("red", "T"))
    lab.do(HUMAN, NoteTask("T", "red"))
    post(lab.store, "1", "red")
    assert found(lab.store, "red") == ["1"]
    assert lab.store.indexed_position() == lab.store.head()


def test_long_ledger_is_indexed_in_pages_and_once() -> None:
    store = RecordingStore()
    for n in range(250):
        post(store, str(n), f"letter {n}")
    assert found(store, "letter", limit=500) == [str(n) for n in range(249, -1, -1)]
    assert store.pages == [100, 100, 50, 0]
    assert store.indexed_batches == [100, 100, 50]

    update_index(store)

    assert store.pages[4:] == [0]
    assert len(store.indexed_batches) == 3, "what is level is not written again"


def test_long_letters_are_indexed_in_small_batches() -> None:
    store = RecordingStore()
    for n in range(5):
        post(store, str(n), body=" ".join(f"w{n}x{word}" for word in range(12_000)))
    assert found(store, "ann") == ["4", "3", "2", "1", "0"]
    assert store.indexed_batches == [2, 2, 1]
    assert found(store, "w3x11999") == ["3"]


def test_search_pages_go_back_in_time() -> None:
    store = OpenStore()
    for n in range(1, 6):
        post(store, str(n), "red")
    assert found(store, "red", None, 2) == ["5", "4"]
    assert found(store, "red", 4, 2) == ["3", "2"]


@proves("SEARCH-WORDS")
def test_query_without_terms_is_refused_before_reading() -> None:
    store = RecordingStore()
    post(store, "1", "red")
    for query in ("", "-red", "x " * 33):
        answer = search_mail(store, query, None, 9)
        assert isinstance(answer, Refusal)
        assert answer.code == "invalid_field"
    assert store.pages == []


@proves("VERIFY-HASHES")
def test_unreadable_letter_raises_and_is_not_skipped() -> None:
    store = OpenStore()
    post(store, "1", "red")
    intact = store.tables.entries[0]
    store.tables.entries[0] = Entry(1, intact.stream, 1, intact.event, b"{}", b"", b"")
    with pytest.raises(LedgerError):
        search_mail(store, "red", None, 9)
    assert store.indexed_position() == 0
