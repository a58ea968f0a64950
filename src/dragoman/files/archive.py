"""Archive of a data directory: one verified file, with the profile `backup` or `export`.

An archive is a tar. Its first member is a label, the last two are the manifest, with the id and
length of the ledger, and the SHA-256 of all that stands before it. Both profiles carry the ledger
line by line, the leases of tasks in progress, the signed checkpoints with their public key, the
tasks' own folders, messages that wait in the inbox, and artifacts of handoffs.

A backup is for its owner only: it also has the keys and tokens, the settings, the notifier's
cursor, the idempotency answers, the logs of agents and the originals of messages that were taken
from the inbox, so that a hub goes on as if nothing had happened. An export has no settings, and
nothing that the ledger masks.

Projections of the ledger (task files, runs, letters, event lines) are in neither: they are made
anew. A file gets its name when it is complete and was read back. Until then it is `.NAME.….tmp`
beside it; what a killed process has left of it is removed by the next archive of that name.
"""

import io
import os
import re
import shutil
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final, TypeVar

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
    CHECKS,
    FOLDERS_LOCK,
    INBOX,
    INBOX_LOCK,
    INBOX_RESULTS,
    OUTPUT_LOG,
    RUNS,
    TASKS,
    TEAMSPACES,
    is_output_log,
    run_folder_path,
)
from dragoman.ledger.checkpoint import Checkpoint, read_checkpoint_lines
from dragoman.ledger.entry import GENESIS, link_hash, read_line
from dragoman.system.safe_fs import (
    OWNER_ONLY,
    FileStat,
    SafeDisk,
    open_temporary,
    remove_temporaries,
    sync_folder,
)

# --- format -----------------------------------------------------------------------------------

FORMAT: Final = "dragoman archive 1"

_FORMAT_PREFIX: Final = "dragoman archive"

LABEL: Final = "label.json"

MANIFEST: Final = "manifest.json"

DIGEST: Final = "sha256"

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
"""Folder for the checkpoints and the public key of an installation that was exported."""

_LINES_PER_MEMBER: Final = 256
"""Limit of entries or answers in one member, so that neither side holds the whole ledger."""

_MAX_WHOLE_BYTES: Final = 1 << 30
"""Limit of a member that is read as a whole."""

_CHUNK_BYTES: Final = 1 << 20
"""Files are copied in chunks of so many bytes."""

_NAME_ERRORS: Final = "surrogateescape"
"""Error handler for names that are not UTF-8, on the disk and in a tar."""

EXECUTE_BITS: Final = 0o111
"""The only mode bits of a file that are carried over."""

_KEPT_FILES: Final = frozenset(f"{FILES}{name}" for name in (SETTINGS, CHECKPOINTS, PUBLIC_KEY))
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
            return name in (LABEL, LEASES, MANIFEST, DIGEST)
        if path.startswith(f"{RUNS}/"):
            return self.has_secrets and is_output_log(path)
        return path in self.files or path.startswith(
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
        "owner-inbox.cursor",
        "owner-inbox.failed.jsonl",
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


class Manifest(Struct, frozen=True):
    """Contents of an archive."""

    ledger: str
    entries: int
    made_at: str
    omitted: tuple[str, ...] = ()
    """Links, pipes and the like, which were not copied."""


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
    source: ArchiveSource, profile: Profile, target: Path, bars: ProgressBars
) -> Manifest:
    """Write the archive; a file is never replaced.

    Raises LedgerError, and writes nothing, when the ledger is damaged.
    """
    try:
        remove_temporaries(target)
        with open_temporary(target, OWNER_ONLY) as (temporary, file):
            manifest = _write_members(source, profile, file, bars)
            _verify_written(temporary, profile)
            try:
                os.link(temporary, target, follow_symlinks=False)
            except FileExistsError:
                raise TargetTaken(f"{target} exists by now; nothing is overwritten") from None
            sync_folder(target.absolute().parent)
    except OSError as error:
        raise explain_no_space(error, target) from error
    return manifest


def _verify_written(temporary: Path, profile: Profile) -> None:
    try:
        check_archive(temporary, profile)
    except BadArchive as error:
        raise LedgerError(
            f"the copy failed verification, so no {profile.name} was made: "
            f"{error.detail.removesuffix('.')}. Run `dragoman verify`; if it finds nothing, check "
            "the disk that the file goes to"
        ) from None


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
        with source.data.lock(INBOX_LOCK):
            writer.add_inbox(with_results=profile.has_secrets)
        # The checkpoints come before the ledger, too: whatever they sign is then in it.
        roots = CheckpointRoots(ledger, _signed_checkpoints(source.data))
        for name in profile.files:
            writer.add_file(name)
        with store.snapshot() as frozen:
            head = frozen.head()
            with bars("entries", head) as progress:
                writer.add_entries(frozen, head, roots, progress)
            writer.add_bytes(LEASES, b"".join(_lines(_leases(frozen))))
            if profile.has_secrets:
                writer.add_answers(frozen)
        for tree in profile.trees:
            writer.add_tree(tree) if tree != TASKS else writer.add_tasks()
        if profile.has_secrets:
            writer.add_output_logs()
        manifest = Manifest(ledger, head, to_rfc3339(source.now), tuple(writer.omitted))
        writer.add_bytes(MANIFEST, msgspec.json.format(_encode_json(manifest), indent=1))
        file.flush()
        writer.add_bytes(DIGEST, _digest(file, file.tell()))
    file.flush()
    os.fsync(file.fileno())
    return manifest


