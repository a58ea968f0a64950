"""Layout of the data directory: relative paths, and which file name stands for what."""

import re
from hashlib import blake2b
from typing import Final, get_args

from dragoman.core.base import Status
from dragoman.core.ids import is_aof_id

STATUSES: Final[tuple[Status, ...]] = get_args(Status)
TASK_SUBFOLDERS: Final = ("inputs", "work", "outputs")
"""Subfolders of a task's own folder."""

TASKS: Final = "tasks"
RUNS: Final = "runs"
EVENTS: Final = "events"
MAIL: Final = "mail"
TEAMSPACES: Final = "teamspaces"
ARTIFACTS: Final = "artifacts"
INBOX: Final = "inbox"
DELIVERIES: Final = "deliveries"
PROCESSED: Final = "processed"
REJECTED: Final = "rejected"
INBOX_RESULTS: Final = re.compile(rf"({PROCESSED}|{REJECTED})(-found(-[0-9]+)?)?", re.ASCII)
"""Names of the inbox's folders for results, and of what was moved out of their way."""
CURSOR_FILE: Final = "projection.json"
PROJECTION_LOCK: Final = "projection.lock"
"""Held while the projection is written."""
FOLDERS_LOCK: Final = "folders.lock"
"""Held while a task's own folder is moved: agents that start wait for it."""
INBOX_LOCK: Final = "inbox.lock"
"""Held while messages of the inbox are sent and moved away."""

GITIGNORE: Final = ".gitignore"
IGNORE_ALL: Final = b"*\n"
"""Content of .gitignore, so that a repository around a data directory ignores it."""

REASON_SUFFIX: Final = ".reason.txt"
"""Suffix of the note beside a file that was rejected."""

WARNING_SUFFIX: Final = ".warning.txt"
"""Suffix of the note beside a message that was accepted with warnings."""

MAX_NAME_BYTES: Final = 255
"""Limit of a file name in bytes."""

OUTPUT_LOG: Final = "output.log"
"""Name of the file of what an agent printed, beside the run's other files."""

CHECKS: Final = "checks"
"""Folder of what checks printed, beside the run's other files."""

_LOG: Final = re.compile(
    rf"{RUNS}/[^/]+/(?:(?:attempts/[0-9]+/)?{re.escape(OUTPUT_LOG)}|{CHECKS}/[0-9]+-[0-9]+[.]log)"
)

_BILLION: Final = 1_000_000_000
_MAX_SECOND: Final = 9_223_372_035
"""In the year 2262: file systems keep 64 bits of nanoseconds."""

_MAIL_TYPE: Final = re.compile(r"[A-Z][A-Z_]{0,63}", re.ASCII)
_LETTER_FILE: Final = re.compile(r"([0-9]{8,16})-[A-Z_]+\.md", re.ASCII)
_UNNAMED_TYPES: Final = frozenset({"UNKNOWN"})


def task_path(status: Status, task_id: str) -> str:
    """Path of a task's file."""
    return f"{TASKS}/{status}/{task_id}.md"


def task_folder_path(status: Status, task_id: str) -> str:
    """Path of a task's own folder."""
    return f"{TASKS}/{status}/{task_id}"


def run_folder_path(task_id: str, attempt: int = 0) -> str:
    """Folder of run artifacts; with a number, those of an earlier attempt."""
    return f"{RUNS}/{task_id}/attempts/{attempt}" if attempt else f"{RUNS}/{task_id}"


def worktree_path(task_id: str) -> str:
    """Folder of the worktree in which a task's agent works."""
    return f"worktrees/{task_id}"


def is_output_log(path: str) -> bool:
    """True for the log of what an agent, or a check of its work, printed in an attempt."""
    return _LOG.fullmatch(path) is not None


def check_log_path(task_id: str, attempt: int, number: int) -> str:
    """Path of the output of an attempt's n-th check."""
    return f"{RUNS}/{task_id}/{CHECKS}/{attempt}-{number}.log"


def event_log_path(day: str) -> str:
    """Path of the event lines of a day (UTC)."""
    return f"{EVENTS}/{day}.jsonl"


def handoff_log_path(teamspace: str) -> str:
    """Path of the audit log of a teamspace's handoffs."""
    return f"{TEAMSPACES}/{teamspace}/handoffs/handoffs.jsonl"


