"""What a search asks for, as FTS5 reads it."""

from collections.abc import Sequence

from dragoman.text.words import SearchQuery, SearchTerm


def fts5_query(query: SearchQuery) -> str:
    """An FTS5 expression of groups of terms. Words are letters and digits: none ends a string."""
    return " OR ".join(map(_group, query))


def _group(terms: Sequence[SearchTerm]) -> str:
    all_of = " AND ".join(_phrase(term) for term in terms if not term.is_excluded)
    none_of = " OR ".join(_phrase(term) for term in terms if term.is_excluded)
    return f"(({all_of}) NOT ({none_of}))" if none_of else f"({all_of})"


def _phrase(term: SearchTerm) -> str:
    phrase = f'"{" ".join(term.words)}"'
    return f"{phrase} *" if term.is_prefix else phrase
