"""Query plans: no query of a list or request scans a table."""

import re
from pathlib import Path

import apsw
import pytest

from dragoman.store.sql import load_queries
from tests.requirements import proves
from tests.store.sqlite.files import Database, connect, create_filled

QUERIES = load_queries("dragoman.store.sqlite")

BOARD = {"before": 1, "status": "ready", "owner": "alice", "limit": 1}

PLANS = {
    "board": "SEARCH s USING INTEGER PRIMARY KEY (rowid<?)",
    "board_of_status": "SEARCH s USING INDEX streams_board (status=? AND rowid<?)",
    "board_of_owner": "SEARCH s USING INDEX streams_owner (owner=? AND rowid<?)",
    "board_of_status_and_owner": "SEARCH s USING INDEX streams_owner (owner=? AND rowid<?)",
    "ready": "SEARCH streams USING INDEX streams_ready (queue=? AND (rank,since)>(?,?))",
    "due": "SEARCH streams USING INDEX streams_due (due<?)",
    "overdue": "SEARCH streams USING INDEX streams_deadline (deadline<?)",
    "expired": "SEARCH l USING COVERING INDEX leases_expiry (expires_at<?)",
    "sessions": "SEARCH l USING COVERING INDEX leases_session (session=?)",
    "claims": "SEARCH e USING INDEX entries_claims (<expr>=? AND rowid>?)",
    "claims_back": "SEARCH e USING INDEX entries_claims (<expr>=? AND rowid<?)",
    "history": "SEARCH e USING INDEX sqlite_autoindex_entries_1 (stream=? AND version>?)",
    "answered": "SEARCH answers USING PRIMARY KEY (scope=? AND key=?)",
    "answers": "SEARCH a USING PRIMARY KEY ((scope,key)>(?,?))",
    "held": "SEARCH l USING INTEGER PRIMARY KEY (rowid>?)",
    "named": "SEARCH n USING PRIMARY KEY (name=?)",
    "names": "SEARCH n USING PRIMARY KEY ((name,kind)>(?,?))",
    "entries": "SEARCH e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
    "listed": "SEARCH l USING PRIMARY KEY (list=? AND position>?)",
    "listed_back": "SEARCH l USING PRIMARY KEY (list=? AND position>? AND position<?)",
    "places": "SEARCH l USING PRIMARY KEY ((list,position)>(?,?))",
    "search": "SCAN t VIRTUAL TABLE INDEX 192:M1<",
    "stream": "SEARCH s USING INDEX sqlite_autoindex_streams_1 (name=?)",
}


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """Connection that plans queries as the store's own do."""
    database = connect(create_filled(tmp_path / "hub.db"))
    database.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    return database


def plan(database: Database, query: str) -> list[str]:
    """Explain a query, line by line."""
    sql = QUERIES[query]
    numbered = re.findall(r"\?([0-9]+)", sql)
    count = max(map(int, numbered), default=sql.count("?"))
    bindings = BOARD if ":" in sql else (1,) * count
    return [row[-1] for row in database.execute(f"EXPLAIN QUERY PLAN {sql}", bindings).fetchall()]


@proves("CLI-PAGED")
@pytest.mark.parametrize("query", PLANS)
def test_listed_query_uses_its_index(database: Database, query: str) -> None:
    assert PLANS[query] in plan(database, query)


@proves("CLI-PAGED", "STORE-CONTRACT")
@pytest.mark.parametrize("query", QUERIES)
def test_no_query_scans_a_table_or_sorts(database: Database, query: str) -> None:
    lines = plan(database, query)

    # SQLite's scan of a virtual table is a lookup in the word index.
    own = [line for line in lines if "VIRTUAL TABLE INDEX" not in line]
    assert not [line for line in own if "SCAN" in line or "TEMP B-TREE" in line]


@proves("STORE-CONTRACT")
def test_every_query_is_used() -> None:
    store = Path(__file__).parents[3] / "src/dragoman/store"
    files = [store / "sql.py", *(store / "sqlite").glob("*.py")]
    code = "".join(file.read_text("utf-8") for file in files)

    assert [name for name in QUERIES if f'"{name}"' not in code] == []
