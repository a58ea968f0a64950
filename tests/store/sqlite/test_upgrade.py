"""Upgrades: old files are migrated or refused unchanged; older processes can no longer write."""

import os
from pathlib import Path

import pytest

from dragoman.core.errors import StoreUnavailable
from dragoman.store.sqlite import migrate
from dragoman.store.sqlite.migrate import MIGRATIONS
from tests.conformance.store.changes import begin_stream
from tests.crash.data_directories import run_killed_at
from tests.forked import fork
from tests.requirements import proves
from tests.store.sqlite.files import connect, create_filled, files_in, open_store
from tests.store.upgrades import COMING, fill, is_filled, problems

NEWER = len(MIGRATIONS) + 1


def filled_database(path: Path) -> Path:
    """Create a file of this version, filled with a ledger."""
    store = open_store(path)
    fill(store)
    store.close()
    return path


def version_of(path: Path) -> int:
    """Return the schema version of a file."""
    database = connect(path)
    found = database.execute("PRAGMA user_version").fetchall()
    database.close()
    return found[0][0]


@proves("UPGRADE-OLD")
def test_filled_file_of_an_earlier_version_is_migrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = filled_database(tmp_path / "hub.db")
    monkeypatch.setattr(migrate, "MIGRATIONS", [*MIGRATIONS, COMING])

    store = open_store(path)

    assert version_of(path) == NEWER
    assert is_filled(store)
    begin_stream(store, "task:new")
    store.close()


@proves("UPGRADE-OLD")
@pytest.mark.parametrize("version", [-1, 0, NEWER, 13])
def test_file_of_another_version_is_refused_and_unchanged(tmp_path: Path, version: int) -> None:
    path = filled_database(tmp_path / "hub.db")
    database = connect(path)
    database.execute(f"PRAGMA user_version = {version}").fetchall()
    database.close()
    before = files_in(tmp_path)

    with pytest.raises(StoreUnavailable) as refused:
        open_store(path)

    assert refused.value.detail == (
        f"{path} was made by another version of dragoman (schema {version}, this one knows "
        f"{len(MIGRATIONS)}); nothing was changed. Use that version, or export there and import "
        "here"
    )
    assert files_in(tmp_path) == before


@proves("UPGRADE-KILLED")
@pytest.mark.parametrize("version", [0, len(MIGRATIONS)])
def test_interrupted_migration_leaves_the_file_unchanged(
    tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hub.db"
    if version:
        filled_database(path)
    monkeypatch.setattr(migrate, "MIGRATIONS", [*MIGRATIONS, COMING])

    step = 1
    while run_killed_at(step, lambda: open_store(path)):
        # After the commit it is no longer the migration that is killed.
        assert version_of(path) in (version, NEWER), f"killed at step {step}"
        step += 1

    assert step > 10
    store = open_store(path)
    assert problems(store) == []
    assert is_filled(store) if version else store.head() == 0
    store.close()


@proves("UPGRADE-FENCE")
def test_process_older_than_a_migration_cannot_write(tmp_path: Path) -> None:
    """Upgrade with an old server running: https://github.com/gastownhall/beads/issues/6064."""
    path = create_filled(tmp_path / "hub.db")
    old = open_store(path)
    begin_stream(old, "task:before")
    newer = connect(path)
    newer.execute("BEGIN; CREATE TABLE more (x)").fetchall()
    newer.execute(f"PRAGMA user_version = {NEWER}; COMMIT").fetchall()

    for _ in range(2):
        with pytest.raises(StoreUnavailable, match=rf"schema {NEWER}.*nothing was (written|chang)"):
            begin_stream(old, "task:after")
    with pytest.raises(StoreUnavailable, match="dragoman"):
        old.index_texts([(1, ("red",))], 1)

    assert old.head() == 2
    assert old.indexed_position() == 0
    old.close()


@proves("UPGRADE-FENCE")
def test_first_refusal_says_why_and_what_to_do(tmp_path: Path) -> None:
    path = create_filled(tmp_path / "hub.db")
    old = open_store(path)
    connect(path).execute(f"PRAGMA user_version = {NEWER}").fetchall()

    with pytest.raises(StoreUnavailable, match=r"while this process ran.*Stop it, and start it"):
        old.index_texts([(1, ("red",))], 1)

    old.close()


@proves("UPGRADE-FENCE")
def test_running_process_is_fenced_off_by_a_newer_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same with a separate process that has the file open and has written to it."""
    path = create_filled(tmp_path / "hub.db")
    (wait, go), (hear, tell) = os.pipe(), os.pipe()

    def write_after_migration() -> None:
        old = open_store(path)
        begin_stream(old, "task:before")
        os.write(tell, b"ready\n")
        os.read(wait, 1)
        try:
            begin_stream(old, "task:after")
            os.write(tell, b"written")
        except StoreUnavailable as error:
            os.write(tell, error.detail.encode())

    child = fork(write_after_migration)
    os.close(tell)
    assert os.read(hear, 6) == b"ready\n"
    monkeypatch.setattr(migrate, "MIGRATIONS", [*MIGRATIONS, "CREATE TABLE more (x)"])

    newer = open_store(path)
    os.write(go, b"!")

    assert b"while this process ran" in os.read(hear, 1_000)
    assert os.waitpid(child, 0)[1] == 0
    begin_stream(newer, "task:newer")
    assert newer.head() == 3
    newer.close()
