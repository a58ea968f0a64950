"""A data directory that is open: what every command of the command line works on."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from dragoman.core.errors import DragomanError
from dragoman.surfaces.cli.screen import Bars, Progress

if TYPE_CHECKING:
    # The engine and the signatures are loaded by whoever opens a place: help needs neither.
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from dragoman.config import Settings
    from dragoman.core.errors import Refusal
    from dragoman.core.states.handoff import Handoff
    from dragoman.engine.hints import Hints
    from dragoman.engine.hub import Hub
    from dragoman.engine.identity import Principal
    from dragoman.engine.interpreter import Interpreter
    from dragoman.engine.operation import Dialect
    from dragoman.engine.ports import Clock, Store
    from dragoman.engine.shown.tasks import WholeTask
    from dragoman.engine.subscribe import Gap
    from dragoman.engine.verifying.slices import Slices
    from dragoman.files.archives.archive_format import Manifest
    from dragoman.files.handoffs.audit import Checked
    from dragoman.files.projector import Projector
    from dragoman.ledger.checkpoint import Checkpoint
    from dragoman.services.clockwork import Duty, Group
    from dragoman.services.notifier import Standing
    from dragoman.services.projector import FilesDuty
    from dragoman.surfaces.cli.running import RunningHub
    from dragoman.system.hub_address import HubAddress
    from dragoman.text.redact import Redactor


Failure = OSError | DragomanError
Ran = int | Failure
"""How much a duty had to do, or why it could not."""


class Checkpoints(Protocol):
    """Signed checkpoints, to be compared with the ledger."""

    def last(self) -> "Checkpoint | None":
        """The newest one that holds."""
        ...

    def spoiled_at_the_end(self) -> int:
        """How many lines behind that one do not hold."""
        ...

    def lines(self) -> list[bytes]:
        """Every checkpoint as it was signed, unchecked."""
        ...

    @property
    def public(self) -> "Ed25519PublicKey":
        """The half of the key with which anyone can check them."""
        ...

    @property
    def doubt(self) -> str:
        """Why the private half does not show that the public one is ours; empty: it does."""
        ...


class Source(Protocol):
    """What can be looked at: a hub, or a store that is only read."""

    @property
    def store(self) -> "Store":
        """Where everything is kept."""
        ...

    @property
    def clock(self) -> "Clock":
        """What time it is there."""
        ...


class Look(Struct, frozen=True):
    """A data directory that is only read: no keys, no dialects, no duties."""

    store: "Store"
    clock: "Clock"
    hub: "HubAddress | None"
    """The hub that runs there, if one does: some things only it knows."""
    agents: frozenset[str]
    """Whom a hub starts there, by the settings."""


class Evidence(Struct, frozen=True):
    """What a ledger is proven by."""

    store: "Store"
    checkpoints: Checkpoints
    slices: "Slices"
    """Checks the ledger slice by slice."""


class Place(Struct, frozen=True):
    """A hub and what surrounds it."""

    data: Path
    settings: "Settings"
    hub: "Hub"
    hints: "Hints"
    """Told after every commit; whoever waits for one listens."""
    interpreter: "Interpreter"
    """What agents say in their dialects goes through this."""
    checkpoints: Checkpoints
    projector: "Projector"
    export: "Callable[[Path, Progress], Manifest]"
    """Writes the whole data directory into one file."""
    backup: "Callable[[Path, Bars], Manifest]"
    """Writes all that a hub needs to go on elsewhere into one file."""
    slices: "Slices"
    """Checks the ledger slice by slice."""
    audit: "Callable[[Handoff], Iterator[Checked]]"
    """Looks at one handoff from all sides."""
    groups: "tuple[Group, ...]"
    """All duties, in the order in which `tick` runs them; a group shares a thread of `up`."""
    file_duties: "tuple[FilesDuty, ...]"
    """Those that have to do with plain files only, and are done while somebody watches these."""
    standings: "Callable[[], Sequence[Standing]]"
    """How it stands with everyone who is to be told."""
    remarks: Callable[[], Mapping[str, str]]
    """Duty -> what is to be said about its last run beside its number, if anything."""
    before_writing: tuple[Callable[[], object], ...]
    """What is looked at before a command writes."""
    identify: "Callable[[str, str], Principal | Refusal]"
    """Whose token this is, shown at which door."""
    warnings: list[str]
    """What the person should know, though it stopped nothing."""

    @property
    def duties(self) -> "tuple[Duty, ...]":
        """All of them."""
        return tuple(duty for group in self.groups for duty in group.all)

    @property
    def followers(self) -> "tuple[Duty, ...]":
        """Those that bring what lies outside of the store level with the ledger after a write."""
        return tuple(duty for group in self.groups for duty in group.followers)

    def begin(self) -> None:
        """Ready to be written to."""
        for look in self.before_writing:
            look()

    def settle(self) -> Iterator[tuple[str, Failure]]:
        """Bring what a command leaves behind level with the ledger; who could not do its part."""
        for name, done in self.run(self.followers):
            if not isinstance(done, int):
                yield name, done

    def run(self, duties: "Sequence[Duty]") -> Iterator[tuple[str, Ran]]:
        """Each duty once; one that fails stops none of the others."""
        now = self.hub.clock.now()
        for duty in duties:
            try:
                yield duty.name, duty.run_once(now)
            except (OSError, DragomanError) as error:
                yield duty.name, error


class WatchHub(Protocol):
    """How a hub elsewhere is watched, handed in by `bootstrap`."""

    def __call__(
        self, task: str, after: int | None, on_gap: "Callable[[Gap], None]"
    ) -> "AbstractContextManager[tuple[WholeTask, Iterator[Mapping[str, Any]]]]":
        """A task, and all entries of the ledger from a position on; None: from its beginning.

        `on_gap` is told that the ledger ends before what was seen of it.
        """
        ...


class OpenPlace(Protocol):
    """How the command line opens a data directory, handed in by `bootstrap`."""

    def __call__(
        self,
        data: Path,
        store: str,
        now: int | None,
        *,
        create: bool,
        new_keys: bool = False,
        keyed: bool = True,
    ) -> Place:
        """Open it; `create` makes it when it is missing. `now` fixes the hub's clock. With
        `new_keys` the store takes the keys that are here in the place of those it had. A place
        that is not `keyed` opens without them too, and then takes no request."""
        ...


class House(Struct, frozen=True):
    """What the command line is handed: how to open a place, and what is spoken in all of them."""

    open_place: OpenPlace
    open_look: "Callable[[Path, str, int | None], Look]"
    """Opens a data directory that is only read, by its store; the number fixes the clock."""
    open_evidence: "Callable[[Path, str, int | None], Evidence]"
    """The same with its checkpoints, to prove the ledger."""
    dialects: "Callable[[], Sequence[Dialect]]"
    import_archive: "Callable[[Path, Path, str, Progress], Manifest]"
    """Makes a data directory, with the store of a URL, out of an exported one."""
    open_stage: "Callable[[Path, Clock], Place]"
    """Makes a data directory for the demo, where only the given clock tells the time."""
    open_hub: "Callable[[Path, str, str, int | None, Path | None], tuple[Place, RunningHub]]"
    """Makes a hub that can run: data directory, store, host, port, settings file."""
    watch_hub: WatchHub
    ask_hub: "Callable[[str, Mapping[str, Any]], Any]"
    """Asks the hub that the environment names for an operation."""
    redactor: "Callable[[Path], Redactor]"
    """Takes secrets out of text, and knows those of a data directory, if there is one."""
    check_settings: "Callable[[Settings, Path], None]"
    """Raises SettingsError for what no hub of a data directory would run with."""
    restore: "Callable[[Path, Path, str, Bars], Manifest]"
    """Makes a data directory, with the store of a URL, out of a backup."""
