"""A data directory that is open: settings, keys, store and hub, with all that surrounds them."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from dragoman.bootstrap.duties import Outside, all_duties
from dragoman.bootstrap.files import FilesFace
from dragoman.bootstrap.inbox import BY_INBOX, open_inbox
from dragoman.bootstrap.keyed import open_keyed, open_to_read
from dragoman.bootstrap.looks import no_directory
from dragoman.bootstrap.mute import MuteEngine
from dragoman.bootstrap.notices import open_notifier
from dragoman.bootstrap.redaction import open_redactor
from dragoman.bootstrap.speaking import open_dialects
from dragoman.bootstrap.stores import CHECKPOINTS, check_url, make_directory, open_store
from dragoman.bootstrap.traces import open_head
from dragoman.bootstrap.verifying import slices_of
from dragoman.config import Settings
from dragoman.core.errors import DragomanError, Refusal
from dragoman.engine.handle import Engine
from dragoman.engine.hints import Heard, Hints
from dragoman.engine.hub import Hub
from dragoman.engine.interpreter import Interpreter
from dragoman.engine.ports import Clock, KeptStore, Store
from dragoman.engine.redaction import Redaction
from dragoman.files.handoffs.audit import check_handoff
from dragoman.files.inbox import Inbox
from dragoman.notify.notice import Notice
from dragoman.services.checkpointer import Checkpointer
from dragoman.services.notifier import Notifier
from dragoman.services.workq import HubWorkq
from dragoman.surfaces.cli.person import CLOCK_WAS_SET
from dragoman.surfaces.cli.place import Place
from dragoman.surfaces.cli.screen import Bars, Progress
from dragoman.system.beneath import Beneath
from dragoman.system.checkpoints import CheckpointFile
from dragoman.system.clock import FixedClock, SystemClock
from dragoman.system.hub_address import HubAddress, find_hub
from dragoman.system.hub_at_work import Reach, RemoteEngine
from dragoman.system.ids import new_id
from dragoman.system.keys import LedgerKey, NoKeys, load, load_or_create

if TYPE_CHECKING:
    from dragoman.engine.identity import Principal
    from dragoman.files.archives.archive_format import Manifest


def open_place(
    data: Path,
    store: str,
    now: int | None,
    *,
    create: bool,
    new_keys: bool = False,
    keyed: bool = True,
) -> Place:
    """Open a data directory: settings, keys, store, hub and services."""
    if not data.is_dir():
        if not create:
            raise no_directory(data)
        check_url(store)
        make_directory(data)
    found = (
        open_keyed(data, store, now, create=create, new_keys=new_keys)
        if keyed
        else open_to_read(data, store, now)
    )
    around = found.around
    engines = Engines(found.store, around.clock, found.key, around.running, around.url)
    place = opened(data, around.settings, engines, create=create)
    place.hub.redaction.tell = place.warnings.append
    return place


def open_stage(data: Path, clock: Clock) -> Place:
    """Open an empty directory for the demo: all parts are real, but no settings of the user
    apply."""
    make_directory(data)
    key = load_or_create(data)
    return opened(data, Settings(), Engines(open_store("", data), clock, key), create=True)


class Engines(Struct, frozen=True):
    """Parts of an engine: for this process, or to forward to a running hub."""

    store: KeptStore
    clock: Clock
    key: LedgerKey | NoKeys
    running: HubAddress | None = None
    url: str = ""
    """URL of the store; empty: it is the one in the data directory."""

    def make(self, data: Path, beaten: Heard, hints: Hints) -> Engine:
        """Build the engine; it reports renewed leases and commits."""
        if isinstance(self.key, NoKeys):
            return MuteEngine(self.store, self.clock, self.key)
        secret = self.key.secret
        if self.running is not None:
            reach = Reach(self.running, partial(find_hub, data))
            return RemoteEngine(self.store, self.clock, secret, reach, beaten.add)
        return Engine(self.store, self.clock, secret, on_leases=beaten.add, on_commit=hints.tell)


def opened(data: Path, settings: Settings, engines: Engines, *, create: bool) -> Place:
    """Open a data directory on an open store; writes go through the running hub, if there is
    one."""
    beaten, hints = Heard(), Hints()
    try:
        redactor = open_redactor(settings, data, engines.key)
    except DragomanError:
        engines.store.close()
        raise
    mark = CLOCK_WAS_SET if isinstance(engines.clock, FixedClock) else ""
    hub = Hub(engines.make(data, beaten, hints), new_id, Redaction(redactor), mark)
    try:
        place = _furnished(data, settings, engines, hub, hints, beaten)
        if create:
            place.begin()
    except DragomanError:
        hub.close()
        raise
    return place


def _furnished(
    data: Path, settings: Settings, engines: Engines, hub: Hub, hints: Hints, beaten: Heard
) -> Place:
    """Connect the hub with its router, services and files."""
    warnings, trusts = list[str](), settings.files.trust_moves
    warn = partial(_add_once, warnings)
    files = FilesFace(data, hub, warn, trust_moves=trusts)
    hub.engine.head = open_head(settings, data)
    spoken, facts = open_dialects(settings, data, hub, engines.key.secret), files.facts()
    carry = hub.engine.carry if isinstance(hub.engine, RemoteEngine) else None
    interpreter = Interpreter(hub, spoken.dialects, facts, carry=carry)
    letterbox = (
        interpreter
        if trusts
        else Interpreter(hub, spoken.dialects, facts, admits=BY_INBOX, carry=carry)
    )
    # The inbox is processed in a thread of its own, so it needs a disk of its own.
    inbox = open_inbox(Beneath(data), letterbox, facts, warn)
    of_files = files.duties(inbox, spoken.ports.sweep, beaten)
    checkpoints = CheckpointFile(data / CHECKPOINTS, engines.key)
    checkpointer, notifier = Checkpointer(hub, checkpoints), open_notifier(data, settings, hub)
    outside = Outside(
        workq=spoken.ports.workq or HubWorkq(hub),
        tails=spoken.tails,
        end_thought=spoken.end_thought,
        checkpointer=checkpointer,
        notifier=notifier,
        files=of_files,
    )
    return Place(
        data=data,
        settings=settings,
        hub=hub,
        hints=hints,
        interpreter=interpreter,
        checkpoints=checkpoints,
        projector=files.projector,
        export=partial(_export, hub, files.disk),
        backup=partial(_backup, engines.store, files.disk, hub.clock),
        slices=slices_of(engines.store, engines.url, data),
        audit=partial(check_handoff, hub.store, files.disk),
        groups=all_duties(hub, settings, interpreter, outside),
        file_duties=(*of_files.inbox, *of_files.watched, *of_files.followers),
        standings=notifier.standings,
        remarks=partial(_remarks, inbox, notifier),
        before_writing=(checkpointer.check, notifier.begin),
        identify=partial(_identify, data, hub),
        warnings=warnings,
    )


def _add_once(warnings: list[str], words: str) -> None:
    if words not in warnings:  # once: a hub that runs for months meets the same trouble again
        warnings.append(words)


def _remarks(inbox: Inbox, notifier: Notifier[Notice]) -> dict[str, str]:
    rejected = f"rejected, with the reason beside it: {inbox.rejected}"
    return {
        **({"inbox": rejected} if inbox.rejected else {}),
        **({"notify": trouble} if (trouble := notifier.trouble()) else {}),
    }


def _identify(data: Path, hub: Hub, token: str, via: str) -> "Principal | Refusal":
    """Authenticate a token in a data directory, with or without a running hub."""
    from dragoman.engine.identity import Identity
    from dragoman.system.token_file import load_or_create_token

    secret, owner = load(data).secret, load_or_create_token(data)
    return Identity(hub.store, secret, owner, hub.clock).who(token, via)


def _export(hub: Hub, disk: Beneath, target: Path, progress: Progress) -> "Manifest":
    from dragoman.files.archives.export import export_archive

    beside = Beneath(target.absolute().parent)
    return export_archive(hub.store, disk, target, beside, hub.clock.now(), progress)


def _backup(store: KeptStore, disk: Beneath, clock: Clock, target: Path, bars: Bars) -> "Manifest":
    from dragoman.bootstrap.backups import make_backup

    return make_backup(store, disk, clock.now(), target, bars)


def import_archive(archive: Path, data: Path, store: str, progress: Progress) -> "Manifest":
    """Make a data directory out of an exported one."""
    from dragoman.files.archives.importing import Tools
    from dragoman.files.archives.importing import import_archive as import_files

    def open_empty(building: Path, ledger_id: str) -> Store:
        return open_store(store, building, new_ledger_id=lambda: ledger_id)

    tools = Tools(open_empty, Beneath, SystemClock().now(), progress)
    return import_files(archive, data, tools)
