"""Storages for the suite: created empty, opened as often as needed, closed after the test."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from dragoman.engine.ports import Store
from dragoman.store.memory import MemoryStore
from dragoman.store.postgres import PostgresStore
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import new_id
from tests.servers import empty_schema, new_schema


class Storage(Struct):
    """One storage; each `open` gives a store on the same data, in memory the same store."""

    kind: str
    location: str
    opened: list[Store] = []

    def open(self) -> Store:
        """Open one more store on this storage."""
        if self.kind == "memory" and self.opened:
            return self.opened[0]
        store = open_at(self.kind, self.location)
        self.opened.append(store)
        return store

    def close(self) -> None:
        """Close every store that was opened."""
        for store in self.opened:
            store.close()


def open_at(kind: str, location: str) -> Store:
    """Open a store of this kind at a path or URL."""
    if kind == "sqlite":
        return SqliteStore.open(Path(location), new_id)
    if kind == "postgres":
        return PostgresStore.open(location, new_id)
    return MemoryStore(new_id())


class Storages(Struct, frozen=True):
    """Factory of empty storages of one kind."""

    kind: str
    root: str
    """Folder for files, or URL of a server."""
    empty_schemas: list[str] = []
    """Schemas for reuse: creating their tables takes longer than most tests."""

    @contextmanager
    def new(self) -> Generator[Storage]:
        """Create an empty storage, and remove it afterwards."""
        with self._new_location() as location:
            storage = Storage(self.kind, location)
            try:
                yield storage
            finally:
                storage.close()

    @contextmanager
    def _new_location(self) -> Generator[str]:
        if self.kind == "postgres":
            url = self.empty_schemas.pop() if self.empty_schemas else new_schema(self.root)
            yield url
            # A schema is not reused after a failed test.
            empty_schema(url)
            self.empty_schemas.append(url)
        else:
            yield str(Path(self.root) / f"{new_id()}.db")
