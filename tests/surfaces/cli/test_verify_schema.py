"""`verify` finds changes of the schema, on both databases, and of artifact copies."""

import hashlib
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import apsw
import pytest

from dragoman.store.postgres.connect import connect, parse_url
from tests.requirements import proves
from tests.surfaces.cli.console import Console

SQLITE_CHANGES = {
    "DROP TRIGGER entries_are_not_changed": "trigger entries_are_not_changed is missing",
    "DROP INDEX streams_ready": "index streams_ready is missing",
    "DROP VIEW tasks": "view tasks is missing",
    "DROP VIEW stream_rows": "view stream_rows is missing",
    "DROP VIEW tasks; CREATE VIEW tasks AS SELECT 1 AS id": "view tasks was changed",
    "DROP TRIGGER entries_are_not_removed; CREATE TRIGGER entries_are_not_removed BEFORE DELETE "
    "ON entries BEGIN SELECT 1; END": "trigger entries_are_not_removed was changed",
    "CREATE TRIGGER mine AFTER INSERT ON entries BEGIN SELECT 1; END": (
        "trigger mine is not dragoman's"
    ),
    "CREATE TABLE mine (a)": "table mine is not dragoman's",
    "ALTER TABLE numbers ADD COLUMN more TEXT": "table numbers was changed",
    "DROP TABLE handoffs": "table handoffs is missing",
}

POSTGRES_CHANGES = {
    "DROP TRIGGER entries_are_not_emptied ON entries": (
        "trigger entries_are_not_emptied on entries is missing"
    ),
    "ALTER TABLE entries DISABLE TRIGGER entries_are_not_changed": (
        "trigger entries_are_not_changed on entries was changed"
    ),
    "DROP INDEX streams_ready": "index streams_ready is missing",
    "DROP VIEW tasks": "view tasks is missing",
    "CREATE OR REPLACE FUNCTION forbid_change() RETURNS trigger LANGUAGE plpgsql AS "
    "'BEGIN RETURN NULL; END'": "function forbid_change was changed",
    "CREATE RULE mine AS ON INSERT TO entries DO ALSO NOTHING": (
        "rule mine on entries is not dragoman's"
    ),
    "CREATE TABLE mine (a int)": "table mine is not dragoman's",
    "ALTER TABLE numbers ADD COLUMN more int": "table numbers was changed",
    "ALTER TABLE streams DROP CONSTRAINT streams_name_key": (
        "constraint streams_name_key is missing"
    ),
}


def problems(console: Console) -> list[str]:
    """Problems that `verify` finds."""
    found = console.ask("verify", code=1)
    return [finding["problem"] for finding in found["findings"]]


@proves("VERIFY-SCHEMA")
@pytest.mark.parametrize("change", SQLITE_CHANGES)
def test_changed_sqlite_schema_is_found(dragoman: Console, change: str) -> None:
    dragoman.make("One")
    assert dragoman.ask("verify")["ok"] is True
    connection: Any = apsw.Connection(str(dragoman.data / "dragoman.db"))
    connection.execute(change).fetchall()
    connection.close()

    assert f"in the schema of the database, {SQLITE_CHANGES[change]}" in problems(dragoman)


@proves("VERIFY-SCHEMA")
def test_remedy_for_a_changed_schema(dragoman: Console, tmp_path: Path) -> None:
    dragoman.make("One")
    connection: Any = apsw.Connection(str(dragoman.data / "dragoman.db"))
    connection.execute("DROP TRIGGER entries_are_not_changed").fetchall()
    connection.close()
    assert "`dragoman backup FILE` and `dragoman restore FILE --data NEW`" in dragoman("verify").out

    archive, again = tmp_path / "hub.tar", Console(tmp_path / "again")
    dragoman.ask("backup", str(archive))
    again.ask("restore", str(archive))
    assert again.ask("verify")["ok"] is True


@proves("VERIFY-SCHEMA")
def test_changed_postgres_schema_is_found(dragoman: Console, postgres_url: str) -> None:
    dragoman.ask("init", "--store", postgres_url)
    dragoman.make("One")
    assert dragoman.ask("verify")["warnings"] == []
    for change, problem in POSTGRES_CHANGES.items():
        with connect(parse_url(postgres_url)) as connection:
            connection.execute(change.encode())
        assert f"in the schema of the database, {problem}" in problems(dragoman)


@proves("VERIFY-SCHEMA")
def test_role_that_may_make_no_schema_is_told(dragoman: Console, postgres_url: str) -> None:
    dragoman.ask("init", "--store", postgres_url)
    dragoman.make("One")
    address = parse_url(postgres_url)
    with connect(address) as connection:
        for statement in (
            "CREATE ROLE modest LOGIN",
            f"GRANT USAGE ON SCHEMA {address.schema} TO modest",
            f"GRANT ALL ON ALL TABLES IN SCHEMA {address.schema} TO modest",
            f"GRANT ALL ON ALL SEQUENCES IN SCHEMA {address.schema} TO modest",
        ):
            connection.execute(statement.encode())
    try:
        parts = urlsplit(postgres_url)
        host = parts.netloc.rpartition("@")[2]
        url = urlunsplit(parts._replace(netloc=f"modest@{host}"))
        (warning,) = dragoman.ask("verify", "--store", url)["warnings"]
        assert "the role may not create a schema beside it" in warning
    finally:
        with connect(address) as connection:
            connection.execute("DROP OWNED BY modest")
            connection.execute("DROP ROLE modest")


@pytest.fixture
def copied(dragoman: Console) -> tuple[Console, Path]:
    """Give a directory with a handoff, and the kept copy of its artifact."""
    content = b"the plan"
    folder = dragoman.data / "teamspaces" / "default" / "artifacts"
    folder.mkdir(parents=True)
    (folder / "plan.txt").write_bytes(content)
    dragoman.ask(
        *("handoff", "initiate", "--as", "ada", "--to", "bob", "--task", "t-1", "--title", "Plan"),
        *("--criterion", "it is read", "--summary", "written", "--next-step", "read it"),
        *("--artifact", "plan.txt"),
    )
    (offered,) = dragoman.ask("handoff", "list")["handoffs"]
    dragoman.ask("handoff", "accept", offered["handoff_id"], "--as", "bob")
    sha256 = hashlib.sha256(content).hexdigest()
    return dragoman, dragoman.data / "artifacts" / "sha256" / sha256[:2] / sha256


@proves("VERIFY-ARTIFACTS")
def test_changed_or_missing_copy_of_an_artifact_is_found(copied: tuple[Console, Path]) -> None:
    dragoman, copy = copied
    assert dragoman.ask("verify")["warnings"] == []
    copy.chmod(0o600)
    copy.write_bytes(b"the plot")
    assert problems(dragoman) == [
        f"an artifact that a handoff needs: the verified copy {copy.name} was changed"
    ]
    copy.unlink()
    assert problems(dragoman) == [
        f"an artifact that a handoff needs: the verified copy {copy.name} is not here"
    ]


@proves("VERIFY-ARTIFACTS")
def test_copy_that_another_directory_of_the_store_may_have_is_a_warning(
    copied: tuple[Console, Path], tmp_path: Path
) -> None:
    dragoman, _ = copied
    further = Console(tmp_path / "further")
    shutil.copytree(dragoman.data / "keys", further.data / "keys")
    further("init", "--store", f"sqlite:///{dragoman.data / 'dragoman.db'}")
    further.ask("checkpoints", "accept")
    (warning,) = further.ask("verify")["warnings"]
    assert "1 copy of artifacts that handoffs need are not here" in warning
    assert dragoman.ask("verify")["warnings"] == []
