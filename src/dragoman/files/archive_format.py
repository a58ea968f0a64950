"""What an archive is made of: names, members and the manifest that vouches for them.

An archive is a tar. Its last member is the manifest: the name, size and SHA-256 of every other
member, and what the ledger was. It carries the ledger entry by entry, the leases of tasks in
progress, the checkpoints with the public key that they were signed with, the settings, and the
files of tasks. It carries no private key, and not what earlier requests were answered.
"""

from typing import Final

from msgspec import Struct

from dragoman.core.lease import Lease
from dragoman.files.layout import EVENTS, INBOX, RUNS, TASKS

FORMAT: Final = "dragoman archive 1"
MANIFEST: Final = "manifest.json"
ENTRIES: Final = "ledger/entries/"
LEASES: Final = "ledger/leases.jsonl"
FILES: Final = "files/"
SIGNED: Final = "signed/"
"""The checkpoints and the public key: proof of what the ledger was where it came from."""

TREES: Final = (TASKS, RUNS, EVENTS, INBOX)
SETTINGS: Final = "dragoman.toml"
CHECKPOINTS: Final = "checkpoints.jsonl"
PUBLIC_KEY: Final = "keys/ledger.pub"

IN_ONE_MEMBER: Final = 1_000
"""Entries in one member, so that neither side needs to hold the whole ledger."""

MOST_BYTES: Final = 1 << 40


class Member(Struct, frozen=True):
    """One file of the archive."""

    name: str
    size: int
    sha256: str


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
