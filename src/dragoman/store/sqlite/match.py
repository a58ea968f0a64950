"""What a search asks for, as FTS5 reads it."""

from collections.abc import Sequence

from dragoman.text.words import Term, Wanted


def match(wanted: Wanted) -> str:
    """An FTS5 expression of groups of terms. Words are letters and digits: none ends a string."""
    return " OR ".join(map(_group, wanted))


def _group(terms: Sequence[Term]) -> str:
    all_of = " AND ".join(_phrase(term) for term in terms if not term.is_unwanted)
    none_of = " OR ".join(_phrase(term) for term in terms if term.is_unwanted)
    return f"(({all_of}) NOT ({none_of}))" if none_of else f"({all_of})"


def _phrase(term: Term) -> str:
    phrase = f'"{" ".join(term.words)}"'
    return f"{phrase} *" if term.is_prefix else phrase
