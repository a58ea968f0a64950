"""The only place where all parts meet: a data directory and its store become a hub with duties."""

from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from dragoman.config import AgentSettings, Settings, environment, load_settings
from dragoman.core.actors import Actor
from dragoman.core.errors import DragomanError, Refusal, SettingsError, StoreUnavailable
from dragoman.core.events import Role
from dragoman.engine.facts import StoreFacts
from dragoman.engine.handle import Engine
from dragoman.engine.hints import Hints
from dragoman.engine.hub import Hub
from dragoman.engine.interpreter import Interpreter, Turned
from dragoman.engine.operation import Dialect
from dragoman.engine.ports import Clock, Store
from dragoman.engine.request import Accepted, Outcome
from dragoman.files.inbox import Inbox
from dragoman.files.lookup import has_file
from dragoman.files.projector import Projector
from dragoman.notify.notice import News, Notice
from dragoman.protocols import aof
from dragoman.services.checkpointer import Checkpointer
from dragoman.services.notifier import Notifier, Target
from dragoman.services.projector import FilesDuty
from dragoman.services.promotion import Promotion
from dragoman.services.recovery import Recovery
from dragoman.services.sla import Sla
from dragoman.surfaces.cli.person import login_name
from dragoman.surfaces.cli.place import Place
from dragoman.surfaces.cli.screen import Progress
from dragoman.system.beneath import Beneath
from dragoman.system.checkpoints import CheckpointFile
from dragoman.system.clock import FixedClock, SystemClock
from dragoman.system.hub_at_work import HubAddress, RemoteEngine, find_hub
from dragoman.system.hub_lock import HubRunning
from dragoman.system.ids import new_id
from dragoman.system.keys import LedgerKey, load, load_or_create
from dragoman.system.outbox import OutboxFiles
from dragoman.text.strict_json import MOST_BYTES

if TYPE_CHECKING:
    from dragoman.engine.identity import Identity, Principal
    from dragoman.engine.runner import Assignment, Runner
    from dragoman.files.archive_format import Manifest
    from dragoman.services.dispatcher import Dispatcher
    from dragoman.surfaces.cli.running import RunningHub
    from dragoman.surfaces.http.door import Patience
    from dragoman.surfaces.mcp.http import McpApp
    from dragoman.surfaces.mcp.mount import LateApp
    from dragoman.system.run_marks import RunMarks

BY_INBOX: frozenset[Role] = frozenset({"agent", "observer"})
"""Roles that may speak through the inbox, where a name is all that there is, unless the settings
trust whoever can write there."""

_CHECKPOINTS = "checkpoints.jsonl"
_WEEK_MS = 7 * 86_400_000
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
    running = find_hub(data)
    if running is not None and now is not None:
        raise HubRunning(
            f"a hub runs at {running.url}, and its clock decides: leave --now away, or stop it"
        )
    settings = load_settings(data, environment())
    # Keys that are lost are not made anew: nobody could then tell old checkpoints from forged ones.
    key = load_or_create(data) if create and not (data / _CHECKPOINTS).exists() else load(data)
    opened = open_store(store or settings.store.url, data, create=create)
    clock = SystemClock() if now is None else FixedClock(now)
    return _opened(data, settings, _Engines(opened, clock, key, running), create=create)


