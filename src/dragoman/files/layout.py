"""Where everything lies beneath the data directory, as relative paths, and how it is recognised."""

import re
from hashlib import blake2b
from typing import Final, get_args

from dragoman.core.events import Status
from dragoman.core.ids import is_aof_id

STATUSES: Final[tuple[Status, ...]] = get_args(Status)
PARTS: Final = ("inputs", "work", "outputs")
"""Subfolders of a task's own folder."""

TASKS: Final = "tasks"
RUNS: Final = "runs"
EVENTS: Final = "events"
MAIL: Final = "mail"
TEAMSPACES: Final = "teamspaces"
ARTIFACTS: Final = "artifacts"
INBOX: Final = "inbox"
CURSOR: Final = "projection.json"
LOCK: Final = "projection.lock"
"""Held while the projection is written."""
MOVING: Final = "folders.lock"
"""Held while a task's own folder is moved: agents that start wait for it."""
TAKING: Final = "inbox.lock"
"""Held while messages of the inbox are sent and moved away."""

COPIES: Final = "artifacts.lock"
"""Held while a copy is removed or found to exist. Its modification time is that of the last cleanup
of copies."""

GITIGNORE: Final = ".gitignore"
ALL_OF_IT: Final = b"*\n"
"""Content of .gitignore, so that a repository around a data directory ignores it."""

REASON: Final = ".reason.txt"
"""Suffix of the note beside a file that was rejected."""

WARNING: Final = ".warning.txt"
"""Suffix of the note beside a message that was accepted with warnings."""

MOST_NAME: Final = 255
"""Limit of a file name in bytes."""

_BILLION: Final = 1_000_000_000
_LAST_SECOND: Final = 9_223_372_035
"""In the year 2262: file systems keep 64 bits of nanoseconds."""

_KIND: Final = re.compile(r"[A-Z][A-Z_]{0,63}", re.ASCII)
_LETTER: Final = re.compile(r"[0-9]{4,}-[A-Z_]+\.md", re.ASCII)
_NO_KIND: Final = frozenset({"UNKNOWN"})


def task_path(status: Status, task_id: str) -> str:
    """Path of a task's file."""
    return f"{TASKS}/{status}/{task_id}.md"


def folder_path(status: Status, task_id: str) -> str:
    """Path of a task's own folder."""
    return f"{TASKS}/{status}/{task_id}"


def run_folder(task_id: str, attempt: int = 0) -> str:
    """Folder of run artifacts; with a number, those of an earlier attempt."""
    return f"{RUNS}/{task_id}/attempts/{attempt}" if attempt else f"{RUNS}/{task_id}"


def events_path(day: str) -> str:
    """Path of the event lines of a day (UTC)."""
    return f"{EVENTS}/{day}.jsonl"


def handoffs_path(teamspace: str) -> str:
    """Path of the audit log of a teamspace's handoffs."""
    return f"{TEAMSPACES}/{teamspace}/handoffs/handoffs.jsonl"


def artifact_path(sha256: str) -> str:
    """Path of the verified copy of an artifact, by the hash of its content."""
    return f"{ARTIFACTS}/sha256/{sha256[:2]}/{sha256}"


def copies_folder(part: str = "") -> str:
    """Folder of all verified copies, or of those whose hash begins with these two digits."""
    return f"{ARTIFACTS}/sha256/{part}".rstrip("/")


def artifact_root(teamspace: str) -> str:
    """Default folder of a teamspace's artifacts; the settings may name more."""
    return f"{TEAMSPACES}/{teamspace}/{ARTIFACTS}"


def incoming_artifact(id: str) -> str:
    """Path of a copy until the hash of its content is known."""
    return f"{ARTIFACTS}/incoming/{id}"


def thread_folder(thread: str) -> str:
    """Folder of a thread's letters."""
    return f"{MAIL}/{thread}"


def letter_path(thread: str, number: int, kind: str) -> str:
    """Path of the n-th letter of a thread, named by its type if it has one."""
    named = kind if _KIND.fullmatch(kind) and kind not in _NO_KIND else "MAIL"
    return f"{thread_folder(thread)}/{number:04d}-{named}.md"


def numbers_path(thread: str) -> str:
    """Path of the list of a thread's letter numbers."""
    return f"{thread_folder(thread)}/.numbers"


def is_letter(name: str) -> bool:
    """True for the file name of a letter."""
    return _LETTER.fullmatch(name) is not None


def staged(path: str) -> str:
    """Path of the next content of a file until it replaces the old one."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name}.next" if folder else f".{name}.next"


def is_staged_task(name: str) -> bool:
    """True for the file name of a task file's next content."""
    waits = name.startswith(".") and name.endswith(".next")
    return waits and task_of_file(name[1 : -len(".next")]) is not None


def numbered(path: str, number: int, spare: int = 0) -> str:
    """The path itself, or its n-th alternative when it is taken: `a.md`, `a-2.md`.

    The name is shortened if needed, leaving `reserve` bytes.
    """
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{fitted(name, spare, f'-{number}' if number > 1 else '')}"


def fitted(name: str, spare: int, mark: str = "") -> str:
    """Shorten a file name, keeping its extension and leaving `reserve` bytes; `suffix` goes before
    the extension."""
    stem, dot, kind = name.partition(".") if not name.startswith(".") else (name, "", "")
    room = MOST_NAME - spare - _length(f"{mark}{dot}{kind}")
    if room < 1:  # the part after the dot is no extension, or not only that
        stem, dot, kind, room = name, "", "", MOST_NAME - spare - _length(mark)
    while _length(stem) > room:
        stem = stem[:-1]
    return f"{stem}{mark}{dot}{kind}"


def _length(name: str) -> int:
    """Length in bytes; a name on the disk need not be text."""
    return len(name.encode(errors="surrogateescape"))


def task_of_file(name: str) -> str | None:
    """AOF id that a file name stands for; None for any other file."""
    stem, dot, kind = name.rpartition(".")
    return stem if dot and kind == "md" and is_aof_id(stem) else None


def discarded(path: str) -> str:
    """Path under which a file is checked once more before it is removed."""
    return f"{path}-found"


def task_of_discarded(name: str) -> str | None:
    """AOF id of a task whose file was being removed under this name or an alternative."""
    stem, _, rest = name.partition(".")
    plain, _, number = stem.rpartition("-")
    ids = [stem, plain] if number.isdecimal() else [stem]
    return next(filter(is_aof_id, ids), None) if rest == discarded("md") else None


def stamp(path: str, size: int, moment: int) -> int:
    """Modification time (ns) that marks a file as written here, at this path.

    Its second is that of `at_ms`, or the nearest that file systems keep; its fraction is a digest
    of path, size and second. An edit changes the time, a move the path: so a scan can skip
    unchanged files without reading them. A false alarm costs one read; the content decides.
    """
    second = min(max(moment // 1_000, 0), _LAST_SECOND)
    digest = blake2b(f"{path} {size} {second}".encode(), digest_size=8).digest()
    return second * _BILLION + int.from_bytes(digest, "big") % _BILLION


def has_stamp(path: str, size: int, mtime_ns: int) -> bool:
    """True when a file has the modification time that it was written with."""
    return stamp(path, size, mtime_ns // _BILLION * 1_000) == mtime_ns
