"""Whether words are as wanted, word by word: what the indexes of the databases must agree with."""

from dragoman.text.words import SearchQuery, SearchTerm, Words


def is_match(words: Words, query: SearchQuery) -> bool:
    """True if one of the groups matches: it has all its wanted terms, and none that is excluded.
    The indexes of the databases must agree with this."""
    return any(
        all(_contains(words, term) is not term.is_excluded for term in group) for group in query
    )


def _contains(words: Words, term: SearchTerm) -> bool:
    *first, last = term.words
    size = len(term.words)
    for start in range(len(words) - size + 1):
        *before, end = words[start : start + size]
        is_last = end.startswith(last) if term.is_prefix else end == last
        if is_last and before == first:
            return True
    return False
