"""Store in an empty schema of a real server, and a second connection with all rights."""

from collections.abc import Generator

import psycopg
import pytest

from dragoman.store.postgres import PostgresStore
from dragoman.system.clock import new_id

Admin = psycopg.Connection[tuple[object, ...]]


@pytest.fixture
def store(postgres_url: str) -> Generator[PostgresStore]:
    """Store in an empty schema."""
    store = PostgresStore.open(postgres_url, new_id)
    yield store
    store.close()


@pytest.fixture
def schema(postgres_url: str) -> str:
    """Name of that schema."""
    return postgres_url.partition("&schema=")[2]


@pytest.fixture
def admin(postgres_server: str, schema: str) -> Generator[Admin]:
    """Connection to that schema besides the store's."""
    with psycopg.connect(
        postgres_server, autocommit=True, options=f"-csearch_path={schema}"
    ) as connection:
        yield connection
