"""What an archive is made of: names, members and the manifest that vouches for them.

An archive is a tar. Its last member is the manifest: the name, size and SHA-256 of every other
member, and what the ledger was. It carries the ledger entry by entry, the leases of tasks in
progress, the checkpoints with the public key that they were signed with, the settings without what
belongs to the place that they were made for, and the files of tasks, runs, the inbox and artifacts
of handoffs. It carries no private key, no lines of events or handoffs (they are written anew from
the ledger), and not what earlier requests were answered.
"""

import re
from typing import Final

from msgspec import Struct

from dragoman.core.states.lease import Lease
from dragoman.files.layout import ARTIFACTS, INBOX, PARTS, RUNS, TASKS, TEAMSPACES

FORMAT: Final = "dragoman archive 1"
MANIFEST: Final = "manifest.json"
ENTRIES: Final = "ledger/entries/"
LEASES: Final = "ledger/leases.jsonl"
FILES: Final = "files/"
SIGNED: Final = "signed/"
"""The checkpoints and the public key: proof of what the ledger was where it came from."""

TREES: Final = (TASKS, RUNS, INBOX, TEAMSPACES, ARTIFACTS)
_LEFT_BEHIND: Final = re.compile(f"{TEAMSPACES}/[^/]+/handoffs|{ARTIFACTS}/incoming")
_KEPT_FOLDER: Final = re.compile(f"{TASKS}/[^/]+/[^/]+/(?!(?:{'|'.join(PARTS)})\\Z).+", re.DOTALL)
SETTINGS: Final = "dragoman.toml"
CHECKPOINTS: Final = "checkpoints.jsonl"
PUBLIC_KEY: Final = "keys/ledger.pub"

IN_ONE_MEMBER: Final = 1_000
BYTES_IN_ONE_MEMBER: Final = 16 << 20
"""Entries in one member, so that neither side needs to hold the whole ledger; one always."""

MOST_AT_ONCE: Final = 1 << 30
"""No part that is read as a whole is longer than this."""
NOT_TEXT: Final = "surrogateescape"
"""How a name that is not UTF-8 is handled, on the disk and in a tar."""
EXECUTE: Final = 0o111
"""All of a file's rights that are carried over."""
PIECE: Final = 1 << 20
"""Files are carried over in pieces of so many bytes."""


class Form(Struct, frozen=True):
    """A kind of archive: what it is called, and what it may hold."""

    format: str
    places: tuple[re.Pattern[str], ...]
    whole: frozenset[str]
    """Files that are read as a whole; the others may be of any length."""

    def has_place(self, name: str) -> bool:
        """Whether there may be a member of this name: nothing else is ever written."""
        return any(place.fullmatch(name) for place in self.places)

    def is_long(self, name: str) -> bool:
        """Whether a member is a file of whatever length."""
        return name.startswith(FILES) and name.removeprefix(FILES) not in self.whole


ARCHIVE: Final = Form(
    FORMAT,
    (
        re.compile(re.escape(ENTRIES) + r"[0-9]{12}\.jsonl"),
        re.compile("|".join(map(re.escape, (LEASES, MANIFEST, FILES + SETTINGS)))),
        re.compile(re.escape(SIGNED) + "(?:checkpoints[.]jsonl|ledger[.]pub)"),
        re.compile(re.escape(FILES) + f"(?:{'|'.join(TREES)})/.+", re.DOTALL),
    ),
    frozenset({SETTINGS}),
)


def is_kept_folder(path: str) -> bool:
    """Whether a folder is carried though it is empty: one that somebody has made within a task's
    own. The parts of a task's folder are made anew."""
    return _KEPT_FOLDER.fullmatch(path) is not None


def stays_behind(path: str) -> bool:
    """Whether a folder of a tree is written anew from the ledger, or holds what is half there."""
    return _LEFT_BEHIND.fullmatch(path) is not None


class Member(Struct, frozen=True, omit_defaults=True):
    """One file of the archive, or an empty folder."""

    name: str
    size: int
    sha256: str
    raw: bytes = b""
    """Its name, where that is not UTF-8: then `name` only shows it."""
    executable: int = 0
    """Who may execute it: the bits of its mode that say so."""
    is_folder: bool = False

    @property
    def path(self) -> str:
        """Its name in the tar."""
        return self.raw.decode(errors=NOT_TEXT) if self.raw else self.name


def member(
    path: str, size: int, sha256: str, *, executable: int = 0, is_folder: bool = False
) -> Member:
    """What the manifest says of a part; its name on the disk need not be text."""
    shown, raw = path.encode(errors="backslashreplace"), path.encode(errors=NOT_TEXT)
    raw = b"" if raw == shown else raw
    return Member(shown.decode(), size, sha256, raw, executable, is_folder)


class Manifest(Struct, frozen=True):
    """What an archive holds."""

    format: str
    ledger: str
    head: int
    exported_at: str
    members: tuple[Member, ...]
    left_out: tuple[str, ...] = ()
    """Links, pipes and the like, which were not copied."""


class StoredEntry(Struct, frozen=True):
    """An entry as the archive has it; its line is UTF-8 and so comes back byte for byte."""

    position: int
    hash: str
    line: str


class StoredLease(Struct, frozen=True):
    """The lease of a task in progress."""

    stream: str
    lease: Lease
