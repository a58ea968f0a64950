"""Lock that blocks a commit after its positions were assigned, and a wait for blocked hubs."""

from concurrent.futures import Future
from typing import TypeVar

from dragoman.engine.ports import Changes
from dragoman.store.postgres import PostgresStore
from tests.conformance.store.changes import make_entry, make_row
from tests.store.postgres.conftest import Admin

T = TypeVar("T")

_LOCK = 4711
"""Key of an advisory lock."""


def block_commits(admin: Admin, stream: int) -> None:
    """Block every commit of an entry of this stream."""
    # Deferred: it blocks within COMMIT, after the positions were assigned.
    admin.execute(
        f"""
        CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_advisory_xact_lock({_LOCK}); RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER wait_at_gate AFTER INSERT ON entries
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.stream = {stream})
        EXECUTE FUNCTION wait_at_gate();
        """.encode()
    )
    admin.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))


def unblock_commits(admin: Admin) -> None:
    """Let blocked commits continue."""
    admin.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))


def append(store: PostgresStore, number: int, version: int) -> None:
    """Append one entry."""
    row = make_row(number, f"task:{number}", version)
    store.transact(lambda session: session.write(Changes([make_entry(number, version)], [row])))


def wait_until_blocked(admin: Admin, lock: str, future: Future[T]) -> None:
    """Wait until a hub is blocked by a lock of this kind, or the call is done."""
    query = """
        SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
        WHERE NOT granted AND locktype = %s AND application_name = 'dragoman'
    """
    while not future.done() and admin.execute(query, (lock,)).fetchone() == (0,):
        admin.execute("SELECT pg_stat_clear_snapshot()")
