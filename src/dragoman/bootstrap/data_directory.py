"""Opens a data directory: settings, keys, store, hub, router and services."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from dragoman.bootstrap.known_secrets import open_redactor
from dragoman.bootstrap.projection import FileProjection, open_notifier
from dragoman.bootstrap.stores import (
    CHECKPOINTS_FILE,
    check_not_lost,
    make_directory,
    missing_directory_error,
    open_store,
    read_environment,
)
from dragoman.config import Settings, load_settings
from dragoman.config.store_url import check_store_url
from dragoman.core.errors import DragomanError, Refusal
from dragoman.core.read import Receipt
from dragoman.engine.forwarding import ForwardedOperation
from dragoman.engine.group_commit import Engine, OnLeaseChange
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Clock, DurableStore
from dragoman.engine.redaction import RequestRedactor
from dragoman.engine.request import Accepted, Committed, Outcome, Reply, Request
from dragoman.engine.subscribe import CommitHints, DirtyStreams
from dragoman.files.layout import GITIGNORE, IGNORE_ALL
from dragoman.services.checkpointer import Checkpointer
from dragoman.services.notifier import Notifier
from dragoman.surfaces.cli.data_directory import (
    CLOCK_OVERRIDDEN,
    DataDirectory,
    DirectoryParts,
    save_if_unset,
)
from dragoman.surfaces.cli.render import ProgressBars
from dragoman.system.checkpoint_file import CheckpointFile
from dragoman.system.clock import FixedClock, SystemClock, new_id
from dragoman.system.hub_lock import HubAddress, find_hub
from dragoman.system.keys import (
    LedgerKey,
    has_keys,
    load_keys,
    load_or_create_keys,
)
from dragoman.system.safe_fs import BadKey, SafeDisk
from dragoman.text.keyed_digest import keyed_digest

if TYPE_CHECKING:
    from dragoman.bootstrap.open_router import Routing
    from dragoman.engine.auth import Principal
    from dragoman.engine.router import Router
    from dragoman.files.archive import Manifest


# --- entry points -----------------------------------------------------------------------------


def open_directory(
    data: Path,
    store: str,
    now: int | None,
    *,
    create: bool,
    new_keys: bool = False,
) -> DataDirectory:
    """Open a data directory: settings, keys, store, hub and services."""
    if not data.is_dir():
        if not create:
            raise missing_directory_error(data)
        check_store_url(store)
        make_directory(data)
    environment = read_environment(data, store, now)

    def open_existing() -> DurableStore:
        check_not_lost(environment.url, data)
        return environment.open_store(create=create)

    key, opened = open_keyed_store(data, store, open_existing, create=create, new_keys=new_keys)
    engines = EngineParts(opened, environment.clock, key, environment.running_hub)
    directory = open_on_store(data, environment.settings, engines, create=create)
    directory.hub.redaction.on_masked = directory.warnings.append
    return directory


def open_demo_directory(data: Path) -> DataDirectory:
    """Open the directory of the demo, or go through its hub: no settings of the user apply."""
    make_directory(data)
    store, key = open_store("", data), load_or_create_keys(data)
    parts = EngineParts(store, SystemClock(), key, find_hub(data))
    return open_on_store(data, load_settings(data, {}), parts, create=True)


# --- engines ----------------------------------------------------------------------------------


class CommandEngine(Engine):
    """The hub's engine, as one of its commands sees it: other leases, and what it has written."""

    def __init__(self, hub: Hub, router: "Router", secret: bytes, on_leases: OnLeaseChange) -> None:
        super().__init__(hub.store, hub.clock, secret)
        self._engine = hub.engine
        self._router = router
        self._on_leases = on_leases
        self.writes = 0

    def handle_now(self, request: Request) -> Outcome:
        """Have one request run by the hub's engine, in this thread."""
        self.writes += 1
        outcome = self._engine.handle_now(request)
        if isinstance(outcome, Committed):
            self._report_leases(outcome.receipts)
        return outcome

    def forward(self, message: ForwardedOperation) -> Reply:
        """Have the hub handle an operation."""
        self.writes += 1
        reply = self._router.call(message.operation, message.words, message.actor, key=message.key)
        if isinstance(reply, Accepted):
            self._report_leases(reply.receipts)
        return reply

    def _report_leases(self, receipts: Sequence[Receipt]) -> None:
        self._on_leases({"task:" + receipt.task for receipt in receipts if receipt.task})


