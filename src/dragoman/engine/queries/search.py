"""Full-text search of mail: the index follows the ledger, and is caught up before a search.

No commit waits for it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from dragoman.core.base import Event
from dragoman.core.errors import Refusal, StoreUnavailable
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.mail import MailPosted
from dragoman.engine.ports import ListItem, Store
from dragoman.engine.queries.entries import decode_event
from dragoman.ledger.entry import Entry
from dragoman.text.search_terms import Words, extract_words, parse_query

_INDEX_PAGE = 100
"""Number of entries in memory at a time, each as long as a message may be."""
_MAX_WORDS_PER_WRITE = 20_000
"""The index is written after so many words: on SQLite nobody else can write meanwhile."""


def _text_of_mail(mail: MailPosted) -> str:
    return "\n".join((mail.sender, *mail.to, *mail.cc, *mail.auto_copied, mail.subject, mail.body))


SEARCHABLE_TEXTS: dict[type[Event], Callable[[Any], str]] = {MailPosted: _text_of_mail}
"""Event -> its searchable text."""

_SEARCHABLE_EVENTS = frozenset(EVENT_NAMES[event] for event in SEARCHABLE_TEXTS)


def update_index(store: Store, max_entries: int | None = None) -> int:
    """Bring the search index up to the ledger's end, page by page; returns the number of texts.

    With `max_entries`, no more than so many entries are read.
    """
    after, indexed = store.indexed_position(), 0
    end = None if max_entries is None else after + max_entries
    while page := store.entries(after, _INDEX_PAGE, until=end):
        for texts, until in _index_batches(page):
            store.index_texts(texts, until)
            indexed += len(texts)
        after = page[-1].position
    return indexed


def _index_batches(page: Sequence[Entry]) -> Iterator[tuple[list[tuple[int, Words]], int]]:
    """The texts to index in these entries, in batches, each with the position that it reaches."""
    texts: list[tuple[int, Words]] = []
    size = 0
    for entry in page:
        if entry.event in _SEARCHABLE_EVENTS:
            event = decode_event(entry)
            words = extract_words(SEARCHABLE_TEXTS[type(event)](event))
            texts.append((entry.position, words))
            size += len(words)
        if size > _MAX_WORDS_PER_WRITE:
            yield texts, entry.position
            texts, size = [], 0
    yield texts, page[-1].position


def search_mail(
    store: Store, query: str, before: int | None, limit: int
) -> list[ListItem] | Refusal:
    """A page of the letters that match a query, newest first; also the most recent ones."""
    parsed = parse_query(query)
    if isinstance(parsed, str):
        return Refusal("invalid_field", parsed)
    # Where nothing can be written, what is indexed already can still be found.
    with suppress(StoreUnavailable):
        update_index(store)
    return store.search(parsed, before, limit)
