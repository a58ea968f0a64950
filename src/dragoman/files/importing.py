"""Import: an archive becomes a data directory, or nothing does.

The archive is read twice: once to compare every member with the manifest and every entry with its
chain, and once to build the directory beside its place, which it takes when it is complete.
"""

import shutil
import tarfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from msgspec import Struct

from dragoman.core.errors import LedgerError
from dragoman.core.lease import Lease
from dragoman.engine.ports import Store
from dragoman.engine.verify import check_ledger
from dragoman.files.archive_format import (
    CHECKPOINTS,
    ENTRIES,
    FILES,
    FORMAT,
    LEASES,
    MANIFEST,
    SIGNED,
    Manifest,
    Member,
    StoredEntry,
    StoredLease,
)
from dragoman.files.disk import Disk
from dragoman.files.problems import BadArchive
from dragoman.files.transplant import Transplant, check_chain
from dragoman.ledger.checkpoint import BadCheckpoint, Checkpoint, read

IMPORTED: Final = "imported"
"""Where the checkpoints and the public key of the place that an archive came from are kept."""

_MOST_MANIFEST: Final = 1 << 30

_manifests: Final = msgspec.json.Decoder(Manifest)
_entries: Final = msgspec.json.Decoder(StoredEntry)
_leases: Final = msgspec.json.Decoder(StoredLease)

OpenStore = Callable[[Path, str], Store]
"""Opens the (empty) store of a data directory, for a ledger with this id."""
OpenDisk = Callable[[Path], Disk]
Progress = Callable[[int], None]


class Tools(Struct, frozen=True):
    """What an import needs of the outside."""

    open_store: OpenStore
    open_disk: OpenDisk
    now: int
    progress: Progress


def import_archive(archive: Path, data: Path, tools: Tools) -> Manifest:
    """Make a data directory of an archive, where there is none; BadArchive leaves nothing behind.

    The keys are new ones, made when the directory is first opened; what the old key has signed is
    checked here and kept under `imported/`.
    """
    if data.exists() and (not data.is_dir() or any(data.iterdir())):
        raise BadArchive(f"{data} is not empty: an import goes into a new data directory")
    manifest = check_archive(archive, tools.progress)
    data.parent.mkdir(parents=True, exist_ok=True)
    building = data.with_name(f".{data.name}.importing")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(mode=0o700)
    try:
        _build(archive, building, manifest, tools)
        beside = tools.open_disk(data.parent)
        if not beside.move(building.name, data.name):
            raise BadArchive(f"{data} is not empty any more: nothing was imported")
        beside.settle()
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return manifest


def check_archive(archive: Path, progress: Progress) -> Manifest:
    """The manifest of an archive in which everything is as it was written."""
    seen: dict[str, Member] = {}
    heads: dict[str, bytes] = {}
    position, manifest = 0, None
    for name, content in _members(archive):
        if manifest is not None:
            raise BadArchive(f"{name}: it stands after the manifest, which must be the last")
        if name == MANIFEST:
            manifest = _read_manifest(content)
            continue
        if name in seen:
            raise BadArchive(f"{name}: it stands there twice")
        seen[name] = Member(name, len(content), sha256(content).hexdigest())
        if name.startswith(ENTRIES):
            position = _check_entries(name, content, position, heads)
            progress(content.count(b"\n"))
    if manifest is None:
        raise BadArchive(f"{archive}: the archive ends before its manifest; it was cut off")
    _check_members(manifest, seen)
    if position != manifest.head:
        raise BadArchive(f"the ledger ends at {position}; the manifest says {manifest.head}")
    return manifest


def _check_members(manifest: Manifest, seen: dict[str, Member]) -> None:
    for member in manifest.members:
        there = seen.pop(member.name, None)
        if there is None:
            raise BadArchive(f"{member.name}: it is missing")
        if there != member:
            raise BadArchive(f"{member.name}: its content is not what was exported")
    for name in seen:
        raise BadArchive(f"{name}: the manifest does not know it")


