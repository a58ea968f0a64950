"""A data directory that is open: settings, keys, store and hub, with all that surrounds them."""

from contextlib import closing
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from dragoman.config import Settings, environment
from dragoman.core.errors import DragomanError, Refusal
from dragoman.core.events import Role
from dragoman.engine.facts import StoreFacts
from dragoman.engine.handle import Engine
from dragoman.engine.handoffs import copies_needed
from dragoman.engine.hints import Heard, Hints
from dragoman.engine.hub import Hub
from dragoman.engine.interpreter import Interpreter
from dragoman.engine.operation import Dialect
from dragoman.engine.plan import Turned
from dragoman.engine.ports import Clock, KeptStore, Store
from dragoman.engine.redaction import Redaction
from dragoman.engine.request import Accepted, Outcome
from dragoman.files.copies import Copies
from dragoman.files.handoff_audit import check_handoff
from dragoman.files.inbox import Inbox
from dragoman.files.lookup import has_file
from dragoman.files.projector import Projector
from dragoman.notify.notice import News, Notice
from dragoman.protocols import acp, agentmail, aof, ccos, saop
from dragoman.services.checkpointer import Checkpointer
from dragoman.services.entropy import Entropy
from dragoman.services.handing_on import HandingOn
from dragoman.services.indexer import Indexer
from dragoman.services.notifier import Notifier, Target
from dragoman.services.projector import FilesDuty
from dragoman.services.promotion import Promotion
from dragoman.services.recovery import Recovery
from dragoman.services.sla import Sla
from dragoman.services.thoughts import Thoughts
from dragoman.services.waves import Waves
from dragoman.services.workq import HubWorkq
from dragoman.surfaces.cli.place import Place
from dragoman.surfaces.cli.screen import Bars, Progress
from dragoman.system.beneath import Beneath
from dragoman.system.checkpoints import CheckpointFile
from dragoman.system.clock import SystemClock
from dragoman.system.hub_address import HubAddress
from dragoman.system.hub_at_work import RemoteEngine
from dragoman.system.ids import new_id
from dragoman.system.keys import LedgerKey, NoKeys, load, load_or_create
from dragoman.system.outbox import OutboxFiles
from dragoman.text.strict_json import MOST_BYTES

if TYPE_CHECKING:
    from dragoman.engine.identity import Principal
    from dragoman.files.archive_format import Manifest
from dragoman.bootstrap.handoffs import NO_PORTS, Ports, handoff_choices, handoff_ports
from dragoman.bootstrap.keyed import open_keyed, open_to_read
from dragoman.bootstrap.looks import no_directory
from dragoman.bootstrap.mute import MuteEngine
from dragoman.bootstrap.redaction import open_redactor
from dragoman.bootstrap.spawning import open_spawner
from dragoman.bootstrap.stores import CHECKPOINTS, check_url, make_directory, open_store
from dragoman.bootstrap.traces import open_head, open_tails, trace_choices
from dragoman.bootstrap.verifying import slices_of

BY_INBOX: frozenset[Role] = frozenset({"agent", "observer"})
"""Roles that may speak through the inbox, where a name is all that there is, unless the settings
trust whoever can write there."""


def open_place(
    data: Path,
    store: str,
    now: int | None,
    *,
    create: bool,
    new_keys: bool = False,
    keyed: bool = True,
) -> Place:
    """Open a data directory: its settings, keys, store, hub and duties."""
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
    """Open an empty directory for a play: all parts are real, and nobody's settings reach it."""
    make_directory(data)
    key = load_or_create(data)
    return opened(data, Settings(), Engines(open_store("", data), clock, key), create=True)


class Engines(Struct, frozen=True):
    """What an engine is made of: for this process, or for a hub that runs in another one."""

    store: KeptStore
    clock: Clock
    key: LedgerKey | NoKeys
    running: HubAddress | None = None
    url: str = ""
    """Of the store; empty: it is the one in the data directory."""

    def make(self, beaten: Heard, hints: Hints) -> Engine:
        """The engine; it tells of leases and commits."""
        if isinstance(self.key, NoKeys):
            return MuteEngine(self.store, self.clock, self.key)
        secret = self.key.secret
        if self.running is not None:
            return RemoteEngine(self.store, self.clock, secret, self.running, beaten.add)
        return Engine(self.store, self.clock, secret, on_leases=beaten.add, on_commit=hints.tell)


