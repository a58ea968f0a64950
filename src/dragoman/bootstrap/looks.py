"""A data directory that is only read: its settings, the hub that runs there, its store.

Nothing else is loaded: the keys, the dialects and the duties take longer than to list the tasks.
"""

from pathlib import Path

from msgspec import Struct

from dragoman.bootstrap.stores import (
    absolute_url,
    check_store_url,
    default_url,
    needs_migration,
    open_store,
)
from dragoman.config import Settings, environment, load_settings
from dragoman.core.errors import StoreUnavailable
from dragoman.engine.ports import Clock, DurableStore, Store
from dragoman.surfaces.cli.place import ReadOnlyDirectory
from dragoman.system.clock import FixedClock, SystemClock
from dragoman.system.hub_address import HubAddress, clock_override_error, find_hub
from dragoman.system.hub_lock import HubRunning


class Environment(Struct, frozen=True):
    """Settings, store URL, clock and running hub of a data directory."""

    data: Path
    settings: Settings
    url: str
    """URL of the store; empty: that of the data directory."""
    running_hub: HubAddress | None
    clock: Clock

    def open_store(self, *, create: bool) -> DurableStore:
        """Open the store; beside a running hub, the same one."""
        running_hub = self.running_hub
        if running_hub is not None and needs_migration(self.url, self.data):
            raise HubRunning(
                f"a hub of an earlier dragoman runs at {running_hub.url}: it could not write "
                "any more "
                "if its store were brought up to date now. Stop it, and start it again with this "
                "one; nothing was changed"
            )
        store = open_store(self.url, self.data, create=create)
        if running_hub is not None:
            _check_same_ledger(store, running_hub)
        return store


def open_readonly(data: Path, store: str, now: int | None) -> ReadOnlyDirectory:
    """Open an existing data directory for reading."""
    if not data.is_dir():
        raise missing_directory_error(data)
    found = read_environment(data, store, now)
    opened, agents = found.open_store(create=False), frozenset(found.settings.agents)
    return ReadOnlyDirectory(opened, found.clock, found.running_hub, agents)


def missing_directory_error(data: Path) -> StoreUnavailable:
    """Error for a data directory that does not exist."""
    return StoreUnavailable(
        f"there is no data directory at {data}: run `dragoman init`, or name another one "
        "with --data or DRAGOMAN_DATA"
    )


def read_environment(data: Path, store: str, now: int | None) -> Environment:
    """Find the settings and the running hub of a data directory."""
    found = _read_environment(data, store, now)
    check_store_url(found.url)
    return found


def _read_environment(data: Path, store: str, now: int | None) -> Environment:
    running = find_hub(data)
    clock = SystemClock() if now is None else FixedClock(now)
    if running is None:
        settings = load_settings(data, environment())
        return Environment(data, settings, store or settings.store.url, None, clock)
    if now is not None:
        raise clock_override_error(running)
    store, settings = _settings_of_hub(data, store, running)
    return Environment(data, settings, store or settings.store.url, running, clock)


def _settings_of_hub(data: Path, store: str, running: HubAddress) -> tuple[str, Settings]:
    """Store and settings of the running hub, which override those here."""
    works = running.config
    if store and absolute_url(store) != absolute_url(works.store or default_url(data)):
        raise HubRunning(
            f"a hub runs at {running.url} on another store: leave out --store, or stop it"
        )
    settings = load_settings(
        data, works.variables, Path(works.settings) if works.settings else None
    )
    return works.store or store, settings


def _check_same_ledger(store: Store, running: HubAddress) -> None:
    """Refuse to read another ledger than the hub writes."""
    expected = running.config.ledger
    if expected and store.ledger_id() != expected:
        store.close()
        raise StoreUnavailable(
            f"the store here differs from that of the hub at {running.url}: its ledger is "
            f"{expected}. "
            "Is the address of the database written differently here? Stop the hub, or correct "
            "store.url"
        )
