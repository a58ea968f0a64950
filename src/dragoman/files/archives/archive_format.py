"""Formats of exports and backups: members, names, and the manifest that lists them.

An archive is a tar. Its last member is the manifest: the name, size and SHA-256 of every other
member, and the id and length of the ledger.

An export carries the ledger entry by entry, the leases of tasks in progress, the checkpoints
with the public key that they were signed with, the settings without those that belong to one
installation, and the files of tasks, runs, the inbox and artifacts of handoffs. It carries no
private key, no lines of events or handoffs (they are projected anew from the ledger), and no
idempotency answers.

A backup is for its owner only, and its first member is a label. It holds everything that a hub
needs to go on as if nothing had happened: also the keys and tokens, all settings, the
notifier's cursor, and the idempotency answers. Projections of the ledger (task files, runs,
letters, event lines, the search index) are not in it: a restore makes all of them anew.
"""

import re
from typing import Final

from msgspec import Struct

from dragoman.core.attempt_state import Lease
from dragoman.files.layout import ARTIFACTS, INBOX, RUNS, TASK_SUBFOLDERS, TASKS, TEAMSPACES

# --- export -----------------------------------------------------------------------------------

EXPORT_FORMAT_NAME: Final = "dragoman archive 1"

MANIFEST: Final = "manifest.json"

ENTRIES: Final = "ledger/entries/"

LEASES: Final = "ledger/leases.jsonl"

FILES: Final = "files/"

SIGNED: Final = "signed/"
"""The checkpoints and the public key: proof of the ledger as it was where it came from."""

EXPORT_TREES: Final = (TASKS, RUNS, INBOX, TEAMSPACES, ARTIFACTS)

_NOT_EXPORTED: Final = re.compile(f"{TEAMSPACES}/[^/]+/handoffs|{ARTIFACTS}/incoming")

_KEPT_EMPTY_FOLDER: Final = re.compile(
    f"{TASKS}/[^/]+/[^/]+/(?!(?:{'|'.join(TASK_SUBFOLDERS)})\\Z).+", re.DOTALL
)

SETTINGS: Final = "dragoman.toml"

CHECKPOINTS: Final = "checkpoints.jsonl"

PUBLIC_KEY: Final = "keys/ledger.pub"

ENTRIES_PER_MEMBER: Final = 1_000

BYTES_PER_MEMBER: Final = 16 << 20
"""Limits of entries in one member, so that neither side holds the whole ledger; at least one
entry."""

MAX_WHOLE_BYTES: Final = 1 << 30
"""Limit of a member that is read as a whole."""

NAME_ERRORS: Final = "surrogateescape"
"""Error handler for names that are not UTF-8, on the disk and in a tar."""

EXECUTE_BITS: Final = 0o111
"""The only mode bits of a file that are carried over."""

CHUNK_BYTES: Final = 1 << 20
"""Files are copied in chunks of so many bytes."""


class ArchiveFormat(Struct, frozen=True):
    """Kind of archive: the name of its format, and the members it may have."""

    format: str
    allowed_names: tuple[re.Pattern[str], ...]
    whole_files: frozenset[str]
    """Files that are read as a whole; the others may be of any length."""

    def allows(self, name: str) -> bool:
        """True when a member may have this name: nothing else is ever written to disk."""
        return any(place.fullmatch(name) for place in self.allowed_names)

    def is_streamed(self, name: str) -> bool:
        """True when a member is a file of any length."""
        return name.startswith(FILES) and name.removeprefix(FILES) not in self.whole_files


EXPORT_FORMAT: Final = ArchiveFormat(
    EXPORT_FORMAT_NAME,
    (
        re.compile(re.escape(ENTRIES) + r"[0-9]{12}\.jsonl"),
        re.compile("|".join(map(re.escape, (LEASES, MANIFEST, FILES + SETTINGS)))),
        re.compile(re.escape(SIGNED) + "(?:checkpoints[.]jsonl|ledger[.]pub)"),
        re.compile(re.escape(FILES) + f"(?:{'|'.join(EXPORT_TREES)})/.+", re.DOTALL),
    ),
    frozenset({SETTINGS}),
)