def opened(data: Path, settings: Settings, engines: Engines, *, create: bool) -> Place:
    """A place on an open store; its writes go through the hub that runs, if one does."""
    beaten, hints = Heard(), Hints()
    try:
        redactor = open_redactor(settings, data, engines.key)
    except DragomanError:
        engines.store.close()
        raise
    hub = Hub(engines.make(beaten, hints), new_id, Redaction(redactor))
    try:
        place = _furnished(data, settings, hub, hints, engines, beaten)
        if create:
            place.begin()
    except DragomanError:
        hub.close()
        raise
    return place


def _furnished(
    data: Path,
    settings: Settings,
    hub: Hub,
    hints: Hints,
    engines: "Engines",
    beaten: Heard,
) -> Place:
    """The hub with all that surrounds it."""
    warnings: list[str] = []

    def warn(words: str) -> None:
        if words not in warnings:  # a hub that runs for months meets the same trouble again
            warnings.append(words)

    disk, checkpoints = Beneath(data), CheckpointFile(data / CHECKPOINTS, engines.key)
    head = open_head(settings, data)
    tails = open_tails(data, engines.key.secret)
    hub.engine.head = head
    traces = trace_choices(settings, hub.redaction.redactor, hub, head)
    ports = handoff_ports(settings, hub, data)
    spoken = dialects(
        settings,
        _model(settings, data),
        ports,
        replace(traces, tails=tails),
    )
    projector = Projector(
        hub,
        disk,
        aof.render_lines,
        warn,
        trust_moves=settings.files.trust_moves,
    )

    # Facts are looked up in any thread of a hub that runs, while another one writes files: each
    # look has a disk of its own.
    def has(task: str, ref: str) -> bool:
        with closing(Beneath(data)) as looking:
            return has_file(hub.store, looking, task, ref)

    def look_at_runs() -> int:
        with closing(Beneath(data)) as looking:
            Projector(hub, looking, aof.render_lines, warn).look_at_runs()
        return 0

    runs = FilesDuty("runs", look_at_runs, warn)
    facts = StoreFacts(hub.store, has, lambda: runs.run_once(hub.clock.now()), hub.clock.now)
    interpreter = Interpreter(hub, spoken, facts)
    letterbox = (
        interpreter
        if settings.files.trust_moves
        else Interpreter(hub, spoken, facts, admits=BY_INBOX)
    )

    checkpointer = Checkpointer(hub, checkpoints)
    notifier = _notifier(data, settings, hub)
    inbox = Inbox(disk, partial(_deliver, letterbox, facts), MOST_BYTES)
    projection = FilesDuty(
        "projection", lambda: projector.level(beaten.take()), warn, left=projector.trouble
    )

    def remarks() -> dict[str, str]:
        rejected = f"rejected, with the reason beside it: {inbox.rejected}"
        return {
            **({"inbox": rejected} if inbox.rejected else {}),
            **({"notify": trouble} if (trouble := notifier.trouble()) else {}),
        }

    of_files = (
        FilesDuty("inbox", lambda: inbox.run_once(hub.clock.now()), warn),
        FilesDuty("files", projector.sweep, warn, monotonic),
        FilesDuty("artifacts", lambda: ports.sweep(hub.clock.now()), warn),
        projection,
    )
    return Place(
        data=data,
        settings=settings,
        hub=hub,
        hints=hints,
        interpreter=interpreter,
        checkpoints=checkpoints,
        projector=projector,
        export=partial(_export, hub, disk),
        backup=partial(_backup, engines.store, disk, hub.clock),
        slices=slices_of(engines.store, engines.url, data),
        audit=partial(check_handoff, hub.store, disk),
        duties=(
            Recovery(hub, settings.retry, settings.handoffs.coordinator, settings.teamspaces),
            Sla(hub, settings.handoffs.coordinator, settings.teamspaces, settings.agents),
            HandingOn(hub, ports.workq or HubWorkq(hub)),
            Waves(hub),
            Entropy(hub, settings.entropy),
            Thoughts(hub, tails, partial(saop.last_chunk, choices=traces)),
            open_spawner(settings, hub, interpreter),
            *of_files,
            FilesDuty("copies", _copies(data, hub).sweep, warn, monotonic),
            Promotion(hub),
            checkpointer,
            notifier,
            Indexer(hub),
        ),
        file_duties=of_files,
        followers=(projection, checkpointer, notifier),
        standings=notifier.standings,
        remarks=remarks,
        before_writing=(checkpointer.check, notifier.begin),
        identify=partial(_identify, data, hub),
        warnings=warnings,
    )


def _copies(data: Path, hub: Hub) -> Copies:
    """Who removes copies of artifacts that no handoff needs, by the time that the disk goes by."""
    return Copies(lambda: Beneath(data), lambda: copies_needed(hub.store), SystemClock().now)


