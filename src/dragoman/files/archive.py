"""Archive of a data directory: one verified file, with the profile `backup` or `export`.

An archive is a tar. Its first member is a label, its last one the manifest: the name, size and
SHA-256 of every other member, and the id and length of the ledger. Both profiles carry the ledger
entry by entry, the leases of tasks in progress, the signed checkpoints with their public key, the
tasks' own folders, the inbox, and artifacts of handoffs.

A backup is for its owner only: it also has the keys and tokens, all settings, the notifier's
cursor, and the idempotency answers, so that a hub goes on as if nothing had happened. An export
has no secret: of the settings it leaves out `[store]` and `[notify]`, which hold passwords and
commands and belong to one installation.

Projections of the ledger (task files, runs, letters, event lines) are in neither: they are made
anew. A file gets its name when it is complete, was read back and checked. Until then it is
`.NAME.next` beside it, which the next archive of that name overwrites.
"""

import fcntl
import io
import json
import os
import re
import tarfile
import tomllib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final, cast

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from msgspec import Struct

from dragoman.core.attempt_state import Lease
from dragoman.core.errors import LedgerError
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import DurableStore, StoreSnapshot
from dragoman.engine.verify import CheckpointRoots, Finding
from dragoman.files.errors import BadArchive, TargetTaken, explain_no_space
from dragoman.files.layout import (
    ARTIFACTS,
    FOLDERS_LOCK,
    INBOX,
    INBOX_LOCK,
    TASKS,
    TEAMSPACES,
    staged_path,
)
from dragoman.ledger.checkpoint import Checkpoint, read_checkpoint_lines
from dragoman.ledger.entry import GENESIS, link_hash, read_line
from dragoman.system.safe_fs import FileStat, SafeDisk

# --- format -----------------------------------------------------------------------------------

FORMAT: Final = "dragoman archive 1"

_FORMAT_PREFIX: Final = "dragoman archive"

LABEL: Final = "label.json"

MANIFEST: Final = "manifest.json"

ENTRIES: Final = "ledger/entries/"

LEASES: Final = "ledger/leases.jsonl"

ANSWERS: Final = "ledger/answers/"

FILES: Final = "files/"

SETTINGS: Final = "dragoman.toml"

CHECKPOINTS: Final = "checkpoints.jsonl"

KEYS_FOLDER: Final = "keys"

PUBLIC_KEY: Final = f"{KEYS_FOLDER}/ledger.pub"

PRIVATE_FILES: Final = (f"{KEYS_FOLDER}/ledger.key", f"{KEYS_FOLDER}/secret", "token", SETTINGS)
"""Files that only their owner may read."""

IMPORTED_FOLDER: Final = "imported"
"""Folder for the checkpoints, the public key and the settings of an installation that was exported.
None of them is used: settings of a stranger name a store and commands."""

_LINES_PER_MEMBER: Final = 256
"""Limit of entries or answers in one member, so that neither side holds the whole ledger."""

_MAX_WHOLE_BYTES: Final = 1 << 30
"""Limit of a member that is read as a whole."""

_CHUNK_BYTES: Final = 1 << 20
"""Files are copied in chunks of so many bytes."""

_NAME_ERRORS: Final = "surrogateescape"
"""Error handler for names that are not UTF-8, on the disk and in a tar."""

_EXECUTE_BITS: Final = 0o111
"""The only mode bits of a file that are carried over."""

_WHOLE_FILES: Final = frozenset({SETTINGS, CHECKPOINTS, PUBLIC_KEY})
"""Files that are read as a whole; the others may be of any length."""

_NOT_ARCHIVED: Final = re.compile(
    f"{TEAMSPACES}/[^/]+/handoffs|{ARTIFACTS}/incoming|{TASKS}/[^/]+/[^/]+[.](?:md|next)"
)
"""Paths that are projected anew from the ledger, or that are incomplete."""


