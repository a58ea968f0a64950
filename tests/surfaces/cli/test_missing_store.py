"""A missing database is not recreated, and every command names the way to restore it."""

import psycopg
import pytest
from psycopg import sql

from tests.requirements import proves
from tests.surfaces.cli.console import Console


@proves("STORE-LOST")
@pytest.mark.parametrize("args", [("init",), ("task", "create", "one"), ("task", "list")], ids=str)
def test_missing_database_is_not_recreated(dragoman: Console, args: tuple[str, ...]) -> None:
    dragoman.ask("task", "create", "one")
    dragoman.ask("tick")
    database = dragoman.data / "dragoman.db"
    assert (dragoman.data / "checkpoints.jsonl").exists()
    for file in dragoman.data.glob("dragoman.db*"):
        file.unlink()
    reply = dragoman.ask(*args, code=1)
    assert reply["code"] == "store_unavailable"
    assert "dragoman restore FILE --data NEW" in reply["detail"]
    assert not database.exists()


@proves("STORE-EMPTIED")
@pytest.mark.parametrize(
    "args",
    [("init",), ("task", "create", "one"), ("task", "list"), ("verify",), ("tick",), ("up",)],
    ids=str,
)
def test_empty_database_is_not_filled(dragoman: Console, args: tuple[str, ...]) -> None:
    dragoman.ask("task", "create", "one")
    database = dragoman.data / "dragoman.db"
    database.write_bytes(b"")
    reply = dragoman.ask(*args, code=1)
    assert reply["code"] == "store_unavailable"
    assert "is empty; " in reply["detail"]
    assert "dragoman restore FILE --data NEW" in reply["detail"]
    assert database.read_bytes() == b""
    assert dragoman.ask("doctor", code=1)["detail"] == "bad: store"


@proves("STORE-EMPTIED")
def test_empty_database_without_signatures_is_filled_by_writers_only(
    dragoman: Console,
) -> None:
    dragoman.ask("init")
    database = dragoman.data / "dragoman.db"
    database.write_bytes(b"")
    assert "run `dragoman init`" in dragoman.ask("task", "list", code=1)["detail"]
    assert "is empty" in dragoman("doctor").out
    assert database.read_bytes() == b""
    dragoman.ask("init")
    assert dragoman.ask("task", "list")["tasks"] == []


@proves("STORE-LOST")
def test_missing_store_error_names_the_setting(dragoman: Console) -> None:
    dragoman.ask("init")
    setting = f"[store] url in the settings, where a relative path begins at {dragoman.data})"
    (dragoman.data / "dragoman.toml").write_text('[store]\nurl = "sqlite:///x.db"\n')

    def error_detail() -> str:
        return dragoman.ask("task", "list", code=1)["detail"]

    assert error_detail().startswith(
        f"there is no database at {dragoman.data / 'x.db'} (so says --store, "
    )
    assert setting in error_detail()
    assert setting in dragoman("doctor").out.replace("\n", " ")
    (dragoman.data / "checkpoints.jsonl").touch()
    assert f"{setting} is gone; " in error_detail()
    (dragoman.data / "dragoman.toml").unlink()
    (dragoman.data / "dragoman.db").unlink()
    assert f"the database at {dragoman.data / 'dragoman.db'} is gone; " in error_detail()


@proves("STORE-LOST")
def test_missing_schema_is_not_recreated(dragoman: Console, postgres_url: str) -> None:
    dragoman.ask("init", "--store", postgres_url)
    dragoman.ask("task", "create", "one")
    _empty_schema(postgres_url)
    for args in (("task", "list"), ("verify",), ("task", "create", "two"), ("init",), ("up",)):
        reply = dragoman.ask(*args, code=1)
        assert reply["code"] == "store_unavailable"
        assert "there is no ledger in PostgreSQL" in reply["detail"]
        assert "dragoman restore FILE --data NEW" in reply["detail"]
    assert dragoman.ask("doctor", code=1)["detail"] == "bad: store"
    assert _count_tables(postgres_url) == 0


@proves("STORE-LOST")
def test_new_schema_is_created_by_writers_only(dragoman: Console, postgres_url: str) -> None:
    dragoman.data.mkdir()
    store = ("--store", postgres_url)
    assert "run `dragoman init`" in dragoman.ask("task", "list", *store, code=1)["detail"]
    assert _count_tables(postgres_url) == 0
    dragoman.ask("task", "create", "one", *store)
    assert len(dragoman.ask("task", "list", *store)["tasks"]) == 1


def _empty_schema(url: str) -> None:
    server, _, schema = url.partition("&schema=")
    name = sql.Identifier(schema)
    with psycopg.connect(server) as connection:
        connection.execute(sql.SQL("DROP SCHEMA {0} CASCADE; CREATE SCHEMA {0}").format(name))


def _count_tables(url: str) -> int:
    server, _, schema = url.partition("&schema=")
    query = "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace(%s)"
    with psycopg.connect(server) as connection:
        ((count,),) = connection.execute(query, (schema,)).fetchall()
    return count
