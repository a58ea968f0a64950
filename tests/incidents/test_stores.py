"""Incidents of other projects with databases, files and locks, reproduced here."""

import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import psycopg
import pytest
from psycopg import sql

from dragoman.bootstrap.data_directory import open_directory
from dragoman.core.actor import Actor
from dragoman.core.agent import IssueToken, RegisterAgent
from dragoman.core.attempt import ClaimTask
from dragoman.core.backoff import Backoff
from dragoman.core.base import Command
from dragoman.core.errors import Refusal, StoreUnavailable
from dragoman.core.task_state import AdoptTask, CreateTask, EditTask, LinkTask, NoteTask
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Changes, IntegrityReport, TaskQuery, Transaction
from dragoman.engine.queries.entries import all_entries
from dragoman.engine.queries.search import search_mail
from dragoman.engine.queries.tasks import TaskView, find_task, list_tasks
from dragoman.engine.request import Committed
from dragoman.engine.verify import check_ledger, check_stored_states
from dragoman.services.timers import LeaseExpiry, RetryPromotion
from dragoman.store.postgres import PostgresStore
from dragoman.store.sqlite import SqliteStore
from dragoman.store.sqlite.migrate import MIGRATIONS
from dragoman.surfaces.cli.data_directory import DataDirectory
from dragoman.system.clock import ManualClock, new_id
from dragoman.system.hub_lock import HubLock
from tests.conformance.store.changes import begin_stream, make_entry, make_row
from tests.crash.data_directories import valid_checkpoints
from tests.crash.scenario import START
from tests.crash.stale_writes import ADA, LEA, TTL
from tests.requirements import proves
from tests.store.sqlite.files import connect, hide_from_index
from tests.surfaces.cli.console import Console
from tests.surfaces.http.hub_server import HubServer, serving

pytestmark = proves("INCIDENTS-OF-OTHERS")

BOB: Final = Actor("agent", "bob")
MEBIBYTE: Final = 1 << 20


def ignore(_: int) -> None:
    """Progress callback that does nothing."""


def check_all(directory: DataDirectory) -> None:
    """Verify the ledger, its views and the files."""
    assert list(check_ledger(directory.hub.store, valid_checkpoints(directory), ignore)) == []
    assert list(check_stored_states(directory.hub.store, ignore)) == []
    assert list(directory.projector.compare(ignore)) == []


def settle(directory: DataDirectory) -> None:
    """Settle the files, as a command does at its end."""
    assert list(directory.catch_up()) == []


def test_second_hub_on_one_directory_is_refused(tmp_path: Path) -> None:
    """mcp_agent_mail#123: two servers on one root left a malformed database."""
    directory = open_directory(tmp_path, "", START, create=True)
    directory.hub.submit(LEA, CreateTask("Before", id="t", ready=True))
    command = [sys.executable, "-m", "dragoman", "--data", str(tmp_path), "up", "--port", "0"]
    with HubLock.acquire(tmp_path, "dragoman up"):
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        assert second.returncode != 0
        assert "already has a hub" in second.stderr
        directory.hub.submit(LEA, NoteTask("t", "still the only one"))
    settle(directory)
    check_all(directory)
    directory.hub.close()


def test_late_writer_loses_no_entries_of_others(tmp_path: Path) -> None:
    """beads#3931: an update rewrote all issues from a stale copy and lost those of others."""
    stale = open_directory(tmp_path, "", START, create=True)
    stale.hub.submit(LEA, CreateTask("Mine", id="mine", ready=True))
    settle(stale)
    other = open_directory(tmp_path, "", START, create=False)
    theirs = [f"theirs-{number}" for number in range(20)]
    for name in theirs:
        other.hub.submit(BOB, CreateTask(name, id=name, ready=True))
    stale.hub.submit(LEA, EditTask("mine", title="Mine, edited"))
    settle(stale)
    for name in theirs:
        assert isinstance(find_task(stale.hub.store, name), TaskView)
    assert len(list(tmp_path.glob("tasks/ready/*.md"))) == 1 + len(theirs)
    check_all(other)
    other.hub.close()
    stale.hub.close()


def test_deleted_lock_files_do_not_let_writers_damage_the_store(tmp_path: Path) -> None:
    """beads#2933: a lock file was deleted, and a second writer started."""
    directory = open_directory(tmp_path, "", START, create=True)
    directory.hub.submit(LEA, CreateTask("First", id="t0", ready=True))
    settle(directory)
    locks = list(tmp_path.rglob("*.lock"))
    assert locks
    for lock in locks:
        lock.unlink()
    second = open_directory(tmp_path, "", START, create=False)
    for number in range(1, 11):
        writer = (directory, second)[number % 2]
        writer.hub.submit(LEA, CreateTask("Both", id=f"t{number}", ready=True))
        settle(writer)
    won = [_claim(opened, agent) for opened, agent in ((directory, ADA), (second, BOB))]
    assert sum(won) == 1
    check_all(directory)
    check_all(second)
    second.hub.close()
    directory.hub.close()