class CommandHub(Hub):
    """The hub, as one of its commands sees it: it stays open."""

    def close(self) -> None:
        """Do nothing."""


class EngineParts(Struct, frozen=True):
    """Parts of an engine: for this process, or to forward to a running hub."""

    store: DurableStore
    clock: Clock
    key: LedgerKey
    running_hub: HubAddress | None = None

    def build(self, data: Path, renewed_leases: DirtyStreams, hints: CommitHints) -> Engine:
        """Build the engine; it reports renewed leases and commits."""
        secret = self.key.secret
        if self.running_hub is not None:
            from dragoman.system.remote_engine import HubConnection, RemoteEngine

            reach = HubConnection(self.running_hub, partial(find_hub, data))
            return RemoteEngine(self.store, self.clock, secret, reach, renewed_leases.add)
        return Engine(
            self.store, self.clock, secret, on_leases=renewed_leases.add, on_commit=hints.notify
        )


# --- assembly ---------------------------------------------------------------------------------


def open_on_store(
    data: Path, settings: Settings, parts: EngineParts, *, create: bool
) -> DataDirectory:
    """Open a data directory on an open store; writes go through the running hub, if there is
    one."""
    renewed_leases, hints = DirtyStreams(), CommitHints()
    try:
        redactor = open_redactor(settings, data, parts.key)
    except DragomanError:
        parts.store.close()
        raise
    mark = CLOCK_OVERRIDDEN if isinstance(parts.clock, FixedClock) else ""
    hub = Hub(parts.build(data, renewed_leases, hints), new_id, RequestRedactor(redactor), mark)
    try:
        directory = _assemble(data, settings, parts, hub, hints, renewed_leases)
        if create:
            directory.run_startup_checks()
    except DragomanError:
        hub.close()
        raise
    return directory


def open_in_hub(hub_directory: DataDirectory, parts: EngineParts) -> DataDirectory:
    """Open the data directory of a running hub for its commands."""
    data, settings, hub = hub_directory.path, hub_directory.settings, hub_directory.hub
    renewed_leases = DirtyStreams()
    engine = CommandEngine(hub, hub_directory.router, parts.key.secret, renewed_leases.add)
    opened = CommandHub(engine, new_id, RequestRedactor(hub.redaction.redactor))
    directory = _assemble(data, settings, parts, opened, CommitHints(), renewed_leases)
    opened.redaction.on_masked = directory.warnings.append
    # Checkpoints and notifications are left to the services of the hub.
    return replace(directory, catch_up_services=directory.catch_up_services[:1])


def _assemble(
    data: Path,
    settings: Settings,
    parts: EngineParts,
    hub: Hub,
    hints: CommitHints,
    renewed_leases: DirtyStreams,
) -> DataDirectory:
    """Connect the hub with its files and the services that follow every write."""
    warnings = list[str]()
    warn, trusts_moves = partial(_add_warning, warnings), settings.files.trust_moves
    files = FileProjection(data, hub, warn, renewed_leases, trust_moves=trusts_moves)
    hub.engine.current_commit = open_git_head(settings, data)
    checkpoints = CheckpointFile(data / CHECKPOINTS_FILE, parts.key)
    checkpointer, notifier = Checkpointer(hub, checkpoints), open_notifier(data, settings, hub)
    routing = cache(partial(_open_routing, settings, parts.key.secret, files))
    return DataDirectory(
        path=data,
        settings=settings,
        hub=hub,
        hints=hints,
        build_router=lambda: routing().router,
        build_parts=lambda: _build_parts(settings, routing(), files, checkpointer, notifier),
        checkpoints=checkpoints,
        accept_checkpoints=checkpointer.accept,
        projector=files.projector,
        archive=partial(_archive, parts, files.disk),
        catch_up_services=(files.service, checkpointer, notifier),
        delivery_states=notifier.delivery_statuses,
        startup_checks=(checkpointer.check_last_checkpoint, notifier.register_targets),
        authenticate=partial(_identify, data, hub),
        warnings=warnings,
    )


