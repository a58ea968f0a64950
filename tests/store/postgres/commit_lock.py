"""A gate at which a commit waits after its positions were given out, and who waits for whom."""

from concurrent.futures import Future
from typing import TypeVar

from dragoman.engine.ports import Changes
from dragoman.store.postgres import PostgresStore
from tests.conformance.store.changes import make_entry, make_row
from tests.store.postgres.conftest import Admin

T = TypeVar("T")

_LOCK = 4711
"""An advisory lock."""


def block_commits(admin: Admin, stream: int) -> None:
    """From now on whoever commits an entry of this stream waits at the gate."""
    # Deferred: it waits within COMMIT, after the positions were given out.
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
    """Let whoever waits go on."""
    admin.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))


def append(store: PostgresStore, number: int, version: int) -> None:
    """One more entry."""
    row = make_row(number, f"task:{number}", version)
    store.transact(lambda session: session.write(Changes([make_entry(number, version)], [row])))


def wait_until_blocked(admin: Admin, lock: str, future: Future[T]) -> None:
    """Return when the server shows a hub that waits for a lock of this kind, or when it is done."""
    query = """
        SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
        WHERE NOT granted AND locktype = %s AND application_name = 'dragoman'
    """
    while not future.done() and admin.execute(query, (lock,)).fetchone() == (0,):
        admin.execute("SELECT pg_stat_clear_snapshot()")