def _claim(directory: DataDirectory, agent: Actor) -> bool:
    request = directory.hub.make_request(agent, ClaimTask("t0", agent=agent.name))
    return not isinstance(directory.hub.engine.handle_now(request), Refusal)


def test_database_restart_during_lease_expiry_leaves_no_task_pending(
    postgres_server: str, postgres_url: str
) -> None:
    """dbos-transact-py#716: PostgreSQL restarted during recovery, and work stayed pending."""
    clock, broken = ManualClock(START), list[str]()

    def break_once(failpoint: str) -> None:
        if clock.now() > START and failpoint == "written" and len(broken) < 3:
            broken.append(failpoint)
            _cut_connections(postgres_server)

    store = PostgresStore.open(postgres_url, new_id)
    hub = Hub(Engine(store, clock, bytes(32), failpoint=break_once), new_id)
    for number in range(5):
        hub.submit(LEA, CreateTask("Pending", id=f"t{number}", ready=True))
        hub.submit(ADA, ClaimTask(f"t{number}", agent="ada", ttl_ms=TTL))
    clock.advance(2 * TTL)
    assert LeaseExpiry(hub, Backoff()).run_once(clock.now()) == 5
    clock.advance(TTL)
    RetryPromotion(hub).run_once(clock.now())
    assert len(broken) == 3
    claimed = {hub.submit(BOB, ClaimTask("", agent="bob")).receipts[0].task for _ in range(5)}
    assert claimed == {f"t{number}" for number in range(5)}
    assert list(check_ledger(store, (), ignore)) == []
    hub.close()


def _cut_connections(server: str) -> None:
    """Cut every connection but this one, as a restart does."""
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(
            sql.SQL(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        )


@pytest.fixture
def directory(tmp_path: Path) -> Generator[DataDirectory]:
    """Give an open data directory."""
    made = open_directory(tmp_path, "", START, create=True)
    yield made
    made.hub.close()


COMMANDS_WITHOUT_ID: Final[tuple[Command, ...]] = (
    AdoptTask("bead", ""),
    RegisterAgent(""),
    IssueToken("", "", "", START + 1),
    LinkTask("t", kind="blocked-by", target=""),
    ClaimTask("t", agent=""),
)


def test_empty_id_is_refused_and_services_create_nothing_from_it(directory: DataDirectory) -> None:
    """dbos-transact-py#759: an empty id created a duplicate in every pass, for a month."""
    hub = directory.hub
    hub.submit(LEA, CreateTask("Real", id="t", ready=True), key="")
    for command in COMMANDS_WITHOUT_ID:
        assert isinstance(hub.engine.handle_now(hub.make_request(LEA, command)), Refusal), command
    before = [entry.stream for entry in all_entries(hub.store) if entry.stream.startswith("task:")]
    for _ in range(10):
        for name, outcome in directory.run_services(directory.services):
            assert isinstance(outcome, int), (name, outcome)
    after = [entry.stream for entry in all_entries(hub.store) if entry.stream.startswith("task:")]
    assert before == after == ["task:t"]
    check_all(directory)


def test_endless_reader_does_not_let_the_wal_grow(tmp_path: Path) -> None:
    """codebase-memory-mcp#1083: readers pinned the write-ahead log until it had 115 GB."""
    path = tmp_path / "hub.db"
    store = SqliteStore.open(path, new_id)
    begin_stream(store, "task:a")
    begin_stream(store, "task:b")
    reader = all_entries(store)
    next(reader)
    wal, highest = path.with_name("hub.db-wal"), 0
    for number in range(100):
        _write_a_mebibyte(store, number)
        highest = max(highest, wal.stat().st_size)
    assert 2 * MEBIBYTE < highest < 48 * MEBIBYTE
    assert next(reader).position == 2
    store.close()


def _write_a_mebibyte(store: SqliteStore, number: int) -> None:
    def work(session: Transaction) -> None:
        stream = session.new_stream_number()
        entry = make_entry(stream, 1, text="x" * MEBIBYTE)
        session.write(Changes(entries=[entry], streams=[make_row(stream, f"task:{number}")]))

    store.transact(work)


def test_damaged_index_makes_the_health_checks_fail(tmp_path: Path) -> None:
    """mcp_agent_mail_rust#94: indexes were damaged, and /health stayed green."""
    directory = open_directory(tmp_path, "", START, create=True)
    for name in ("seen", "hidden"):
        directory.hub.submit(LEA, CreateTask(name, id=name, ready=True))
    settle(directory)
    directory.hub.close()
    hide_from_index(tmp_path / "dragoman.db", "streams_ready", "task:hidden")

    dragoman = Console(tmp_path)
    assert dragoman.ask("task", "claim", "--agent", "ada")["task"] == "seen"
    assert dragoman.ask("task", "claim", "--agent", "ada", code=1)["code"] == "nothing_ready"
    assert dragoman.ask("verify", code=1)["code"] == "store_corrupt"
    assert dragoman.ask("doctor", code=1)["detail"] == "bad: store"
    with serving(HubServer(SqliteStore.open(tmp_path / "dragoman.db", new_id))) as server:
        readiness = server.request("GET", "/readyz", by="")
    assert (readiness.status, readiness.json["store"]) == (503, "store_corrupt")


def test_concurrent_writers_damage_nothing_and_damage_is_never_repaired_silently(
    tmp_path: Path,
) -> None:
    """mcp_agent_mail_rust#152: ten writers damaged indexes; it was rebuilt again and again."""
    path = tmp_path / "hub.db"
    SqliteStore.open(path, new_id).close()
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(partial(_make_tasks, path), range(12)))
    store = SqliteStore.open(path, new_id)
    assert store.inspect() == IntegrityReport()
    assert store.status_counts() == {"ready": 12 * 5}
    assert list(check_stored_states(store, ignore)) == []
    store.close()

    hide_from_index(path, "streams_ready", "task:3-3")
    damaged = path.read_bytes()
    for _ in range(3):
        again = SqliteStore.open(path, new_id)
        assert again.inspect().damage != ()
        again.close()
    assert path.read_bytes() == damaged


