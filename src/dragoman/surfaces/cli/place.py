"""A data directory that is open: what every command of the command line works on."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    # The engine and the signatures are loaded by whoever opens a place: help needs neither.
    from dragoman.config import Settings
    from dragoman.engine.hub import Hub
    from dragoman.ledger.checkpoint import Checkpoint


class Duty(Protocol):
    """Something that is done when time passes."""

    @property
    def name(self) -> str:
        """What it is called in what `tick` prints."""
        ...

    def run_once(self, now: int) -> int:
        """Do it; how much there was to do."""
        ...


class Checkpoints(Protocol):
    """Signed checkpoints, to be compared with the ledger."""

    def all(self) -> "Iterator[Checkpoint]":
        """Every checkpoint."""
        ...

    def last(self) -> "Checkpoint | None":
        """The newest one."""
        ...


class Place(Struct, frozen=True):
    """A hub and what surrounds it."""

    data: Path
    settings: "Settings"
    hub: "Hub"
    checkpoints: Checkpoints
    duties: tuple[Duty, ...]
    """All of them, in the order in which `tick` runs them."""
    followers: tuple[Duty, ...]
    """Those that bring what lies outside of the store level with the ledger after every write."""

    def settle(self) -> None:
        """What a command leaves behind is level with the ledger."""
        now = self.hub.clock.now()
        for follower in self.followers:
            follower.run_once(now)


class OpenPlace(Protocol):
    """How the command line opens a data directory, handed in by `bootstrap`."""

    def __call__(self, data: Path, store: str, now: int | None, *, create: bool) -> Place:
        """Open it; `create` makes it when it is missing. `now` fixes the hub's clock."""
        ...
