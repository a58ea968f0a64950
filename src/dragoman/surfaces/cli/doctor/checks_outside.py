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
from dragoman.surfaces.cli.doctor.patient import Diagnosis, Patient, bad, ok, warning

_LEAST_FREE = 64 * 1024 * 1024
_MEBIBYTE = 1024 * 1024


def python(patient: Patient) -> Diagnosis:
    """Versions of dragoman and Python."""
    del patient
    return ok(f"dragoman {__version__} on Python {platform.python_version()}")


def sqlite(patient: Patient) -> Diagnosis:
    """Version of the SQLite library; an old one can damage a database."""
    from dragoman.store.sqlite import connect

    del patient
    version = connect.apsw.sqlite_lib_version()
    connect.check_sqlite(version)
    return ok(f"SQLite {version}")


def directory(patient: Patient) -> Diagnosis:
    """Check that the data directory exists, is writable and private."""
    data = patient.data
    if not data.is_dir():
        elsewhere = "name another one with --data or DRAGOMAN_DATA"
        if os.path.lexists(data):
            return bad(f"{data.absolute()} is not a directory", f"move it away, or {elsewhere}")
        return bad(f"{data.absolute()} does not exist", f"run `dragoman init`, or {elsewhere}")
    unwritable = why_unwritable(data.absolute())
    if unwritable is not None:
        return unwritable
    mode = stat.S_IMODE(data.stat().st_mode)
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        return warning(
            f"{data.absolute()} is open to others on this machine (mode {mode:03o})",
            f"chmod 700 {quote(str(data))}",
        )
    return ok(f"{data.absolute()}")


def why_unwritable(path: Path) -> Diagnosis | None:
    """Check that this user can write to a file or directory; None: it can."""
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        return bad(f"{path} is on a file system that is mounted read-only", "mount it for writing")
    is_directory = path.is_dir()
    if os.access(path, os.R_OK | os.W_OK | (os.X_OK if is_directory else 0)):
        return None
    rights = "u+rwx" if is_directory else "u+rw"
    return bad(f"{path} cannot be written", f"chmod {rights} {quote(str(path))}")


def settings(patient: Patient) -> Diagnosis | None:
    """Check that dragoman.toml can be parsed and a hub can run with it."""
    if not patient.data.is_dir():
        return None
    patient.check_settings()
    used = patient.settings
    file = patient.settings_file
    if used.store.url and file.exists() and file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return warning(
            f"{file} names a store, and others can read it", f"chmod 600 {quote(str(file))}"
        )
    return ok(f"{file}" if file.exists() else "no dragoman.toml: the defaults hold")


def git(patient: Patient) -> Diagnosis | None:
    """Check the repository whose commits transitions record."""
    from dragoman.system.git_head import GitHead

    if not patient.data.is_dir() or not patient.is_understood:
        return None
    named = patient.settings.git.repository
    if not named:
        return ok("no repository is configured: transitions record no commit")
    repository = patient.data / named
    if GitHead(repository)():
        return ok(f"transitions record what {repository} has checked out")
    return warning(
        f"there is no commit at {repository}: transitions record none, and no rewind has files",
        "name a git repository in [git] repository; a relative path begins at the data directory",
    )


def agents(patient: Patient) -> Diagnosis | None:
    """Check that the agents that a hub starts have what they need."""
    if not patient.data.is_dir() or not patient.is_understood:
        return None
    known = patient.settings.agents
    missing = [
        f"{name} has no {what}" for name, one in known.items() for what in _missing(patient, one)
    ]
    if missing:
        return warning(
            "; ".join(missing),
            "mend the section [agents.NAME], or start the hub from a folder, and with a PATH and "
            "variables, that have it",
        )
    return ok(f"started by the hub: {', '.join(known)}" if known else "none is started by the hub")


def _missing(patient: Patient, agent: AgentSettings) -> Iterator[str]:
    """List what an agent cannot be started without, as seen from this process."""
    from dragoman.system.git_head import GitHead

    environ = environment()
    if agent.command and not shutil.which(agent.command[0], path=environ.get("PATH")):
        yield f"program {agent.command[0]}"
    if agent.repository and not GitHead(patient.data / agent.repository)():
        yield f"commit at {patient.data / agent.repository}"
    if patient.works is None:  # a running hub has environment variables of its own
        yield from (f"variable {name}" for name in agent.environment if name not in environ)


def keys(patient: Patient) -> Diagnosis | None:
    """Check that the signing keys exist, are usable and private."""
    from dragoman.system.keys import are_any, load

    if not patient.data.is_dir():
        return None
    if not are_any(patient.keys):
        return bad(f"there are no keys in {patient.keys}", _how_to_get_keys(patient))
    return ok(f"{patient.keys}, key {load(patient.data).id}")


def _how_to_get_keys(patient: Patient) -> str:
    """Advice for missing keys: new ones only if the store has nothing signed by the old ones."""
    from dragoman.files.archives.archive_format import CHECKPOINTS
    from dragoman.system.keys import remedy

    is_signed = (patient.data / CHECKPOINTS).exists()
    if not is_signed and not patient.is_understood:
        return (
            "first mend the settings, which say where the store is, and run `dragoman doctor` "
            "again: what to do depends on what is in it"
        )
    try:
        is_used = is_signed or _has_entries(patient)
    except DragomanError as error:
        return (
            "first see to the store, and run `dragoman doctor` again: what to do depends on what "
            f"is in it. {error.detail}"
        )
    return remedy(patient.keys) if is_used else "run `dragoman init`"


def _has_entries(patient: Patient) -> bool:
    from dragoman.store.postgres.staging import version_at

    file = patient.database
    if file is None:
        return version_at(patient.url) > 0
    return file.exists() and file.stat().st_size > 0


def disk(patient: Patient) -> Diagnosis:
    """Check the free disk space."""
    return room(shutil.disk_usage(_nearest(patient.data.absolute())).free)


def room(free: int) -> Diagnosis:
    """Check that this many free bytes are enough."""
    if free < _LEAST_FREE:
        return bad(f"only {free // _MEBIBYTE} MiB are free", "free some space: 64 MiB at the least")
    return ok(f"{free // _MEBIBYTE} MiB are free")


def hub(patient: Patient) -> Diagnosis | None:
    """Report which process is the hub of this directory."""
    from dragoman.system.hub_address import find_hub
    from dragoman.system.hub_lock import holder

    if not patient.data.is_dir():
        return None
    by = holder(patient.data)
    if by is None:
        now_and_then = ": run `dragoman tick` from time to time"
        return ok("no hub is running" + (now_and_then if patient.is_writable else ""))
    find_hub(patient.data)  # raises where commands cannot call the hub
    return ok(f"{by.who} is the hub (process {by.pid} on {by.host}, since {by.since})")


def _nearest(path: Path) -> Path:
    """The path, or its nearest ancestor that exists."""
    return path if path.exists() else _nearest(path.parent)
