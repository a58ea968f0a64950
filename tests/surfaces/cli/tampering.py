"""Somebody who can write the database file, and does."""

from pathlib import Path
from typing import Any

import apsw


def change(database: Path, *statements: str) -> None:
    """Run statements on a database, whoever it belongs to; triggers that forbid them go first."""
    connection: Any = apsw.Connection(str(database))
    with connection:
        triggers = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        for (name,) in triggers.fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
    connection.close()
