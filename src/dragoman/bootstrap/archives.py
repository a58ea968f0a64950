"""Backup, restore and import: which store a new data directory gets, and where it is built."""

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

import dragoman
from dragoman.bootstrap.stores import open_store
from dragoman.config import environment, parse_settings
from dragoman.config.store_url import absolute_url, sqlite_path
from dragoman.core.errors import SettingsError
from dragoman.engine.ports import Clock, DurableStore, Store
from dragoman.files.errors import TargetTaken
from dragoman.surfaces.cli.data_directory import mask_password, set_url
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
    return archive.write_archive(source, archive.PROFILES[profile], target, bars)


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
    path = sqlite_path(url, data)
    if path is None:
        return _SchemaTarget(url)
    # Resolved: by way of `..` or a link a path may lead out of the directory, or into it.
    file = path.resolve()
    if not file.is_relative_to(data):
        raise SettingsError(
            f"the store would be {file}, outside of the data directory: name one in it, or a "
            f"PostgreSQL, with --store (sqlite:///{data}/dragoman.db for example)"
        )
    return _LocalFileTarget(f"{file.relative_to(data)}")


class _LocalFileTarget(Struct, frozen=True):
    """A store in a file of the new directory, which is moved as a whole."""

    file: str

    def open(self, building: Path, ledger: str) -> Store:
        """Open the file in the unfinished directory."""
        file = building / self.file
        file.parent.mkdir(parents=True, exist_ok=True)
        return open_store(f"sqlite:///{file}", building, new_ledger_id=lambda: ledger)

    def discard(self) -> None:
        """Do nothing: the file goes with the directory."""


class _SchemaTarget:
    """A store in a schema of PostgreSQL, which must hold none."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._is_made = False

    def open(self, building: Path, ledger: str) -> Store:
        """Open a new store in the schema."""
        from dragoman.store.postgres.migrate import schema_version_at

        if schema_version_at(self._url):
            raise TargetTaken(
                f"the store {mask_password(self._url)} is not empty, and stays as it is. Name "
                "another one with --store; or, if a restore was killed there before it was "
                "complete, drop its schema"
            )
        opened = open_store(self._url, building, new_ledger_id=lambda: ledger)
        self._is_made = True
        return opened

    def discard(self) -> None:
        """Drop the schema."""
        from dragoman.store.postgres.migrate import drop_schema_at

        if self._is_made:
            drop_schema_at(self._url)
