"""`dragoman doctor`: what is wrong with an installation and data directory, and what to do."""

import os
import platform
import shutil
import stat
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from dragoman import __version__
from dragoman.config import (
    AgentSettings,
    Settings,
    describe_separation,
    environment,
    load_settings,
)
from dragoman.config.store_url import location_hint, sqlite_path
from dragoman.core.errors import DragomanError, SettingsError, StoreCorrupt, StoreUnavailable
from dragoman.core.timestamps import format_rough_duration, to_rfc3339
from dragoman.ledger.entry import read_line
from dragoman.surfaces.cli.command import CliCommand
from dragoman.surfaces.cli.context import CommandContext, CommandResult
from dragoman.surfaces.cli.data_directory import DataDirectory
from dragoman.surfaces.cli.render import Screen, pluralize
from dragoman.system.safe_fs import file_remedy
from dragoman.text.error_messages import describe_exception

if TYPE_CHECKING:
    from dragoman.engine.ports import Store
    from dragoman.system.hub_lock import HubConfig


# --- results ----------------------------------------------------------------------------------


class CheckResult(Struct, frozen=True):
    """Result of a check: its state, the finding, and what to do about it."""

    state: Literal["ok", "warning", "bad"]
    finding: str
    advice: str = ""


def ok(finding: str) -> CheckResult:
    return CheckResult("ok", finding)


def warning(finding: str, advice: str) -> CheckResult:
    return CheckResult("warning", finding, advice)


def bad(finding: str, advice: str = "") -> CheckResult:
    return CheckResult("bad", finding, advice)


# --- installation -----------------------------------------------------------------------------

Check = Callable[["Installation"], CheckResult | None]
"""A check; None: it was skipped because of the result of another check."""


class Installation:
    """A data directory that may be broken; its store is opened by a check, if that does no harm."""

    def __init__(self, context: CommandContext) -> None:
        self._context = context
        self.data = context.data
        self.keys = context.data / "keys"
        self.directory: DataDirectory | None = None
        self.failed_checks: set[str] = set()
        """Names of the checks so far with a bad result."""

    @cached_property
    def running_hub(self) -> "HubConfig | None":
        """Store and settings that the running hub reports; None: none runs, or it does not say."""
        from dragoman.system.hub_lock import find_lock_holder

        holder_record = find_lock_holder(self.data)
        return holder_record.config if holder_record and holder_record.config.ledger else None

    @property
    def settings_file(self) -> Path:
        """Path of the settings in effect."""
        named = self.running_hub.settings if self.running_hub else ""
        return Path(named) if named else self.data / "dragoman.toml"

    @cached_property
    def settings(self) -> Settings:
        """The settings; raises SettingsError when they cannot be parsed."""
        if self.running_hub is None:
            return load_settings(self.data, environment())
        named = self.settings_file if self.running_hub.settings else None
        return load_settings(self.data, self.running_hub.environment, named)

    @property
    def has_readable_settings(self) -> bool:
        """Tell whether the settings can be parsed, even if no hub may run with them."""
        try:
            return bool(self.settings)
        except SettingsError:
            return False

    def check_settings(self) -> None:
        """Raise SettingsError for settings that `up` would not start with."""
        self._context.wiring.check_settings(self.settings, self.data)

    @property
    def store_url(self) -> str:
        """URL of the store in use; empty: the file in the data directory."""
        hub_store = self.running_hub.store if self.running_hub else ""
        return self._context.shared.store or hub_store or self.settings.store.url

    @property
    def database_file(self) -> Path | None:
        """Database file of the store; None when it is not SQLite."""
        return sqlite_path(self.store_url, self.data)

    def open(self) -> DataDirectory:
        """Open the data directory as any command would; the caller knows that the store exists."""
        shared = self._context.shared
        self.directory = self._context.wiring.open_directory(
            self.data, shared.store, shared.now, create=False
        )
        return self.directory

    def close(self) -> None:
        """Close the store."""
        if self.directory is not None:
            self.directory.hub.close()
            self.directory = None


# --- surroundings: programs, directory, settings, keys, disk, hub -----------------------------

_MIN_FREE_BYTES = 64 * 1024 * 1024

_MEBIBYTE = 1024 * 1024


def check_python(installation: Installation) -> CheckResult:
    """Versions of dragoman and Python."""
    del installation
    return ok(f"dragoman {__version__} on Python {platform.python_version()}")


