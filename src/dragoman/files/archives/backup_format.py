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
    Form,
)
from dragoman.files.layout import ARTIFACTS, INBOX, TASKS, TEAMSPACES

FAMILY: Final = "dragoman backup"
LABEL: Final = "label.json"
ANSWERS: Final = "ledger/answers/"

KEYS: Final = "keys"
PRIVATE: Final = (f"{KEYS}/ledger.key", f"{KEYS}/secret", "token", SETTINGS)
"""For the owner's eyes only."""
SINGLE: Final = (
    CHECKPOINTS,
    PUBLIC_KEY,
    *PRIVATE,
    "hub.id",
    "notify.cursor",
    "notify.failed.jsonl",
    "agent-usage.json",
)
TREES: Final = (TASKS, TEAMSPACES, ARTIFACTS, "imported")
"""Copied after the ledger, so that everything is there that it refers to; the inbox is copied
before: what was in it and is in the ledger by now is known there, and not done again."""

_LEFT_BEHIND: Final = re.compile(
    f"{TEAMSPACES}/[^/]+/handoffs|{ARTIFACTS}/incoming|{TASKS}/[^/]+/[^/]+[.](?:md|next)"
)

FORM: Final = Form(
    f"{FAMILY} 1",
    (
        re.compile(f"(?:{re.escape(ENTRIES)}|{re.escape(ANSWERS)})[0-9]{{12}}[.]jsonl"),
        re.compile("|".join(map(re.escape, (LABEL, LEASES, MANIFEST)))),
        re.compile(re.escape(FILES) + f"(?:{'|'.join(map(re.escape, SINGLE))})"),
        re.compile(re.escape(FILES) + f"(?:{'|'.join((*TREES, INBOX))})/.+", re.DOTALL),
    ),
    frozenset({SETTINGS, CHECKPOINTS, PUBLIC_KEY}),
)


def stays_behind(path: str) -> bool:
    """Whether a file or folder is written anew from the ledger, or is only half there."""
    return _LEFT_BEHIND.fullmatch(path) is not None


class Label(Struct, frozen=True):
    """What stands on a backup, for whoever looks at it first."""

    format: str
    dragoman: str
    """The version that made it."""
    ledger: str
    about: int
    """How many entries the ledger had when it was begun."""


class StoredAnswer(Struct, frozen=True):
    """What a request was answered: bytes in base64."""

    stream: str
    """The stream in which the key is unique."""
    key: str
    fingerprint: bytes
    answer: bytes
