"""Table of handoffs on the server, as its other users see it."""

import psycopg
import pytest

from dragoman.store.postgres import PostgresStore
from tests.requirements import proves
from tests.store.postgres.conftest import Admin
from tests.store.sqlite.test_handoffs_table import COLUMNS, INSERT

pytestmark = proves("ACP-TABLE")


def test_table_has_the_columns_of_the_seed(store: PostgresStore, admin: Admin, schema: str) -> None:
    del store
    found = admin.execute(
        "SELECT column_name, is_nullable FROM information_schema.columns "
        "WHERE table_schema = %s AND table_name = 'handoffs' ORDER BY ordinal_position",
        (schema,),
    ).fetchall()
    assert [(name, int(null == "NO")) for name, null in found] == COLUMNS


def test_index_allows_one_active_handoff_per_task(store: PostgresStore, admin: Admin) -> None:
    del store
    insert = INSERT.replace("?", "%s").encode()
    admin.execute(insert, ("one",))
    with pytest.raises(psycopg.errors.UniqueViolation, match="idx_handoffs_task_active"):
        admin.execute(insert, ("two",))
    admin.execute("UPDATE handoffs SET status = 'closed'")
    admin.execute(insert, ("two",))
    row = admin.execute("SELECT status, initiated_at FROM handoffs WHERE id = 'two'").fetchone()
    assert row is not None
    assert row[0] == "proposed"
    assert str(row[1]).endswith("Z")