def open_hub(
    data: Path, store: str, host: str, port: int | None, config: Path | None
) -> "tuple[Place, RunningHub]":
    """A place, and all that runs in it while a hub does: the only one of its data directory."""
    from dragoman.engine.identity import Identity
    from dragoman.services.clockwork import Clockwork, Wheel
    from dragoman.surfaces.cli.running import RunningHub
    from dragoman.surfaces.http.app import build_app
    from dragoman.surfaces.http.door import Door
    from dragoman.surfaces.http.server import HttpServer
    from dragoman.surfaces.mcp.mount import PATH as MCP_PATH
    from dragoman.system.hub_lock import HubLock
    from dragoman.system.token_file import load_or_create_token

    _make_directory(data)
    lock = HubLock.acquire(data, "dragoman up")
    try:
        settings = _listening(load_settings(data, environment(), config), host, port)
        key = load_or_create(data) if not (data / _CHECKPOINTS).exists() else load(data)
        opened = open_store(store or settings.store.url, data)
        place = _opened(data, settings, _Engines(opened, SystemClock(), key), create=True)
        hub = place.hub
        token = load_or_create_token(data)
        identity = Identity(hub.store, key.secret, token, hub.clock, owner=login_name())
        place.hints.listen(identity.forget)
        duty = {one.name: one for one in place.duties}
        now = hub.clock.now
        checkpoint, notify, projection = duty["checkpoint"], duty["notify"], duty["projection"]
        clockwork = Clockwork(
            (
                Wheel("time", [duty["recovery"], duty["sla"], duty["promotion"]], now),
                Wheel("files", place.file_duties, now, followers=[projection], rest_seconds=2.0),
                Wheel("checkpoint", [checkpoint], now, followers=[checkpoint]),
                Wheel("notify", [notify], now, followers=[notify]),
            )
        )
        place.hints.listen(clockwork.hint)

        def health() -> Mapping[str, str]:
            return {**clockwork.health(), "dispatch": dispatcher.problem}

        door = Door(hub, place.interpreter, identity, settings, place.hints, health)
        mounts = {MCP_PATH: _mcp_app(place, door.patience)}
        server = HttpServer(build_app(door, mounts), settings.http)
        bound = server.bind()
        dispatcher = open_dispatcher(place, identity, server.url)
        return place, RunningHub(hub, server, bound, dispatcher, clockwork, lock)
    except BaseException:
        lock.release()
        raise


def _identify(data: Path, hub: Hub, token: str, via: str) -> "Principal | Refusal":
    """Whose token this is, in a data directory that no hub need run for."""
    from dragoman.engine.identity import Identity
    from dragoman.system.token_file import load_or_create_token

    secret, owner = load(data).secret, load_or_create_token(data)
    return Identity(hub.store, secret, owner, hub.clock).who(token, via)


def _mcp_app(place: Place, patience: "Patience") -> "LateApp":
    """MCP for a hub that runs."""
    from dragoman.surfaces.mcp.mount import LateApp
    from dragoman.surfaces.mcp.profiles import Profiles
    from dragoman.surfaces.mcp.tools import table

    settings, tools = place.settings, table(place.interpreter.dialects)
    # What is wrong in the settings is told at the start.
    profiles = Profiles(tools, settings.profiles)

    def load() -> "McpApp":
        import dragoman
        from dragoman.surfaces.mcp.desk import HubRoom
        from dragoman.surfaces.mcp.http import McpApp, caller
        from dragoman.surfaces.mcp.resources import SHELVES
        from dragoman.surfaces.mcp.server import Tables, build_server

        room = HubRoom(place.hub, place.interpreter, settings)
        tables = Tables(tools, SHELVES, profiles)
        server = build_server(room, tables, caller, dragoman.__version__)
        return McpApp(server, profiles.names, settings.http.max_body, patience)

    return LateApp(load)


def _listening(settings: Settings, host: str, port: int | None) -> Settings:
    """The settings, with what the command line says about the address."""
    http = settings.http
    http = replace(http, host=host or http.host, port=http.port if port is None else port)
    return replace(settings, http=http)


def open_stage(data: Path, clock: Clock) -> Place:
    """Open an empty directory for a play: all parts are real, and nobody's settings reach it."""
    _make_directory(data)
    key = load_or_create(data)
    return _opened(data, Settings(), _Engines(open_store("", data), clock, key), create=True)


class _Engines(Struct, frozen=True):
    """What an engine is made of: for this process, or for a hub that runs in another one."""

    store: Store
    clock: Clock
    key: LedgerKey
    running: HubAddress | None = None

    def make(self, beaten: set[str], hints: Hints) -> Engine:
        """The engine; it tells of leases and commits."""
        secret = self.key.secret
        if self.running is not None:
            return RemoteEngine(self.store, self.clock, secret, self.running, beaten.update)
        return Engine(self.store, self.clock, secret, on_leases=beaten.update, on_commit=hints.tell)