def _open_routing(settings: Settings, secret: bytes, files: FileProjection) -> "Routing":
    from dragoman.bootstrap.open_router import open_routing

    return open_routing(settings, secret, files)


def _build_parts(
    settings: Settings,
    routing: "Routing",
    files: FileProjection,
    checkpointer: Checkpointer,
    notifier: Notifier,
) -> DirectoryParts:
    from dragoman.bootstrap.services import build_parts

    return build_parts(settings, routing, files, checkpointer, notifier)


def open_git_head(settings: Settings, data: Path) -> Callable[[], str]:
    """Reader of the commit that is checked out in the repository of the settings; empty without
    one."""
    repository = settings.git.repository
    if not repository:
        return lambda: ""
    from dragoman.system.git import GitHead

    return GitHead(data / repository)


def _add_warning(warnings: list[str], text: str) -> None:
    if text not in warnings:  # once: a hub that runs for months meets the same trouble again
        warnings.append(text)


def _identify(data: Path, hub: Hub, token: str, via: str) -> "Principal | Refusal":
    """Authenticate a token in a data directory, with or without a running hub."""
    from dragoman.engine.auth import Authenticator
    from dragoman.system.bearer_tokens import load_or_create_token

    secret, owner = load_keys(data).secret, load_or_create_token(data)
    return Authenticator(hub.store, secret, owner, hub.clock).authenticate(token, via)


def _archive(
    parts: EngineParts, disk: SafeDisk, profile: str, target: Path, bars: ProgressBars
) -> "Manifest":
    from dragoman.bootstrap.archives import write_archive

    return write_archive(parts.store, disk, parts.clock, profile, target, bars)


# --- the secret of a store --------------------------------------------------------------------

_SECRET_CHECK = b"store"
"""Input of the digest that stores compare: they learn nothing else about the secret."""


def check_secret(store: DurableStore, data: Path, key: LedgerKey, *, replace: bool = False) -> None:
    """Check that all hubs of a store have the same secret: idempotency keys depend on it."""
    mark = keyed_digest(key.secret, _SECRET_CHECK).hex()
    if store.secret_fingerprint(mark, overwrite=replace) == mark:
        return
    keys = data.absolute() / "keys"
    raise BadKey(
        f"the secret in {keys} is not the one that the hubs of this store have (ledger "
        f"{store.ledger_id()}): "
        "requests that are repeated here would be refused as key_reused, or done twice. Copy the "
        "folder keys from the data directory of a hub that works on this store, in the place of "
        f"{keys}, or take it out of a backup (docs/backup.md). If nobody has it any more, run "
        "`dragoman init --new-keys`: then what was asked before is no longer known when it is "
        "repeated, and other hubs need these keys"
    )


# --- store and keys ---------------------------------------------------------------------------


def open_keyed_store(
    data: Path,
    named_url: str,
    opener: Callable[[], DurableStore],
    *,
    create: bool,
    new_keys: bool = False,
) -> tuple[LedgerKey, DurableStore]:
    """Open the keys and the store of a directory, which must fit each other. With `create`, a
    directory in which nothing was signed yet may get keys, and remembers the store that was named
    for it.
    """
    is_new = create and not (data / CHECKPOINTS_FILE).exists()
    # Lost keys are not made anew: then nobody could tell old checkpoints from forged ones.
    existing = None if is_new and not has_keys(data) else load_keys(data)
    store = opener()
    try:
        # Only for a store that exists: a wrong URL leaves no keys behind.
        key = existing or _create_keys(data)
        check_secret(store, data, key, replace=new_keys)
        if is_new:
            save_if_unset(data, named_url)
    except BaseException:
        store.close()
        raise
    return key, store


def _create_keys(data: Path) -> LedgerKey:
    """Create the keys; a .gitignore keeps them and the ledger out of a repository."""
    # Written before there is a secret. The root of a repository also holds files of others.
    if not (data / ".git").exists():
        # An existing file stays. A missing permission is reported by the next step.
        with suppress(OSError), (data / GITIGNORE).open("xb") as file:
            file.write(IGNORE_ALL)
    return load_or_create_keys(data)