def is_kept_empty_folder(path: str) -> bool:
    """True for folders that are kept though they are empty: those that somebody made within a
    task's own folder. The standard subfolders of a task are created anew."""
    return _KEPT_EMPTY_FOLDER.fullmatch(path) is not None


def is_not_exported(path: str) -> bool:
    """True for folders that are projected anew from the ledger, or that hold incomplete files."""
    return _NOT_EXPORTED.fullmatch(path) is not None


class ManifestMember(Struct, frozen=True, omit_defaults=True):
    """One file of the archive, or an empty folder."""

    name: str
    size: int
    sha256: str
    raw_name: bytes = b""
    """Its name as bytes, if that is not UTF-8: then `name` only displays it."""
    executable: int = 0
    """Execute bits of its mode."""
    is_folder: bool = False

    @property
    def path(self) -> str:
        """Its name in the tar."""
        return self.raw_name.decode(errors=NAME_ERRORS) if self.raw_name else self.name


def make_member(
    path: str, size: int, sha256: str, *, executable: int = 0, is_folder: bool = False
) -> ManifestMember:
    """Describe a member; its name on the disk need not be text."""
    shown, raw = path.encode(errors="backslashreplace"), path.encode(errors=NAME_ERRORS)
    raw = b"" if raw == shown else raw
    return ManifestMember(shown.decode(), size, sha256, raw, executable, is_folder)


class Manifest(Struct, frozen=True):
    """Contents of an archive."""

    format: str
    ledger: str
    entries: int
    exported_at: str
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


# --- backup -----------------------------------------------------------------------------------

BACKUP_FORMAT_PREFIX: Final = "dragoman backup"

LABEL: Final = "label.json"

ANSWERS: Final = "ledger/answers/"

KEYS_FOLDER: Final = "keys"

PRIVATE_FILES: Final = (f"{KEYS_FOLDER}/ledger.key", f"{KEYS_FOLDER}/secret", "token", SETTINGS)
"""Files that only their owner may read."""

BACKUP_FILES: Final = (
    CHECKPOINTS,
    PUBLIC_KEY,
    *PRIVATE_FILES,
    "hub.id",
    "notify.cursor",
    "notify.failed.jsonl",
    "agent-usage.json",
)

BACKUP_TREES: Final = (TASKS, TEAMSPACES, ARTIFACTS, "imported")
"""Copied after the ledger, so that everything is there that it refers to. The inbox is copied
before: a message that was in it and is in the ledger by now is known there, and not applied
again."""

_NOT_BACKED_UP: Final = re.compile(
    f"{TEAMSPACES}/[^/]+/handoffs|{ARTIFACTS}/incoming|{TASKS}/[^/]+/[^/]+[.](?:md|next)"
)

BACKUP_FORMAT: Final = ArchiveFormat(
    f"{BACKUP_FORMAT_PREFIX} 1",
    (
        re.compile(f"(?:{re.escape(ENTRIES)}|{re.escape(ANSWERS)})[0-9]{{12}}[.]jsonl"),
        re.compile("|".join(map(re.escape, (LABEL, LEASES, MANIFEST)))),
        re.compile(re.escape(FILES) + f"(?:{'|'.join(map(re.escape, BACKUP_FILES))})"),
        re.compile(re.escape(FILES) + f"(?:{'|'.join((*BACKUP_TREES, INBOX))})/.+", re.DOTALL),
    ),
    frozenset({SETTINGS, CHECKPOINTS, PUBLIC_KEY}),
)


def is_not_backed_up(path: str) -> bool:
    """True for paths that are projected anew from the ledger, or that are incomplete."""
    return _NOT_BACKED_UP.fullmatch(path) is not None


class BackupLabel(Struct, frozen=True):
    """First member of a backup, which identifies it."""

    format: str
    dragoman: str
    """Version of dragoman that made it."""
    ledger: str
    about: int
    """Number of entries in the ledger when the backup began."""


class StoredAnswer(Struct, frozen=True):
    """Recorded answer of an idempotency key; bytes are base64 in JSON."""

    stream: str
    """Stream within which the key is unique."""
    key: str
    fingerprint: bytes
    answer: bytes
