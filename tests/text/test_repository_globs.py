"""Globs: two of them overlap if both match some path, as enumeration shows."""

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.repository_paths import (
    check_glob,
    glob_matches,
    globs_overlap,
    normalize_glob,
)
from tests.requirements import proves

pytestmark = proves("RESERVE-GLOBS")

PARTS = ["".join(letters) for size in (1, 2, 3) for letters in product("ab", repeat=size)]
PATHS = ["/".join(parts) for size in (1, 2, 3) for parts in product(PARTS, repeat=size)]
"""Every path of up to three parts of up to three letters, of two."""

parts_strategy = st.text("ab*?", min_size=1, max_size=2).filter(lambda text: "**" not in text)
globs = st.lists(parts_strategy | st.just("**"), min_size=1, max_size=2).map("/".join)


def matching_paths(glob: str) -> set[str]:
    """Paths that a glob matches, by a regular expression of its own."""
    if {"*", "?"}.isdisjoint(glob):
        # A plain path may be a folder.
        glob += "/**"
    wild = {"**/": "(?:[^/]+/)*", "*": "[^/]*", "?": "[^/]"}
    words: list[str] = re.findall(r"\*\*/|.", glob + "/")
    found = re.compile("".join(wild.get(word, re.escape(word)) for word in words))
    return {path for path in PATHS if found.fullmatch(path + "/")}


MATCHING_PATHS: dict[str, set[str]] = {}


def cached_matching_paths(glob: str) -> set[str]:
    """Matching paths, computed once for each glob."""
    if glob not in MATCHING_PATHS:
        MATCHING_PATHS[glob] = matching_paths(glob)
    return MATCHING_PATHS[glob]


@given(globs, globs)
def test_globs_overlap_if_both_match_a_path(one: str, other: str) -> None:
    shared = not cached_matching_paths(one).isdisjoint(cached_matching_paths(other))
    assert globs_overlap(one, other) >= shared
    assert globs_overlap(other, one) == globs_overlap(one, other)


@given(globs, st.sampled_from(PATHS))
def test_glob_has_at_least_the_enumerated_files(glob: str, file: str) -> None:
    assert glob_matches(glob, file) >= (file in cached_matching_paths(glob))


@given(globs)
def test_glob_overlaps_itself(glob: str) -> None:
    assert globs_overlap(glob, glob)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("src/a.py", "src/a.py", True),
        ("src/a.py", "src/b.py", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", True),
        ("src/*.py", "src/*.md", False),
        ("src/*.py", "docs/*.py", False),
        ("src/**", "src/deep/a.py", True),
        ("src", "src/deep/a.py", True),
        ("src", "src2/a.py", False),
        ("src", "src/*.py", True),
        ("src", "**/*.py", True),
        ("src", "*/a.py", True),
        ("src/auth", "src/*/login.py", True),
        ("src/auth", "src/*/*/x", True),
        ("src/a.py", "**/*.py", True),
        ("src/a.py", "**/x", False),
        ("src/v1.2", "src/v1.2/x", True),
        ("src/v1.2", "src/v1.2/*.py", True),
        (".github", "**/*.yml", True),
        ("**/*.md", "src/a.py", False),
        ("**/*.md", "docs/**", True),
        ("**/test_*.py", "tests/test_a.py", True),
        ("**/x.py", "x.py", True),
        ("a/**/b/*.py", "a/*.md", False),
        ("app/[id].tsx", "app/[id].tsx", True),
        ("app/[id].tsx", "app/i.tsx", False),
        ("*.lock", "uv.*", True),
        ("*.lock", "*.toml", False),
    ],
)
def test_common_globs_overlap_as_expected(one: str, other: str, expected: bool) -> None:
    assert globs_overlap(one, other) is expected


@pytest.mark.parametrize(
    ("glob", "normalized"),
    [("./src/a.py", "src/a.py"), ("src/", "src/**"), ("././x", "x"), ("src/**", "src/**")],
)
def test_glob_is_normalized(glob: str, normalized: str) -> None:
    assert normalize_glob(glob) == normalized


@pytest.mark.parametrize(
    "glob",
    [
        "",
        "/etc/passwd",
        "../x",
        "a//b",
        "a/./b",
        ".",
        "a\nb",
        "a\\b",
    ],
)
def test_glob_outside_the_repository_is_refused(glob: str) -> None:
    assert check_glob(normalize_glob(glob)) is not None


@pytest.mark.parametrize(
    "glob", ["src/a.py", "**", "src/**/x?.py", "*", "a/[b]/{c}.ts", ".github/"]
)
def test_valid_glob_is_accepted(glob: str) -> None:
    assert check_glob(normalize_glob(glob)) is None


@pytest.mark.parametrize(
    ("glob", "file", "expected"),
    [
        ("**/x.py", "x.py", True),
        ("**/x.py", "yx.py", False),
        ("docs/**/*.md", "docs/a/b.md", True),
        ("docs/**/*.md", "docs/a/b.py", False),
        ("docs/**/*.md", "src/b.md", False),
        ("src", "src/a.py", True),
        ("src", "src2", False),
    ],
)
def test_glob_has_the_files_between_its_beginning_and_end(
    glob: str, file: str, expected: bool
) -> None:
    assert glob_matches(glob, file) is expected
