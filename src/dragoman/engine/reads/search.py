"""Search: the index follows the ledger, and is level when somebody asks; no commit waits for it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from dragoman.core.errors import Refusal, StoreUnavailable
from dragoman.core.events import EVENT_NAMES, Event, MailPosted
from dragoman.engine.ports import Listed, Store
from dragoman.engine.reads.ask import decode
from dragoman.ledger.entry import Entry
from dragoman.text.words import Words, wanted, words_of

_PAGE = 100
"""Number of entries in memory at a time, each as long as a message may be."""
_WORDS = 20_000
"""The index is written after so many words: on SQLite nobody else can write meanwhile."""


def _text_of_mail(mail: MailPosted) -> str:
    return "\n".join((mail.sender, *mail.to, *mail.cc, *mail.copied, mail.subject, mail.body))


TEXTS: dict[type[Event], Callable[[Any], str]] = {MailPosted: _text_of_mail}
"""Event -> its searchable text."""

_SEARCHED = frozenset(EVENT_NAMES[event] for event in TEXTS)


def bring_level(store: Store, most: int | None = None) -> int:
    """Bring the search index up to the ledger's end, page by page; returns the number of texts.

    With `max_entries`, no more than so many entries are read.
    """
    after, indexed = store.indexed(), 0
    end = None if most is None else after + most
    while page := store.entries(after, _PAGE, until=end):
        for texts, until in _portions(page):
            store.index(texts, until)
            indexed += len(texts)
        after = page[-1].position
    return indexed


def _portions(page: Sequence[Entry]) -> Iterator[tuple[list[tuple[int, Words]], int]]:
    """The texts to index in these entries, in batches, each with the position that it reaches."""
    texts: list[tuple[int, Words]] = []
    size = 0
    for entry in page:
        if entry.event in _SEARCHED:
            event = decode(entry)
            words = words_of(TEXTS[type(event)](event))
            texts.append((entry.position, words))
            size += len(words)
        if size > _WORDS:
            yield texts, entry.position
            texts, size = [], 0
    yield texts, page[-1].position


def search_mail(store: Store, query: str, before: int | None, limit: int) -> list[Listed] | Refusal:
    """A page of the letters that match a query, newest first; also the most recent ones."""
    asked = wanted(query)
    if isinstance(asked, str):
        return Refusal("invalid_field", asked)
    # Where nothing can be written, what is indexed already can still be found.
    with suppress(StoreUnavailable):
        bring_level(store)
    return store.search(asked, before, limit)
