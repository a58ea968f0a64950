"""Search terms: the words of a text, and the query language, the same for every store.

`red "blue green" -grey dep*` finds texts with red, the phrase, no grey, and a word that begins with
dep; `OR` between two such lists finds either. Stores get words, not text: all split alike, here.

Chinese and Japanese put no blanks between words. There each character is a word, and a query is a
phrase of them: `日本語` is found in `日本語テキスト`.
"""

import unicodedata
from collections import Counter
from itertools import islice

from msgspec import Struct

from dragoman.text.lazy_regex import lazy_regex

MAX_WORDS = 16_000
"""Words of a text that are indexed, from its start: PostgreSQL counts no further."""
MAX_WORD_BYTES = 900_000
"""Size of all words of a text: with what PostgreSQL adds to each, the most that it can hold."""
MAX_WORD_LENGTH = 64
"""Longer words are equal if they begin alike."""
MAX_OCCURRENCES = 255
"""Positions of a word that are indexed: PostgreSQL keeps no more."""
MAX_QUERY_WORDS = 32
"""Words in a query."""

SKIPPED_WORD = "\ufffd"
"""Replaces a word that has occurred too often. No query can contain it."""

_UNSPACED = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Characters of scripts that put no blanks between words: Han, and both kinds of kana."""
_WORD = lazy_regex(rf"(?=[{_UNSPACED}])[^\W_]|[^\W_{_UNSPACED}]+")
_QUERY_PART = lazy_regex(r'(-?)"([^"]*)"?|(\S+)')

Words = tuple[str, ...]


class SearchTerm(Struct, frozen=True):
    """A word, or a phrase."""

    words: Words
    is_prefix: bool = False
    """True if the last word is a prefix."""
    is_excluded: bool = False


SearchQuery = tuple[tuple[SearchTerm, ...], ...]
"""Groups of which one must match, with all of its terms. Every group has a term that is not
excluded."""


def extract_words(text: str) -> Words:
    """Words of a text for comparison: letters and digits, case folded.

    A change of this function needs a migration of the stores, so that all is indexed anew.
    """
    found = _split_words(text, MAX_WORDS)
    if len(found) <= MAX_OCCURRENCES:
        return found
    words: list[str] = []
    room = MAX_WORD_BYTES
    counts = Counter[str]()
    for word in found:
        room -= len(word.encode())
        if room < 0:
            break
        counts[word] += 1
        words.append(word if counts[word] <= MAX_OCCURRENCES else SKIPPED_WORD)
    return tuple(words)


def parse_query(query: str) -> SearchQuery | str:
    """Parse a query; a message for a person if nothing can match it."""
    groups: list[list[SearchTerm]] = [[]]
    word_count = 0
    for match in _QUERY_PART.finditer(query):
        minus, phrase, bare = match.groups()
        if bare == "OR":
            groups.append([])
            continue
        if bare is not None:
            minus, phrase = ("-", bare[1:]) if bare.startswith("-") else ("", bare)
        words = _split_words(phrase, MAX_QUERY_WORDS + 1)
        word_count += len(words)
        if word_count > MAX_QUERY_WORDS:
            return (
                f"a search names at most {MAX_QUERY_WORDS} words; leave out those that matter least"
            )
        if words:
            is_prefix = bare is not None and bare.endswith("*")
            groups[-1].append(SearchTerm(words, is_prefix, minus == "-"))
    if not all(any(not term.is_excluded for term in group) for group in groups):
        if len(groups) > 1:
            return "on each side of OR stands a word that is wanted, for example: auth OR login"
        return 'name at least one word that is wanted, for example: auth "token expired" -draft'
    return tuple(map(tuple, groups))


def _split_words(text: str, limit: int) -> Words:
    # Folding may decompose a character that normalizing had composed: hence twice.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    found = islice(_WORD.finditer(folded), limit)
    return tuple(match[0][:MAX_WORD_LENGTH] for match in found)
