"""Backups and restores: which store a directory is restored with, and where that grows."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

import dragoman
from dragoman.bootstrap.stores import is_postgres, lasting, open_store
from dragoman.config import environment, parse
from dragoman.engine.ports import Frozen, KeptStore, Store
from dragoman.files.problems import PlaceTaken
from dragoman.surfaces.cli.screen import Bars
from dragoman.surfaces.cli.store_url import masked, sqlite_file, with_url
from dragoman.system.beneath import Beneath
from dragoman.system.clock import SystemClock
from dragoman.system.hub_lock import HubRunning, holder

if TYPE_CHECKING:
    from dragoman.files.archives.archive_format import Manifest
    from dragoman.files.archives.restore import Nest


def make_backup(store: KeptStore, data: Beneath, now: int, target: Path, bars: Bars) -> "Manifest":
    """Write a backup of everything into one file, while others work."""
    from dragoman.files.archives.backup import Source
    from dragoman.files.archives.backup import make_backup as write

    source = Source(store, data, dragoman.__version__, now)
    return write(source, target, Beneath(target.absolute().parent), bars)


def restore_backup(backup: Path, data: Path, store: str, bars: Bars) -> "Manifest":
    """Make a data directory out of a backup, with the store of a URL if one is named."""
    from dragoman.files.archives.restore import RestoreTools
    from dragoman.files.archives.restore import restore_backup as restore

    by = holder(data)
    if by is not None:
        raise HubRunning(
            f"a hub works on {data} (process {by.pid}): stop it, or name another directory with "
            "--data; nothing was restored"
        )
    asked = lasting(store)

    def open_nest(settings: bytes) -> "Nest":
        url = asked or parse(settings.decode(), environment()).store.url
        return _nest(url, data.resolve())

    def settle_settings(settings: bytes) -> bytes:
        if not asked:
            return settings
        return with_url(settings.decode(), asked, data / "dragoman.toml").encode()

    tools = RestoreTools(open_nest, settle_settings, Beneath, SystemClock().now(), bars)
    return restore(backup, data, tools)


def _nest(url: str, data: Path) -> "Nest":
    if is_postgres(url):
        return _SchemaNest(url)
    file = sqlite_file(url, data)
    if file is None:
        return _OwnNest("dragoman.db")
    # Resolved: by way of `..` or a link a path may lead out of the directory, or into it.
    real = file.resolve()
    return (
        _OwnNest(f"{real.relative_to(data)}") if real.is_relative_to(data) else _FileNest(url, real)
    )


class _OwnNest(Struct, frozen=True):
    """A store in a file of the new directory, which is moved as a whole."""

    file: str

    def holds(self, ledger: str, head: int) -> bool:
        """Return False: the directory does not exist yet."""
        del ledger, head
        return False

    def open(self, building: Path, ledger: str) -> Store:
        """Open the file in the unfinished directory."""
        file = building / self.file
        file.parent.mkdir(parents=True, exist_ok=True)
        return open_store(f"sqlite:///{file}", building, new_ledger_id=lambda: ledger)

    def settle(self) -> None:
        """Do nothing: the file moves with the directory."""

    def discard(self) -> None:
        """Do nothing: the file goes with the directory."""


class _FileNest(Struct, frozen=True):
    """A store in a file elsewhere."""

    url: str
    file: Path

    def holds(self, ledger: str, head: int) -> bool:
        """Check whether the file holds the same ledger already."""
        from dragoman.store.sqlite.snapshot import snapshot

        if not self.file.exists():
            return False
        with snapshot(self.file) as frozen:
            return _is_same(self.url, frozen, ledger, head)

    def open(self, building: Path, ledger: str) -> Store:
        """Open a file beside the target; what an earlier restore left is removed."""
        self.discard()
        return open_store(f"sqlite:///{self._staged}", building, new_ledger_id=lambda: ledger)

    def settle(self) -> None:
        """Rename the file in one step, if nothing else has its name."""
        with closing(Beneath(self.file.absolute().parent)) as folder:
            if not folder.move(self._staged.name, self.file.name):
                raise PlaceTaken(f"{self.file} exists by now: nothing was restored")
            folder.settle()

    def discard(self) -> None:
        """Remove the file, with what SQLite keeps beside it."""
        for end in ("", "-wal", "-shm", "-journal"):
            self._staged.with_name(self._staged.name + end).unlink(missing_ok=True)

    @property
    def _staged(self) -> Path:
        return self.file.with_name(f".{self.file.name}.restoring")


class _SchemaNest(Struct, frozen=True):
    """A store in a schema of PostgreSQL."""

    url: str

    def holds(self, ledger: str, head: int) -> bool:
        """Check whether the schema holds the same ledger already."""
        from dragoman.store.postgres.connect import parse_url
        from dragoman.store.postgres.snapshot import snapshot
        from dragoman.store.postgres.staging import version_at

        if not version_at(self.url):
            return False
        with snapshot(parse_url(self.url)) as frozen:
            return _is_same(self.url, frozen, ledger, head)

    def open(self, building: Path, ledger: str) -> Store:
        """Open a schema beside the target."""
        from dragoman.store.postgres.staging import open_staged

        del building
        return open_staged(self.url, lambda: ledger)

    def settle(self) -> None:
        """Rename the schema."""
        from dragoman.store.postgres.staging import settle

        settle(self.url)

    def discard(self) -> None:
        """Remove the schema."""
        from dragoman.store.postgres.staging import discard

        discard(self.url)


def _is_same(url: str, found_there: Frozen, ledger: str, head: int) -> bool:
    """Return True for a store that is just the one that a restore would make; else PlaceTaken."""
    found = found_there.ledger_id(), found_there.head()
    if found != (ledger, head):
        raise PlaceTaken(
            f"the store {masked(url)} is not empty: it holds the ledger {found[0]} with {found[1]} "
            "entries, and stays as it is. Name another one with --store"
        )
    return True
