"""Errors of PostgreSQL mapped to our error tree, with sentences that say what to do."""

import re

import psycopg
from psycopg import errors

from dragoman.core.errors import (
    ActiveHandoffConflict,
    StoreConflict,
    StoreCorrupt,
    StoreError,
    StoreLost,
    StoreUnavailable,
)

_ONE_ACTIVE_HANDOFF = "idx_handoffs_task_active"
"""The index that allows a task one active handoff."""

_ONE_ENTRY_PER_POSITION = "entries_pkey"
"""The index that allows a position one entry; the counter gives out none twice."""

_NO_POSITION = ("entries", "position")
"""The column whose constraint refuses an entry without a position."""

_CONFLICT = "another writer was faster ({error})"
_FULL = "the disk of {where} is full ({error}); nothing was written. Free some space and try again"
_NO_RESOURCES = (
    "{where} has no resources left ({error}); nothing was written. Try again, or raise its limits"
)
_READ_ONLY = "{where} can only be read ({error}); nothing was written. Name the primary server"
_FORBIDDEN = (
    "this user may not do that on {where} ({error}); nothing was written. Grant the right to use "
    "the schema and to create in it"
)
_ADVICE = (
    "Keep it as it is, and restore a backup beside it: `dragoman restore FILE --data NEW --store "
    "URL`"
)
_OTHER_TABLES = (
    "{where} does not have the tables that it must have ({error}); nothing was written. " + _ADVICE
)
RECOUNT_ADVICE = (
    "if `dragoman verify` finds nothing else, set it right in that schema: INSERT INTO head SELECT "
    "coalesce(max(position), 0) FROM entries ON CONFLICT ((true)) DO UPDATE SET position = "
    "excluded.position"
)
"""Advice for a table head that was changed or emptied."""
_WRONG_HEAD = (
    "the table head of {where} does not say where the ledger ends ({error}); nothing was written: "
    + RECOUNT_ADVICE
)
_DAMAGED = "the data of {where} is damaged ({error}); nothing was written. " + _ADVICE

_SENTENCES: tuple[tuple[str, type[StoreError], str], ...] = (
    ("23505", StoreConflict, _CONFLICT),
    ("40", StoreConflict, _CONFLICT),
    ("55P03", StoreConflict, _CONFLICT),
    ("53100", StoreUnavailable, _FULL),
    ("53", StoreUnavailable, _NO_RESOURCES),
    ("25006", StoreUnavailable, _READ_ONLY),
    ("42501", StoreUnavailable, _FORBIDDEN),
    ("42", StoreCorrupt, _OTHER_TABLES),
    ("XX001", StoreCorrupt, _DAMAGED),
    ("XX002", StoreCorrupt, _DAMAGED),
)
"""Prefix of an SQLSTATE -> our error and its sentence; the first that matches counts."""

_OTHER_VERSION = re.compile('"(schema [0-9]+)"')
"""The error of the query check_version."""

_NO_ENTRY_BEFORE = re.compile('"head -?[0-9]+"')
"""The error of the query check_head."""

_CONNECTION_LOST = (
    errors.IdleInTransactionSessionTimeout,
    errors.TransactionTimeout,
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.IdleSessionTimeout,
    errors.ConnectionException,
    errors.ConnectionFailure,
)


def store_error(error: psycopg.Error, where: str, *, is_closed: bool) -> StoreError:
    """Our error for an error of PostgreSQL; `is_closed`: the connection is perhaps lost."""
    message = _first_line(error)
    if error.diag.constraint_name == _ONE_ACTIVE_HANDOFF:
        return ActiveHandoffConflict(f"another handoff of it is under way ({message})")
    if _is_wrong_head(error):
        return StoreCorrupt(_WRONG_HEAD.format(where=where, error=message))
    migrated = _OTHER_VERSION.search(message)
    if migrated is not None:
        return StoreUnavailable(
            f"{where} was brought to {migrated[1]} while this process ran, and this process does "
            "not know it; nothing was written. Stop it, and start it again with the same dragoman "
            "as all other processes"
        )
    if is_closed or isinstance(error, _CONNECTION_LOST):
        return StoreLost(
            f"the connection to {where} was lost ({message}); repeat the request under the same "
            "key to learn whether it was done"
        )
    for state, ours, sentence in _SENTENCES:
        if (error.sqlstate or "").startswith(state):
            return ours(sentence.format(where=where, error=message))
    return StoreUnavailable(f"{where} refused ({message}); nothing was written")


def _is_wrong_head(error: psycopg.Error) -> bool:
    """True if the row in head gave a position that is not the next one, or is missing."""
    return (
        error.diag.constraint_name == _ONE_ENTRY_PER_POSITION
        or (error.diag.table_name, error.diag.column_name) == _NO_POSITION
        or _NO_ENTRY_BEFORE.search(str(error)) is not None
    )


def connect_error(error: psycopg.Error, where: str) -> StoreUnavailable:
    """Our error for a server that refuses the connection."""
    return StoreUnavailable(
        f"{where} cannot be reached ({_first_line(error)}); nothing was written. Start the server, "
        "or correct the URL of the store"
    )


def _first_line(error: psycopg.Error) -> str:
    """The message, without the statement and the hints that follow."""
    return str(error).partition("\n")[0]
