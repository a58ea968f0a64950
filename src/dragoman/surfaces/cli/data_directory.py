"""An open data directory: what every command of the command line works on."""

import json
import pwd
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from dragoman.config import load_settings, parse_settings
from dragoman.config.store_url import absolute_url, default_url, sqlite_path
from dragoman.core.actor import Actor
from dragoman.core.errors import DragomanError, Refused, SettingsError
from dragoman.core.ids import check_agent
from dragoman.surfaces.cli.caller import bearer, caller_user
from dragoman.surfaces.cli.render import ProgressBars
from dragoman.system.safe_fs import write_atomically

if TYPE_CHECKING:
    # Engine and cryptography are loaded when a directory is opened: help needs neither.
    from dragoman.config import Settings
    from dragoman.core.errors import Refusal
    from dragoman.engine.auth import Principal
    from dragoman.engine.hub import Hub
    from dragoman.engine.operation import Dialect
    from dragoman.engine.ports import ArtifactMismatch, Clock, Store
    from dragoman.engine.queries.handoffs import Team
    from dragoman.engine.router import Router
    from dragoman.engine.subscribe import CommitHints
    from dragoman.files.archive import Manifest
    from dragoman.files.projector import Projector
    from dragoman.services.notifier import DeliveryStatus
    from dragoman.services.scheduler import Service, ServiceGroup
    from dragoman.surfaces.cli.hub_lifecycle import HubProcess
    from dragoman.system.checkpoint_file import CheckpointFile
    from dragoman.system.hub_lock import HubAddress
    from dragoman.text.redact import Redactor


# --- what is read -----------------------------------------------------------------------------


class StoreSource(Protocol):
    """Anything with a store and a clock: a hub, or a directory opened read-only."""

    @property
    def store(self) -> "Store": ...

    @property
    def clock(self) -> "Clock": ...


class ReadOnlyDirectory(Struct, frozen=True):
    """A data directory opened read-only: no keys, dialects or services."""

    store: "Store"
    clock: "Clock"
    hub_address: "HubAddress | None"
    """Address of the hub that runs there, if one does; some facts only it knows."""
    configured_agents: frozenset[str]
    """Agents that a hub starts there, by its settings."""
    served_names: frozenset[str]
    """Names that tasks can be assigned to because a hub starts agents for them."""
    teamspaces: "Mapping[str, Team]"
    """Teamspaces with members, whose handoffs are hidden from others."""
    close: Callable[[], None]


# --- the open directory -----------------------------------------------------------------------

ServiceFailure = OSError | DragomanError

ServiceOutcome = int | ServiceFailure
"""Number of things that a service did, or its failure."""


class DirectoryParts(Struct, frozen=True):
    """Parts of a data directory that many commands do not need, and that take long to load."""

    service_groups: "tuple[ServiceGroup, ...]"
    """All services, in the order in which `tick` runs them; a group shares a thread of `up`."""
    service_remarks: Callable[[], Mapping[str, str]]
    """Service -> remark on its last run, beside its count."""
    verify_artifact: "Callable[[str], ArtifactMismatch | None]"
    """Checks the kept copy of an artifact, by its SHA-256."""


