"""SQL files: queries by name, migrations by number, and errors in the files."""

import sys
from pathlib import Path

import pytest

from dragoman.store.sql import load_migrations, load_queries
from tests.requirements import proves

QUERIES = """-- About this file.

-- name: first
-- Why it is so.
SELECT 1
  FROM somewhere

-- What follows.

-- name: second_2
SELECT '-- not a comment'
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of a package that can be imported."""
    folder = tmp_path / f"package_of_{tmp_path.name}"
    (folder / "migrations").mkdir(parents=True)
    (folder / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return folder


@proves("STORE-CONTRACT")
def test_queries_are_found_by_name_without_comments(package: Path) -> None:
    (package / "queries.sql").write_text(QUERIES)

    assert load_queries(package.name) == {
        "first": "SELECT 1\nFROM somewhere",
        "second_2": "SELECT '-- not a comment'",
    }


@proves("STORE-CONTRACT")
def test_duplicate_query_name_is_refused(package: Path) -> None:
    (package / "queries.sql").write_text("-- name: a\nSELECT 1\n-- name: a\nSELECT 2\n")

    with pytest.raises(ValueError, match="two queries are called a"):
        load_queries(package.name)


@proves("STORE-MIGRATIONS")
def test_migrations_come_in_order_of_their_numbers(package: Path) -> None:
    for name in ("0002_more.sql", "0001_begin.sql", "notes.txt"):
        (package / "migrations" / name).write_text(name)

    assert load_migrations(package.name) == ["0001_begin.sql", "0002_more.sql"]


@proves("STORE-MIGRATIONS")
def test_missing_migration_number_is_refused(package: Path) -> None:
    for name in ("0001_begin.sql", "0003_more.sql"):
        (package / "migrations" / name).write_text(name)

    with pytest.raises(ValueError, match="without a gap"):
        load_migrations(package.name)