def artifact_path(sha256: str) -> str:
    """Path of the verified copy of an artifact, by the hash of its content."""
    return f"{ARTIFACTS}/sha256/{sha256[:2]}/{sha256}"


def artifacts_folder_path(teamspace: str) -> str:
    """Default folder of a teamspace's artifacts; the settings may name more."""
    return f"{TEAMSPACES}/{teamspace}/{ARTIFACTS}"


def incoming_artifact_path(id: str) -> str:
    """Path of a copy until the hash of its content is known."""
    return f"{ARTIFACTS}/incoming/{id}"


def thread_folder_path(thread: str) -> str:
    """Folder of a thread's letters."""
    return f"{MAIL}/{thread}"


def letter_path(thread: str, position: int, kind: str) -> str:
    """Path of the letter at a position of the ledger, named by its type if it has one."""
    label = kind if _MAIL_TYPE.fullmatch(kind) and kind not in _UNNAMED_TYPES else "MAIL"
    return f"{thread_folder_path(thread)}/{position:08d}-{label}.md"


def letter_position(name: str) -> int:
    """Ledger position in the file name of a letter; 0 for any other name."""
    found = _LETTER_FILE.fullmatch(name)
    return int(found[1]) if found else 0


def staged_path(path: str) -> str:
    """Path of the next content of a file until it replaces the old one."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name}.next" if folder else f".{name}.next"


def is_staged_task(name: str) -> bool:
    """True for the file name of a task file's next content."""
    is_staged = name.startswith(".") and name.endswith(".next")
    return is_staged and task_id_of_file(name[1 : -len(".next")]) is not None


def numbered_path(path: str, number: int, reserve: int = 0) -> str:
    """The path itself, or its n-th alternative when it is taken: `a.md`, `a-2.md`.

    The name is shortened if needed, leaving `reserve` bytes.
    """
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{shorten_name(name, reserve, f'-{number}' if number > 1 else '')}"


def shorten_name(name: str, reserve: int, suffix: str = "") -> str:
    """Shorten a file name, keeping its extension and leaving `reserve` bytes; `suffix` goes before
    the extension."""
    stem, dot, extension = name.partition(".") if not name.startswith(".") else (name, "", "")
    room = MAX_NAME_BYTES - reserve - _name_bytes(f"{suffix}{dot}{extension}")
    if room < 1:  # the part after the dot is no extension, or not only that
        stem, dot, extension, room = name, "", "", MAX_NAME_BYTES - reserve - _name_bytes(suffix)
    while _name_bytes(stem) > room:
        stem = stem[:-1]
    return f"{stem}{suffix}{dot}{extension}"


def _name_bytes(name: str) -> int:
    """Length in bytes; a name on the disk need not be text."""
    return len(name.encode(errors="surrogateescape"))


def task_id_of_file(name: str) -> str | None:
    """AOF id that a file name stands for; None for any other file."""
    stem, dot, extension = name.rpartition(".")
    return stem if dot and extension == "md" and is_aof_id(stem) else None


def rejected_path(path: str) -> str:
    """Path under which a task file that is not taken over is kept."""
    return path.removesuffix(".md") + ".rejected.md"


def mtime_stamp(path: str, size: int, at_ms: int) -> int:
    """Modification time (ns) that marks a file as written here, at this path.

    Its second is that of `at_ms`, or the nearest that file systems keep; its fraction is a digest
    of path, size and second. An edit changes the time, a move the path: so a scan can skip
    unchanged files without reading them. A false alarm costs one read; the content decides.
    """
    second = min(max(at_ms // 1_000, 0), _MAX_SECOND)
    digest = blake2b(f"{path} {size} {second}".encode(), digest_size=8).digest()
    return second * _BILLION + int.from_bytes(digest, "big") % _BILLION


def stamped_name(path: str) -> str:
    """Path that stamps are made of; in a task's own folder, that from the folder on, so that it is
    valid wherever the folder is moved."""
    first, *rest = path.split("/", 2)
    is_in_task_folder = first == TASKS and "/" in rest[-1]
    return rest[-1] if is_in_task_folder else path


def has_mtime_stamp(path: str, size: int, mtime_ns: int) -> bool:
    """True when a file has the modification time that it was written with."""
    return mtime_stamp(path, size, mtime_ns // _BILLION * 1_000) == mtime_ns
