"""What the tests of PostgreSQL's faults share with those of its store."""

from tests.store.postgres.conftest import admin, schema, store

__all__ = ["admin", "schema", "store"]
