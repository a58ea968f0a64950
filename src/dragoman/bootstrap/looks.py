"""A data directory that is only read: its settings, the hub that runs there, its store.

Nothing else is loaded: the keys, the dialects and the duties take longer than to list the tasks.
"""

from pathlib import Path

from msgspec import Struct

from dragoman.bootstrap.stores import check_url, is_behind, lasting, open_store, own_url
from dragoman.config import Settings, environment, load_settings
from dragoman.core.errors import StoreUnavailable
from dragoman.engine.ports import Clock, KeptStore, Store
from dragoman.surfaces.cli.place import Look
from dragoman.system.clock import FixedClock, SystemClock
from dragoman.system.hub_address import HubAddress, clock_runs, find_hub
from dragoman.system.hub_lock import HubRunning


class Around(Struct, frozen=True):
    """Settings, store URL, clock and running hub of a data directory."""

    data: Path
    settings: Settings
    url: str
    """URL of the store; empty: that of the data directory."""
    running: HubAddress | None
    clock: Clock

    def open_store(self, *, create: bool) -> KeptStore:
        """Open the store; beside a running hub, the same one."""
        running = self.running
        if running is not None and is_behind(self.url, self.data):
            raise HubRunning(
                f"a hub of an earlier dragoman runs at {running.url}: it could not write any more "
                "if its store were brought up to date now. Stop it, and start it again with this "
                "one; nothing was changed"
            )
        kept = open_store(self.url, self.data, create=create)
        if running is not None:
            _check_same_ledger(kept, running)
        return kept


def open_look(data: Path, store: str, now: int | None) -> Look:
    """Open an existing data directory for reading."""
    if not data.is_dir():
        raise no_directory(data)
    around = look_around(data, store, now)
    kept, agents = around.open_store(create=False), frozenset(around.settings.agents)
    return Look(kept, around.clock, around.running, agents)


def no_directory(data: Path) -> StoreUnavailable:
    """Error for a data directory that does not exist."""
    return StoreUnavailable(
        f"there is no data directory at {data}: run `dragoman init`, or name another one "
        "with --data or DRAGOMAN_DATA"
    )


def look_around(data: Path, store: str, now: int | None) -> Around:
    """Find the settings and the running hub of a data directory."""
    around = _look_around(data, store, now)
    check_url(around.url)
    return around


def _look_around(data: Path, store: str, now: int | None) -> Around:
    running = find_hub(data)
    clock = SystemClock() if now is None else FixedClock(now)
    if running is None:
        settings = load_settings(data, environment())
        return Around(data, settings, store or settings.store.url, None, clock)
    if now is not None:
        raise clock_runs(running)
    store, settings = _beside(data, store, running)
    return Around(data, settings, store or settings.store.url, running, clock)


def _beside(data: Path, store: str, running: HubAddress) -> tuple[str, Settings]:
    """Store and settings of the running hub, which override those here."""
    works = running.works
    if store and lasting(store) != lasting(works.store or own_url(data)):
        raise HubRunning(
            f"a hub runs at {running.url} on another store: leave out --store, or stop it"
        )
    settings = load_settings(
        data, works.variables, Path(works.settings) if works.settings else None
    )
    return works.store or store, settings


def _check_same_ledger(kept: Store, running: HubAddress) -> None:
    """Refuse to read another ledger than the hub writes."""
    known = running.works.ledger
    if known and kept.ledger_id() != known:
        kept.close()
        raise StoreUnavailable(
            f"the store here differs from that of the hub at {running.url}: its ledger is {known}. "
            "Is the address of the database written differently here? Stop the hub, or correct "
            "store.url"
        )