def check_sqlite(installation: Installation) -> CheckResult:
    """Version of the SQLite library; an old one can damage a database."""
    from dragoman.store.sqlite import connect

    del installation
    version = connect.apsw.sqlite_lib_version()
    connect.check_sqlite_version(version)
    return ok(f"SQLite {version}")


def check_directory(installation: Installation) -> CheckResult:
    """Check that the data directory exists, is writable and private."""
    data = installation.data
    if not data.is_dir():
        elsewhere = "name another one with --data or DRAGOMAN_DATA"
        if os.path.lexists(data):
            return bad(f"{data.absolute()} is not a directory", f"move it away, or {elsewhere}")
        return bad(f"{data.absolute()} does not exist", f"run `dragoman init`, or {elsewhere}")
    unwritable = check_path_writable(data.absolute())
    if unwritable is not None:
        return unwritable
    mode = stat.S_IMODE(data.stat().st_mode)
    if mode & (stat.S_IRWXG | stat.S_IRWXO) & ~_passage(installation):
        return warning(
            f"{data.absolute()} is open to others on this machine (mode {mode:03o})",
            f"chmod 700 {quote(str(data))}",
        )
    return ok(f"{data.absolute()}")


def _passage(installation: Installation) -> int:
    """Rights that agents with a user of their own need, to pass through the directory."""
    has_readable_settings = installation.has_readable_settings
    agents = installation.settings.agents.values() if has_readable_settings else ()
    return stat.S_IXGRP | stat.S_IXOTH if any(one.needs_ways for one in agents) else 0


def check_path_writable(path: Path) -> CheckResult | None:
    """Check that this user can write to a file or directory; None: it can."""
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        return bad(f"{path} is on a file system that is mounted read-only", "mount it for writing")
    is_directory = path.is_dir()
    if os.access(path, os.R_OK | os.W_OK | (os.X_OK if is_directory else 0)):
        return None
    rights = "u+rwx" if is_directory else "u+rw"
    return bad(f"{path} cannot be written", f"chmod {rights} {quote(str(path))}")


def check_settings(installation: Installation) -> CheckResult | None:
    """Check that dragoman.toml can be parsed and a hub can run with it."""
    if not installation.data.is_dir():
        return None
    installation.check_settings()
    loaded = installation.settings
    file = installation.settings_file
    if loaded.store.url and file.exists() and file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return warning(
            f"{file} names a store, and others can read it", f"chmod 600 {quote(str(file))}"
        )
    return ok(f"{file}" if file.exists() else "no dragoman.toml: the defaults hold")


def check_git(installation: Installation) -> CheckResult | None:
    """Check the repository whose commits transitions record."""
    from dragoman.system.git import GitHead

    if not installation.data.is_dir() or not installation.has_readable_settings:
        return None
    named = installation.settings.git.repository
    if not named:
        return ok("no repository is configured: transitions record no commit")
    repository = installation.data / named
    if GitHead(repository)():
        return ok(f"transitions record what {repository} has checked out")
    return warning(
        f"there is no commit at {repository}: transitions record none, and no rewind has files",
        "name a git repository in [git] repository; a relative path begins at the data directory",
    )


def check_agents(installation: Installation) -> CheckResult | None:
    """Check that the agents that a hub starts have what they need."""
    if not installation.data.is_dir() or not installation.has_readable_settings:
        return None
    configured = installation.settings.agents
    missing = [
        f"{name} has no {what}"
        for name, one in configured.items()
        for what in _missing_requirements(installation, one)
    ]
    if missing:
        return warning(
            "; ".join(missing),
            "mend the section [agents.NAME], or start the hub from a folder, and with a PATH and "
            "variables, that have it",
        )
    return ok(
        f"started by the hub: {', '.join(configured)}"
        if configured
        else "none is started by the hub"
    )


def _missing_requirements(installation: Installation, agent: AgentSettings) -> Iterator[str]:
    """List what an agent cannot be started without, as seen from this process."""
    from dragoman.system.git import GitHead

    environ = environment()
    if agent.command and not shutil.which(agent.command[0], path=environ.get("PATH")):
        yield f"program {agent.command[0]}"
    if agent.repository and not GitHead(installation.data / agent.repository)():
        yield f"commit at {installation.data / agent.repository}"
    if installation.running_hub is None:  # a running hub has environment variables of its own
        yield from (f"variable {name}" for name in agent.environment if name not in environ)


