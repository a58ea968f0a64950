"""Comparison of a file's tables, indexes, views and triggers with those that migrations make."""

from pathlib import Path
from typing import Any, cast

import apsw

from dragoman.engine.ports import IntegrityReport
from dragoman.store.sql import SchemaObjects, compare_schemas
from dragoman.store.sqlite import migrate
from dragoman.store.sqlite.apsw_types import DRIVER_ERRORS, Connection
from dragoman.store.sqlite.connect import open_reader
from dragoman.store.sqlite.errors import store_error

# What SQLite makes for itself has a name of its own; statistics are no part of a schema.
_OBJECTS = """
SELECT type || ' ' || name, tbl_name || ': ' || coalesce(sql, '')
FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
"""


def check_schema(path: Path) -> IntegrityReport:
    """Compare the schema of a file with that of an empty database of this version."""
    reader = open_reader(path)
    try:
        found = _list_objects(reader)
    except DRIVER_ERRORS as error:
        raise store_error(error, path) from error
    finally:
        reader.close(True)
    return IntegrityReport(tuple(compare_schemas(found, _expected_objects())))


def _expected_objects() -> SchemaObjects:
    connection: Connection = cast(Any, apsw.Connection(":memory:"))
    try:
        for script in migrate.MIGRATIONS:
            connection.execute(script).fetchall()
        return _list_objects(connection)
    finally:
        connection.close(True)


def _list_objects(connection: Connection) -> SchemaObjects:
    return dict(connection.execute(_OBJECTS).fetchall())
