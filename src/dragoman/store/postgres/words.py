"""Words, and what a search asks for, as PostgreSQL reads them: its own parsers have no say."""

from collections.abc import Sequence

from dragoman.text.words import SearchQuery, SearchTerm, Words


def tsvector(words: Words) -> str:
    """A tsvector of the words and their positions, independent of PostgreSQL's parsers. Words are
    letters and digits, so none ends a quote."""
    positions: dict[str, list[str]] = {}
    for place, word in enumerate(words, 1):
        positions.setdefault(word, []).append(str(place))
    return " ".join(f"'{word}':{','.join(found)}" for word, found in positions.items())


def tsquery(query: SearchQuery) -> str:
    """A tsquery of groups of terms, independent of PostgreSQL's parsers."""
    return " | ".join(map(_group, query))


def _group(terms: Sequence[SearchTerm]) -> str:
    return f"({' & '.join(map(_phrase, terms))})"


def _phrase(term: SearchTerm) -> str:
    words = " <-> ".join(f"'{word}'" for word in term.words)
    return f"{'!' * term.is_excluded}({words}{':*' * term.is_prefix})"
