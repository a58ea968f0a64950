"""Backup, restore and import: which store a new data directory gets, and where it is built."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

import dragoman
from dragoman.bootstrap.stores import absolute_url, open_store
from dragoman.config import environment, parse_settings
from dragoman.config.store_url import is_postgres
from dragoman.engine.ports import Clock, DurableStore, Store, StoreSnapshot
from dragoman.files.errors import TargetTaken
from dragoman.surfaces.cli.data_directory import mask_password, set_url, sqlite_path
from dragoman.surfaces.cli.render import ProgressBars
from dragoman.system.clock import SystemClock
from dragoman.system.hub_lock import HubRunning, find_lock_holder
from dragoman.system.safe_fs import SafeDisk

if TYPE_CHECKING:
    from dragoman.files.archive import Manifest
    from dragoman.files.restore import RestoreTarget


def write_archive(
    store: DurableStore,
    data: SafeDisk,
    clock: Clock,
    profile: str,
    target: Path,
    bars: ProgressBars,
) -> "Manifest":
    """Write a backup or an export of everything into one file, while others work."""
    from dragoman.files import archive

    source = archive.ArchiveSource(store, data, dragoman.__version__, clock.now())
    target_folder = SafeDisk(target.absolute().parent)
    return archive.write_archive(source, archive.PROFILES[profile], target, target_folder, bars)


def restore_archive(
    profile: str, archive: Path, data: Path, store: str, bars: ProgressBars
) -> "Manifest":
    """Make a data directory out of a backup or an export, with the store of a URL if one is
    named."""
    from dragoman.files.archive import PROFILES
    from dragoman.files.restore import RestoreTools
    from dragoman.files.restore import restore_archive as restore

    running = find_lock_holder(data)
    if running is not None:
        raise HubRunning(
            f"a hub works on {data} (process {running.pid}): stop it, or name another directory "
            "with --data; nothing was restored"
        )
    named_url = absolute_url(store)

    def open_target(settings: bytes) -> "RestoreTarget":
        url = named_url or parse_settings(settings.decode(), environment()).store.url
        return _restore_target(url, data.resolve())

    def adapt_settings(settings: bytes) -> bytes:
        if not named_url:
            return settings
        return set_url(settings.decode(), named_url, data / "dragoman.toml").encode()

    tools = RestoreTools(open_target, adapt_settings, SafeDisk, SystemClock().now(), bars)
    return restore(archive, PROFILES[profile], data, tools)


# --- where a restored store is built ----------------------------------------------------------


def _restore_target(url: str, data: Path) -> "RestoreTarget":
    if is_postgres(url):
        return _SchemaTarget(url)
    file = sqlite_path(url, data)
    if file is None:
        return _LocalFileTarget("dragoman.db")
    # Resolved: by way of `..` or a link a path may lead out of the directory, or into it.
    real_path = file.resolve()
    return (
        _LocalFileTarget(f"{real_path.relative_to(data)}")
        if real_path.is_relative_to(data)
        else _ExternalFileTarget(url, real_path)
    )


class _LocalFileTarget(Struct, frozen=True):
    """A store in a file of the new directory, which is moved as a whole."""

    file: str

    def has_ledger(self, ledger: str, head: int) -> bool:
        """Return False: the directory does not exist yet."""
        del ledger, head
        return False

    def open(self, building: Path, ledger: str) -> Store:
        """Open the file in the unfinished directory."""
        file = building / self.file
        file.parent.mkdir(parents=True, exist_ok=True)
        return open_store(f"sqlite:///{file}", building, new_ledger_id=lambda: ledger)

    def commit(self) -> None:
        """Do nothing: the file moves with the directory."""

    def discard(self) -> None:
        """Do nothing: the file goes with the directory."""


class _ExternalFileTarget(Struct, frozen=True):
    """A store in a file elsewhere."""

    url: str
    file: Path

    def has_ledger(self, ledger: str, head: int) -> bool:
        """Check whether the file holds the same ledger already."""
        from dragoman.store.sqlite.reads import open_snapshot

        if not self.file.exists():
            return False
        with open_snapshot(self.file) as frozen:
            return _check_same_store(self.url, frozen, ledger, head)

    def open(self, building: Path, ledger: str) -> Store:
        """Open a file beside the target; what an earlier restore left is removed."""
        self.discard()
        return open_store(f"sqlite:///{self._staging_path}", building, new_ledger_id=lambda: ledger)

    def commit(self) -> None:
        """Rename the file in one step, if nothing else has its name."""
        with closing(SafeDisk(self.file.absolute().parent)) as folder:
            if not folder.move(self._staging_path.name, self.file.name):
                raise TargetTaken(f"{self.file} exists by now: nothing was restored")
            folder.sync()

    def discard(self) -> None:
        """Remove the file, with what SQLite keeps beside it."""
        for end in ("", "-wal", "-shm", "-journal"):
            self._staging_path.with_name(self._staging_path.name + end).unlink(missing_ok=True)

    @property
    def _staging_path(self) -> Path:
        return self.file.with_name(f".{self.file.name}.restoring")


class _SchemaTarget(Struct, frozen=True):
    """A store in a schema of PostgreSQL."""

    url: str

    def has_ledger(self, ledger: str, head: int) -> bool:
        """Check whether the schema holds the same ledger already."""
        from dragoman.store.postgres.connect import parse_url
        from dragoman.store.postgres.reads import open_snapshot
        from dragoman.store.postgres.staged_restore import schema_version_at

        if not schema_version_at(self.url):
            return False
        with open_snapshot(parse_url(self.url)) as frozen:
            return _check_same_store(self.url, frozen, ledger, head)

    def open(self, building: Path, ledger: str) -> Store:
        """Open a schema beside the target."""
        from dragoman.store.postgres.staged_restore import open_staged

        del building
        return open_staged(self.url, lambda: ledger)

    def commit(self) -> None:
        """Rename the schema."""
        from dragoman.store.postgres.staged_restore import publish_staged

        publish_staged(self.url)

    def discard(self) -> None:
        """Remove the schema."""
        from dragoman.store.postgres.staged_restore import discard_staged

        discard_staged(self.url)


def _check_same_store(url: str, existing: StoreSnapshot, ledger: str, head: int) -> bool:
    """Return True for a store that is just the one that a restore would make; else PlaceTaken."""
    found = existing.ledger_id(), existing.head()
    if found != (ledger, head):
        raise TargetTaken(
            f"the store {mask_password(url)} is not empty: it holds the ledger {found[0]} with "
            f"{found[1]} "
            "entries, and stays as it is. Name another one with --store"
        )
    return True
