"""Opens stores: the store of a URL, or that of a data directory for reading only.

Nothing else is imported: keys, dialects and services take longer to load than listing the tasks.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from msgspec import Struct

from dragoman.config import Settings, environment, load_settings
from dragoman.config.store_url import (
    absolute_url,
    check_store_url,
    default_url,
    location_hint,
    sqlite_path,
)
from dragoman.core.errors import StoreUnavailable
from dragoman.engine.ports import Clock, DurableStore, Store
from dragoman.surfaces.cli.data_directory import ReadOnlyDirectory
from dragoman.system.clock import FixedClock, SystemClock, new_id
from dragoman.system.hub_lock import HubAddress, HubRunning, clock_override_error, find_hub
from dragoman.text.error_messages import describe_exception

# --- stores by URL ----------------------------------------------------------------------------

CHECKPOINTS_FILE = "checkpoints.jsonl"


def open_store(
    url: str, data: Path, *, create: bool = True, new_ledger_id: Callable[[], str] = new_id
) -> DurableStore:
    """Open the store of a URL; without one, `dragoman.db` in the data directory."""
    path = sqlite_path(url, data)
    if path is None:
        from dragoman.store.postgres import PostgresStore

        if create and not _is_signed(data):
            return PostgresStore.open(url, new_ledger_id)
        return PostgresStore.open_existing(url) or _raise_no_ledger(url, data)
    check_store_url(url)
    from dragoman.store.sqlite import SqliteStore

    if not create and _has_no_database(path):
        check_not_lost(url, data)
        raise StoreUnavailable(
            f"there is no database at {path}{location_hint(url, data)}: run `dragoman init`"
        )
    return SqliteStore.open(path, new_ledger_id)


def open_or_create(url: str, data: Path) -> DurableStore:
    """Open the store of a hub; create one that never existed."""
    check_not_lost(url, data)
    return open_store(url, data)


def check_not_lost(url: str, data: Path) -> None:
    """Refuse to recreate a store that is gone although checkpoints signed it: its loss would go
    unnoticed.

    On a server this shows only when it is opened.
    """
    path = sqlite_path(url, data)
    if path is None or not _has_no_database(path) or not _is_signed(data):
        return
    state = "is empty" if path.exists() else "is gone"
    raise _lost_store_error(f"the database at {path}{location_hint(url, data)} {state}", data)


def _raise_no_ledger(url: str, data: Path) -> NoReturn:
    """Raise the error for a schema without a ledger."""
    from dragoman.store.postgres.connect import parse_url

    problem = f"there is no ledger in {parse_url(url)}, where --store or [store] url leads"
    if _is_signed(data):
        raise _lost_store_error(problem, data)
    raise StoreUnavailable(f"{problem}: run `dragoman init`, or correct the URL")


def _lost_store_error(problem: str, data: Path) -> StoreUnavailable:
    return StoreUnavailable(
        f"{problem}; {data / CHECKPOINTS_FILE} has signed what it held. Put it back, or make a new "
        "directory out of a backup: `dragoman restore FILE --data NEW`. Nothing was made in its "
        "place"
    )


def _is_signed(data: Path) -> bool:
    return (data / CHECKPOINTS_FILE).exists()


def _has_no_database(path: Path) -> bool:
    """Check whether there is no database; an empty file is none."""
    return not path.exists() or path.stat().st_size == 0


def needs_migration(url: str, data: Path) -> bool:
    """Check whether an existing store has an older schema version, and would be migrated."""
    path = sqlite_path(url, data)
    if path is None:
        from dragoman.store.postgres.migrate import MIGRATIONS as NEWEST
        from dragoman.store.postgres.migrate import schema_version_at

        return 0 < schema_version_at(url) < len(NEWEST)
    from dragoman.store.sqlite.migrate import MIGRATIONS
    from dragoman.store.sqlite.reads import schema_version

    return path.exists() and 0 < schema_version(path) < len(MIGRATIONS)


def make_directory(data: Path) -> None:
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError as error:
        raise StoreUnavailable(
            f"the data directory {data} cannot be made: {error.filename} is there, and is no "
            "directory. Move it away, or name another place with --data or DRAGOMAN_DATA"
        ) from error
    except OSError as error:
        raise StoreUnavailable(
            f"the data directory {data} cannot be made: {describe_exception(error)}. Give this "
            "user the "
            "right to make it, or name another place with --data or DRAGOMAN_DATA"
        ) from error


# --- settings and running hub of a data directory ---------------------------------------------


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


def missing_directory_error(data: Path) -> StoreUnavailable:
    """Error for a data directory that does not exist."""
    return StoreUnavailable(
        f"there is no data directory at {data}: run `dragoman init`, or name another one "
        "with --data or DRAGOMAN_DATA"
    )


def read_environment(data: Path, store: str, now: int | None) -> Environment:
    """Find the settings and the running hub of a data directory."""
    running = find_hub(data)
    clock = SystemClock() if now is None else FixedClock(now)
    if running is None:
        settings = load_settings(data, environment())
    elif now is not None:
        raise clock_override_error(running)
    else:
        store, settings = _settings_of_hub(data, store, running)
    url = store or settings.store.url
    check_store_url(url)
    return Environment(data, settings, url, running, clock)


def _settings_of_hub(data: Path, store: str, running: HubAddress) -> tuple[str, Settings]:
    """Store and settings of the running hub, which override those here."""
    works = running.config
    if store and absolute_url(store) != absolute_url(works.store or default_url(data)):
        raise HubRunning(
            f"a hub runs at {running.url} on another store: leave out --store, or stop it"
        )
    settings = load_settings(
        data, works.environment, Path(works.settings) if works.settings else None
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


# --- reading only -----------------------------------------------------------------------------


def open_readonly(data: Path, store: str, now: int | None) -> ReadOnlyDirectory:
    """Open an existing data directory for reading."""
    if not data.is_dir():
        raise missing_directory_error(data)
    found = read_environment(data, store, now)
    opened = found.open_store(create=False)
    return ReadOnlyDirectory(
        store=opened,
        clock=found.clock,
        hub_address=found.running_hub,
        configured_agents=frozenset(found.settings.agents),
        served_names=found.settings.served_names,
        teamspaces=found.settings.teamspaces,
        close=opened.close,
    )
