"""Letters from rows: lenient takes everything and says what it could not read; strict refuses."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from dragoman.protocols.agentmail.body import Found, read_body
from dragoman.protocols.agentmail.check import misplaced, missing
from dragoman.protocols.agentmail.forms import FORMS
from dragoman.protocols.agentmail.problems import MailError, problem, quoted
from dragoman.protocols.agentmail.row import (
    EMPTY,
    Problems,
    Raw,
    happened,
    names_of,
    row_of,
    strict_row_of,
)
from dragoman.protocols.agentmail.shapes import Message, Parsed
from dragoman.protocols.agentmail.subject import IsKnown, Subject, knows_none, read_subject
from dragoman.protocols.agentmail.values import ALLOWED, ALLOWED_STATUS, READ, is_moment
from dragoman.protocols.agentmail.words import ACK_REQUIRED, MessageType

_decode_rows = msgspec.json.Decoder(list[Any]).decode
_UNKNOWN: Final = MessageType.UNKNOWN
_FAILED: Final = MessageType.FAILED
_SPAWNING: Final = frozenset({MessageType.SPAWN_REQUEST, MessageType.SPAWN_ACK})


class Parser:
    """Parser of letters, each independent of the others."""

    def __init__(self, *, strict: bool = False, is_known: IsKnown = knows_none) -> None:
        """With `is_known`, a plain word before a colon is an id when it names a task."""
        self.strict = strict
        self._is_known = is_known

    def parse(self, raw: Raw, kind: MessageType | None = None) -> Message:
        """Parse a row or its JSON text; strict parsing raises MailError for any problem.

        With `kind` the letter is of that type, whatever its subject names.
        """
        problems: Problems = []
        row = strict_row_of(raw, problems) if self.strict else row_of(raw, problems)
        title, body = row.subject or "", row.body_md or row.body or ""
        subject = read_subject(title, self._is_known)
        if kind is not None:
            subject = Subject(kind, subject.bead_id)
        kind = subject.type
        found = read_body(body, FORMS[kind])
        parsed = _parsed(subject, found, problems)
        timestamp = row.timestamp or row.created_ts or ""
        if row is not EMPTY:
            _note(subject, title, timestamp, problems)
        if self.strict:
            problems += missing(kind, parsed, found)
            if problems:
                raise MailError(tuple(problems))
        if found.misplaced:
            problems += misplaced(kind, parsed, found)
        return Message(
            type=kind,
            id=row.id,
            thread_id=row.thread_id or "",
            sender=row.sender or row.sender_name or "",
            to=names_of(row.to),
            cc=names_of(row.cc),
            subject=title,
            body=body,
            timestamp=timestamp,
            importance=row.importance or "normal",
            ack_required=wants_ack(row.ack_required, kind),
            acknowledged=happened(row.acknowledged, row.acked, row.ack_ts),
            read=happened(row.read, row.read_ts),
            parsed=parsed,
            problems=tuple(problems),
        )

    def parse_many(self, raws: bytes | str | Iterable[Raw]) -> list[Message]:
        """Parse many rows; a text holds them as a JSON array or as JSON Lines."""
        if isinstance(raws, bytes | str):
            raws = _rows_of(raws)
        return [self.parse(raw) for raw in raws]


def _rows_of(text: bytes | str) -> Iterable[Raw]:
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    if data.lstrip()[:1] == b"[":
        try:
            return _decode_rows(data)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return (data,)  # `parse` reports the JSON error
    return [line for line in data.split(b"\n") if line.strip()]


def _parsed(subject: Subject, found: Found, problems: Problems) -> Parsed:
    values: dict[str, Any] = found.words.copy()
    read = READ[subject.type]
    for field, words in found.words.items():
        reading = read.get(field)
        if reading is not None:
            values[field], name = reading(words)
            if name:
                right = _right(subject.type, field)
                problems.append(
                    problem(name, field, found.lines[field], shown=str(words), right=right)
                )
    if subject.type is _FAILED:
        values["status"] = "FAILED"
    _name_bead(subject, found, values, problems)
    return Parsed(**values)


def _right(kind: MessageType, field: str) -> str:
    return ALLOWED_STATUS.get(kind, "") if field == "status" else ALLOWED.get(field, "")


def _name_bead(subject: Subject, found: Found, values: dict[str, Any], problems: Problems) -> None:
    """Resolve the bead: the body takes precedence over the subject (S-MAIL-2)."""
    is_spawning = subject.type in _SPAWNING
    field = "issue_id" if is_spawning and "issue_id" in values else "bead_id"
    in_body = values.get(field, "")
    bead_id = in_body or subject.bead_id
    if bead_id:
        values["bead_id"] = bead_id
        if is_spawning:
            values["issue_id"] = bead_id
        if subject.bead_id not in ("", bead_id):
            line = found.lines[field]
            about = {"shown": subject.bead_id, "right": quoted(in_body)}
            problems.append(problem("bead_mismatch", "bead_id", line, **about))


def _note(subject: Subject, title: str, timestamp: str, problems: Problems) -> None:
    if subject.type is _UNKNOWN:
        problems.append(problem("unknown_type", "subject", shown=title))
    elif subject.others:
        others = ", ".join(subject.others)
        problems.append(problem("two_types", "subject", shown=others, right=subject.type))
    if timestamp and not is_moment(timestamp):
        problems.append(problem("bad_timestamp", "timestamp", shown=timestamp))


def wants_ack(said: bool | int | None, kind: MessageType) -> bool:
    """Tell whether a letter wants an acknowledgement: as it states, or by its type (S-MAIL-7)."""
    return ACK_REQUIRED[kind] if said is None else bool(said)
