"""Changes of the database file behind the program's back."""

from pathlib import Path
from typing import Any

import apsw

FORGET_CHECKPOINTS = "DELETE FROM meta WHERE key LIKE 'issued/%'"
"""As if the process had been killed before the store knew of any checkpoint."""


def change(database: Path, *statements: str) -> None:
    """Run statements on a database after dropping the triggers that forbid them."""
    connection: Any = apsw.Connection(str(database))
    with connection:
        triggers = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        for (name,) in triggers.fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
    connection.close()
