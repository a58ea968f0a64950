"""What SQLite finds when it looks at its own file, and what it cannot find in the time it has."""

from pathlib import Path

import pytest

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.ports import Inspection
from tests.requirements import proves
from tests.store.sqlite.files import (
    PAGE,
    connect,
    filled,
    hide_from_index,
    open_store,
    overwrite,
    root_page,
)

pytestmark = proves("STORE-INSPECT")


def test_a_sound_file_is_sound_however_long_it_is_looked_at(tmp_path: Path) -> None:
    store = open_store(filled(tmp_path / "hub.db", 50))

    assert store.inspect() == store.inspect(60.0) == Inspection()
    store.close()


def test_a_row_that_an_index_lacks_is_found(tmp_path: Path) -> None:
    path = filled(tmp_path / "hub.db", 50)
    database = connect(path)
    database.execute("UPDATE streams SET queue = '', status = 'ready'").fetchall()
    database.close()
    hide_from_index(path, "streams_ready", "task:9")

    store = open_store(path)

    assert store.inspect().damage == ("row 9 missing from index streams_ready",)
    assert store.stream("task:9") is not None
    store.close()


def test_a_damaged_page_is_found(tmp_path: Path) -> None:
    path = filled(tmp_path / "hub.db", 50)
    overwrite(path, (root_page(path, "names") - 1) * PAGE, b"\xff" * 16)
    store = open_store(path)

    seen = store.inspect()

    assert seen.damage
    assert "*** in database main ***" not in seen.damage
    store.close()


def test_who_has_no_time_says_that_not_all_was_looked_at(tmp_path: Path) -> None:
    store = open_store(filled(tmp_path / "hub.db", 2_000))

    assert store.inspect(0.0) == Inspection(is_whole=False)
    assert store.inspect() == Inspection()
    store.close()
    with pytest.raises(StoreUnavailable, match="was closed"):
        store.inspect()
