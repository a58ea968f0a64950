"""Words, and what a search asks for, as PostgreSQL reads them: its own parsers have no say."""

from collections.abc import Sequence

from dragoman.text.words import Term, Wanted, Words


def tsvector(words: Words) -> str:
    """A tsvector of the words and their positions, independent of PostgreSQL's parsers. Words are
    letters and digits, so none ends a quote."""
    places: dict[str, list[str]] = {}
    for place, word in enumerate(words, 1):
        places.setdefault(word, []).append(str(place))
    return " ".join(f"'{word}':{','.join(found)}" for word, found in places.items())


def tsquery(wanted: Wanted) -> str:
    """A tsquery of groups of terms, independent of PostgreSQL's parsers."""
    return " | ".join(map(_group, wanted))


def _group(terms: Sequence[Term]) -> str:
    return f"({' & '.join(map(_phrase, terms))})"


def _phrase(term: Term) -> str:
    words = " <-> ".join(f"'{word}'" for word in term.words)
    return f"{'!' * term.is_unwanted}({words}{':*' * term.is_prefix})"
