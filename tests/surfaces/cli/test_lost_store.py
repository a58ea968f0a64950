"""A database that is gone: nothing is made in its place, and everybody says how it comes back."""

import psycopg
import pytest
from psycopg import sql

from tests.requirements import proves
from tests.surfaces.cli.console import Console


@proves("STORE-LOST")
@pytest.mark.parametrize("words", [("init",), ("task", "create", "one"), ("task", "list")], ids=str)
def test_a_database_that_is_gone_is_not_made_anew(
    dragoman: Console, words: tuple[str, ...]
) -> None:
    dragoman.ask("task", "create", "one")
    dragoman.ask("tick")
    database = dragoman.data / "dragoman.db"
    assert (dragoman.data / "checkpoints.jsonl").exists()
    for file in dragoman.data.glob("dragoman.db*"):
        file.unlink()
    told = dragoman.ask(*words, code=1)
    assert told["code"] == "store_unavailable"
    assert "dragoman restore FILE --data NEW" in told["detail"]
    assert not database.exists()


@proves("STORE-EMPTIED")
@pytest.mark.parametrize(
    "words",
    [("init",), ("task", "create", "one"), ("task", "list"), ("verify",), ("tick",), ("up",)],
    ids=str,
)
def test_a_database_that_is_empty_is_not_filled_either(
    dragoman: Console, words: tuple[str, ...]
) -> None:
    dragoman.ask("task", "create", "one")
    database = dragoman.data / "dragoman.db"
    database.write_bytes(b"")
    told = dragoman.ask(*words, code=1)
    assert told["code"] == "store_unavailable"
    assert "is empty; " in told["detail"]
    assert "dragoman restore FILE --data NEW" in told["detail"]
    assert database.read_bytes() == b""
    assert dragoman.ask("doctor", code=1)["detail"] == "bad: store"


@proves("STORE-EMPTIED")
def test_one_in_which_nothing_was_ever_signed_is_filled_by_who_writes_only(
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
def test_who_does_not_find_a_store_says_why_it_was_looked_for_there(dragoman: Console) -> None:
    dragoman.ask("init")
    why = f"[store] url in the settings, where a relative path begins at {dragoman.data})"
    (dragoman.data / "dragoman.toml").write_text('[store]\nurl = "sqlite:///x.db"\n')

    def told() -> str:
        return dragoman.ask("task", "list", code=1)["detail"]

    assert told().startswith(f"there is no database at {dragoman.data / 'x.db'} (so says --store, ")
    assert why in told()
    assert why in dragoman("doctor").out.replace("\n", " ")
    (dragoman.data / "checkpoints.jsonl").touch()
    assert f"{why} is gone; " in told()
    (dragoman.data / "dragoman.toml").unlink()
    (dragoman.data / "dragoman.db").unlink()
    assert f"the database at {dragoman.data / 'dragoman.db'} is gone; " in told()


@proves("STORE-LOST")
def test_a_schema_that_is_gone_is_not_made_anew(dragoman: Console, postgres_url: str) -> None:
    dragoman.ask("init", "--store", postgres_url)
    dragoman.ask("task", "create", "one")
    _empty(postgres_url)
    for words in (("task", "list"), ("verify",), ("task", "create", "two"), ("init",), ("up",)):
        told = dragoman.ask(*words, code=1)
        assert told["code"] == "store_unavailable"
        assert "there is no ledger in PostgreSQL" in told["detail"]
        assert "dragoman restore FILE --data NEW" in told["detail"]
    assert dragoman.ask("doctor", code=1)["detail"] == "bad: store"
    assert _tables(postgres_url) == 0


@proves("STORE-LOST")
def test_a_schema_that_was_never_there_is_made_by_who_writes_only(
    dragoman: Console, postgres_url: str
) -> None:
    dragoman.data.mkdir()
    store = ("--store", postgres_url)
    assert "run `dragoman init`" in dragoman.ask("task", "list", *store, code=1)["detail"]
    assert _tables(postgres_url) == 0
    dragoman.ask("task", "create", "one", *store)
    assert len(dragoman.ask("task", "list", *store)["tasks"]) == 1


def _empty(url: str) -> None:
    server, _, schema = url.partition("&schema=")
    name = sql.Identifier(schema)
    with psycopg.connect(server) as connection:
        connection.execute(sql.SQL("DROP SCHEMA {0} CASCADE; CREATE SCHEMA {0}").format(name))


def _tables(url: str) -> int:
    server, _, schema = url.partition("&schema=")
    query = "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace(%s)"
    with psycopg.connect(server) as connection:
        ((count,),) = connection.execute(query, (schema,)).fetchall()
    return count
