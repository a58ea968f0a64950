"""Regular expressions in linear time, for untrusted text (google-re2).

They work on bytes: text is encoded once, and a position in it is one in its UTF-8.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, Protocol, cast

import re2 as untyped  # pyright: ignore[reportMissingTypeStubs]  it has none

_re2: Any = untyped
_MAX_MEMORY: Final = 64 * 1024 * 1024
"""Memory limit of a compiled expression; beyond it a search goes on, slower."""
_SHORT_TEXT: Final = 1_024


class Match(Protocol):
    """A match."""

    def span(self, group: int = 0, /) -> tuple[int, int]:
        """Start and end; (-1, -1): the group took no part."""
        ...

    def start(self, group: int = 0, /) -> int:
        """Start."""
        ...

    def end(self, group: int = 0, /) -> int:
        """End."""
        ...


class LinearRegex:
    """A regular expression, compiled at its first use, because that takes time."""

    def __init__(
        self,
        pattern: bytes,
        *,
        longest: bool = False,
        captures: bool = True,
        characters: bool = False,
    ) -> None:
        """`longest`: of several matches at a position the longest one counts.

        `characters`: the expression is about characters of UTF-8, not bytes.
        """
        self.pattern = pattern
        self._longest = longest
        self._captures = captures
        self._characters = characters

    def search(self, text: bytes, pos: int = 0, end: int | None = None) -> Match | None:
        """First match from `pos` on, in the text up to `end`."""
        return self._compiled.search(text, pos, end)

    def match(self, text: bytes, pos: int = 0, end: int | None = None) -> Match | None:
        """Match at `pos`, in the text up to `end`."""
        return self._compiled.match(text, pos, end)

    def finditer(self, text: bytes) -> Iterator[Match]:
        """All matches that do not overlap."""
        return self._compiled.finditer(text)

    @cached_property
    def _compiled(self) -> Any:
        options = _options(characters=self._characters, captures=self._captures)
        options.longest_match = self._longest
        return _re2.compile(self.pattern, options)


class AnyRegex:
    """Several expressions; tells which of them match anywhere in a text.

    In a short text a set takes a third of the time of a search. In a long one a search is faster,
    because it ends at the first match.
    """

    def __init__(self, *patterns: bytes) -> None:
        self._patterns = patterns

    def matches(self, text: bytes) -> bool:
        """Check whether any of them matches."""
        return bool(self.which(text))

    def which(self, text: bytes) -> Sequence[int]:
        """The numbers of those that match."""
        if len(text) < _SHORT_TEXT:
            return self._set(text) or ()
        return [number for number, search in enumerate(self._searches) if search(text)]

    @cached_property
    def _searches(self) -> list[Callable[[bytes], object]]:
        return [LinearRegex(pattern, captures=False).search for pattern in self._patterns]

    @cached_property
    def _set(self) -> Callable[[bytes], Sequence[int] | None]:
        """Function that tests all at once; expressions that are too long for a set are searched."""
        regex_set: Any = _re2.Set.SearchSet(_options(characters=False, captures=False))
        for pattern in self._patterns:
            regex_set.Add(pattern)
        try:
            regex_set.Compile()
        except _re2.error:
            searches = self._searches
            return lambda text: [at for at, search in enumerate(searches) if search(text)]
        return regex_set.Match


def _options(*, characters: bool, captures: bool) -> Any:
    options: Any = _re2.Options()
    encodings = _re2.Options.Encoding
    options.encoding = encodings.UTF8 if characters else encodings.LATIN1
    options.max_mem = _MAX_MEMORY
    options.never_capture = not captures
    options.log_errors = False
    return options


def escape_regex(text: bytes) -> bytes:
    """Escape bytes, so that they match literally."""
    return cast(bytes, _re2.escape(text))