class Profile(Struct, frozen=True):
    """Purpose of an archive: what is in it, and the command that reads it."""

    name: str
    reader: str
    files: tuple[str, ...]
    trees: tuple[str, ...]
    """Copied after the ledger, so that everything is there that it refers to. The inbox is copied
    before: a message that was in it and is in the ledger by now is known there, and not applied
    again."""

    @property
    def has_secrets(self) -> bool:
        """True for a backup, which is for its owner only."""
        return self.name == "backup"

    def allows(self, name: str) -> bool:
        """True when a member may have this name: nothing else is ever written to disk."""
        numbered = (ENTRIES, ANSWERS) if self.has_secrets else (ENTRIES,)
        if name.startswith(numbered):
            return re.fullmatch("[0-9]{12}[.]jsonl", name.rpartition("/")[2]) is not None
        path = name.removeprefix(FILES)
        if path == name:
            return name in (LABEL, LEASES, MANIFEST)
        return path in (*self.files, SETTINGS) or path.startswith(
            tuple(f"{tree}/" for tree in (*self.trees, INBOX))
        )


BACKUP: Final = Profile(
    "backup",
    "restore",
    (
        CHECKPOINTS,
        PUBLIC_KEY,
        *PRIVATE_FILES,
        "hub.id",
        "notify.cursor",
        "notify.failed.jsonl",
        "agent-usage.json",
    ),
    (TASKS, TEAMSPACES, ARTIFACTS, IMPORTED_FOLDER),
)

EXPORT: Final = Profile(
    "export", "import", (CHECKPOINTS, PUBLIC_KEY), (TASKS, TEAMSPACES, ARTIFACTS)
)


PROFILES: Final = {BACKUP.name: BACKUP, EXPORT.name: EXPORT}


class Label(Struct, frozen=True):
    """First member of an archive, which identifies it."""

    format: str
    profile: str
    dragoman: str
    """Version of dragoman that made it."""
    ledger: str
    about: int
    """Number of entries in the ledger when the archive was begun."""


class ManifestMember(Struct, frozen=True, omit_defaults=True):
    """One file of the archive."""

    name: str
    size: int
    sha256: str
    executable: int = 0
    """Execute bits of its mode."""


def _describe_member(path: str, size: int, digest: str, executable: int = 0) -> ManifestMember:
    """Describe a member; its name on the disk need not be text, and is then shown escaped."""
    raw = path.encode(errors=_NAME_ERRORS)
    return ManifestMember(raw.decode(errors="backslashreplace"), size, digest, executable)


class Manifest(Struct, frozen=True):
    """Contents of an archive."""

    ledger: str
    entries: int
    made_at: str
    members: tuple[ManifestMember, ...]
    omitted: tuple[str, ...] = ()
    """Links, pipes and the like, which were not copied."""


class StoredEntry(Struct, frozen=True):
    """An entry in the archive; its line is UTF-8 and so comes back byte for byte."""

    position: int
    hash: str
    line: str


class StoredLease(Struct, frozen=True):
    """The lease of a task in progress."""

    stream: str
    lease: Lease


class StoredAnswer(Struct, frozen=True):
    """Recorded answer of an idempotency key; bytes are base64 in JSON."""

    stream: str
    """Stream within which the key is unique."""
    key: str
    fingerprint: bytes
    answer: bytes


Progress = Callable[[int], None]

ProgressBars = Callable[[str, int], AbstractContextManager[Progress]]
"""Opens a progress bar for so many things of a kind."""

# --- writing ----------------------------------------------------------------------------------

_encode_json: Final = msgspec.json.Encoder().encode


class ArchiveSource(Struct, frozen=True):
    """The store and data directory to archive."""

    store: DurableStore
    data: SafeDisk
    version: str
    """Version of this dragoman."""
    now: int


def write_archive(
    source: ArchiveSource,
    profile: Profile,
    target: Path,
    target_folder: SafeDisk,
    bars: ProgressBars,
) -> Manifest:
    """Write the archive into the folder `target_folder`. A backup never replaces a file.

    Raises LedgerError, and writes nothing, when the ledger is damaged.
    """
    temporary = target.with_name(staged_path(target.name))
    try:
        with _open_temporary(temporary, target) as file:
            manifest = _write_members(source, profile, file, bars)
            with bars("checked", manifest.entries) as progress:
                _verify_written(temporary, profile, progress)
            if profile is EXPORT:
                target_folder.replace(temporary.name, target.name)
            elif not target_folder.move(temporary.name, target.name):
                raise TargetTaken(f"{target} exists by now; a backup overwrites nothing")
            target_folder.sync()
    except OSError as error:
        raise explain_no_space(error, target) from error
    return manifest