def _deliver(
    interpreter: Interpreter, facts: StoreFacts, said: bytes, agent: str | None
) -> Outcome:
    """A message from the inbox: as the agent whose folder it lay in, or as whom it names."""
    speaker = None if agent is None else facts.speaker(agent, "inbox")
    answer = interpreter.send(said, speaker=speaker, via="inbox")
    if answer is None:
        return Refusal("not_recognized", "this is no message of a dialect that is spoken here")
    if isinstance(answer, Turned):
        return Refusal(answer.code, answer.detail)
    return Accepted(answer.receipts, answer.repeated)


def _identify(data: Path, hub: Hub, token: str, via: str) -> "Principal | Refusal":
    """Whose token this is, in a data directory that no hub need run for."""
    from dragoman.engine.identity import Identity
    from dragoman.system.token_file import load_or_create_token

    secret, owner = load(data).secret, load_or_create_token(data)
    return Identity(hub.store, secret, owner, hub.clock).who(token, via)


def _export(hub: Hub, disk: Beneath, target: Path, progress: Progress) -> "Manifest":
    from dragoman.files.export import export_archive

    beside = Beneath(target.absolute().parent)
    return export_archive(hub.store, disk, target, beside, hub.clock.now(), progress)


def _backup(store: KeptStore, disk: Beneath, clock: Clock, target: Path, bars: Bars) -> "Manifest":
    from dragoman.bootstrap.backups import make_backup

    return make_backup(store, disk, clock.now(), target, bars)


def import_archive(archive: Path, data: Path, store: str, progress: Progress) -> "Manifest":
    """Make a data directory out of an exported one."""
    from dragoman.files.importing import Tools
    from dragoman.files.importing import import_archive as import_files

    def open_empty(building: Path, ledger_id: str) -> Store:
        return open_store(store, building, new_ledger_id=lambda: ledger_id)

    tools = Tools(open_empty, Beneath, SystemClock().now(), progress)
    return import_files(archive, data, tools)


def _notifier(data: Path, settings: Settings, hub: Hub) -> Notifier[Notice]:
    notify, targets = settings.notify, list[Target[Notice]]()
    if notify.webhook_url:
        from dragoman.notify.webhook import Webhook
        from dragoman.system.fetch import Endpoint

        endpoint = Endpoint(notify.webhook_url, "notify.webhook_url", notify.allow_hosts)
        targets.append(Webhook(notify.webhook_secret, endpoint.post))
    if notify.command:
        from dragoman.notify.command import Command
        from dragoman.system.spawn import run

        targets.append(Command(notify.command, environment(), partial(run, folder=data)))
    news = News(hub.store, notify.statuses)
    return Notifier(hub, OutboxFiles(data), news, targets, monotonic)


def dialects(
    settings: Settings | None = None,
    model: agentmail.Model | None = None,
    ports: Ports = NO_PORTS,
    traces: saop.Choices | None = None,
) -> tuple[Dialect, ...]:
    """Every dialect that is spoken here."""
    settings = settings or Settings()
    return (
        aof.dialect(at_once=settings.aof.apply_completion == "immediately"),
        agentmail.dialect(_mail_choices(settings, model)),
        acp.dialect(handoff_choices(settings, ports)),
        ccos.dialect(
            ccos.Choices(
                policy=settings.ccos.policy,
                tries=settings.ccos.tries,
                patience_ms=settings.ccos.request_ms,
                kept_bytes=settings.ccos.payload_bytes,
                called=frozenset(settings.agents),
            )
        ),
        saop.dialect(traces),
    )


def _model(settings: Settings, data: Path) -> agentmail.Model | None:
    """Whoever puts threads into words, if the settings name a program."""
    if not settings.agentmail.summarize_command:
        return None
    from dragoman.bootstrap.summaries import open_model

    return open_model(settings, data)


def _mail_choices(settings: Settings, model: agentmail.Model | None) -> agentmail.Choices:
    chosen = settings.agentmail
    return agentmail.Choices(
        adopt=chosen.adopt,
        review_required=settings.tasks.review_required,
        max_attempts=settings.tasks.max_attempts,
        backoff=settings.retry,
        ttl_ms=chosen.ttl_ms,
        helper=chosen.helper,
        spawner=chosen.spawner,
        ack_within_ms=chosen.ack_within_ms,
        groups={name: group.members for name, group in settings.groups.items()},
        teamspaces=settings.teamspaces,
        model=model,
    )
