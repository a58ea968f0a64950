"""Letters from rows: lenient takes everything and says what it could not read; strict refuses."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from dragoman.protocols.agentmail.body import ParsedBody, parse_body
from dragoman.protocols.agentmail.check import find_misplaced_fields, find_missing_fields
from dragoman.protocols.agentmail.forms import FORMS
from dragoman.protocols.agentmail.problems import MailError, make_problem, quote
from dragoman.protocols.agentmail.row import (
    EMPTY_ROW,
    ProblemList,
    RawRow,
    decode_row,
    decode_strict_row,
    first_flag,
    split_names,
)
from dragoman.protocols.agentmail.shapes import Message, Parsed
from dragoman.protocols.agentmail.subject import IsKnown, Subject, no_known_tasks, parse_subject
from dragoman.protocols.agentmail.values import (
    ALLOWED_STATUS,
    ALLOWED_VALUES,
    FIELD_PARSERS,
    is_timestamp,
)
from dragoman.protocols.agentmail.words import ACK_REQUIRED, MessageType

_decode_rows = msgspec.json.Decoder(list[Any]).decode
_UNKNOWN: Final = MessageType.UNKNOWN
_FAILED: Final = MessageType.FAILED
_SPAWN_TYPES: Final = frozenset({MessageType.SPAWN_REQUEST, MessageType.SPAWN_ACK})


class Parser:
    """Parser of letters, each independent of the others."""

    def __init__(self, *, strict: bool = False, is_known: IsKnown = no_known_tasks) -> None:
        """With `is_known`, a plain word before a colon is an id when it names a task."""
        self.strict = strict
        self._is_known = is_known

    def parse(self, raw: RawRow, kind: MessageType | None = None) -> Message:
        """Parse a row or its JSON text; strict parsing raises MailError for any problem.

        With `kind` the letter is of that type, whatever its subject names.
        """
        problems: ProblemList = []
        row = decode_strict_row(raw, problems) if self.strict else decode_row(raw, problems)
        title, body = row.subject or "", row.body_md or row.body or ""
        subject = parse_subject(title, self._is_known)
        if kind is not None:
            subject = Subject(kind, subject.bead_id)
        kind = subject.type
        parsed_body = parse_body(body, FORMS[kind])
        parsed = _parse_fields(subject, parsed_body, problems)
        timestamp = row.timestamp or row.created_ts or ""
        if row is not EMPTY_ROW:
            _check_envelope(subject, title, timestamp, problems)
        if self.strict:
            problems += find_missing_fields(kind, parsed, parsed_body)
            if problems:
                raise MailError(tuple(problems))
        if parsed_body.misplaced_lines:
            problems += find_misplaced_fields(kind, parsed, parsed_body)
        return Message(
            type=kind,
            id=row.id,
            thread_id=row.thread_id or "",
            sender=row.sender or row.sender_name or "",
            to=split_names(row.to),
            cc=split_names(row.cc),
            subject=title,
            body=body,
            timestamp=timestamp,
            importance=row.importance or "normal",
            ack_required=wants_ack(row.ack_required, kind),
            acknowledged=first_flag(row.acknowledged, row.acked, row.ack_ts),
            read=first_flag(row.read, row.read_ts),
            parsed=parsed,
            problems=tuple(problems),
        )

    def parse_many(self, raws: bytes | str | Iterable[RawRow]) -> list[Message]:
        """Parse many rows; a text holds them as a JSON array or as JSON Lines."""
        if isinstance(raws, bytes | str):
            raws = _split_rows(raws)
        return [self.parse(raw) for raw in raws]


def _split_rows(text: bytes | str) -> Iterable[RawRow]:
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    if data.lstrip()[:1] == b"[":
        try:
            return _decode_rows(data)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return (data,)  # `parse` reports the JSON error
    return [line for line in data.split(b"\n") if line.strip()]


def _parse_fields(subject: Subject, body: ParsedBody, problems: ProblemList) -> Parsed:
    values: dict[str, Any] = body.values.copy()
    value_parsers = FIELD_PARSERS[subject.type]
    for field, raw in body.values.items():
        value_parser = value_parsers.get(field)
        if value_parser is not None:
            values[field], problem_name = value_parser(raw)
            if problem_name:
                allowed = _allowed_values(subject.type, field)
                problems.append(
                    make_problem(
                        problem_name, field, body.line_numbers[field], shown=str(raw), right=allowed
                    )
                )
    if subject.type is _FAILED:
        values["status"] = "FAILED"
    _resolve_bead(subject, body, values, problems)
    return Parsed(**values)


def _allowed_values(kind: MessageType, field: str) -> str:
    return ALLOWED_STATUS.get(kind, "") if field == "status" else ALLOWED_VALUES.get(field, "")


def _resolve_bead(
    subject: Subject, body: ParsedBody, values: dict[str, Any], problems: ProblemList
) -> None:
    """Resolve the bead: the body takes precedence over the subject (S-MAIL-2)."""
    is_spawning = subject.type in _SPAWN_TYPES
    field = "issue_id" if is_spawning and "issue_id" in values else "bead_id"
    in_body = values.get(field, "")
    bead_id = in_body or subject.bead_id
    if bead_id:
        values["bead_id"] = bead_id
        if is_spawning:
            values["issue_id"] = bead_id
        if subject.bead_id not in ("", bead_id):
            line = body.line_numbers[field]
            about = {"shown": subject.bead_id, "right": quote(in_body)}
            problems.append(make_problem("bead_mismatch", "bead_id", line, **about))


def _check_envelope(subject: Subject, title: str, timestamp: str, problems: ProblemList) -> None:
    if subject.type is _UNKNOWN:
        problems.append(make_problem("unknown_type", "subject", shown=title))
    elif subject.other_types:
        others = ", ".join(subject.other_types)
        problems.append(make_problem("two_types", "subject", shown=others, right=subject.type))
    if timestamp and not is_timestamp(timestamp):
        problems.append(make_problem("bad_timestamp", "timestamp", shown=timestamp))


def wants_ack(stated: bool | int | None, kind: MessageType) -> bool:
    """Tell whether a letter wants an acknowledgement: as it states, or by its type (S-MAIL-7)."""
    return ACK_REQUIRED[kind] if stated is None else bool(stated)