class DataDirectory(Struct, frozen=True, dict=True):
    """An open data directory: a hub, its settings, and the services around it."""

    path: Path
    settings: "Settings"
    hub: "Hub"
    hints: "CommitHints"
    """Notified after every commit; waiters listen to it."""
    build_router: "Callable[[], Router]"
    """Builds the router of messages and operations of all dialects, on first use."""
    build_parts: Callable[[], DirectoryParts]
    """Builds the other parts, on first use."""
    checkpoints: "CheckpointFile"
    accept_checkpoints: Callable[[int], int]
    """Signs from the checkpoints as they are at a time, whatever was issued before."""
    projector: "Projector"
    archive: "Callable[[str, Path, ProgressBars], Manifest]"
    """Writes a `backup` or an `export` into one file."""
    catch_up_services: "tuple[Service, ...]"
    """Services that bring files, checkpoint and notifications up to date after a write."""
    delivery_states: "Callable[[], Sequence[DeliveryStatus]]"
    """Delivery state of every notification target."""
    startup_checks: tuple[Callable[[], object], ...]
    """Checks that run before a command writes."""
    authenticate: "Callable[[str, str], Principal | Refusal]"
    """Authenticates a token, for a `via` label."""
    warnings: list[str]
    """Warnings to print, which stopped nothing."""

    @cached_property
    def parts(self) -> DirectoryParts:
        """The parts that are built on first use."""
        return self.build_parts()

    @cached_property
    def router(self) -> "Router":
        """Router of messages and operations of all dialects."""
        return self.build_router()

    @property
    def services(self) -> "tuple[Service, ...]":
        """Services of all groups."""
        return tuple(service for group in self.parts.service_groups for service in group.all)

    def register_owner(self) -> None:
        """Register the person at the keyboard, unless the name is known."""
        from dragoman.core.actor import HUB_ACTOR
        from dragoman.core.agent import RegisterAgent
        from dragoman.engine.queries.agents import find_agent

        name = self.settings.owner.name
        known = find_agent(self.hub.store, name)
        if known is None:
            self.hub.submit(HUB_ACTOR, RegisterAgent(name, "human"))
        elif known.role != "human":
            self.warnings.append(
                f"{name}, the name of the owner, is registered as {known.role}, and what is "
                f"addressed to nobody else reaches nobody: give `name` in [owner] of the settings "
                f"another value, or `dragoman agent add {name} --role human`"
            )

    def run_startup_checks(self) -> None:
        """Run the checks that precede writing."""
        for check in self.startup_checks:
            check()

    def catch_up(self) -> Iterator[tuple[str, ServiceFailure]]:
        """Bring files, checkpoint and notifications up to date; yields the services that failed."""
        for name, outcome in self.run_services(self.catch_up_services):
            if not isinstance(outcome, int):
                yield name, outcome

    def run_services(self, services: "Sequence[Service]") -> Iterator[tuple[str, ServiceOutcome]]:
        """Run each service once; a failure does not stop the others."""
        now = self.hub.clock.now()
        for service in services:
            try:
                yield service.name, service.run_once(now)
            except (OSError, DragomanError) as error:
                yield service.name, error


# --- person at the keyboard -------------------------------------------------------------------

_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)
_MAX_NAME = 128
CLOCK_OVERRIDDEN = "--now"
"""Mark in the `via` label of entries that were made under a clock set by --now."""


def login_name() -> str:
    """Name of the caller's user; its number where the machine has no name for it."""
    principal = bearer()
    if principal is not None:
        return principal.actor.name
    user = caller_user()
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:
        name = ""
    return sanitize_login(name) or f"uid-{user}"


def sanitize_login(name: str) -> str:
    """Reduce a login name to the grammar of ids; may be empty."""
    return _NOT_IN_IDS.sub("-", name).lstrip("._-")[:_MAX_NAME]


def via_label(*, acts_for_agent: bool, clock_overridden: bool) -> str:
    """`via` label of entries: the person where an agent is named, and whether --now was given."""
    person = f"human:{login_name()}" if acts_for_agent else ""
    return " ".join(filter(None, ("cli", person, CLOCK_OVERRIDDEN if clock_overridden else "")))


def make_actor(agent: str, owner: str, *, clock_overridden: bool) -> Actor:
    """Make the actor: the named agent, or the person at the keyboard, who is the owner."""
    via = via_label(acts_for_agent=bool(agent), clock_overridden=clock_overridden)
    if not agent:
        return Actor("human", owner, via)
    refusal = check_agent(agent)
    if refusal is not None:
        raise Refused(refusal)
    return Actor("agent", agent, via)


# --- store URL in dragoman.toml ---------------------------------------------------------------

