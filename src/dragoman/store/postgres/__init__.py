"""The store in PostgreSQL: for hubs on several machines that share one ledger."""

from dragoman.store.postgres.store import PostgresStore

__all__ = [
    "PostgresStore",
]
