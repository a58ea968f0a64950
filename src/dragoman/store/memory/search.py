"""Whether words are as wanted, word by word: what the indexes of the databases must agree with."""

from dragoman.text.words import Term, Wanted, Words


def is_wanted(words: Words, wanted: Wanted) -> bool:
    """True if one of the groups matches: it has all its wanted terms, and none that is excluded.
    The indexes of the databases must agree with this."""
    return any(
        all(_stands_in(words, term) is not term.is_unwanted for term in group) for group in wanted
    )


def _stands_in(words: Words, term: Term) -> bool:
    *first, last = term.words
    size = len(term.words)
    for start in range(len(words) - size + 1):
        *before, end = words[start : start + size]
        is_last = end.startswith(last) if term.is_prefix else end == last
        if is_last and before == first:
            return True
    return False