def _verify_written(temporary: Path, profile: Profile, progress: Progress) -> None:
    try:
        check_archive(temporary, profile, progress)
    except BadArchive as error:
        raise LedgerError(
            f"the copy failed verification, so no {profile.name} was made: "
            f"{error.detail.removesuffix('.')}. Run `dragoman verify`; if it finds nothing, check "
            "the disk that the file goes to"
        ) from None


@contextmanager
def _open_temporary(temporary: Path, target: Path) -> Generator[IO[bytes]]:
    """Temporary file, emptied and locked; removed at the end unless it was renamed."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(temporary, flags, 0o600), "r+b") as file:
        found = os.fstat(file.fileno())
        if found.st_uid != os.geteuid() or found.st_nlink > 1:
            raise TargetTaken(
                f"{temporary} belongs to another user, or has a second hard link under which "
                "others could read the archive; nothing was written. Remove it, or choose another "
                "path"
            )
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TargetTaken(f"another process is writing {target}") from None
        if not _has_name(file, temporary):
            raise TargetTaken(f"another process has just written {target}")
        os.fchmod(file.fileno(), 0o600)
        file.truncate()
        try:
            yield file
        finally:
            temporary.unlink(missing_ok=True)


def _has_name(file: IO[bytes], path: Path) -> bool:
    """True when the open file still has this name: the archive before this one may have renamed
    it."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.lstat(path))
    except FileNotFoundError:
        return False


def _write_members(
    source: ArchiveSource, profile: Profile, file: IO[bytes], bars: ProgressBars
) -> Manifest:
    with tarfile.open(
        fileobj=file, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8", errors=_NAME_ERRORS
    ) as tar:
        writer = ArchiveWriter(tar, source.data)
        store, ledger = source.store, source.store.ledger_id()
        label = Label(FORMAT, profile.name, source.version, ledger, store.head())
        writer.add_bytes(LABEL, _encode_json(label))
        # No message is being processed meanwhile: it is in the inbox, or in the ledger that is read
        # later.
        with source.data.lock_to_read(INBOX_LOCK):
            writer.add_tree(INBOX)
        # The checkpoints come before the ledger, too: whatever they sign is then in it.
        for name in profile.files:
            writer.add_file(name)
        if not profile.has_secrets:
            content = source.data.read(SETTINGS, _MAX_WHOLE_BYTES) or b""
            if settings := portable_settings(content):
                writer.add_bytes(FILES + SETTINGS, settings)
        with store.snapshot() as frozen:
            head = frozen.head()
            with bars("entries", head) as progress:
                writer.add_entries(frozen, head, progress)
            writer.add_bytes(LEASES, b"".join(_lines(_leases(frozen))))
            if profile.has_secrets:
                writer.add_answers(frozen)
        for tree in profile.trees:
            writer.add_tree(tree) if tree != TASKS else writer.add_tasks()
        made_at = to_rfc3339(source.now)
        members, omitted = tuple(writer.members), tuple(writer.omitted)
        manifest = Manifest(ledger, head, made_at, members, omitted)
        writer.add_bytes(MANIFEST, msgspec.json.format(_encode_json(manifest), indent=1))
    file.flush()
    os.fsync(file.fileno())
    return manifest


_LOCAL_SECTIONS: Final = ("store", "notify")


