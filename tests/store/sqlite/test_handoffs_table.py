"""Table of handoffs in the file, as its other users see it."""

from pathlib import Path

import apsw
import pytest

from tests.requirements import proves
from tests.store.sqlite.files import connect, create_filled

pytestmark = proves("ACP-TABLE")

COLUMNS = [
    ("id", 1),
    ("thread_id", 1),
    ("task_id", 1),
    ("from_agent", 1),
    ("to_agent", 1),
    ("title", 1),
    ("reason", 1),
    ("package_json", 1),
    ("status", 1),
    ("provenance_json", 1),
    ("verification_json", 1),
    ("initiated_at", 1),
    ("resolved_at", 0),
    ("resolution_notes", 0),
]
INSERT = (
    "INSERT INTO handoffs (id, thread_id, task_id, from_agent, to_agent, title, reason,"
    " package_json, provenance_json, verification_json)"
    " VALUES (?, 'th', 'T', 'a', 'b', 't', 'r', '{}', '{}', '{}')"
)


def test_table_has_the_columns_of_the_seed(tmp_path: Path) -> None:
    database = connect(create_filled(tmp_path / "hub.db"))
    query = "SELECT name, type, \"notnull\" FROM pragma_table_info('handoffs') ORDER BY cid"
    found = database.execute(query).fetchall()
    assert [(name, required) for name, _, required in found] == COLUMNS
    assert {kind for _, kind, _ in found} == {"TEXT"}
    database.close()


def test_index_allows_one_active_handoff_per_task(tmp_path: Path) -> None:
    database = connect(create_filled(tmp_path / "hub.db"))
    database.execute(INSERT, ("one",)).fetchall()
    with pytest.raises(apsw.ConstraintError, match=r"handoffs\.task_id"):
        database.execute(INSERT, ("two",)).fetchall()
    database.execute("UPDATE handoffs SET status = 'closed'").fetchall()
    database.execute(INSERT, ("two",)).fetchall()
    (row,) = database.execute(
        "SELECT status, initiated_at FROM handoffs WHERE id = 'two'"
    ).fetchall()
    assert row[0] == "proposed"
    assert row[1].endswith("Z")
    database.close()