def _opened(data: Path, settings: Settings, engines: _Engines, *, create: bool) -> Place:
    """A place on an open store; its writes go through the hub that runs, if one does."""
    beaten: set[str] = set()
    hints = Hints()
    hub = Hub(engines.make(beaten, hints), new_id)
    checkpoints = CheckpointFile(data / _CHECKPOINTS, engines.key)
    try:
        place = _furnished(data, settings, hub, hints, checkpoints, beaten)
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
    checkpoints: CheckpointFile,
    beaten: set[str],
) -> Place:
    """The hub with all that surrounds it."""
    warnings: list[str] = []
    disk = Beneath(data)
    spoken = dialects(settings)
    projector = Projector(
        hub,
        disk,
        aof.render_lines,
        warnings.append,
        trust_moves=settings.files.trust_moves,
    )

    # Facts are looked up in any thread of a hub that runs, while another one writes files: each
    # look has a disk of its own.
    def has(task: str, ref: str) -> bool:
        with closing(Beneath(data)) as looking:
            return has_file(hub.store, looking, task, ref)

    def look_at_runs() -> int:
        with closing(Beneath(data)) as looking:
            Projector(hub, looking, aof.render_lines, warnings.append).look_at_runs()
        return 0

    runs = FilesDuty("runs", look_at_runs, warnings.append)
    facts = StoreFacts(hub.store, has, lambda: runs.run_once(hub.clock.now()))
    interpreter = Interpreter(hub, spoken, facts)
    letterbox = (
        interpreter
        if settings.files.trust_moves
        else Interpreter(hub, spoken, facts, admits=BY_INBOX)
    )

    def level() -> int:
        streams = sorted(beaten)
        beaten.clear()
        return projector.level(streams)

    checkpointer = Checkpointer(hub, checkpoints)
    notifier = _notifier(data, settings, hub)
    inbox = Inbox(disk, partial(_deliver, letterbox, facts), MOST_BYTES)
    projection = FilesDuty("projection", level, warnings.append)

    def remarks() -> dict[str, str]:
        rejected = f"rejected, with the reason beside it: {inbox.rejected}"
        return {
            **({"inbox": rejected} if inbox.rejected else {}),
            **({"notify": trouble} if (trouble := notifier.trouble()) else {}),
        }

    of_files = (
        FilesDuty("inbox", lambda: inbox.run_once(hub.clock.now()), warnings.append),
        FilesDuty("files", projector.sweep, warnings.append, monotonic),
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
        duties=(
            Recovery(hub, settings.retry),
            Sla(hub),
            *of_files,
            Promotion(hub),
            checkpointer,
            notifier,
        ),
        file_duties=of_files,
        followers=(projection, checkpointer, notifier),
        standings=notifier.standings,
        remarks=remarks,
        before_writing=(checkpointer.check, notifier.begin),
        identify=partial(_identify, data, hub),
        warnings=warnings,
    )


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


# What only a few commands need is loaded by them.


def _export(hub: Hub, disk: Beneath, target: Path, progress: Progress) -> "Manifest":
    from dragoman.files.export import export_archive

    beside = Beneath(target.absolute().parent)
    return export_archive(hub.store, disk, target, beside, hub.clock.now(), progress)


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


def open_dispatcher(place: Place, identity: "Identity", url: str) -> "Dispatcher":
    """Who starts the agents of the settings, for a hub that listens at this URL (empty: nowhere).

    It hears of commits by `place.hints`; `run` it in the loop of the hub.
    """
    from dragoman.agents.prompt import prompt
    from dragoman.services.attempt import Terms
    from dragoman.services.budgets import Budget
    from dragoman.services.dispatcher import Agent, Dispatcher, Outside, Policy
    from dragoman.system.hub_name import hub_name
    from dragoman.system.run_marks import RunMarks
    from dragoman.system.usage_file import UsageFile

    hub, settings, marks = place.hub, place.settings, RunMarks(place.data)
    agents = [
        Agent(
            name=name,
            runner=_runner(place, identity, url, name, marks),
            queues=("",) * one.takes_any + (name, *one.capabilities),
            concurrency=one.concurrency,
            attempt_ms=one.attempt_ms,
            budget=Budget(
                one.attempts_per_day, one.minutes_per_day, one.output_per_day, one.cost_per_day
            ),
        )
        for name, one in settings.agents.items()
    ]
    policy = Policy(
        hub=hub_name(place.data, new_id),
        concurrency=settings.dispatch.concurrency,
        ttl_ms=settings.leases.ttl_ms,
        poll_ms=settings.dispatch.poll_ms,
        grace_ms=settings.hub.grace_ms,
        terms=Terms(settings.retry, settings.dispatch.stop_ms / 1_000, settings.hub.on_stop),
    )
    outside = Outside(
        speak=partial(_speak, place.interpreter),
        prompt=prompt,
        sweep=marks.sweep,
        usage=UsageFile(place.data),
        new_id=new_id,
    )
    dispatcher = Dispatcher(hub, agents, policy, outside)
    place.hints.listen(dispatcher.hint)
    return dispatcher


