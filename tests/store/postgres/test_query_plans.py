"""Query plans: every statement uses an index, whatever the size of the tables."""

import pytest

from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.connect import connect, parse_url
from dragoman.store.postgres.reads import QUERIES
from tests.requirements import proves

pytestmark = proves("CLI-PAGED", "STORE-CONTRACT")

NO_PLAN = {"begin", "begin_snapshot", "commit", "rollback"}
WITHOUT_INDEX = {"append_entries", "both_heads", "check_head", "counts"}
"""Statements on the one row of `head`, which has no key, and counts."""

IN_ORDER = {
    "board",
    "board_of_status",
    "board_of_owner",
    "board_of_status_and_owner",
    "entries",
    "expired",
    "history",
    "listed",
    "listed_back",
    "names",
    "overdue",
    "places",
    "ready",
    "due",
    "rows",
    "held",
    "answers",
}
"""Pages whose order is that of their index, so that nothing is sorted."""


def plan_of(url: str, query: str) -> str:
    """Explain a query with unknown parameters."""
    with connect(parse_url(url)) as connection:
        rows = connection.execute(f"EXPLAIN (GENERIC_PLAN) {QUERIES[query]}".encode()).fetchall()
    return "\n".join(line for (line,) in rows)


@pytest.mark.parametrize("query", sorted(QUERIES.keys() - NO_PLAN))
def test_statement_uses_an_index(store: PostgresStore, postgres_url: str, query: str) -> None:
    plan = plan_of(postgres_url, query)

    if query not in WITHOUT_INDEX:
        assert "Seq Scan" not in plan
    if query in IN_ORDER:
        assert "Sort" not in plan