def _check_entries(name: str, content: bytes, position: int, heads: dict[str, bytes]) -> int:
    try:
        stored = [_entries.decode(line) for line in content.splitlines()]
        wrong = check_chain(heads, ((entry.line.encode(), entry.hash) for entry in stored))
    except (msgspec.MsgspecError, UnicodeError, LedgerError) as error:
        raise BadArchive(f"{name}: an entry cannot be read: {error}") from None
    for index, entry in enumerate(stored):
        position += 1
        if entry.position != position or index == wrong:
            raise BadArchive(f"{name}: entry {position} is not what was written")
    return position


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    """The members of the tar; only plain files with plain names."""
    try:
        with tarfile.open(archive, mode="r:") as tar:
            for info in tar:
                _check_name(info)
                file = tar.extractfile(info)
                content = file.read() if file is not None else b""
                if len(content) != info.size:
                    raise BadArchive(f"{info.name}: the archive was cut off here")
                yield info.name, content
    except (tarfile.TarError, EOFError, UnicodeError) as error:
        raise BadArchive(f"{archive}: this is not a whole archive: {error}") from None


def _check_name(info: tarfile.TarInfo) -> None:
    parts = info.name.split("/")
    if not info.isfile() or any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise BadArchive(f"{info.name!a}: an archive holds plain files with relative names only")


def _read_manifest(content: bytes) -> Manifest:
    try:
        manifest = _manifests.decode(content[:_MOST_MANIFEST])
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BadArchive(f"{MANIFEST}: it cannot be read: {error}") from None
    if manifest.format != FORMAT:
        raise BadArchive(f"{MANIFEST}: {manifest.format!a} is not a format that is known here")
    return manifest


def _build(archive: Path, building: Path, manifest: Manifest, tools: Tools) -> None:
    disk = tools.open_disk(building)
    store = tools.open_store(building, manifest.ledger)
    try:
        if store.head():
            raise BadArchive("the store is not empty: an import needs one of its own")
        signed = _fill(archive, store, disk, tools)
        for finding in check_ledger(store, _checkpoints(signed), tools.progress):
            raise BadArchive(f"entry {finding.position}: {finding.problem}")
        for name, content in signed.items():
            disk.make_folder(IMPORTED)
            disk.write(f"{IMPORTED}/{name}", content)
        disk.settle()
    finally:
        store.close()


def _fill(archive: Path, store: Store, disk: Disk, tools: Tools) -> dict[str, bytes]:
    """Everything into its place; what was signed is handed back."""
    transplant, signed, leases = Transplant(store, tools.now), dict[str, bytes](), b""
    for name, content in _members(archive):
        if name.startswith(ENTRIES):
            lines = [_entries.decode(line).line.encode() for line in content.splitlines()]
            transplant.add(lines)
            tools.progress(len(lines))
        elif name == LEASES:
            leases = content
        elif name.startswith(SIGNED):
            signed[name.removeprefix(SIGNED)] = content
        elif name.startswith(FILES):
            path = name.removeprefix(FILES)
            if "/" in path:
                disk.make_folder(path.rpartition("/")[0])
            disk.write(path, content)
            disk.keep(path)
    transplant.lend(_read_leases(leases))
    return signed


def _read_leases(content: bytes) -> dict[str, Lease]:
    stored = map(_leases.decode, content.splitlines())
    return {lease.stream: lease.lease for lease in stored}


def _checkpoints(signed: dict[str, bytes]) -> list[Checkpoint]:
    lines = signed.get(CHECKPOINTS, b"").splitlines()
    if not lines:
        return []
    try:
        public = load_pem_public_key(signed.get("ledger.pub", b""))
        if not isinstance(public, Ed25519PublicKey):
            raise BadArchive(f"{SIGNED}ledger.pub: it is not an Ed25519 key")
        return [read(line, public) for line in lines]
    except (ValueError, UnsupportedAlgorithm) as error:
        if isinstance(error, BadCheckpoint):
            raise BadArchive(f"{SIGNED}{CHECKPOINTS}: {error.detail}") from None
        raise BadArchive(f"{SIGNED}ledger.pub: the public key cannot be read") from None
