"""Upgrades: old files are migrated or left unchanged; older processes can no longer write."""

import os
from pathlib import Path

import pytest

from dragoman.core.errors import StoreUnavailable
from dragoman.ledger.stream_state import FOLD_VERSION
from dragoman.store.postgres.migrate import MIGRATIONS as ON_SERVERS
from dragoman.store.sqlite import migrate
from dragoman.store.sqlite.migrate import APPLICATION_ID, MIGRATIONS
from dragoman.text.search_terms import SearchTerm
from tests.conformance.store.changes import begin_stream
from tests.crash.data_directories import run_killed_at
from tests.forked import fork
from tests.ledger.released import golden_entries
from tests.requirements import proves
from tests.store.sqlite.files import connect, create_filled, open_store
from tests.store.upgrades import (
    COPY,
    OLD,
    TABLES,
    cleanup_statements,
    fill,
    lines,
    positions_about_bead,
    problems,
    write_letters,
)

NEWER = len(MIGRATIONS) + 1

FENCED_BY = {7: 11, 8: 13}
"""Fold version -> migration that fences off processes with older folds."""


def old_database(path: Path, version: int, name: str) -> Path:
    """Create a file of an earlier version, filled with a ledger of that time."""
    today = path.with_name("today.db")
    store = open_store(today)
    fill(store, name)
    store.close()
    old = connect(path)
    for script in MIGRATIONS[:version]:
        old.execute(script).fetchall()
    old.execute("ATTACH ? AS today", (str(today),)).fetchall()
    for table in ("meta", *TABLES):
        columns = ", ".join(
            column for _, column, *_ in old.execute(f"PRAGMA main.table_info({table})").fetchall()
        )
        if columns:
            copy = COPY.format(table=table, columns=columns, source=f"today.{table}")
            old.execute(copy).fetchall()
    for statement in cleanup_statements(version):
        old.execute(statement).fetchall()
    old.execute(f"PRAGMA application_id = {APPLICATION_ID}").fetchall()
    old.execute(f"PRAGMA user_version = {version}").fetchall()
    old.close()
    return path


def version_of(path: Path) -> int:
    """Return the schema version of a file."""
    database = connect(path)
    found = database.execute("PRAGMA user_version").fetchall()
    database.close()
    return found[0][0]


@proves("UPGRADE-OLD", "SEARCH-WORDS")
def test_old_search_index_is_rebuilt(tmp_path: Path) -> None:
    path = old_database(tmp_path / "hub.db", 6, "v9")
    database = connect(path)
    database.execute("INSERT INTO texts (rowid, words) VALUES (1, '日本語テキスト')").fetchall()
    database.execute("INSERT INTO meta (key, value) VALUES ('indexed', '9')").fetchall()
    database.close()

    store = open_store(path)

    assert store.indexed_position() == 0
    assert store.search(((SearchTerm(("日本語テキスト",)),),), None, 9) == []
    store.close()


@proves("UPGRADE-OLD", "MAIL-THREAD")
def test_old_letters_are_listed_by_their_bead(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"
    store = open_store(path)
    write_letters(store)
    found = positions_about_bead(store)
    store.close()
    old = connect(path)
    old.execute("DELETE FROM lists WHERE list LIKE 'bead:%'").fetchall()
    old.execute("DROP INDEX entries_claims").fetchall()
    old.execute("PRAGMA user_version = 11").fetchall()
    old.close()

    store = open_store(path)

    assert len(found) == 2
    assert positions_about_bead(store) == found
    assert problems(store) == []
    store.close()


@proves("UPGRADE-OLD")
@pytest.mark.parametrize(("version", "name"), OLD)
def test_file_of_every_earlier_version_is_migrated(tmp_path: Path, version: int, name: str) -> None:
    path = old_database(tmp_path / "hub.db", version, name)

    store = open_store(path)

    assert version_of(path) == len(MIGRATIONS)
    assert lines(store) == [entry.line.encode() for entry in golden_entries(name)]
    assert problems(store) == []
    begin_stream(store, "task:new")
    with store.snapshot() as frozen:
        assert [one.record.answer for one in frozen.answers((0, ""), 9)] == [b"its answer"]
    store.close()


@proves("UPGRADE-KILLED")
@pytest.mark.parametrize(("version", "name"), [(0, ""), OLD[0], OLD[-1]])
def test_interrupted_migration_leaves_the_file_unchanged(
    tmp_path: Path, version: int, name: str
) -> None:
    path = tmp_path / "hub.db"
    if version:
        old_database(path, version, name)

    step = 1
    while run_killed_at(step, lambda: open_store(path)):
        # After the commit it is no longer the migration that is killed.
        assert version_of(path) in (version, len(MIGRATIONS)), f"killed at step {step}"
        step += 1

    assert step > 10
    store = open_store(path)
    assert problems(store) == []
    assert lines(store) == [entry.line.encode() for entry in golden_entries(name)] if name else True
    store.close()


@proves("UPGRADE-FENCE")
def test_every_fold_version_has_a_fencing_migration() -> None:
    assert max(FENCED_BY) == FOLD_VERSION, "say by which migration others are fenced off"
    assert sorted(set(FENCED_BY.values())) == [FENCED_BY[number] for number in sorted(FENCED_BY)]
    assert max(FENCED_BY.values()) <= min(len(MIGRATIONS), len(ON_SERVERS))


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