def portable_settings(settings: bytes) -> bytes:
    """Settings without those of the installation, as TOML; empty when they cannot be parsed."""
    try:
        sections = tomllib.loads(settings.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return b""
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


def _lines(stored: Iterable[Any]) -> Iterator[bytes]:
    return (_encode_json(one) + b"\n" for one in stored)


def _leases(frozen: StoreSnapshot) -> Iterator[StoredLease]:
    after = 0
    while rows := frozen.held_streams(after, _LINES_PER_MEMBER):
        yield from (StoredLease(row.name, row.lease) for row in rows if row.lease is not None)
        after = rows[-1].number


class ArchiveWriter:
    """Adds members to a tar and lists them for the manifest."""

    def __init__(self, tar: tarfile.TarFile, data: SafeDisk) -> None:
        self._tar = tar
        self._data = data
        self.members: list[ManifestMember] = []
        self.omitted: list[str] = []

    def add_bytes(self, name: str, content: bytes) -> None:
        """Add a member from memory."""
        part = _describe_member(name, len(content), sha256(content).hexdigest())
        self._add_member(name, part, io.BytesIO(content))

    def add_entries(self, frozen: StoreSnapshot, head: int, progress: Progress) -> None:
        """Add the ledger up to a position; LedgerError when its hash chain is broken."""
        heads: dict[str, bytes] = {}
        after = 0
        while page := frozen.entries(after, _LINES_PER_MEMBER, until=head):
            wrong = _find_broken_link(heads, ((entry.line, entry.hash.hex()) for entry in page))
            for index, entry in enumerate(page):
                if entry.position != after + index + 1 or index == wrong:
                    raise LedgerError(
                        f"the ledger is damaged near position {after + index + 1}: nothing was "
                        "written; run `dragoman verify`"
                    )
            stored = (StoredEntry(e.position, e.hash.hex(), e.line.decode()) for e in page)
            self.add_bytes(f"{ENTRIES}{after + 1:012d}.jsonl", b"".join(_lines(stored)))
            after = page[-1].position
            progress(len(page))
        if after != head:
            raise LedgerError(f"entry {after + 1} is missing: run `dragoman verify`")

    def add_answers(self, frozen: StoreSnapshot) -> None:
        """Add the recorded answers of idempotency keys."""
        number, after = 1, (0, "")
        while page := frozen.answers(after, _LINES_PER_MEMBER):
            stored = (
                StoredAnswer(one.stream, one.record.key, one.record.fingerprint, one.record.answer)
                for one in page
            )
            self.add_bytes(f"{ANSWERS}{number:012d}.jsonl", b"".join(_lines(stored)))
            number += len(page)
            after = page[-1].record.scope, page[-1].record.key

    def add_tasks(self) -> None:
        """Add each task's own folder once, under a lock held per task: none moves while it is
        copied."""
        self._omit_if_irregular(TASKS)
        packed = set[str]()
        while unpacked := self._unpacked_paths(packed):
            for path in unpacked:
                with self._data.lock_to_read(FOLDERS_LOCK):
                    info = self._data.stat(path)
                    if info is not None:  # otherwise it has moved, and the next round finds it
                        packed.add(path)
                        self._add_path(path, info)

    def _unpacked_paths(self, packed: set[str]) -> list[str]:
        """Paths in `tasks/` and its folders that were not packed yet, neither there nor before
        they moved."""
        with self._data.lock_to_read(FOLDERS_LOCK):
            present = [
                path
                for status in self._data.list(TASKS)
                for path in self._children(f"{TASKS}/{status.name}", status)
                if not _NOT_ARCHIVED.fullmatch(path)
            ]
        moved = {path.rpartition("/")[2] for path in packed.difference(present)}
        return [
            path for path in present if path not in packed and path.rpartition("/")[2] not in moved
        ]

    def _children(self, path: str, info: FileStat) -> list[str]:
        if info.kind != "folder":
            return [path]
        return [f"{path}/{inner.name}" for inner in self._data.list(path)]

    def add_tree(self, folder: str) -> None:
        """Add a folder with everything in it that is not projected from the ledger."""
        found = self._data.list(folder)
        for info in found:
            self._add_path(f"{folder}/{info.name}", info)
        if not found:
            self._omit_if_irregular(folder)

    def _add_path(self, path: str, info: FileStat) -> None:
        if _NOT_ARCHIVED.fullmatch(path):
            return
        if info.kind == "folder":
            self.add_tree(path)
        else:
            self.add_file(path)

    def add_file(self, path: str) -> None:
        """Add a file as it is read, even if somebody goes on writing to it; skipped when it is
        gone."""
        with self._data.open(path) as opened, SpooledTemporaryFile[bytes](_CHUNK_BYTES) as copy:
            if opened is None:
                self._omit_if_irregular(path)
                return
            digest = sha256()
            while chunk := opened[0].read(_CHUNK_BYTES):
                copy.write(chunk)
                digest.update(chunk)
            size, mode = copy.tell(), os.fstat(opened[0].fileno()).st_mode
            copy.seek(0)
            name, executable = FILES + path, mode & _EXECUTE_BITS
            part = _describe_member(name, size, digest.hexdigest(), executable)
            self._add_member(name, part, copy)

    def _omit_if_irregular(self, path: str) -> None:
        """List a path as omitted if it, or a parent, is no plain file or folder; a missing one is
        not listed."""
        parts = path.split("/")
        for end in range(1, len(parts) + 1):
            part = "/".join(parts[:end])
            info = self._data.stat(part)
            if info is not None and info.kind not in ("file", "folder"):
                name = ascii(part)[1:-1]
                if name not in self.omitted:
                    self.omitted.append(name)
                return

    def _add_member(self, name: str, part: ManifestMember, content: IO[bytes]) -> None:
        info = tarfile.TarInfo(name)
        info.size = part.size
        info.mode = 0o600 | part.executable
        self._tar.addfile(info, content)
        self.members.append(part)


def _find_broken_link(heads: dict[str, bytes], lines: Iterable[tuple[bytes, str]]) -> int | None:
    """Index of the first line whose hash does not fit its stream; None when all do.

    `heads` holds the last hash of every stream and is updated.
    """
    for index, (line, claimed) in enumerate(lines):
        stream = read_line(line).stream
        heads[stream] = link_hash(heads.get(stream, GENESIS), line)
        if heads[stream].hex() != claimed:
            return index
    return None


# --- reading ----------------------------------------------------------------------------------

_entry_decoder: Final = msgspec.json.Decoder(StoredEntry)

_lease_decoder: Final = msgspec.json.Decoder(StoredLease)

_answer_decoder: Final = msgspec.json.Decoder(StoredAnswer)

_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, LedgerError)