def _runner(place: Place, identity: "Identity", url: str, name: str, marks: "RunMarks") -> "Runner":
    """Who starts the agent of this name."""
    settings = place.settings.agents[name]

    def token(of: "Assignment") -> str:
        # It is dead with its attempt; its own end matters only to one that has no other limit.
        ttl_ms = settings.attempt_ms or _WEEK_MS
        return identity.attempt_token(of.agent, of.task, of.fence, ttl_ms)

    if bool(settings.command) == bool(settings.url):
        raise SettingsError(
            f"agents.{name} needs either a command or a url; an agent that asks for its work "
            "itself needs no section"
        )
    if settings.url:
        from dragoman.agents.remote import RemoteRunner
        from dragoman.system.fetch import Endpoint

        endpoint = Endpoint(settings.url, f"agents.{name}.url", settings.allow_hosts)
        return RemoteRunner(endpoint.post, token, url)
    from dragoman.agents.program import ProgramRunner, Tools
    from dragoman.files.workplace import Workplace
    from dragoman.system.process import Process

    workplace = Workplace(place.data, lambda: Beneath(place.data))
    tools = Tools(
        start=Process.start,
        open_desk=lambda of: workplace.open(of.aof_id, of.attempt, of.prompt.encode()),
        worktree=partial(_worktree, place.data, settings) if settings.repository else None,
        marks=marks,
        token=token,
        url=url,
        environ=environment(),
        now=place.hub.clock.now,
        redact=lambda text: text,
        prefixes=(aof.PREFIX.encode(),),
        most_message=MOST_BYTES,
    )
    return ProgramRunner(name, settings, tools)


def _worktree(data: Path, settings: AgentSettings, of: "Assignment") -> Path:
    from dragoman.agents.program import PASSED_ON
    from dragoman.system.worktree import open_worktree

    at, branch = data.absolute() / "worktrees" / of.aof_id, f"dragoman/{of.aof_id}"
    variables = {key: environment()[key] for key in PASSED_ON if key in environment()}
    return open_worktree(data / settings.repository, at, branch, settings.base, variables)


async def _speak(interpreter: Interpreter, actor: Actor, said: bytes) -> str:
    """A message that a started agent has printed; what is noted in its log."""
    answer = await interpreter.send_soon(said, speaker=actor)
    if isinstance(answer, Turned):
        return f"refused, {answer.code}: {answer.detail}"
    return "" if answer else "this is no message of a dialect that is spoken here"


def dialects(settings: Settings | None = None) -> tuple[Dialect, ...]:
    """Every dialect that is spoken here."""
    settings = settings or Settings()
    return (aof.dialect(at_once=settings.aof.apply_completion == "immediately"),)


def open_store(
    url: str, data: Path, *, create: bool = True, new_ledger_id: Callable[[], str] = new_id
) -> Store:
    """The store of a URL; without one, `dragoman.db` in the data directory."""
    if url.startswith(_POSTGRES):
        from dragoman.store.postgres import PostgresStore

        return PostgresStore.open(url, new_ledger_id)
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
    return SqliteStore.open(path, new_ledger_id)


def _make_directory(data: Path) -> None:
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(
            f"the data directory {data} cannot be made: {error.strerror}"
        ) from error