_SETTINGS_FILE = "dragoman.toml"
_PASSWORD = re.compile(r"(//[^:/@?]*:)[^@/]*(?=@)|(\bpassword=)[^&]*", re.ASCII)
_STORE_SECTION = re.compile(
    r"^\[store\][ \t]*(?:#.*)?(?P<body>(?:\n(?![ \t]*\[).*)*)", re.ASCII | re.MULTILINE
)
_URL_LINE = re.compile(r"\n[ \t]*url[ \t]*=.*", re.ASCII)
_OWNER_ONLY = 0o600


def mask_password(url: str) -> str:
    return _PASSWORD.sub(lambda found: f"{found[1] or found[2]}***", url)


def check_same_store(data: Path, url: str) -> None:
    """Refuse another store than the one that a directory has."""
    saved = _saved_url(data)
    if saved not in ("", url):
        raise SettingsError(
            f"{data} has another store, {mask_password(saved)}: write {mask_password(url)} as "
            "[store] url into "
            f"{data / _SETTINGS_FILE} by hand if you mean it; nothing was changed"
        )


def is_saved(data: Path, url: str) -> bool:
    """Tell whether a directory has just this store."""
    return _saved_url(data) == url


def save_if_unset(data: Path, url: str) -> None:
    """Save the store URL of a directory in dragoman.toml, readable by its owner alone, if one was
    named and none is saved."""
    if not url or _saved_url(data):
        return
    path = data / _SETTINGS_FILE
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    write_atomically(path, set_url(text, absolute_url(url), path).encode(), mode=_OWNER_ONLY)


def _saved_url(data: Path) -> str:
    """Store of a directory: by its settings, or by a database file of its own."""
    configured, own = load_settings(data, {}).store.url, sqlite_path("", data)
    return configured or (default_url(data) if own and own.exists() else "")


def set_url(text: str, url: str, path: Path) -> str:
    """Settings text with this store URL in place of any other."""
    line = f"url = {json.dumps(url, ensure_ascii=False)}"
    section = _STORE_SECTION.search(text)
    if section is None:
        changed = f"{text.rstrip()}\n\n[store]\n{line}\n".lstrip()
    else:
        others = _URL_LINE.sub("", section["body"], count=1)
        changed = f"{text[: section.start('body')]}\n{line}{others}{text[section.end() :]}"
    try:
        if parse_settings(changed, {}).store.url == url:
            return changed
    except SettingsError:
        pass  # a text that only looks like a section, inside of another value
    raise SettingsError(f"{path} cannot be extended: write [store] url = … into it by hand")


# --- wiring by bootstrap ----------------------------------------------------------------------


class OpenDirectory(Protocol):
    """Opens a data directory; provided by `bootstrap`."""

    def __call__(
        self,
        data: Path,
        store: str,
        now: int | None,
        *,
        create: bool,
        new_keys: bool = False,
    ) -> DataDirectory:
        """Open it; `create` makes it when it is missing. `now` fixes the hub's clock. With
        `new_keys` the store replaces its keys by those of this directory."""
        ...


class CliWiring(Struct, frozen=True):
    """Functions that `bootstrap` provides to the command line; each loads its parts when called."""

    open_directory: OpenDirectory
    open_readonly: "Callable[[Path, str, int | None], ReadOnlyDirectory]"
    """Opens a data directory read-only: path, store URL, and a time that fixes the clock."""
    dialects: "Callable[[], Sequence[Dialect]]"
    open_demo_directory: "Callable[[Path], DataDirectory]"
    """Opens the data directory of the demo."""
    build_hub: (
        "Callable[[Path, str, str, int | None, Path | None], tuple[DataDirectory, HubProcess]]"
    )
    """Builds a hub that can run: data directory, store, host, port, settings file."""
    redactor: "Callable[[Path], Redactor]"
    """Masks secrets in text; knows those of a data directory, if there is one."""
    check_settings: "Callable[[Settings, Path], None]"
    """Raises SettingsError for settings that no hub would run with."""
    restore_archive: "Callable[[str, Path, Path, str, ProgressBars], Manifest]"
    """Makes a data directory, with the store of a URL, out of a `backup` or an `export`."""