_END_MARK_BYTES: Final = 2 * tarfile.BLOCKSIZE


class ArchiveMember:
    """Member of the tar, read as a whole or in chunks."""

    def __init__(self, tar: tarfile.TarFile, info: tarfile.TarInfo) -> None:
        self.name = info.name
        self._tar = tar
        self._info = info
        self.executable = info.mode & _EXECUTE_BITS

    @property
    def is_streamed(self) -> bool:
        """True when it is a file of any length."""
        return self.name.startswith(FILES) and self.name.removeprefix(FILES) not in _WHOLE_FILES

    @property
    def end(self) -> int:
        """Offset of the next member, or of the end marks."""
        blocks = -(-self._info.size // tarfile.BLOCKSIZE)
        return self._info.offset_data + blocks * tarfile.BLOCKSIZE

    def chunks(self) -> Iterator[bytes]:
        """The content in chunks; BadArchive when it ends too soon."""
        remaining = self._info.size
        try:
            with self._tar.extractfile(self._info) or io.BytesIO() as file:
                while remaining and (chunk := file.read(min(_CHUNK_BYTES, remaining))):
                    remaining -= len(chunk)
                    yield chunk
        except tarfile.ReadError:
            pass  # missing data is reported below
        if remaining:
            raise BadArchive(f"{self._tar.name}: the archive was cut off within {self.name}")

    def read_all(self) -> bytes:
        """The content of a member that cannot be long."""
        if self._info.size > _MAX_WHOLE_BYTES:
            raise BadArchive(f"{self.name}: it is longer than {_MAX_WHOLE_BYTES} bytes")
        return b"".join(self.chunks())

    def describe(self) -> ManifestMember:
        """Entry that the manifest should have for it."""
        digest = sha256()
        for chunk in self.chunks():
            digest.update(chunk)
        return _describe_member(self.name, self._info.size, digest.hexdigest(), self.executable)


class CheckedArchive(Struct, frozen=True):
    """An archive that was checked."""

    path: Path
    profile: Profile
    manifest: Manifest
    kept: dict[str, bytes]
    """Settings, checkpoints and public key, as far as they are in it."""

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """Checkpoints whose signature holds."""
        return _read_checkpoints(self.kept)


def check_archive(archive: Path, profile: Profile, progress: Progress) -> CheckedArchive:
    """Check an archive against its manifest, its hash chains and its signed checkpoints."""
    label = read_label(archive, profile)
    seen, kept = dict[str, ManifestMember](), dict[str, bytes]()
    heads: dict[str, bytes] = {}
    position, end = 0, 0
    manifest: Manifest | None = None
    roots: CheckpointRoots | None = None
    for part in read_members(archive, profile):
        name = part.name
        if manifest is not None:
            raise BadArchive(f"{name}: it follows the manifest, which must be the last member")
        if name in seen:
            raise BadArchive(f"{name}: it occurs twice")
        if part.is_streamed:
            seen[name] = part.describe()
            continue
        content = part.read_all()
        if name == MANIFEST:
            manifest, end = _read_manifest(content), part.end
            continue
        if name.startswith(ENTRIES):
            # The checkpoints stand before the ledger.
            roots = roots or CheckpointRoots(label.ledger, _read_checkpoints(kept))
            hashes = _check_entries(name, content, position, heads)
            position += len(hashes)
            _raise_finding(roots.append(hashes, position), name)
            progress(len(hashes))
        if name.startswith(FILES):
            kept[name.removeprefix(FILES)] = content
        digest = sha256(content).hexdigest()
        seen[name] = _describe_member(name, len(content), digest, part.executable)
    if manifest is None:
        raise BadArchive(f"{archive}: the archive ends before its manifest; it was cut off")
    _check_members(manifest, seen)
    _check_end(archive, end)
    if (label.ledger, position) != (manifest.ledger, manifest.entries):
        raise BadArchive(
            f"the ledger {label.ledger} ends at {position}; the manifest says "
            f"{manifest.entries} of {manifest.ledger}"
        )
    roots = roots or CheckpointRoots(label.ledger, _read_checkpoints(kept))
    _raise_finding(roots.finish(position), ENTRIES)
    return CheckedArchive(archive, profile, manifest, kept)


def read_label(archive: Path, profile: Profile) -> Label:
    """Read the label; BadArchive for another kind of file, a newer format, or another profile."""
    try:
        with tarfile.open(archive, mode="r:") as tar:
            first = tar.next()
            if first is None or first.name != LABEL:
                raise BadArchive(f"{archive} has no {LABEL}: it is no {profile.name} of dragoman's")
            label = msgspec.json.decode(ArchiveMember(tar, first).read_all(), type=Label)
    except (tarfile.TarError, EOFError, UnicodeError, msgspec.MsgspecError) as error:
        raise BadArchive(
            f"{archive} is no {profile.name}, or its beginning ({LABEL}) is lost: {error}"
        ) from None
    if label.format != FORMAT:
        raise BadArchive(
            f"{archive} is a {label.format!a}, made by dragoman {label.dragoman}; this one reads "
            f"{FORMAT!a}. Upgrade dragoman"
            if label.format.startswith(_FORMAT_PREFIX)
            else f"{archive} is a {label.format!a}, and no {profile.name} of dragoman's"
        )
    if label.profile != profile.name:
        other = EXPORT if profile is BACKUP else BACKUP
        raise BadArchive(
            f"{archive} is no {profile.name} but {label.profile!a}: use `dragoman {other.reader}`"
        )
    return label


def read_members(archive: Path, profile: Profile) -> Iterator[ArchiveMember]:
    """Read the members of the tar; only plain files with names that the profile allows."""
    try:
        with tarfile.open(archive, mode="r:", encoding="utf-8", errors=_NAME_ERRORS) as tar:
            for info in tar:
                names = info.name.split("/")
                if (not info.isfile() or info.issparse()) or any(
                    part in ("", ".", "..") or "\0" in part for part in names
                ):
                    raise BadArchive(
                        f"{info.name!a}: an archive holds plain files with relative names only"
                    )
                if not profile.allows(info.name):
                    raise BadArchive(
                        f"{info.name!a}: an archive has no such part; dragoman did not write it"
                    )
                yield ArchiveMember(tar, info)
    except (tarfile.TarError, EOFError, UnicodeError) as error:
        raise BadArchive(f"{archive}: this is not a whole archive: {error}") from None


def _check_members(manifest: Manifest, seen: Mapping[str, ManifestMember]) -> None:
    found = set(seen.values())
    for part in manifest.members:
        if part not in found:
            raise BadArchive(f"{part.name}: it is missing, or does not match the manifest")
    for part in found.difference(manifest.members):
        raise BadArchive(f"{part.name}: it is not in the manifest")


def _check_end(archive: Path, end: int) -> None:
    """Check that the last member is followed by zeros that fill the last record, and nothing
    else."""
    padded_size = -(-(end + _END_MARK_BYTES) // tarfile.RECORDSIZE) * tarfile.RECORDSIZE
    if archive.stat().st_size < padded_size:
        raise BadArchive("its last bytes are missing: it was cut off after the manifest")
    with archive.open("rb") as file:
        file.seek(end)
        if file.read(padded_size - end).strip(b"\0") or file.read(1):
            raise BadArchive("data was appended after its end")


def _check_entries(
    name: str, content: bytes, position: int, heads: dict[str, bytes]
) -> Sequence[bytes]:
    """Check that entries follow one another; returns their hashes."""
    try:
        stored = [_entry_decoder.decode(line) for line in content.splitlines()]
        wrong = _find_broken_link(heads, ((entry.line.encode(), entry.hash) for entry in stored))
    except _UNREADABLE as error:
        raise BadArchive(f"{name}: an entry cannot be read: {error}") from None
    for index, entry in enumerate(stored):
        if entry.position != position + index + 1 or index == wrong:
            raise BadArchive(f"{name}: entry {position + index + 1} does not match its hash")
    return [bytes.fromhex(entry.hash) for entry in stored]


def _raise_finding(findings: Iterator[Finding], where: str) -> None:
    for finding in findings:
        raise BadArchive(f"{where}: entry {finding.position}: {finding.problem}")


def _read_manifest(content: bytes) -> Manifest:
    try:
        return msgspec.json.decode(content, type=Manifest)
    except _UNREADABLE as error:
        raise BadArchive(f"{MANIFEST}: it cannot be read: {error}") from None


def read_entry_lines(part: ArchiveMember) -> list[bytes]:
    """Ledger lines of a member that holds entries."""
    return [_entry_decoder.decode(line).line.encode() for line in part.read_all().splitlines()]


def read_leases(part: ArchiveMember) -> dict[str, Lease]:
    """Decode leases; stream -> lease."""
    try:
        stored = [_lease_decoder.decode(line) for line in part.read_all().splitlines()]
    except _UNREADABLE as error:
        raise BadArchive(f"{part.name}: a lease cannot be read: {error}") from None
    return {lease.stream: lease.lease for lease in stored}


def read_answers(part: ArchiveMember) -> list[StoredAnswer]:
    """Decode recorded answers."""
    try:
        return [_answer_decoder.decode(line) for line in part.read_all().splitlines()]
    except _UNREADABLE as error:
        raise BadArchive(f"{part.name}: an answer cannot be read: {error}") from None


def _read_checkpoints(kept: Mapping[str, bytes]) -> list[Checkpoint]:
    """Checkpoints that the public key signed; BadArchive when there are lines and none is valid.

    A line that was damaged before it was copied proves nothing, and invalidates no other line.
    """
    lines = kept.get(CHECKPOINTS, b"").splitlines()
    if not lines:
        return []
    try:
        public = load_pem_public_key(kept.get(PUBLIC_KEY, b""))
        if not isinstance(public, Ed25519PublicKey):
            raise BadArchive(f"{FILES}{PUBLIC_KEY}: it is not an Ed25519 key")
    except (ValueError, UnsupportedAlgorithm):
        raise BadArchive(f"{FILES}{PUBLIC_KEY}: the public key cannot be read") from None
    valid, invalid = read_checkpoint_lines(lines, public)
    if not valid:
        raise BadArchive(f"{FILES}{CHECKPOINTS}, line {invalid[0].line}: {invalid[0].reason}")
    return valid
