"""Where everything lies beneath the data directory, as relative paths, and how it is recognised."""

import re
from hashlib import blake2b
from typing import Final, get_args

from dragoman.core.events import Status
from dragoman.core.ids import is_aof_id

STATUSES: Final[tuple[Status, ...]] = get_args(Status)
PARTS: Final = ("inputs", "work", "outputs")
"""The folders of a task's own folder."""

TASKS: Final = "tasks"
RUNS: Final = "runs"
EVENTS: Final = "events"
MAIL: Final = "mail"
TEAMSPACES: Final = "teamspaces"
ARTIFACTS: Final = "artifacts"
INBOX: Final = "inbox"
CURSOR: Final = "projection.json"
LOCK: Final = "projection.lock"
"""Held by whoever writes the files, for as long as that takes."""
MOVING: Final = "folders.lock"
"""Held by whoever moves a task's own folder, for that moment: agents that start wait for it."""
TAKING: Final = "inbox.lock"
"""Held by whoever takes letters out of the inbox, until they are sent and filed."""

COPIES: Final = "artifacts.lock"
"""Held by whoever removes a copy or finds that one is there already, for that moment; its time says
when copies were last looked through."""

GITIGNORE: Final = ".gitignore"
ALL_OF_IT: Final = b"*\n"
"""What stands in it, so that the repository around a data directory leaves that alone."""

REASON: Final = ".reason.txt"
"""What the note beside a file that was not taken over is called, after the file."""

WARNING: Final = ".warning.txt"
"""The same beside a message that was taken, though something about it was odd."""

MOST_NAME: Final = 255
"""How many bytes the name of a file may have."""

_BILLION: Final = 1_000_000_000
_LAST_SECOND: Final = 9_223_372_035
"""In the year 2262: what fits into 64 bits of nanoseconds, file systems keep."""

_KIND: Final = re.compile(r"[A-Z][A-Z_]{0,63}", re.ASCII)
_LETTER: Final = re.compile(r"[0-9]{4,}-[A-Z_]+\.md", re.ASCII)
_NO_KIND: Final = frozenset({"UNKNOWN"})


def task_path(status: Status, task_id: str) -> str:
    """The task's file."""
    return f"{TASKS}/{status}/{task_id}.md"


def folder_path(status: Status, task_id: str) -> str:
    """The task's own folder."""
    return f"{TASKS}/{status}/{task_id}"


def run_folder(task_id: str, attempt: int = 0) -> str:
    """The run artifacts; with a number, those of an earlier attempt."""
    return f"{RUNS}/{task_id}/attempts/{attempt}" if attempt else f"{RUNS}/{task_id}"


def events_path(day: str) -> str:
    """The event lines of a day (UTC)."""
    return f"{EVENTS}/{day}.jsonl"


def handoffs_path(teamspace: str) -> str:
    """The audit lines of the handoffs of a teamspace."""
    return f"{TEAMSPACES}/{teamspace}/handoffs/handoffs.jsonl"


def artifact_path(sha256: str) -> str:
    """The verified copy of an artifact, by the hash of its content."""
    return f"{ARTIFACTS}/sha256/{sha256[:2]}/{sha256}"


def copies_folder(part: str = "") -> str:
    """Where all verified copies lie, or those whose hash begins with two such digits."""
    return f"{ARTIFACTS}/sha256/{part}".rstrip("/")


def artifact_root(teamspace: str) -> str:
    """Where the artifacts of a teamspace lie, unless the settings name more places."""
    return f"{TEAMSPACES}/{teamspace}/{ARTIFACTS}"


def incoming_artifact(id: str) -> str:
    """Where a copy lies until the hash of its content is known."""
    return f"{ARTIFACTS}/incoming/{id}"


def thread_folder(thread: str) -> str:
    """The letters of a thread."""
    return f"{MAIL}/{thread}"


def letter_path(thread: str, number: int, kind: str) -> str:
    """The n-th letter of a thread, named by its type if it has one."""
    named = kind if _KIND.fullmatch(kind) and kind not in _NO_KIND else "MAIL"
    return f"{thread_folder(thread)}/{number:04d}-{named}.md"


def numbers_path(thread: str) -> str:
    """Where it is kept which letter of a thread has which number."""
    return f"{thread_folder(thread)}/.numbers"


def is_letter(name: str) -> bool:
    """Whether a file of this name stands for a letter."""
    return _LETTER.fullmatch(name) is not None


def staged(path: str) -> str:
    """Where the next content of a file waits until it replaces the old one."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name}.next" if folder else f".{name}.next"


def is_staged_task(name: str) -> bool:
    """Whether a file of this name is the next content of a task's file."""
    waits = name.startswith(".") and name.endswith(".next")
    return waits and task_of_file(name[1 : -len(".next")]) is not None


def numbered(path: str, number: int, spare: int = 0) -> str:
    """The path itself, or its n-th alternative when it is taken: `a.md`, `a-2.md`.

    A name that would be too long, with so many bytes to spare, is shortened.
    """
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{fitted(name, spare, f'-{number}' if number > 1 else '')}"


def fitted(name: str, spare: int, mark: str = "") -> str:
    """A file's name with a mark before its kind, its stem cut between characters so that the name
    may grow by so many bytes."""
    stem, dot, kind = name.partition(".") if not name.startswith(".") else (name, "", "")
    room = MOST_NAME - spare - _length(f"{mark}{dot}{kind}")
    if room < 1:  # what follows the dot is no kind, or only its end is
        stem, dot, kind, room = name, "", "", MOST_NAME - spare - _length(mark)
    while _length(stem) > room:
        stem = stem[:-1]
    return f"{stem}{mark}{dot}{kind}"


def _length(name: str) -> int:
    """In bytes; a name on the disk need not be text."""
    return len(name.encode(errors="surrogateescape"))


def task_of_file(name: str) -> str | None:
    """The AOF id that a file name stands for; None for a stray."""
    stem, dot, kind = name.rpartition(".")
    return stem if dot and kind == "md" and is_aof_id(stem) else None


def discarded(path: str) -> str:
    """Where a file is looked at for the last time before it is removed."""
    return f"{path}-found"


def task_of_discarded(name: str) -> str | None:
    """The AOF id of a task whose file was on its way out under this name or an alternative."""
    stem, _, rest = name.partition(".")
    plain, _, number = stem.rpartition("-")
    ids = [stem, plain] if number.isdecimal() else [stem]
    return next(filter(is_aof_id, ids), None) if rest == discarded("md") else None


def stamp(path: str, size: int, moment: int) -> int:
    """A modification time (ns) that only a file written here, in this place, can have.

    Its second is the moment's, or the nearest that file systems keep; its fraction is a digest of
    the place, the size and that second. An edit changes the time, a move the place: so a scan can
    pass over untouched files without reading them. A false alarm costs a look; the content decides.
    """
    second = min(max(moment // 1_000, 0), _LAST_SECOND)
    digest = blake2b(f"{path} {size} {second}".encode(), digest_size=8).digest()
    return second * _BILLION + int.from_bytes(digest, "big") % _BILLION


def has_stamp(path: str, size: int, mtime_ns: int) -> bool:
    """Whether the file has the modification time that it was written with."""
    return stamp(path, size, mtime_ns // _BILLION * 1_000) == mtime_ns