def _make_tasks(path: Path, writer: int) -> None:
    """Create tasks with a store of its own, as another process would."""
    hub = Hub(Engine(SqliteStore.open(path, new_id), ManualClock(START), bytes(32)), new_id)
    for number in range(5):
        hub.submit(LEA, CreateTask("One of many", id=f"{writer}-{number}", ready=True))
    hub.close()


def test_hub_of_an_earlier_version_writes_nothing_after_an_upgrade(tmp_path: Path) -> None:
    """beads#6064: the old server ran beside the new program; journal corrupted, disk full."""
    old = open_directory(tmp_path, "", START, create=True)
    old.hub.submit(LEA, CreateTask("Before", id="t", ready=True))
    settle(old)
    path = tmp_path / "dragoman.db"
    newer = connect(path)
    newer.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}").fetchall()

    log = path.with_name("dragoman.db-wal")
    size, head = log.stat().st_size, old.hub.store.head()
    for _ in range(20):
        with pytest.raises(StoreUnavailable, match="nothing was"):
            old.hub.submit(LEA, NoteTask("t", "of an earlier dragoman"))
    assert log.stat().st_size == size
    assert old.hub.store.head() == head
    assert old.hub.store.inspect() == IntegrityReport()
    assert isinstance(find_task(old.hub.store, "t"), TaskView)
    newer.close()
    old.hub.close()


HOSTILE: Final = (
    "x' OR '1'='1",
    'x" OR 1=1 --',
    "x'); DELETE FROM entries; --",
    "status') = 'ready' OR json_extract(state, '$.x",
    "* NEAR(a b) ^c {d}: e",
    "%",
)


def test_no_filter_becomes_part_of_a_statement(tmp_path: Path) -> None:
    """langgraph#5666 (CVE-2025-8709): the key of a filter was written into the statement."""
    with serving(HubServer(SqliteStore.open(tmp_path / "hub.db", new_id))) as server:
        server.submit(CreateTask("Kept", id="t", ready=True))
        before = [entry.line for entry in all_entries(server.store)]
        for word in HOSTILE:
            query = urlencode({"status": "ready", word: "x"})
            assert server.request("GET", f"/v1/tasks?{query}").status == 400, word
            for key in ("status", "assignee", "before"):
                answer = server.request("GET", f"/v1/tasks?{urlencode({key: word})}")
                found: list[Any] = answer.json["tasks"] if answer.status == 200 else []
                assert (answer.status in (200, 400), found) == (True, []), (key, word)
            assert list_tasks(server.store, TaskQuery(owner=word)) == []
            assert isinstance(find_task(server.store, word), Refusal)
            searched = search_mail(server.store, word, None, 10)
            assert isinstance(searched, Refusal) or searched == []
        assert [entry.line for entry in all_entries(server.store)] == before
        assert len(list_tasks(server.store, TaskQuery(status="ready"))) == 1


def test_concurrently_repeated_request_is_executed_once_and_in_order(tmp_path: Path) -> None:
    """langgraph#8039: writes and completion were stored in thread order; replay was random."""
    directory = open_directory(tmp_path, "", START, create=True)
    hub = directory.hub
    hub.submit(LEA, CreateTask("One", id="t", ready=True))
    steps = [(NoteTask("t", f"what {n} gave"), NoteTask("t", f"{n} is done")) for n in range(10)]

    def send(turn: int) -> tuple[int, object]:
        number = turn % len(steps)
        return number, hub.engine.handle_now(
            hub.make_request(LEA, *steps[number], key=f"k{number}")
        )

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(send, range(8 * len(steps))))
    for number in range(len(steps)):
        accepted = [
            answer for n, answer in answers if n == number and isinstance(answer, Committed)
        ]
        assert [len(accepted), sum(not answer.repeated for answer in accepted)] == [8, 1]
    bodies = [
        entry.line.decode() for entry in all_entries(hub.store) if entry.event == "task.noted"
    ]
    assert len(bodies) == 2 * len(steps)
    for first, second in zip(bodies[::2], bodies[1::2], strict=True):
        number = first.partition("what ")[2].partition(" ")[0]
        assert f"{number} is done" in second
    settle(directory)
    check_all(directory)
    directory.hub.close()
