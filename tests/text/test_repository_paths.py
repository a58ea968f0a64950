"""Paths from untrusted callers stay inside their folder."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.repository_paths import MAX_PART_BYTES, check_path
from tests.requirements import proves

pytestmark = proves("PATH-INSIDE")


@pytest.mark.parametrize(
    "path",
    [
        "outputs/summary.md",
        "src/api/users.ts",
        "tasks/in-progress/TASK-2026-02-09-057.md",
        "./src/a.py",
        "docs/",
        ".github/workflows/ci.yml",
        "a/...b/c..d",
        "Ünïcode/naïve.md",
        "with space/(1).md",
        "a" * MAX_PART_BYTES + "/" + "b" * MAX_PART_BYTES,
    ],
)
def test_path_that_stays_inside_is_safe(path: str) -> None:
    assert check_path(path) is None


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "empty"),
        ("/etc/passwd", "absolute"),
        ("//server/share", "absolute"),
        ("..", ".."),
        ("../x", ".."),
        ("outputs/../../x", ".."),
        ("outputs/..", ".."),
        ("a//b", "empty part"),
        ("a//", "empty part"),
        ("C:/windows", "colon"),
        ("file:///etc/passwd", "colon"),
        ("outputs\\..\\x", "backslash"),
        ("\\\\server\\share", "backslash"),
        ("a\x00b", "control"),
        ("a\nb", "control"),
        ("a\x1b[31m", "control"),
        ("a\u202eb", "cannot be seen"),
        ("\uff0e\uff0e/x", ".."),
        ("a\uff0f\uff0e\uff0e\uff0fb", ".."),
        ("a\u2024\u2024/b", None),
        ("\u2024\u2024/b", ".."),
        ("\uff0fetc/passwd", "absolute"),
        ("e\u0301.md", "NFC"),
        ("a" * (MAX_PART_BYTES + 1), "255"),
        ("é" * 128, "255"),
    ],
)
def test_path_that_leads_outside_is_refused_with_the_reason(path: str, reason: str | None) -> None:
    found = check_path(path)
    assert (found is None) if reason is None else (found is not None and reason in found)


@given(st.text(st.sampled_from([*"ab./\\:%~\x00\n", "\uff0e", "\u2024", "é", "\ud800"])))
def test_safe_path_never_leaves_its_folder(path: str) -> None:
    if check_path(path) is None:
        depth = 0
        for part in path.split("/"):
            depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
            assert depth >= 0
        assert not path.startswith("/")
