"""Task file: front matter, body and work log; formatted, sealed, strictly parsed (S-AOF-13).

The seal (`projection: VERSION-DIGEST`) names the version of the task's stream that the file
shows and a digest of the file. An edit breaks it, so edits are told from old projections
without remembering what was once written, and the version that the edit began from is known.

Only what people may edit is parsed to values; the rest is compared with what the hub had written.
"""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, get_args

from msgspec import Struct

from dragoman.core.base import Priority, Status
from dragoman.core.timestamps import to_rfc3339
from dragoman.files.errors import BadFile, line_error
from dragoman.files.markdown import (
    FENCE,
    Value,
    decode_references,
    encode_references,
    escape_markup,
    format_fields,
    parse_fields,
)
from dragoman.files.work_log import HEADING, LogEntry, format_entry, format_hidden_count

BRIEFING_HEADING: Final = "## Briefing"

_HEADING_IN_BODY: Final = re.compile(
    rf"^(\\*)(?:{re.escape(BRIEFING_HEADING)}|{re.escape(HEADING)})[ \t]*$", re.MULTILINE
)
_SEAL_LINE: Final = re.compile(r"^projection: ([0-9]{1,16})-([0-9a-f]{16})$", re.MULTILINE)
_SEAL_KEY: Final = "projection: "
_SEAL_SLOT: Final = f"\n{_SEAL_KEY}\n"
"""Place of the seal: no field can hold a line break, so the first match is it."""


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
    briefing: tuple[tuple[str, str], ...] = ()
    """Headings and texts of the briefing."""
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
    briefing = "".join(
        f"\n### {heading}\n\n{escape_markup(text)}\n" for heading, text in file.briefing
    )
    told = f"\n{BRIEFING_HEADING}\n{briefing}" if briefing else ""
    text = f"{FENCE}\n{head}{_SEAL_KEY}\n{FENCE}\n\n{body}\n{told}{section}"
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


class EditedFile(Struct, frozen=True):
    """A task file that anybody may have edited."""

    title: str
    body: str
    priority: str
    review_required: bool
    assignee: str
    status: str
    version: int
    """Version of the task from which the edit began; 0 when it is not known."""
    hub_parts: dict[str, Value]
    """Fields that only the hub writes, as they stand there, and the work log."""


_CHOICES: Final[Mapping[str, Sequence[str]]] = {
    "status": get_args(Status),
    "priority": get_args(Priority),
    "metadata.reviewRequired": ("true", "false"),
}

WORK_LOG: Final = "the work log"

BRIEFING: Final = "the briefing"
"""WORK_LOG, BRIEFING: names of these sections among the parts that only the hub writes."""

_DEFAULTS: Final = {"priority": "normal", "assignee": "", "metadata.reviewRequired": "true"}


def parse_task_file(data: bytes) -> EditedFile:
    """Parse a file; BadFile names the line or the field that is wrong."""
    try:
        text = data.decode().removeprefix("\ufeff").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise BadFile(f"byte {error.start + 1} is not UTF-8: save the file as UTF-8") from None
    lines = text.split("\n")
    end = _find_end_of_head(lines)
    fields = _DEFAULTS | _flatten(parse_fields(lines[1:end], 2))
    body, briefing, log = _split_sections(lines[end + 1 :])
    return EditedFile(
        _take_text(fields, "title"),
        body,
        _take_text(fields, "priority"),
        _take_text(fields, "metadata.reviewRequired") == "true",
        _take_text(fields, "assignee"),
        _take_text(fields, "status"),
        _version_of(fields.pop("projection", "")),
        fields | {BRIEFING: briefing, WORK_LOG: log},
    )


def _find_end_of_head(lines: Sequence[str]) -> int:
    if lines[0].rstrip() != FENCE:
        raise line_error(1, f"the file must begin with a line {FENCE}")
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == FENCE:
            return number
    raise line_error(1, f"the front matter has no end: a line {FENCE} is missing")


def _flatten(fields: Mapping[str, Value]) -> dict[str, Value]:
    """Name the fields of a map by their path."""
    flat = dict[str, Value]()
    for name, value in fields.items():
        inner = value.items() if isinstance(value, Mapping) else ()
        flat |= {f"{name}.{key}": text for key, text in inner} or {name: value}
    return flat


def _take_text(fields: dict[str, Value], name: str) -> str:
    value = fields.pop(name, None)
    if value is None:
        raise BadFile(f"the field {name} is missing")
    if not isinstance(value, str):
        raise BadFile(f"{name}: it must be one text on one line")
    if name in _CHOICES and value not in _CHOICES[name]:
        raise BadFile(f"{name}: it must be one of {', '.join(_CHOICES[name])}")
    return value


def _version_of(seal: Value) -> int:
    found = _SEAL_LINE.fullmatch(f"{_SEAL_KEY}{seal}")
    return int(found[1]) if found else 0


def _split_sections(lines: Sequence[str]) -> tuple[str, list[str], list[str]]:
    """Body, and the lines of the briefing and of the work log that are not empty."""
    log_index = _find_heading(lines, HEADING)
    body_end = _find_heading(lines[:log_index], BRIEFING_HEADING)
    body = list(lines[:body_end])
    if body and not body[0].strip():
        del body[0]
    # An empty line follows the body: the one before these sections, or the end of the file.
    if body and not body[-1].strip():
        body.pop()
    text = _HEADING_IN_BODY.sub(lambda m: m[0][1:] if m[1] else m[0], "\n".join(body))
    briefing = _filled_lines(lines[body_end + 1 : log_index])
    return decode_references(text), briefing, _filled_lines(lines[log_index + 1 :])


def _find_heading(lines: Sequence[str], heading: str) -> int:
    """Index of the first line with this heading; their number if there is none."""
    found = (at for at, line in enumerate(lines) if line.rstrip(" \t") == heading)
    return next(found, len(lines))


def _filled_lines(lines: Sequence[str]) -> list[str]:
    return [line.rstrip() for line in lines if line.strip()]
