"""The only place where all parts meet: a data directory and its store become a hub with duties."""

from pathlib import Path

from dragoman.config import environment, load_settings
from dragoman.core.errors import DragomanError, SettingsError, StoreUnavailable
from dragoman.engine.handle import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Store
from dragoman.services.checkpointer import Checkpointer
from dragoman.services.promotion import Promotion
from dragoman.services.recovery import Recovery
from dragoman.surfaces.cli.place import Place
from dragoman.system.checkpoints import CheckpointFile
from dragoman.system.clock import FixedClock, SystemClock
from dragoman.system.ids import new_id
from dragoman.system.keys import load, load_or_create

_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgres://")


def open_place(data: Path, store: str, now: int | None, *, create: bool) -> Place:
    """Open a data directory: its settings, keys, store, hub and duties."""
    if not data.is_dir():
        if not create:
            raise StoreUnavailable(
                f"there is no data directory at {data}: run `dragoman init`, or name another one "
                "with --data or DRAGOMAN_DATA"
            )
        _make_directory(data)
    settings = load_settings(data, environment())
    log = data / "checkpoints.jsonl"
    # Keys that are lost are not made anew: nobody could then tell old checkpoints from forged ones.
    key = load_or_create(data) if create and not log.exists() else load(data)
    opened = open_store(store or settings.store.url, data, create=create)
    clock = SystemClock() if now is None else FixedClock(now)
    hub = Hub(Engine(opened, clock, key.secret), new_id)
    checkpoints = CheckpointFile(log, key)
    checkpointer = Checkpointer(hub, checkpoints)
    if create:
        _check_before_writing(checkpointer, hub)
    return Place(
        data=data,
        settings=settings,
        hub=hub,
        checkpoints=checkpoints,
        duties=(Recovery(hub, settings.retry), Promotion(hub), checkpointer),
        followers=(checkpointer,),
    )


def _check_before_writing(checkpointer: Checkpointer, hub: Hub) -> None:
    """What is written on top of a ledger that does not hold could not be signed afterwards."""
    try:
        checkpointer.check()
    except DragomanError:
        hub.close()
        raise


def open_store(url: str, data: Path, *, create: bool = True) -> Store:
    """The store of a URL; without one, `dragoman.db` in the data directory."""
    if url.startswith(_POSTGRES):
        from dragoman.store.postgres import PostgresStore

        return PostgresStore.open(url, new_id)
    if url and not url.startswith(_SQLITE):
        raise SettingsError(
            f"{url.partition(':')[0]}: is not a kind of store; "
            "use sqlite:///path/to/file.db or postgresql://user@host/database"
        )
    if url == _SQLITE:
        raise SettingsError("sqlite:/// names no file; use sqlite:///path/to/file.db")
    from dragoman.store.sqlite import SqliteStore

    path = Path(url.removeprefix(_SQLITE)) if url else data / "dragoman.db"
    if not create and not path.exists():
        raise StoreUnavailable(
            f"there is no database at {path}: bring it back from a backup, or run `dragoman init`"
        )
    return SqliteStore.open(path, new_id)


def _make_directory(data: Path) -> None:
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(
            f"the data directory {data} cannot be made: {error.strerror}"
        ) from error