def check_separation(installation: Installation) -> CheckResult | None:
    """Say what separates started agents from the hub; what cannot be kept is bad settings."""
    if not installation.data.is_dir() or not installation.has_readable_settings:
        return None
    return ok(describe_separation(installation.settings.agents))


def check_keys(installation: Installation) -> CheckResult | None:
    """Check that the signing keys exist, are usable and private."""
    from dragoman.system.keys import has_any_key_file, load_keys

    if not installation.data.is_dir():
        return None
    if not has_any_key_file(installation.keys):
        return bad(f"there are no keys in {installation.keys}", _missing_keys_advice(installation))
    return ok(f"{installation.keys}, key {load_keys(installation.data).id}")


def _missing_keys_advice(installation: Installation) -> str:
    """Advice for missing keys: new ones only if the store has nothing signed by the old ones."""
    from dragoman.files.archive import CHECKPOINTS
    from dragoman.system.keys import keys_remedy

    is_signed = (installation.data / CHECKPOINTS).exists()
    if not is_signed and not installation.has_readable_settings:
        return (
            "first mend the settings, which say where the store is, and run `dragoman doctor` "
            "again: what to do depends on what is in it"
        )
    try:
        is_used = is_signed or _store_has_entries(installation)
    except DragomanError as error:
        return (
            "first see to the store, and run `dragoman doctor` again: what to do depends on what "
            f"is in it. {error.detail}"
        )
    return keys_remedy(installation.keys) if is_used else "run `dragoman init`"


def _store_has_entries(installation: Installation) -> bool:
    from dragoman.store.postgres.migrate import schema_version_at

    file = installation.database_file
    if file is None:
        return schema_version_at(installation.store_url) > 0
    return file.exists() and file.stat().st_size > 0


def check_disk(installation: Installation) -> CheckResult:
    """Check the free disk space."""
    return check_free_space(shutil.disk_usage(_nearest_existing(installation.data.absolute())).free)


def check_free_space(free: int) -> CheckResult:
    """Check that this many free bytes are enough."""
    if free < _MIN_FREE_BYTES:
        return bad(f"only {free // _MEBIBYTE} MiB are free", "free some space: 64 MiB at the least")
    return ok(f"{free // _MEBIBYTE} MiB are free")


def check_hub(installation: Installation) -> CheckResult | None:
    """Report which process is the hub of this directory."""
    from dragoman.system.hub_lock import find_hub, find_lock_holder

    if not installation.data.is_dir():
        return None
    running = find_lock_holder(installation.data)
    if running is None:
        return ok("no hub is running: run `dragoman tick` from time to time")
    find_hub(installation.data)  # raises where commands cannot call the hub
    return ok(
        f"{running.program} is the hub (process {running.pid} on {running.host}, since "
        f"{running.since})"
    )


def _nearest_existing(path: Path) -> Path:
    """The path, or its nearest ancestor that exists."""
    return path if path.exists() else _nearest_existing(path.parent)


# --- store, ledger, clock, leases, files, notifications -----------------------------------------

_INSPECT_SECONDS = 2.0
"""Time limit of the database's own damage check; `verify` lets it finish."""

_PARTIALLY_INSPECTED = (
    f"; no damage seen in {_INSPECT_SECONDS:g} s, which is not all of it: `dragoman verify`"
)

_SERVER_NOT_INSPECTED = "; its pages and indexes are the server's: pg_amcheck looks at them"

_MISSING_DATABASE_ADVICE = (
    "put it back, or restore a backup into a new directory; if this one was never used, run "
    "`dragoman init`"
)

_MAX_LEASES = 1_000

_MAX_NAMES = 3


def check_store(installation: Installation) -> CheckResult | None:
    """Check that the store opens; one that opening would change is left alone."""
    if (
        not installation.failed_checks.isdisjoint(("directory", "keys"))
        or not installation.data.is_dir()
        or not installation.has_readable_settings
    ):
        return None
    file = installation.database_file
    missing = _check_database_file(installation, file) if file is not None else None
    if missing is not None:
        return missing
    unusable = _check_database_writable(installation, file) or _check_schema(installation, file)
    if unusable is not None:
        return unusable
    opened = installation.open().hub.store
    inspected = _inspect_database(opened, file)
    if inspected.state == "bad":
        # A damaged database may return less than it holds: nothing else is checked.
        installation.close()
        return inspected
    if file is not None and _is_readable_by_others(file, installation.data):
        return warning(
            f"{file}: others on this machine can read it", f"chmod 600 {quote(str(file))}*"
        )
    return inspected


