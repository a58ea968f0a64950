"""Words of a text, and what a search asks for: one language for every store.

`red "blue green" -grey dep*` wants red, the phrase, no grey, and a word that begins with dep; `OR`
between two such lists wants one of them. Stores get words, not text: all split alike, here.

Chinese and Japanese put no blanks between words. There each character is a word, and what is asked
for is a phrase of them: `日本語` is found in `日本語テキスト`.
"""

import re
import unicodedata
from collections import Counter
from itertools import islice

from msgspec import Struct

MOST_WORDS = 16_000
"""Words of a text that are indexed, from its start: PostgreSQL counts no further."""
MOST_BYTES = 900_000
"""Size of all words of a text: with what PostgreSQL adds to each, the most that it can hold."""
MOST_LETTERS = 64
"""Longer words are equal if they begin alike."""
MOST_TIMES = 255
"""Positions of a word that are indexed: PostgreSQL keeps no more."""
MOST_ASKED = 32
"""Words in a query."""

PASSED_OVER = "\ufffd"
"""Replaces a word that has occurred too often. No query can contain it."""

_UNSPACED = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Characters of scripts that put no blanks between words: Han, and both kinds of kana."""
_WORD = re.compile(rf"(?=[{_UNSPACED}])[^\W_]|[^\W_{_UNSPACED}]+")
_PART = re.compile(r'(-?)"([^"]*)"?|(\S+)')

Words = tuple[str, ...]


class Term(Struct, frozen=True):
    """A word, or a phrase."""

    words: Words
    is_prefix: bool = False
    """True if the last word is a prefix."""
    is_unwanted: bool = False


Wanted = tuple[tuple[Term, ...], ...]
"""Groups of which one must match, with all of its terms. Every group has a term that is not
excluded."""


def words_of(text: str) -> Words:
    """Words of a text for comparison: letters and digits, case folded.

    A change of this function needs a migration of the stores, so that all is indexed anew.
    """
    found = _split(text, MOST_WORDS)
    if len(found) <= MOST_TIMES:
        return found
    words: list[str] = []
    room = MOST_BYTES
    times = Counter[str]()
    for word in found:
        room -= len(word.encode())
        if room < 0:
            break
        times[word] += 1
        words.append(word if times[word] <= MOST_TIMES else PASSED_OVER)
    return tuple(words)


def wanted(query: str) -> Wanted | str:
    """Parse a query; a message for a person if nothing can match it."""
    groups: list[list[Term]] = [[]]
    asked = 0
    for match in _PART.finditer(query):
        minus, phrase, bare = match.groups()
        if bare == "OR":
            groups.append([])
            continue
        if bare is not None:
            minus, phrase = ("-", bare[1:]) if bare.startswith("-") else ("", bare)
        words = _split(phrase, MOST_ASKED + 1)
        asked += len(words)
        if asked > MOST_ASKED:
            return f"a search names at most {MOST_ASKED} words; leave out those that matter least"
        if words:
            is_prefix = bare is not None and bare.endswith("*")
            groups[-1].append(Term(words, is_prefix, minus == "-"))
    if not all(any(not term.is_unwanted for term in group) for group in groups):
        if len(groups) > 1:
            return "on each side of OR stands a word that is wanted, for example: auth OR login"
        return 'name at least one word that is wanted, for example: auth "token expired" -draft'
    return tuple(map(tuple, groups))


def _split(text: str, most: int) -> Words:
    # Folding may decompose a character that normalizing had composed: hence twice.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    found = islice(_WORD.finditer(folded), most)
    return tuple(match[0][:MOST_LETTERS] for match in found)
