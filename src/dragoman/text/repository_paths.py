"""Paths in a repository, and globs of them: safe ones, matching, and whether two could overlap.

An untrusted path must be relative, lead downwards, and be the same file to every reader.

A glob has all paths that begin with what stands before its first `*` or `?`, and end with what
stands after its last one. `src/` means all that is in it, like `src/**`. A path without a wildcard
may be a folder: it also means all that is in it. Only when its name has an ending, like `a.py`, it
counts as a file, unless the path that it is compared with begins in it.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final, NamedTuple

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

_WILD: Final = re.compile(r"[*?]")


def normalize_glob(glob: str) -> str:
    """Normalize a glob for storing: no `./` at its beginning, and `**` behind a folder."""
    while glob.startswith("./"):
        glob = glob[2:]
    return f"{glob}**" if glob.endswith("/") else glob


def check_glob(glob: str) -> str | None:
    """Check a glob; the reason why it names no files of a repository, or None."""
    if "." in glob.split("/"):
        return "it has a part that is a single dot; write the path without it"
    return check_path(glob)


def globs_overlap(one: str, other: str) -> bool:
    """Check whether a path could be among those of both globs."""
    a, b = _analyze(one), _analyze(other)
    within_a, within_b = b.head.startswith(a.head), a.head.startswith(b.head)
    if (within_a and not a.is_wild) or (within_b and not b.is_wild):
        return True
    return (within_a or within_b) and (a.tail.endswith(b.tail) or b.tail.endswith(a.tail))


def glob_matches(glob: str, file: str) -> bool:
    """Check whether this file, which is no folder whatever its name, is among those of a glob."""
    shape = _analyze(glob)
    if not shape.is_wild:
        return f"/{file}/".startswith(shape.head)
    path = f"/{file}"
    return path.startswith(shape.head) and path.endswith(shape.tail)


class _GlobShape(NamedTuple):
    """Beginning and end of the paths of a glob."""

    head: str
    tail: str
    is_wild: bool


@lru_cache(maxsize=4_096)
def _analyze(glob: str) -> _GlobShape:
    path = f"/{glob}"
    wild = [found.start() for found in _WILD.finditer(path)]
    if wild:
        return _GlobShape(path[: wild[0]], path[wild[-1] + 1 :], True)
    is_file = "." in glob.rpartition("/")[2][1:]
    return _GlobShape(f"{path}/", path if is_file else "", False)
