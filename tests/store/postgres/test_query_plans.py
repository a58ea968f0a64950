"""Plans: every statement finds what it wants by an index, however large the tables are."""

import pytest

from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.connect import connect, parse_url
from dragoman.store.postgres.store import QUERIES
from tests.requirements import proves

pytestmark = proves("CLI-PAGED", "STORE-CONTRACT")

NO_PLAN = {"begin", "begin_snapshot", "commit", "rollback"}
WITHOUT_INDEX = {"append_entries", "both_heads", "check_head", "counts"}
"""The one row of head has no key, and counting is counting."""

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
"""Pages: what they show stands in the index in this order, so that nothing is sorted."""


def plan_of(url: str, query: str) -> str:
    """How the server would run a query whose parameters it does not know."""
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
