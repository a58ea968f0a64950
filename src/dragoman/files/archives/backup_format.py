"""What a backup is made of, beside what it has in common with an archive.

A backup is a tar for its owner only. Its first member is a label, its last the manifest. Unlike an
archive it holds everything that a hub needs to go on as if nothing had happened: the keys
and tokens, the whole settings, how far notifications have come, and what earlier requests were
answered. What is a picture of the ledger (task files, runs, letters, event lines, the index of
words) is not in it: a restore makes all of it anew.
"""

import re
from typing import Final

from msgspec import Struct

from dragoman.files.archives.archive_format import (
    CHECKPOINTS,
    ENTRIES,
    FILES,
    LEASES,
    MANIFEST,
    PUBLIC_KEY,
    SETTINGS,
    ArchiveFormat,
)
from dragoman.files.layout import ARTIFACTS, INBOX, TASKS, TEAMSPACES

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