def _signed_checkpoints(data: SafeDisk) -> list[Checkpoint]:
    kept = {path: data.read(path, _MAX_WHOLE_BYTES) or b"" for path in (CHECKPOINTS, PUBLIC_KEY)}
    try:
        return _read_checkpoints(kept)
    except BadArchive as error:
        raise LedgerError(f"{error.detail.removesuffix('.')}; run `dragoman verify`") from None


def _digest(file: IO[bytes], end: int) -> bytes:
    """SHA-256 of the bytes of a file before an offset, where it is left."""
    digest = sha256()
    file.seek(0)
    while (remaining := end - file.tell()) and (chunk := file.read(min(_CHUNK_BYTES, remaining))):
        digest.update(chunk)
    return digest.hexdigest().encode()


def _lines(stored: Iterable[Any]) -> Iterator[bytes]:
    return (_encode_json(one) + b"\n" for one in stored)


def _leases(frozen: StoreSnapshot) -> Iterator[StoredLease]:
    after = 0
    while rows := frozen.held_streams(after, _LINES_PER_MEMBER):
        yield from (StoredLease(row.name, row.lease) for row in rows if row.lease is not None)
        after = rows[-1].number


class ArchiveWriter:
    """Adds members to a tar."""

    def __init__(self, tar: tarfile.TarFile, data: SafeDisk) -> None:
        self._tar = tar
        self._data = data
        self.omitted: list[str] = []

    def add_bytes(self, name: str, content: bytes) -> None:
        """Add a member from memory."""
        self._add_member(name, len(content), io.BytesIO(content))

    def add_entries(
        self, frozen: StoreSnapshot, head: int, roots: CheckpointRoots, progress: Progress
    ) -> None:
        """Add the ledger up to a position; LedgerError when its chain or a checkpoint is broken."""
        heads: dict[str, bytes] = {}
        after = 0
        while page := frozen.entries(after, _LINES_PER_MEMBER, until=head):
            for position, entry in enumerate(page, after + 1):
                stream = read_line(entry.line).stream
                heads[stream] = link_hash(heads.get(stream, GENESIS), entry.line)
                if (entry.position, entry.hash) != (position, heads[stream]):
                    raise LedgerError(
                        f"the ledger is damaged near position {position}: nothing was written; "
                        "run `dragoman verify`"
                    )
            lines = b"".join(entry.line + b"\n" for entry in page)
            self.add_bytes(f"{ENTRIES}{after + 1:012d}.jsonl", lines)
            after = page[-1].position
            _raise_finding(roots.append([entry.hash for entry in page], after))
            progress(len(page))
        if after != head:
            raise LedgerError(f"entry {after + 1} is missing: run `dragoman verify`")
        _raise_finding(roots.finish(head))

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
                with self._data.lock(FOLDERS_LOCK):
                    info = self._data.stat(path)
                    if info is not None:  # otherwise it has moved, and the next round finds it
                        packed.add(path)
                        self._add_path(path, info)

    def _unpacked_paths(self, packed: set[str]) -> list[str]:
        """Paths in `tasks/` and its folders that were not packed yet, neither there nor before
        they moved."""
        with self._data.lock(FOLDERS_LOCK):
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

    def add_inbox(self, *, with_results: bool) -> None:
        """Add the messages that wait; also, as they were received, those that were processed."""
        for info in self._data.list(INBOX):
            path = f"{INBOX}/{info.name}"
            if with_results or info.kind != "folder":
                self._add_path(path, info)
            elif not INBOX_RESULTS.fullmatch(info.name):
                for inner in self._data.list(path):
                    if not INBOX_RESULTS.fullmatch(inner.name):
                        self._add_path(f"{path}/{inner.name}", inner)
        self._omit_if_irregular(INBOX)

    def add_output_logs(self) -> None:
        """Add what agents and checks have printed, under a lock held per task: a log moves when the
        next attempt begins."""
        for run in self._data.list(RUNS):
            folder = run_folder_path(run.name)
            with self._data.lock(FOLDERS_LOCK):
                self.add_file(f"{folder}/{OUTPUT_LOG}")
                for attempt in self._data.list(f"{folder}/attempts"):
                    self.add_file(f"{folder}/attempts/{attempt.name}/{OUTPUT_LOG}")
                for log in self._data.list(f"{folder}/{CHECKS}"):
                    self.add_file(f"{folder}/{CHECKS}/{log.name}")

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
            shutil.copyfileobj(opened[0], copy, _CHUNK_BYTES)
            size, mode = copy.tell(), os.fstat(opened[0].fileno()).st_mode
            copy.seek(0)
            self._add_member(FILES + path, size, copy, mode & EXECUTE_BITS)

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

    def _add_member(self, name: str, size: int, content: IO[bytes], executable: int = 0) -> None:
        info = tarfile.TarInfo(name)
        info.size = size
        info.mode = OWNER_ONLY | executable
        self._tar.addfile(info, content)


