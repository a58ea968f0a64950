"""Export: a data directory in one file, with a manifest of every part.

Settings of `[store]` and `[notify]` belong to one installation and are left out: they hold
passwords, secrets and commands, and a copy that used them would write into the original's
store.
"""

import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import Store, TaskQuery
from dragoman.files.archives.archive_format import (
    CHECKPOINTS,
    EXPORT_FORMAT_NAME,
    EXPORT_TREES,
    FILES,
    MAX_WHOLE_BYTES,
    PUBLIC_KEY,
    SETTINGS,
    SIGNED,
    Manifest,
    StoredLease,
)
from dragoman.files.archives.tar_archive import ArchiveWriter, open_tar
from dragoman.files.disk import Disk
from dragoman.files.layout import staged_path

# --- settings ---------------------------------------------------------------------------------

_LOCAL_SECTIONS: Final = ("store", "notify")


def portable_settings(settings: bytes) -> bytes | None:
    """Settings without those of the installation, as TOML; None when they cannot be parsed."""
    try:
        sections = tomllib.loads(settings.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return None
    written = [
        _format_section(name, cast(Mapping[str, Any], values))
        for name, values in sections.items()
        if name not in _LOCAL_SECTIONS and isinstance(values, Mapping)
    ]
    return "\n".join(written).encode()


def _format_section(name: str, values: Mapping[str, Any]) -> str:
    # Numbers, booleans, strings and lists of them are written in TOML as in JSON.
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in values.items()]
    return f"[{name}]\n{''.join(lines)}"


# --- export -----------------------------------------------------------------------------------

_PAGE: Final = 1_000

_CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def export_archive(
    store: Store,
    data: Disk,
    target: Path,
    target_folder: Disk,
    now: int,
    progress: Callable[[int], None],
) -> Manifest:
    """Write the archive; `data` is the data directory, `target_folder` the folder it goes into.

    Raises LedgerError, and writes nothing, when the ledger is damaged.
    """
    temporary = target.with_name(staged_path(target.name))
    # left by an export that was killed
    temporary.unlink(missing_ok=True)
    try:
        # It holds the words of everybody: only its owner can read it, as a backup.
        with os.fdopen(os.open(temporary, _CREATE_FLAGS, 0o600), "wb") as file:
            with open_tar(file) as tar:
                manifest = _write_archive(ArchiveWriter(tar), store, data, now, progress)
            file.flush()
            os.fsync(file.fileno())
        target_folder.replace(temporary.name, target.name)
        target_folder.sync()
    finally:
        temporary.unlink(missing_ok=True)
    return manifest


def _write_archive(
    writer: ArchiveWriter, store: Store, data: Disk, now: int, progress: Callable[[int], None]
) -> Manifest:
    # The checkpoints first: whatever they sign is then among the entries.
    signed = [(name, data.read(name, MAX_WHOLE_BYTES)) for name in (CHECKPOINTS, PUBLIC_KEY)]
    head = store.head()
    writer.add_entries(store, head, progress)
    writer.add_leases(_leases(store))
    for name, content in signed:
        if content is not None:
            writer.add_bytes(SIGNED + name.rpartition("/")[2], content)
    settings = portable_settings(data.read(SETTINGS, MAX_WHOLE_BYTES) or b"")
    if settings:
        writer.add_bytes(FILES + SETTINGS, settings)
    writer.add_trees(data, EXPORT_TREES)
    manifest = Manifest(
        EXPORT_FORMAT_NAME,
        store.ledger_id(),
        head,
        to_rfc3339(now),
        tuple(writer.members),
        tuple(writer.omitted),
    )
    writer.write_manifest(manifest)
    return manifest


def _leases(store: Store) -> Iterator[StoredLease]:
    before = None
    while rows := store.task_page(TaskQuery("in-progress", before=before, limit=_PAGE)):
        yield from (StoredLease(row.name, row.lease) for row in rows if row.lease is not None)
        before = rows[-1].number
