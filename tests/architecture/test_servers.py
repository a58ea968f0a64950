"""The PostgreSQL of the tests: real, empty for each test, removed afterwards."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from dragoman.store.postgres import PostgresStore
from tests.conformance.store.scripts import SCRIPT
from tests.conformance.store.test_readers import play
from tests.requirements import proves
from tests.servers import empty_schema, fresh_schema, sweep_abandoned_homes

pytestmark = proves("PROJECT-SERVERS")

PROJECT = Path(__file__).parents[2]

# Starts a server as a test session does, prints its URL, and is killed.
ABANDON_A_SERVER = """
import os, signal
from tests.servers import running_postgres
with running_postgres() as url:
    print(url, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def split_url(url: str) -> tuple[str, str]:
    """Split the URL of a fixture into the address of the server and the name of the schema."""
    server, _, schema = url.partition("&schema=")
    return server, schema


def list_schemas(server: str) -> set[str]:
    """List the schemas of a server."""
    with psycopg.connect(server) as connection:
        rows = connection.execute("SELECT nspname FROM pg_namespace").fetchall()
    return {name for (name,) in rows}


def test_each_test_gets_an_empty_schema(postgres_url: str) -> None:
    server, schema = split_url(postgres_url)

    assert schema in list_schemas(server)
    with psycopg.connect(server) as connection:
        found = connection.execute(
            "SELECT count(*) FROM pg_class WHERE relnamespace = %s::regnamespace", [schema]
        ).fetchone()
    assert found == (0,)


def test_schema_is_dropped_with_its_tables(postgres_server: str) -> None:
    with fresh_schema(postgres_server) as url:
        server, schema = split_url(url)
        with psycopg.connect(server, options=f"-csearch_path={schema}") as connection:
            connection.execute("CREATE TABLE kept (id integer)")

    assert schema not in list_schemas(server)


def schema_contents(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of a schema, and the state of its sequences."""
    server, schema = split_url(url)
    with psycopg.connect(server, options=f"-csearch_path={schema}") as connection:
        found = connection.execute(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'S')"
            " AND relnamespace = %s::regnamespace",
            [schema],
        )
        every = sql.SQL("SELECT * FROM {}")
        return {
            name: connection.execute(every.format(sql.Identifier(name))).fetchall()
            for (name,) in found.fetchall()
        }


def test_emptied_schema_equals_a_new_one(postgres_url: str) -> None:
    store = PostgresStore.open(postgres_url, lambda: "01900000-0000-7000-8000-000000000000")
    new = schema_contents(postgres_url)
    play(SCRIPT, store)
    store.close()
    written = schema_contents(postgres_url)
    assert sum(rows != new[name] for name, rows in written.items()) > 5

    empty_schema(postgres_url)

    assert schema_contents(postgres_url) == new


@pytest.fixture
def temporary_folder(monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """Give a temporary folder with a path short enough for a socket, and open to all users."""
    folder = Path(tempfile.mkdtemp(prefix="sweep-"))
    folder.chmod(0o755)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    shutil.rmtree(folder)


def test_server_of_a_killed_run_is_removed(temporary_folder: Path) -> None:
    killed = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ABANDON_A_SERVER],
        cwd=PROJECT,
        env={**os.environ, "TMPDIR": str(temporary_folder)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    abandoned = killed.stdout.strip()
    assert list_schemas(abandoned), "the server outlives the run that started it"

    sweep_abandoned_homes()

    with pytest.raises(psycopg.OperationalError):
        list_schemas(abandoned)
    assert list(temporary_folder.glob("dragoman-postgres-*")) == []


def test_server_in_use_is_not_removed(postgres_server: str) -> None:
    sweep_abandoned_homes()

    assert list_schemas(postgres_server)
