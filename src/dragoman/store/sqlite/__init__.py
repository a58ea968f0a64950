"""The store in one SQLite file: the default, for a hub on one machine."""

from dragoman.store.sqlite.store import SqliteStore

__all__ = [
    "SqliteStore",
]
