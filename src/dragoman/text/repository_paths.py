"""Paths in a repository, and globs of them: safe ones, matching, and whether two could overlap.

An untrusted path must be relative, lead downwards, and be the same file to every reader.

`*` and `?` stand for characters within one part of a path, `**` as a whole part for any number of
parts; every other character stands for itself. `src/` means all that is in it, like `src/**`. A
path without a wildcard may be a folder: it also means all that is in it. Only when its name has an
ending, like `a.py`, it counts as a file, unless the path that it is compared with begins in it.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any, Final, Generic, NamedTuple, TypeVar

# --- paths ------------------------------------------------------------------------------------

MAX_PART_BYTES: Final = 255
"""In bytes; no file system that we know takes a longer name."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_][\w-]*+(?:[./][A-Za-z0-9_][\w-]*+)*+", re.ASCII)
"""Form of nearly all paths, which is safe."""


def check_path(path: str) -> str | None:
    """Check that a path stays below its folder; the reason if it must not be followed, or None."""
    if len(path) <= MAX_PART_BYTES and _PLAIN.fullmatch(path):
        return None
    if path.isascii():
        return _check_form(path)
    if not unicodedata.is_normalized("NFC", path):
        return "it is not in Unicode's normal form NFC, so that two files could look the same"
    # Look-alikes of dots and slashes are refused too: some file systems fold them.
    return _check_form(path) or _check_form(unicodedata.normalize("NFKC", path))


def _check_form(path: str) -> str | None:
    if not path:
        return "it is empty"
    if path.startswith("/"):
        return "it is absolute; name a path below the folder"
    if "\\" in path or ":" in path:
        return "it has a backslash or a colon; write a relative path with /"
    if not path.isprintable():
        return "it has a control character or one that cannot be seen"
    parts = path.removesuffix("/").split("/")
    if ".." in parts:
        return "it leads out of the folder with .."
    if "" in parts:
        return "it has an empty part (//)"
    if any(len(part.encode(errors="surrogatepass")) > MAX_PART_BYTES for part in parts):
        return f"a part of it has more than {MAX_PART_BYTES} bytes"
    return None


# --- globs ------------------------------------------------------------------------------------

_ANY_PARTS: Final = "**"
_ANY_TEXT: Final = "*"
_ANY_ONE: Final = "?"
_WILD: Final = frozenset({_ANY_TEXT, _ANY_ONE})
MAX_PARTS: Final = 24
"""A path of more parts cannot be reserved: each is compared with those of all others."""

T = TypeVar("T")


def normalize_glob(glob: str) -> str:
    """Normalize a glob for storing: no `./` at its beginning, and `**` behind a folder."""
    while glob.startswith("./"):
        glob = glob[2:]
    return glob + _ANY_PARTS if glob.endswith("/") else glob


def check_glob(glob: str) -> str | None:
    """Check a glob; the reason why it names no files of a repository, or None."""
    if any(_ANY_PARTS in part and part != _ANY_PARTS for part in glob.split("/")):
        return "** must stand alone between slashes, for example src/**/test_*.py"
    if "." in glob.split("/"):
        return "it has a part that is a single dot; write the path without it"
    if glob.count("/") >= MAX_PARTS:
        return f"it has more than {MAX_PARTS} parts; name a folder above it"
    return check_path(glob)


def is_only_wildcards(glob: str) -> bool:
    """Check whether it has no letter of a name, so that it matches files of any name."""
    return not any(character not in "*?/." for character in glob)


def globs_overlap(one: str, other: str) -> bool:
    """Check whether a file could match both globs."""
    a, b = _analyze(one), _analyze(other)
    within_a, within_b = b.head.startswith(a.head), a.head.startswith(b.head)
    if (within_a and a.is_plain) or (within_b and b.is_plain):
        return True
    # A quick check: most pairs differ in their beginning or end.
    return (
        (within_a or within_b)
        and (a.tail.endswith(b.tail) or b.tail.endswith(a.tail))
        and _patterns_meet(a.parts, b.parts, _ANY_PARTS, _parts_meet, _matches_parts)
    )


def glob_matches(glob: str, file: str) -> bool:
    """Check whether a glob matches this file, which is no folder whatever its name."""
    shape, path = _analyze(glob), file + "/"
    if shape.is_plain:
        return path.startswith(shape.head)
    parts = tuple(file.split("/"))
    return (
        path.startswith(shape.head)
        and path.endswith(shape.tail)
        and _patterns_meet(shape.parts, parts, _ANY_PARTS, _parts_meet, _matches_parts)
    )


class GlobIndex(Generic[T]):
    """Index of items by glob, to find those whose glob could overlap with another one."""

    def __init__(self) -> None:
        self._at: defaultdict[tuple[str, ...], list[T]] = defaultdict(list)
        """Folder in which globs begin -> items of the globs that begin just there."""
        self._within: defaultdict[tuple[str, ...], list[T]] = defaultdict(list)
        """Folder -> items of the globs that begin anywhere below it."""

    def add(self, glob: str, item: T) -> None:
        """Add an item."""
        folder = _analyze(glob).folder
        self._at[folder].append(item)
        for size in range(len(folder) + 1):
            self._within[folder[:size]].append(item)

    def find_near(self, glob: str) -> Iterator[T]:
        """Items whose globs begin above, in or below the folder in which this glob begins."""
        folder = _analyze(glob).folder
        for size in range(len(folder)):
            yield from self._at.get(folder[:size], ())
        yield from self._within.get(folder, ())


