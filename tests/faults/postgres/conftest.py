"""Fixtures for tests of PostgreSQL's faults, some of them shared with those of its store."""

from collections.abc import Generator

import pytest

from tests.servers import MortalServer, fresh_schema, mortal_postgres
from tests.store.postgres.conftest import admin, schema, store

__all__ = ["admin", "schema", "store"]


@pytest.fixture(scope="module")
def server() -> Generator[MortalServer]:
    """Server that may be killed."""
    with mortal_postgres() as server:
        yield server


@pytest.fixture
def url(server: MortalServer) -> Generator[str]:
    """URL of an empty schema."""
    with fresh_schema(server.url) as url:
        yield url
