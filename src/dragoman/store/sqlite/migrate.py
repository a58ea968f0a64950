"""Schema version of a file: created, migrated to this release, or refused."""

from collections.abc import Callable
from pathlib import Path

from dragoman.core.errors import StoreCorrupt, StoreUnavailable
from dragoman.store.sql import load_migrations, other_version
from dragoman.store.sqlite.apsw_types import Connection

APPLICATION_ID = int.from_bytes(b"DRGM", "big")
"""The application id in the header of every database of ours."""

MIGRATIONS = load_migrations("dragoman.store.sqlite")


def migrate(connection: Connection, path: Path, new_ledger_id: Callable[[], str]) -> None:
    """Migrate a database to this version. Two processes may do this at once: one of them waits.

    On an error the caller closes the connection, which undoes what was begun.
    """
    if _version_marks(connection) == (APPLICATION_ID, len(MIGRATIONS)):
        return
    connection.execute("BEGIN IMMEDIATE")
    # Only under the write lock do the marks and the tables belong together.
    _apply(connection, _version(connection, path), new_ledger_id)
    connection.execute("COMMIT")


def check_version(connection: Connection, path: Path) -> None:
    """Refuse to write to tables that another process has migrated meanwhile.

    Called within a transaction, so that nobody can migrate before its end.
    """
    version = connection.execute("PRAGMA user_version").get
    if version != len(MIGRATIONS):
        raise StoreUnavailable(
            f"{path} was brought to schema {version} while this process ran, and this process "
            f"knows schema {len(MIGRATIONS)}; nothing was written. Stop it, and start it again "
            "with the same dragoman as all other processes"
        )


def _version_marks(connection: Connection) -> tuple[int, int]:
    """Application id and schema version."""
    return connection.pragma("application_id"), connection.pragma("user_version")


def _version(connection: Connection, path: Path) -> int:
    """The number of migrations that this database has had; 0: it is still empty."""
    application, version = _version_marks(connection)
    objects = connection.execute("SELECT count(*) FROM sqlite_schema").get
    if application != APPLICATION_ID and (application, version, objects) != (0, 0, 0):
        raise StoreCorrupt(
            f"{path} is a SQLite database, but not one of dragoman's (its application id is "
            f"{application:#x}, not {APPLICATION_ID:#x}); nothing was changed. Name another file, "
            "or restore a backup if it was ours"
        )
    if version > len(MIGRATIONS) or (objects and version < 1):
        raise other_version(path, version, len(MIGRATIONS))
    return version


def _apply(connection: Connection, version: int, new_ledger_id: Callable[[], str]) -> None:
    for script in MIGRATIONS[version:]:
        # apsw runs the statements of a script one by one, as the cursor is drained.
        connection.execute(script).fetchall()
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", len(MIGRATIONS))
    if version == 0:
        connection.execute(
            "INSERT INTO meta (key, value) VALUES ('ledger_id', ?)", (new_ledger_id(),)
        )
