"""Doctor's checks of what surrounds the store: programs, directory, settings, keys, disk, hub."""

import os
import platform
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from dragoman import __version__
from dragoman.config import AgentSettings, environment
from dragoman.core.errors import DragomanError
from dragoman.surfaces.cli.doctor.patient import CheckResult, Installation, bad, ok, warning

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
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        return warning(
            f"{data.absolute()} is open to others on this machine (mode {mode:03o})",
            f"chmod 700 {quote(str(data))}",
        )
    return ok(f"{data.absolute()}")


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
    from dragoman.system.git_head import GitHead

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
    from dragoman.system.git_head import GitHead

    environ = environment()
    if agent.command and not shutil.which(agent.command[0], path=environ.get("PATH")):
        yield f"program {agent.command[0]}"
    if agent.repository and not GitHead(installation.data / agent.repository)():
        yield f"commit at {installation.data / agent.repository}"
    if installation.running_hub is None:  # a running hub has environment variables of its own
        yield from (f"variable {name}" for name in agent.environment if name not in environ)


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
    from dragoman.files.archives.archive_format import CHECKPOINTS
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
    from dragoman.store.postgres.staging import schema_version_at

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
    from dragoman.system.hub_address import find_hub
    from dragoman.system.hub_lock import find_lock_holder

    if not installation.data.is_dir():
        return None
    running = find_lock_holder(installation.data)
    if running is None:
        hint = ": run `dragoman tick` from time to time"
        return ok("no hub is running" + (hint if installation.is_writable else ""))
    find_hub(installation.data)  # raises where commands cannot call the hub
    return ok(
        f"{running.who} is the hub (process {running.pid} on {running.host}, since {running.since})"
    )


def _nearest_existing(path: Path) -> Path:
    """The path, or its nearest ancestor that exists."""
    return path if path.exists() else _nearest_existing(path.parent)
