"""Integrity check of the database file, with and without a time limit."""

from pathlib import Path

import pytest

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.ports import IntegrityReport
from tests.requirements import proves
from tests.store.sqlite.files import (
    PAGE,
    connect,
    create_filled,
    hide_from_index,
    open_store,
    overwrite,
    root_page,
)

pytestmark = proves("STORE-INSPECT")


def test_intact_file_has_no_damage_with_or_without_a_time_limit(tmp_path: Path) -> None:
    store = open_store(create_filled(tmp_path / "hub.db", 50))

    assert store.inspect() == store.inspect(60.0) == IntegrityReport()
    store.close()


def test_row_missing_from_an_index_is_found(tmp_path: Path) -> None:
    path = create_filled(tmp_path / "hub.db", 50)
    database = connect(path)
    database.execute("UPDATE streams SET queue = '', status = 'ready'").fetchall()
    database.close()
    hide_from_index(path, "streams_ready", "task:9")

    store = open_store(path)

    assert store.inspect().damage == ("row 9 missing from index streams_ready",)
    assert store.stream("task:9") is not None
    store.close()


def test_damaged_page_is_found(tmp_path: Path) -> None:
    path = create_filled(tmp_path / "hub.db", 50)
    overwrite(path, (root_page(path, "names") - 1) * PAGE, b"\xff" * 16)
    store = open_store(path)

    report = store.inspect()

    assert report.damage
    assert "*** in database main ***" not in report.damage
    store.close()


def test_check_without_time_is_reported_as_incomplete(tmp_path: Path) -> None:
    store = open_store(create_filled(tmp_path / "hub.db", 2_000))

    assert store.inspect(0.0) == IntegrityReport(is_complete=False)
    assert store.inspect() == IntegrityReport()
    store.close()
    with pytest.raises(StoreUnavailable, match="was closed"):
        store.inspect()
