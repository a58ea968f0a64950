"""Task file: front matter, body and work log; formatted, sealed, strictly parsed (S-AOF-13).

The seal (`projection: VERSION-DIGEST`) names the version of the task's stream that the file
shows and a digest of the file. An edit breaks it, so edits are told from old projections
without remembering what was once written, and the version that the edit began from is known.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, get_args

from msgspec import Struct

from dragoman.core.base import Priority, Status
from dragoman.core.timestamps import parse_rfc3339, to_rfc3339
from dragoman.files.errors import BadFile, line_error
from dragoman.files.markdown import (
    FENCE,
    Fields,
    Value,
    decode_references,
    encode_references,
    format_fields,
    parse_fields,
)
from dragoman.files.work_log import (
    HEADING,
    LogEntry,
    format_entry,
    format_hidden_count,
    parse_entry,
    parse_hidden_count,
)

_HEADING_IN_BODY: Final = re.compile(rf"^(\\*){re.escape(HEADING)}[ \t]*$", re.MULTILINE)
_SEAL_LINE: Final = re.compile(r"^projection: ([0-9]{1,16})-([0-9a-f]{16})$", re.MULTILINE)
_SEAL_KEY: Final = "projection: "
_SEAL_SLOT: Final = f"\n{_SEAL_KEY}\n"
"""Place of the seal: no field can hold a line break, so the first match is it."""


_Log = tuple[int, tuple[LogEntry, ...]]
"""Number of hidden entries, and the visible ones."""


class TaskFileLease(Struct, frozen=True):
    """The lease, without what changes with every heartbeat."""

    agent: str
    attempt: int
    fence: int
    acquired_at: int
    ttl_ms: int


class TaskFile(Struct, frozen=True):
    """Content of a task file."""

    id: str
    title: str
    status: Status
    created_at: int
    updated_at: int
    moved_at: int
    priority: Priority = "normal"
    assignee: str = ""
    parent_id: str = ""
    lease: TaskFileLease | None = None
    review_required: bool = True
    depth: int = 0
    aliases: tuple[str, ...] = ()
    primary_id: str = ""
    """The task's own id, if it is not the AOF id."""
    body: str = ""
    log: tuple[LogEntry, ...] = ()
    """The last entries of the work log."""
    unseen: int = 0
    """Number of entries before those."""
    version: int = 0
    """Number of entries of its stream that the file shows; 0 when it does not say."""


def format_task_file(file: TaskFile) -> bytes:
    """Format the file, with its seal."""
    head = format_fields(_front_matter(file))
    body = _HEADING_IN_BODY.sub(lambda m: "\\" + m[0], encode_references(file.body))
    log = "".join(f"{format_entry(entry)}\n" for entry in file.log)
    hidden = f"{format_hidden_count(file.unseen, file.id)}\n\n" if file.unseen else ""
    section = f"\n{HEADING}\n\n{hidden}{log}" if file.log else ""
    text = f"{FENCE}\n{head}{_SEAL_KEY}\n{FENCE}\n\n{body}\n{section}"
    return _seal(text, file.version).encode()


def _front_matter(file: TaskFile) -> Mapping[str, Value | bool | int]:
    fields: dict[str, Any] = {
        "id": file.id,
        "title": file.title,
        "status": file.status,
        "createdAt": to_rfc3339(file.created_at),
        "updatedAt": to_rfc3339(file.updated_at),
        "lastTransitionAt": to_rfc3339(file.moved_at),
        "priority": file.priority,
        "assignee": file.assignee,
        "parentId": file.parent_id,
        "lease": _lease_fields(file.lease) if file.lease else "",
        "metadata": {"reviewRequired": file.review_required, "delegationDepth": file.depth},
        "aliases": file.aliases,
        "primaryId": file.primary_id,
    }
    return {key: value for key, value in fields.items() if value not in ("", ())}


def _lease_fields(lease: TaskFileLease) -> Mapping[str, str | int]:
    return {
        "agent": lease.agent,
        "attempt": lease.attempt,
        "fence": lease.fence,
        "acquiredAt": to_rfc3339(lease.acquired_at),
        "ttlMs": lease.ttl_ms,
    }


def _seal(text: str, version: int) -> str:
    digest = sha256(f"{version}\n{text}".encode()).hexdigest()[:16]
    return text.replace(_SEAL_SLOT, f"\n{_SEAL_KEY}{version}-{digest}\n", 1)


