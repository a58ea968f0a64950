"""Import: an archive becomes a data directory, or nothing does.

The archive is read twice: once to compare every member with the manifest and every entry with its
chain, and once to build the directory beside its place, which it takes when it is complete.
"""

import io
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
    MOST_AT_ONCE,
    PIECE,
    SETTINGS,
    SIGNED,
    Manifest,
    Member,
    StoredEntry,
    StoredLease,
    has_place,
    is_tree_file,
)
from dragoman.files.disk import Disk
from dragoman.files.problems import BadArchive
from dragoman.files.transplant import Transplant, check_chain
from dragoman.ledger.checkpoint import BadCheckpoint, Checkpoint, read

IMPORTED: Final = "imported"
"""Where the checkpoints, the public key and the settings of the place that an archive came from are
kept. None of them counts here: settings of a stranger name a store and commands."""

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
    data = data.resolve()
    if data.exists() and (not data.is_dir() or any(data.iterdir())):
        raise BadArchive(f"{data} is not empty: an import goes into a new data directory")
    if data == Path.cwd():
        raise BadArchive(f"{data} is where you stand and would be replaced: import from elsewhere")
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
    for part in _parts(archive):
        name = part.name
        if manifest is not None:
            raise BadArchive(f"{name}: it stands after the manifest, which must be the last")
        if name == MANIFEST:
            manifest = _read_manifest(part.whole())
            continue
        if name in seen:
            raise BadArchive(f"{name}: it stands there twice")
        if name.startswith(ENTRIES):
            content = part.whole()
            position = _check_entries(name, content, position, heads)
            progress(content.count(b"\n"))
        seen[name] = part.member()
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


class _Part:
    """A member of the tar while it is read: as a whole, or piece by piece."""

    def __init__(self, tar: tarfile.TarFile, info: tarfile.TarInfo) -> None:
        self.name = info.name
        self._tar = tar
        self._info = info

    def pieces(self) -> Iterator[bytes]:
        """The content; BadArchive where it ends too soon."""
        left = self._info.size
        try:
            with self._tar.extractfile(self._info) or io.BytesIO() as file:
                while left and (piece := file.read(min(PIECE, left))):
                    left -= len(piece)
                    yield piece
        except tarfile.ReadError:
            pass  # what is missing is told below
        if left:
            raise BadArchive(f"{self._tar.name}: the archive was cut off within {self.name}")

    def whole(self) -> bytes:
        """The content of a part that cannot be long."""
        if self._info.size > MOST_AT_ONCE:
            raise BadArchive(f"{self.name}: it is longer than {MOST_AT_ONCE} bytes")
        return b"".join(self.pieces())

    def member(self) -> Member:
        """What the manifest should say of it."""
        digest = sha256()
        for piece in self.pieces():
            digest.update(piece)
        return Member(self.name, self._info.size, digest.hexdigest())


def _parts(archive: Path) -> Iterator[_Part]:
    """The members of the tar; only plain files in places that an archive has."""
    try:
        with tarfile.open(archive, mode="r:") as tar:
            for info in tar:
                _check_place(info)
                yield _Part(tar, info)
    except (tarfile.TarError, EOFError, UnicodeError) as error:
        raise BadArchive(f"{archive}: this is not a whole archive: {error}") from None


def _check_place(info: tarfile.TarInfo) -> None:
    parts = info.name.split("/")
    is_plain = info.isfile() and not info.issparse()
    if not is_plain or any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise BadArchive(f"{info.name!a}: an archive holds plain files with relative names only")
    if not has_place(info.name):
        raise BadArchive(f"{info.name!a}: an archive has no such part; it was not exported here")


def _read_manifest(content: bytes) -> Manifest:
    try:
        manifest = _manifests.decode(content)
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
        kept = _fill(archive, store, disk, tools)
        for finding in check_ledger(store, _checkpoints(kept), tools.progress):
            raise BadArchive(f"entry {finding.position}: {finding.problem}")
        for name, content in kept.items():
            disk.make_folder(IMPORTED)
            disk.write(f"{IMPORTED}/{name}", content)
        disk.settle()
    finally:
        store.close()


def _fill(archive: Path, store: Store, disk: Disk, tools: Tools) -> dict[str, bytes]:
    """Everything into its place; what is only kept is handed back."""
    transplant, kept, leases = Transplant(store, tools.now), dict[str, bytes](), b""
    for part in _parts(archive):
        if part.name.startswith(ENTRIES):
            lines = [_entries.decode(line).line.encode() for line in part.whole().splitlines()]
            transplant.add(lines)
            tools.progress(len(lines))
        elif part.name == LEASES:
            leases = part.whole()
        elif part.name.startswith(SIGNED):
            kept[part.name.removeprefix(SIGNED)] = part.whole()
        elif is_tree_file(part.name):
            _copy(part, disk)
        elif part.name == FILES + SETTINGS:
            kept[SETTINGS] = part.whole()
    transplant.lend(_read_leases(leases))
    return kept


def _copy(part: _Part, disk: Disk) -> None:
    path, size = part.name.removeprefix(FILES), 0
    disk.make_folder(path.rpartition("/")[0])
    for piece in part.pieces():
        if size:
            disk.append(path, size, piece)
        else:
            disk.write(path, piece)
        size += len(piece)
    if not size:
        disk.write(path, b"")
    disk.keep(path)


def _read_leases(content: bytes) -> dict[str, Lease]:
    try:
        stored = [_leases.decode(line) for line in content.splitlines()]
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BadArchive(f"{LEASES}: a lease cannot be read: {error}") from None
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
