"""A hub for the demo: a real one, on a temporary disk, under a clock that is moved by hand."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from dragoman.config import Settings
from dragoman.engine.handle import Engine
from dragoman.engine.hub import Hub
from dragoman.services.checkpointer import Checkpointer
from dragoman.services.promotion import Promotion
from dragoman.services.recovery import Recovery
from dragoman.store.sqlite import SqliteStore
from dragoman.surfaces.cli.place import Place
from dragoman.system.checkpoints import CheckpointFile
from dragoman.system.clock import HandClock
from dragoman.system.ids import CountingIds
from dragoman.system.keys import load_or_create


class Stage(Struct, frozen=True):
    """A place, and the clock that its hub looks at."""

    place: Place
    clock: HandClock


@contextmanager
def stage(start: int) -> Generator[Stage]:
    """A stage whose clock begins at `start`; nothing of it is left behind."""
    with TemporaryDirectory(prefix="dragoman-demo-") as folder:
        data, clock, settings = Path(folder), HandClock(start), Settings()
        key = load_or_create(data)
        # Counted ids, so that the demo is the same each time.
        store = SqliteStore.open(data / "dragoman.db", CountingIds())
        hub = Hub(Engine(store, clock, key.secret), CountingIds())
        checkpoints = CheckpointFile(data / "checkpoints.jsonl", key)
        checkpointer = Checkpointer(hub, checkpoints)
        duties = (Recovery(hub, settings.retry), Promotion(hub), checkpointer)
        try:
            yield Stage(Place(data, settings, hub, checkpoints, duties, (checkpointer,)), clock)
        finally:
            hub.close()