def check_ledger_tail(installation: Installation) -> CheckResult | None:
    """Check the entries after the last checkpoint."""
    from dragoman.engine.verify import check_tail
    from dragoman.files.archive import CHECKPOINTS

    if installation.directory is None:
        return None
    store, checkpoints = installation.directory.hub.store, installation.directory.checkpoints
    head, last = store.head(), checkpoints.last()
    removal = checkpoints.find_removal(store.issued_checkpoints())
    if removal:
        return bad(removal, "`dragoman verify` says whether the ledger itself is whole")
    entries = pluralize(head, "entry", "entries")
    if last is None:
        return (
            warning(
                f"none of {entries} is signed",
                "if checkpoints.jsonl was there before, bring it back; else run `dragoman tick`, "
                "which signs from now on",
            )
            if head
            else ok("empty")
        )
    for finding in islice(check_tail(installation.directory.hub.store, last), 1):
        return bad(
            f"position {finding.position}: {finding.problem}",
            "keep all files as they are, and run `dragoman verify`",
        )
    invalid = installation.directory.checkpoints.invalid_lines_at_end()
    if invalid:
        return warning(
            f"the last lines of checkpoints.jsonl do not hold: {invalid}; those before them do, up "
            f"to position {last.size}",
            "`dragoman verify` says what is wrong with each; if it finds nothing else, delete them",
        )
    unwritable = check_path_writable(installation.data / CHECKPOINTS)
    if unwritable is not None:
        return bad(f"{unwritable.finding}: nothing more is signed", unwritable.advice)
    return ok(
        f"{entries}; {head - last.size} after the last checkpoint are as they were written, and "
        "`dragoman verify` proves the others"
    )


def check_clock(installation: Installation) -> CheckResult | None:
    """Check that the hub's clock is not behind the newest entry."""
    if installation.directory is None:
        return None
    now, head = installation.directory.hub.clock.now(), installation.directory.hub.store.head()
    for entry in installation.directory.hub.store.entries(max(head - 1, 0), 1):
        newest = read_line(entry.line).at
        if newest > now:
            return warning(
                f"the clock says {to_rfc3339(now)}, which is "
                f"{format_rough_duration(newest - now)} before the "
                "newest entry",
                "set the machine's clock, unless a command was given another time with --now",
            )
    return ok(to_rfc3339(now))


def check_leases(installation: Installation) -> CheckResult | None:
    """Check that no expired lease waits for recovery."""
    if installation.directory is None:
        return None
    ended = installation.directory.hub.store.expired_leases(
        installation.directory.hub.clock.now(), _MAX_LEASES
    )
    if ended:
        return warning(f"leases that have ended: {len(ended)}", "run `dragoman tick`")
    return ok("none has ended without recovery")


def check_files(installation: Installation) -> CheckResult | None:
    """Check that the projected files are up to date."""
    from dragoman.files.layout import PROJECTION_LOCK

    if installation.directory is None:
        return None
    lock = installation.data / PROJECTION_LOCK
    if lock.exists() and not lock.is_file():
        return bad(f"{lock} is no file, so that no files can be written", "move it away")
    occupied = ", ".join(installation.directory.projector.list_blocked_paths())
    if occupied:
        return warning(
            f"where dragoman keeps its files stands something else: {occupied}",
            "`dragoman tick` puts it aside, under a name with `-found`",
        )
    missing_entries, unwritten = installation.directory.projector.lag()
    if unwritten:
        hidden = len(unwritten) - _MAX_NAMES
        return warning(
            f"files that could not be written: those of {', '.join(unwritten[:_MAX_NAMES])}"
            f"{f' and of {hidden} more' if hidden > 0 else ''}",
            "`dragoman tick` says what is in the way, and writes them when it is gone",
        )
    if missing_entries:
        return warning(
            f"entries that are not in the files yet: {missing_entries}", "run `dragoman tick`"
        )
    changed = ", ".join(installation.directory.projector.list_changed_logs())
    if changed:
        return warning(
            f"changed by somebody else, cut off or removed: {changed}",
            "`dragoman tick` completes what is missing, `dragoman verify` compares all of it",
        )
    return ok("every entry is in the files; `dragoman verify` compares them")