def is_unedited(data: bytes) -> bool:
    """True when the file is, byte for byte, a projection of any version."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    seal = _SEAL_LINE.search(text)
    if seal is None:
        return False
    unsealed = text[: seal.start()] + _SEAL_KEY + text[seal.end() :]
    return _seal(unsealed, int(seal[1])) == text


def parse_task_file(data: bytes) -> TaskFile:
    """Parse a file that anybody may have edited; BadFile names the line that is wrong."""
    try:
        text = data.decode().removeprefix("\ufeff").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise BadFile(f"byte {error.start + 1} is not UTF-8: save the file as UTF-8") from None
    lines = text.split("\n")
    end = _find_end_of_head(lines)
    fields = parse_fields(lines[1:end], 2)
    body, (unseen, log) = _split_body_and_log(lines[end + 1 :], end + 2)
    return _from_fields(fields, body=body, log=log, unseen=unseen)


def _find_end_of_head(lines: Sequence[str]) -> int:
    if lines[0].rstrip() != FENCE:
        raise line_error(1, f"the file must begin with a line {FENCE}")
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == FENCE:
            return number
    raise line_error(1, f"the front matter has no end: a line {FENCE} is missing")


def _split_body_and_log(lines: Sequence[str], first: int) -> tuple[str, _Log]:
    heading_index = next(
        (at for at, line in enumerate(lines) if line.rstrip(" \t") == HEADING), len(lines)
    )
    log = _parse_log(enumerate(lines[heading_index + 1 :], first + heading_index + 1))
    body = list(lines[:heading_index])
    if body and not body[0].strip():
        del body[0]
    # An empty line follows the body: the one before the log, or the end of the file.
    if body and not body[-1].strip():
        body.pop()
    text = _HEADING_IN_BODY.sub(lambda m: m[0][1:] if m[1] else m[0], "\n".join(body))
    return decode_references(text), log


def _parse_log(lines: Iterable[tuple[int, str]]) -> _Log:
    unseen, log = 0, list[LogEntry]()
    for number, line in lines:
        before = 0 if log or unseen else parse_hidden_count(line)
        if before:
            unseen = before
        elif line.strip():
            log.append(parse_entry(line, number))
    return unseen, tuple(log)


def _read_text(value: Value) -> str:
    if isinstance(value, str):
        return value
    raise ValueError("it must be one text on one line")


def _read_choice(*allowed: str) -> Callable[[Value], str]:
    def read(value: Value) -> str:
        if value not in allowed:
            raise ValueError(f"it must be one of {', '.join(allowed)}")
        return _read_text(value)

    return read


def _read_time(value: Value) -> int:
    return parse_rfc3339(_read_text(value))


def _read_integer(value: Value) -> int:
    text = _read_text(value)
    if not (text.isascii() and text.isdigit() and len(text) <= 16):
        raise ValueError("it must be a whole number")
    return int(text)


def _read_bool(value: Value) -> bool:
    return _read_choice("true", "false")(value) == "true"


def _read_texts(value: Value) -> tuple[str, ...]:
    if isinstance(value, Mapping) or (isinstance(value, str) and value):
        raise ValueError("it must be a list")
    return tuple(value)


def _read_version(value: Value) -> int:
    found = _SEAL_LINE.fullmatch(f"{_SEAL_KEY}{_read_text(value)}")
    return int(found[1]) if found else 0


def _read_map_of(
    within: str, readers: Mapping[str, tuple[str, Callable[[Value], Any]]]
) -> Callable[[Value], Any]:
    def read(value: Value) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise ValueError("it must be a map: one `name: value` on each line, indented")
        return _convert_fields(value, readers, within)

    return read


def _read_lease(value: Value) -> TaskFileLease:
    found = _read_map_of("lease.", _LEASE_READERS)(value)
    if len(found) < len(_LEASE_READERS):
        raise ValueError(f"it must have {', '.join(_LEASE_READERS)}")
    return TaskFileLease(**found)


_Reader = tuple[str, Callable[[Value], Any]]

_LEASE_READERS: Final[Mapping[str, _Reader]] = {
    "agent": ("agent", _read_text),
    "attempt": ("attempt", _read_integer),
    "fence": ("fence", _read_integer),
    "acquiredAt": ("acquired_at", _read_time),
    "ttlMs": ("ttl_ms", _read_integer),
}
_METADATA_READERS: Final[Mapping[str, _Reader]] = {
    "reviewRequired": ("review_required", _read_bool),
    "delegationDepth": ("depth", _read_integer),
}
_FIELD_READERS: Final[Mapping[str, _Reader]] = {
    "id": ("id", _read_text),
    "title": ("title", _read_text),
    "status": ("status", _read_choice(*get_args(Status))),
    "createdAt": ("created_at", _read_time),
    "updatedAt": ("updated_at", _read_time),
    "lastTransitionAt": ("moved_at", _read_time),
    "priority": ("priority", _read_choice(*get_args(Priority))),
    "assignee": ("assignee", _read_text),
    "parentId": ("parent_id", _read_text),
    "lease": ("lease", _read_lease),
    "metadata": ("metadata", _read_map_of("metadata.", _METADATA_READERS)),
    "aliases": ("aliases", _read_texts),
    "primaryId": ("primary_id", _read_text),
    "projection": ("version", _read_version),
}
"""Name in the file -> field of TaskFile, and the parser of its value."""

_REQUIRED: Final = ("id", "title", "status", "createdAt", "updatedAt", "lastTransitionAt")


def _convert_fields(
    fields: Mapping[str, Value], readers: Mapping[str, _Reader], prefix: str
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in fields.items():
        if name not in readers:
            raise BadFile(f"{prefix}{name} is not a field; known: {', '.join(readers)}")
        field, read = readers[name]
        try:
            found[field] = read(value)
        except ValueError as error:
            raise BadFile(f"{prefix}{name}: {error}") from None
    return found


def _from_fields(fields: Fields, **rest: Any) -> TaskFile:
    found = _convert_fields(fields, _FIELD_READERS, "")
    for name in _REQUIRED:
        if name not in fields:
            raise BadFile(f"the field {name} is missing")
    found |= found.pop("metadata", {})
    return TaskFile(**found, **rest)
