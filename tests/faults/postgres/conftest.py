"""What the tests of PostgreSQL's faults share, among them and with those of its store."""

from collections.abc import Generator

import pytest

from tests.servers import MortalServer, fresh_schema, mortal_postgres
from tests.store.postgres.conftest import admin, schema, store

__all__ = ["admin", "schema", "store"]


@pytest.fixture(scope="module")
def server() -> Generator[MortalServer]:
    """Give a server that may be killed."""
    with mortal_postgres() as server:
        yield server


@pytest.fixture
def url(server: MortalServer) -> Generator[str]:
    """Give the URL of an empty schema."""
    with fresh_schema(server.url) as url:
        yield url