def check_attention(installation: Installation) -> CheckResult | None:
    """Check that nothing waits for a person that the owner would be told of."""
    from dragoman.engine.queries.attention import find_attention

    directory = installation.directory
    if directory is None:
        return None
    settings = installation.settings
    found = find_attention(
        directory.hub.store, directory.hub.clock.now(), served=settings.served_names, limit=1
    )
    items = [item for item in found.items if item.kind in settings.notify.attention]
    if not items:
        return ok("nothing waits for a person")
    counted = ", ".join(
        f"{found.counts[item.kind]} {item.kind.replace('_', ' ')}" for item in items
    )
    return warning(
        f"{counted}; e.g. {items[0].task or items[0].agent}: {items[0].text}",
        f"`{items[0].command}`; `dragoman status` has all of it",
    )


def check_notify(installation: Installation) -> CheckResult | None:
    """Check that notifications are delivered."""
    if installation.directory is None:
        return None
    states = installation.directory.delivery_states()
    troubles = [trouble for status in states if (trouble := status.problem)]
    losses = [loss for status in states if (loss := status.loss)]
    if troubles:
        return warning(
            "; ".join(troubles + losses),
            "mend it; `dragoman tick` then delivers what waits",
        )
    if losses:
        return warning(
            "; ".join(losses),
            "they are in notify.failed.jsonl: read it, tell whom it concerns, and move it away",
        )
    targets = ", ".join(status.target for status in states)
    return ok(
        f"delivered without trouble: {targets}"
        if targets
        else "no notification target is configured"
    )


def _check_database_writable(installation: Installation, file: Path | None) -> CheckResult | None:
    """Check that commands can write to the database; the directory has its own check."""
    if file is None:
        from dragoman.store.postgres.migrate import check_writable

        try:
            check_writable(installation.store_url)
        except StoreUnavailable as error:
            return bad(error.detail, "let this user write there")
        return None
    beside = (file.with_name(file.name + end) for end in ("-wal", "-shm"))
    needed = (file.parent, file, *(path for path in beside if path.exists()))
    return next(filter(None, map(check_path_writable, needed)), None)


