"""Changes of the database file behind the program's back."""

from pathlib import Path
from typing import Any

import apsw

FORGET_CHECKPOINTS = "DELETE FROM meta WHERE key LIKE 'issued/%'"
"""As if the process had been killed before the store knew of any checkpoint."""


def change(database: Path, *statements: str) -> None:
    """Run statements on a database without the triggers that forbid them, which come back."""
    connection: Any = apsw.Connection(str(database))
    with connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        definitions = triggers.fetchall()
        for name, _ in definitions:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
        for _, definition in definitions:
            connection.execute(definition)
    connection.close()
