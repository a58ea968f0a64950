"""Opens a data directory: settings, keys, store, hub, router and services."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from dragoman.bootstrap.dialects import open_dialects, open_git_head, open_redactor
from dragoman.bootstrap.services import (
    INBOX_ROLES,
    FileProjection,
    ServicePorts,
    open_inbox,
    open_notifier,
    service_groups,
)
from dragoman.bootstrap.stores import (
    CHECKPOINTS_FILE,
    Environment,
    check_not_lost,
    make_directory,
    missing_directory_error,
    open_store,
    read_environment,
)
from dragoman.config import Settings
from dragoman.config.store_url import check_store_url
from dragoman.core.errors import DragomanError, Refusal
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Clock, DurableStore
from dragoman.engine.redaction import RequestRedactor
from dragoman.engine.router import Router
from dragoman.engine.subscribe import CommitHints, DirtyStreams
from dragoman.files.handoff_verification import check_handoff
from dragoman.files.inbox import Inbox
from dragoman.files.layout import GITIGNORE, IGNORE_ALL
from dragoman.notify.notice import Notice
from dragoman.services.checkpointer import Checkpointer
from dragoman.services.notifier import Notifier
from dragoman.services.workq import HubWorkq
from dragoman.surfaces.cli.data_directory import (
    CLOCK_OVERRIDDEN,
    DataDirectory,
    Evidence,
    save_if_unset,
)
from dragoman.surfaces.cli.render import ProgressBars
from dragoman.system.checkpoint_file import CheckpointFile
from dragoman.system.clock import FixedClock
from dragoman.system.hub_lock import HubAddress, find_hub
from dragoman.system.ids import new_id
from dragoman.system.keys import (
    LedgerKey,
    has_keys,
    load_keys,
    load_or_create_keys,
)
from dragoman.system.remote_engine import HubConnection, RemoteEngine
from dragoman.system.safe_fs import BadKey, SafeDisk
from dragoman.text.keyed_digest import keyed_digest

if TYPE_CHECKING:
    from dragoman.engine.auth import Principal
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
    keyed_store = open_keyed(data, store, now, create=create, new_keys=new_keys)
    environment = keyed_store.environment
    engines = EngineParts(
        keyed_store.store, environment.clock, keyed_store.key, environment.running_hub
    )
    directory = open_on_store(data, environment.settings, engines, create=create)
    directory.hub.redaction.on_masked = directory.warnings.append
    return directory


def open_demo_directory(data: Path, clock: Clock) -> DataDirectory:
    """Open an empty directory for the demo: all parts are real, but no settings of the user
    apply."""
    make_directory(data)
    key = load_or_create_keys(data)
    return open_on_store(
        data, Settings(), EngineParts(open_store("", data), clock, key), create=True
    )


# --- engines ----------------------------------------------------------------------------------


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


def _assemble(
    data: Path,
    settings: Settings,
    parts: EngineParts,
    hub: Hub,
    hints: CommitHints,
    renewed_leases: DirtyStreams,
) -> DataDirectory:
    """Connect the hub with its router, services and files."""
    warnings, trusts_moves = list[str](), settings.files.trust_moves
    warn = partial(_add_warning, warnings)
    files = FileProjection(data, hub, warn, trust_moves=trusts_moves)
    hub.engine.current_commit = open_git_head(settings, data)
    opened, facts = open_dialects(settings, data, hub, parts.key.secret), files.facts()
    forward = hub.engine.forward if isinstance(hub.engine, RemoteEngine) else None
    router = Router(hub, opened.dialects, facts, forward=forward)
    inbox_router = (
        router
        if trusts_moves
        else Router(hub, opened.dialects, facts, admitted_roles=INBOX_ROLES, forward=forward)
    )
    # The inbox is processed in a thread of its own, so it needs a disk of its own.
    inbox = open_inbox(SafeDisk(data), inbox_router, facts, warn)
    artifacts = opened.handoff_ports.artifacts
    assert artifacts is not None, "a data directory has a store of artifacts"
    file_services = files.services(inbox, opened.handoff_ports.sweep, renewed_leases)
    checkpoints = CheckpointFile(data / CHECKPOINTS_FILE, parts.key)
    checkpointer, notifier = Checkpointer(hub, checkpoints), open_notifier(data, settings, hub)
    ports = ServicePorts(
        workq=opened.handoff_ports.workq or HubWorkq(hub),
        carry_over=opened.carry_over,
        close_stream=opened.close_stream,
        checkpointer=checkpointer,
        notifier=notifier,
        files=file_services,
    )
    return DataDirectory(
        path=data,
        settings=settings,
        hub=hub,
        hints=hints,
        router=router,
        checkpoints=checkpoints,
        projector=files.projector,
        archive=partial(_archive, parts, files.disk),
        audit=partial(check_handoff, hub.store, files.disk, artifacts),
        service_groups=service_groups(hub, settings, router, ports),
        file_services=(*file_services.inbox, *file_services.polled, *file_services.commit_driven),
        delivery_states=notifier.delivery_statuses,
        service_remarks=partial(_service_remarks, inbox, notifier),
        startup_checks=(checkpointer.check_last_checkpoint, notifier.register_targets),
        authenticate=partial(_identify, data, hub),
        warnings=warnings,
    )


def _add_warning(warnings: list[str], text: str) -> None:
    if text not in warnings:  # once: a hub that runs for months meets the same trouble again
        warnings.append(text)


def _service_remarks(inbox: Inbox, notifier: Notifier[Notice]) -> dict[str, str]:
    rejected = f"rejected, with the reason beside it: {inbox.rejected}"
    return {
        **({"inbox": rejected} if inbox.rejected else {}),
        **({"notifier": trouble} if (trouble := notifier.problem_summary()) else {}),
    }


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


class KeyedStore(Struct, frozen=True):
    """The store, keys and environment of a data directory."""

    environment: Environment
    key: LedgerKey
    store: DurableStore


def open_keyed(
    data: Path, store: str, now: int | None, *, create: bool = False, new_keys: bool = False
) -> KeyedStore:
    """Open the store of an existing data directory; its keys must fit."""
    environment = read_environment(data, store, now)

    def open_it() -> DurableStore:
        check_not_lost(environment.url, data)
        return environment.open_store(create=create)

    key, opened = open_keyed_store(data, store, open_it, create=create, new_keys=new_keys)
    return KeyedStore(environment, key, opened)


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


def open_evidence(data: Path, store: str, now: int | None) -> Evidence:
    """Open an existing data directory to verify its ledger."""
    if not data.is_dir():
        raise missing_directory_error(data)
    keyed = open_keyed(data, store, now)
    checkpoints = CheckpointFile(data / CHECKPOINTS_FILE, keyed.key)
    return Evidence(keyed.store, checkpoints)