def _raise_finding(findings: Iterator[Finding]) -> None:
    for finding in findings:
        raise LedgerError(f"entry {finding.position}: {finding.problem}; run `dragoman verify`")


# --- reading ----------------------------------------------------------------------------------

UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, LedgerError)

_END_MARK_BYTES: Final = 2 * tarfile.BLOCKSIZE


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


def check_archive(archive: Path, profile: Profile) -> CheckedArchive:
    """Check that an archive is as it was written; its ledger is checked when it is loaded."""
    label, kept = read_label(archive, profile), dict[str, bytes]()
    manifest: Manifest | None = None
    last: tarfile.TarInfo | None = None
    expected = b""
    for tar, info in read_members(archive, profile):
        if last is not None:
            raise BadArchive(f"{info.name}: it follows the SHA-256, which must be the last member")
        if info.name == MANIFEST:
            manifest = _decode(Manifest, read_whole(tar, info), MANIFEST)
        elif info.name == DIGEST:
            last, expected = info, read_whole(tar, info)
        elif info.name in _KEPT_FILES:
            kept[info.name.removeprefix(FILES)] = read_whole(tar, info)
    if manifest is None or last is None:
        raise BadArchive("it was cut off before its end")
    _check_end(archive, last)
    with archive.open("rb") as file:
        digest = _digest(file, last.offset)
    if (digest, label.ledger) != (expected, manifest.ledger):
        raise BadArchive("it is not as it was written: it does not match the SHA-256 at its end")
    return CheckedArchive(archive, profile, manifest, kept)


def read_label(archive: Path, profile: Profile) -> Label:
    """Read the label; BadArchive for another kind of file, a newer format, or another profile."""
    try:
        with tarfile.open(archive, mode="r:") as tar:
            first = tar.next()
            if first is None or first.name != LABEL:
                raise BadArchive(f"{archive} has no {LABEL}: it is no {profile.name} of dragoman's")
            label = msgspec.json.decode(read_whole(tar, first), type=Label)
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


def read_members(
    archive: Path, profile: Profile
) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
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
                yield tar, info
    except (tarfile.TarError, EOFError, UnicodeError) as error:
        raise BadArchive(f"this is not a whole archive: {error}") from None


def read_whole(tar: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    """The content of a member that cannot be long."""
    if info.size > _MAX_WHOLE_BYTES:
        raise BadArchive(f"{info.name}: it is longer than {_MAX_WHOLE_BYTES} bytes")
    try:
        with tar.extractfile(info) or io.BytesIO() as file:
            return file.read()
    except tarfile.ReadError:
        raise BadArchive(f"it was cut off within {info.name}") from None


def is_streamed(name: str) -> bool:
    """True for a file of any length."""
    return name.startswith(FILES) and name not in _KEPT_FILES


def _check_end(archive: Path, last: tarfile.TarInfo) -> None:
    """Check that the last member is followed by zeros that fill the last record, and nothing
    else."""
    end = last.offset_data + -(-last.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
    padded_size = -(-(end + _END_MARK_BYTES) // tarfile.RECORDSIZE) * tarfile.RECORDSIZE
    if archive.stat().st_size < padded_size:
        raise BadArchive("its last bytes are missing: it was cut off at its end")
    with archive.open("rb") as file:
        file.seek(end)
        if file.read(padded_size - end).strip(b"\0") or file.read(1):
            raise BadArchive("data was appended after its end")


T = TypeVar("T")


def _decode(kind: type[T], content: bytes, name: str) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except UNREADABLE as error:
        raise BadArchive(f"{name}: it cannot be read: {error}") from None


def read_leases(content: bytes) -> dict[str, Lease]:
    """Decode leases; stream -> lease."""
    stored = [_decode(StoredLease, line, LEASES) for line in content.splitlines()]
    return {one.stream: one.lease for one in stored}


def read_answers(content: bytes) -> list[StoredAnswer]:
    """Decode recorded answers."""
    return [_decode(StoredAnswer, line, ANSWERS) for line in content.splitlines()]


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