class _GlobShape(NamedTuple):
    """A glob, prepared for comparison."""

    parts: tuple[str, ...]
    folder: tuple[str, ...]
    """Parts before the first one with a wildcard."""
    is_plain: bool
    head: str
    """Beginning of every path that matches; `tail` is its end, with a slash behind it."""
    tail: str


@lru_cache(maxsize=4_096)
def _analyze(glob: str) -> _GlobShape:
    parts = tuple(glob.split("/"))
    folder = tuple(takewhile(lambda part: not _is_wild(part), parts))
    path = glob + "/"
    if folder != parts:
        # `**` may match no part at all, and then there is no slash before what follows it.
        wild = [place for place, character in enumerate(path) if character in _WILD]
        return _GlobShape(
            parts, folder, False, path[: wild[0]], path[wild[-1] + 1 :].removeprefix("/")
        )
    is_file = "." in parts[-1][1:]
    return _GlobShape(
        parts if is_file else (*parts, _ANY_PARTS), folder, True, path, path if is_file else ""
    )


def _is_wild(part: str) -> bool:
    return not _WILD.isdisjoint(part)


@lru_cache(maxsize=65_536)
def _parts_meet(one: str, other: str) -> bool:
    if not _is_wild(one) and not _is_wild(other):
        return one == other
    return _patterns_meet(one, other, _ANY_TEXT, _characters_meet, _matches_characters)


def _characters_meet(one: str, other: str) -> bool:
    return one == other or _ANY_ONE in (one, other)


def _matches_characters(pattern: str, row: str) -> bool:
    """Match characters without `*` against a pattern: all positions at once, as bits.

    This takes as many steps as the text is long, whatever the pattern is.
    """
    positions_by_character, loops, end = _compile_characters(pattern)
    anywhere = positions_by_character.get(_ANY_ONE, 0)
    at = 1
    for character in row:
        here = -1 if character == _ANY_ONE else positions_by_character.get(character, anywhere)
        at = ((at & here) << 1) | (at & loops)
    return bool(at & end)


@lru_cache(maxsize=4_096)
def _compile_characters(pattern: str) -> tuple[dict[str, int], int, int]:
    """Character -> positions that it matches; the positions of `*`; the last position."""
    loops, place = 0, 1
    positions_by_character: dict[str, int] = {}
    for character in pattern:
        if character == _ANY_TEXT:
            loops |= place
        else:
            positions_by_character[character] = positions_by_character.get(character, 0) | place
            place <<= 1
    anywhere = positions_by_character.get(_ANY_ONE, 0)
    return (
        {character: places | anywhere for character, places in positions_by_character.items()},
        loops,
        place,
    )


def _patterns_meet(
    a: Sequence[T],
    b: Sequence[T],
    wildcard: T,
    fits: Callable[[T, T], bool],
    matches: Callable[[Any, Any], bool],
) -> bool:
    """Check whether one sequence could match both patterns; `wildcard` matches any number of
    items."""
    if wildcard in a and wildcard in b:
        # Each can match the other's middle, so that only the two ends can disagree.
        return _ends_fit(a, b, wildcard, fits) and _ends_fit(a[::-1], b[::-1], wildcard, fits)
    if wildcard in a:
        return matches(a, b)
    if wildcard in b:
        return matches(b, a)
    return len(a) == len(b) and all(map(fits, a, b))


def _ends_fit(a: Sequence[T], b: Sequence[T], wildcard: T, fits: Callable[[T, T], bool]) -> bool:
    for one, other in zip(a, b, strict=False):
        if wildcard in (one, other):
            return True
        if not fits(one, other):
            return False
    return True


def _matches_parts(pattern: tuple[str, ...], row: tuple[str, ...]) -> bool:
    """Match parts without `**` against a pattern: its ends, and the runs in between."""
    front, *between, back = _runs_between_stars(pattern)
    at, end = len(front), len(row) - len(back)
    if at > end or not _run_fits(front, row, 0) or not _run_fits(back, row, end):
        return False
    for run in between:
        places = range(at, end - len(run) + 1)
        found = next((place for place in places if _run_fits(run, row, place)), None)
        if found is None:
            return False
        at = found + len(run)
    return True


def _run_fits(run: tuple[str, ...], row: tuple[str, ...], place: int) -> bool:
    return all(map(_parts_meet, run, row[place : place + len(run)]))


@lru_cache(maxsize=4_096)
def _runs_between_stars(pattern: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Split the parts at each `**`."""
    places = [place for place, part in enumerate(pattern) if part == _ANY_PARTS]
    starts, ends = [0, *(place + 1 for place in places)], [*places, len(pattern)]
    return tuple(pattern[start:end] for start, end in zip(starts, ends, strict=True))