def _is_readable_by_others(file: Path, data: Path) -> bool:
    """Tell whether others can read a file that the data directory does not protect."""
    return not _is_within(file, data) and bool(file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def _is_within(file: Path, data: Path) -> bool:
    return file.resolve().is_relative_to(data.resolve())


def _inspect_database(opened: "Store", file: Path | None) -> CheckResult:
    """Let the database check itself, within the time limit."""
    inspection = opened.inspect(_INSPECT_SECONDS)
    if inspection.damage:
        return bad(
            f"{file or 'PostgreSQL'} is damaged: {inspection.damage[0]}",
            "keep all files as they are, let nobody work on them, and run `dragoman verify`: it "
            "says what is left, and how a sound directory is made of it",
        )
    unseen = (
        "" if inspection.is_complete else _PARTIALLY_INSPECTED if file else _SERVER_NOT_INSPECTED
    )
    try:
        return ok(f"{file or 'PostgreSQL'}, ledger {opened.ledger_id()}{unseen}")
    except StoreCorrupt as error:
        return bad(error.detail)


def _check_database_file(installation: Installation, file: Path) -> CheckResult | None:
    """Check that there is a database; what is in it shows when it is opened."""
    from dragoman.files.archive import CHECKPOINTS

    if not file.exists():
        hint = location_hint(installation.store_url, installation.data)
        return bad(f"there is no database at {file}{hint}", _MISSING_DATABASE_ADVICE)
    if not file.is_file():
        what = "a directory" if file.is_dir() else "a pipe or a device"
        return bad(
            f"{file} is {what}, and no database", f"move it away, and {_MISSING_DATABASE_ADVICE}"
        )
    if file.stat().st_size:
        return None
    if (installation.data / CHECKPOINTS).exists():
        return bad(
            f"{file} is empty, and {CHECKPOINTS} has signed what it held", _MISSING_DATABASE_ADVICE
        )
    return warning(f"{file} is empty", "run `dragoman init`, which makes its tables")


def _check_schema(installation: Installation, file: Path | None) -> CheckResult | None:
    """Advice for a store that would be migrated; None: it is current, or opening refuses it."""
    if file is None:
        from dragoman.store.postgres.migrate import MIGRATIONS, schema_version_at

        version, newest = schema_version_at(installation.store_url), len(MIGRATIONS)
        copy_advice = "take one with pg_dump"
    else:
        from dragoman.store.sqlite.migrate import MIGRATIONS
        from dragoman.store.sqlite.reads import schema_version

        try:
            version, newest = schema_version(file), len(MIGRATIONS)
        except StoreUnavailable:
            return None
        copied = [installation.data, *([] if _is_within(file, installation.data) else [file])]
        paths = " and ".join(quote(str(path)) for path in copied)
        copy_advice = f"copy {paths} while nothing works there"
    if not 1 <= version < newest:
        return None
    stop = "stop the hub; " if installation.running_hub else ""
    # Any command of this version, `backup` too, migrates the store before reading it.
    return warning(
        f"{file or 'PostgreSQL'} has schema {version}, this dragoman has {newest}",
        f"{stop}make a backup with the dragoman that you had before, or {copy_advice}: there is "
        "no other way back. Then any command of this one brings it up to date, e.g. "
        "`dragoman verify`",
    )


# --- command ----------------------------------------------------------------------------------

CHECKS: dict[str, Check] = {
    "python": check_python,
    "sqlite": check_sqlite,
    "directory": check_directory,
    "disk": check_disk,
    "settings": check_settings,
    "git": check_git,
    "agents": check_agents,
    "separation": check_separation,
    "keys": check_keys,
    "hub": check_hub,
    "store": check_store,
    "ledger": check_ledger_tail,
    "clock": check_clock,
    "leases": check_leases,
    "files": check_files,
    "attention": check_attention,
    "notify": check_notify,
}
"""Checks in the order in which they run: the store is opened by the check of that name."""

_STATE_STYLES = {"ok": "green", "warning": "yellow", "bad": "bold red"}


def doctor(context: CommandContext) -> CommandResult:
    """Look for what is wrong, and say what to do. Nothing is changed.

    Exits 1 if anything is bad.

    \b
    Example:
      dragoman doctor
    """
    if context.shared.now is not None:
        _check_clock_not_overridden(context)
    patient, results = Installation(context), dict[str, CheckResult]()
    try:
        for name, check in CHECKS.items():
            result = _run_check(check, patient)
            if result is not None:
                results[name] = result
                patient.failed_checks |= {name} if result.state == "bad" else set()
    finally:
        patient.close()
    data: dict[str, object] = {
        "data": str(context.data.absolute()),
        "checks": [
            {"name": name, "state": d.state, "found": d.finding, "advice": d.advice or None}
            for name, d in results.items()
        ],
    }
    if patient.failed_checks:
        data |= {"code": "unhealthy", "detail": f"bad: {', '.join(sorted(patient.failed_checks))}"}
    return CommandResult(
        data, lambda screen: _print_results(results, screen), is_ok=not patient.failed_checks
    )


def _check_clock_not_overridden(context: CommandContext) -> None:
    """Refuse --now while a hub runs: a running hub has a running clock."""
    from dragoman.system.hub_lock import clock_override_error, find_hub

    running = find_hub(context.data)
    if running is not None:
        raise clock_override_error(running)


def _run_check(check: Check, installation: Installation) -> CheckResult | None:
    """Run a check; a failure becomes its result, and the other checks still run."""
    try:
        return check(installation)
    except StoreCorrupt as error:
        return bad(error.detail, "keep the file as it is, and restore a backup beside it")
    except DragomanError as error:
        return bad(error.detail)
    except OSError as error:
        return bad(describe_exception(error), file_remedy(error))


def _print_results(results: dict[str, CheckResult], screen: Screen) -> None:
    for name, result in results.items():
        state = (f"{result.state:<8}", _STATE_STYLES[result.state])
        screen.line(state, f"{name:<10} ", result.finding)
        if result.advice:
            screen.line(f"{'':<19} → {result.advice}")


COMMANDS = (CliCommand("doctor", doctor, takes_as=False),)
