"""The envelope: a row of ours or of an MCP Agent Mail server, as far as one can read it."""

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from dragoman.protocols.agentmail.lines import split_list
from dragoman.protocols.agentmail.problems import make_problem
from dragoman.protocols.agentmail.shapes import Problem
from dragoman.text.loose_json import parse_loosely
from dragoman.text.shape_words import describe_type
from dragoman.text.strict_json import StrictJsonError, get_field, parse_json

RawRow = bytes | str | Mapping[str, Any]
"""A letter as it is received: JSON text, or the parsed object."""
ProblemList = list[Problem]

OptionalText = str | None
NameList = list[str] | str | None
"""A list, or one text with commas between the names."""
Flag = bool | int | str | float | None
"""A flag, or the time at which it was set, which counts as true."""
FOREIGN_FIELD_NAMES: Final[Mapping[str, str]] = {
    "body_md": "body",
    "from": "sender_name",
    "timestamp": "created_ts",
}
"""Own field name -> the name that other servers use, which counts if ours is absent or empty."""
_NO_BLIND_COPIES: Final = (
    "bcc is not supported: every reader sees all recipients of a letter; name them in cc, or send "
    "them a separate letter"
)


class LetterRow(Struct, frozen=True, kw_only=True, gc=False, rename={"sender": "from"}.get):
    """All accepted field names, our own first."""

    id: str | int | None = None
    subject: OptionalText = None
    body_md: OptionalText = None
    body: OptionalText = None
    thread_id: OptionalText = None
    sender: OptionalText = None
    sender_name: OptionalText = None
    to: NameList = None
    cc: NameList = None
    timestamp: OptionalText = None
    created_ts: OptionalText = None
    importance: OptionalText = None
    ack_required: bool | int | None = None
    acknowledged: Flag = None
    acked: Flag = None
    ack_ts: Flag = None
    read: Flag = None
    read_ts: Flag = None


EMPTY_ROW: Final = LetterRow()
_ROW_FIELDS: Final = {
    field.encode_name: (field.name, field.type) for field in msgspec.structs.fields(LetterRow)
}
_EXPECTED: Final[Mapping[Any, str]] = {
    OptionalText: "a text",
    NameList: "a list of names",
    str | int | None: "a text or a whole number",
    Flag: "true, false or a time",
    bool | int | None: "true or false",
}
_decode = msgspec.json.Decoder(LetterRow).decode
_decode_any = msgspec.json.Decoder().decode
_DECODE_ERRORS: Final = (msgspec.DecodeError, ValueError, RecursionError)


def rejection_reason(value: Any) -> str:
    """Return the reason for refusing a readable row, its `bcc`, or an empty text."""
    return _NO_BLIND_COPIES if get_field(value, "bcc") else ""


def decode_row(raw: RawRow, problems: ProblemList) -> LetterRow:
    """Decode a row without its malformed fields; never raises."""
    try:
        return _decode(raw) if isinstance(raw, bytes | str) else msgspec.convert(raw, LetterRow)
    except (*_DECODE_ERRORS, TypeError):
        return _salvage_row(raw, problems)


def decode_strict_row(raw: RawRow, problems: ProblemList) -> LetterRow:
    """Decode a row, if its JSON is unambiguous."""
    if not isinstance(raw, bytes | str):
        return decode_row(raw, problems)
    try:
        # A character takes at most four bytes; the limit of a letter's size is checked by the hub.
        value = parse_json(raw, max_bytes=4 * len(raw))
    except StrictJsonError as error:
        problems.append(make_problem("not_a_row", error.path, right=error.reason))
        return EMPTY_ROW
    if isinstance(value, str):  # a JSON string is not parsed a second time
        problems.append(make_problem("not_a_row", right="this is a text"))
        return EMPTY_ROW
    return decode_row(value, problems)


def _salvage_row(raw: Any, problems: ProblemList) -> LetterRow:
    """Recover every readable field of a row, each on its own."""
    if isinstance(raw, bytes | str):
        try:
            raw = _decode_any(raw)
        except _DECODE_ERRORS as error:
            problems.append(make_problem("not_a_row", right=f"this is not JSON: {error}"))
            raw = parse_loosely(raw)
            if raw is None:
                return EMPTY_ROW
    if not isinstance(raw, Mapping):
        problems.append(make_problem("not_a_row", right=f"this is {describe_type(raw)}"))
        return EMPTY_ROW
    return LetterRow(**_convert_fields(cast(Mapping[Any, Any], raw), problems))


def _convert_fields(row: Mapping[Any, Any], problems: ProblemList) -> dict[str, Any]:
    converted: dict[str, Any] = {}
    for key, (name, shape) in _ROW_FIELDS.items():
        value = row.get(key)
        try:
            converted[name] = msgspec.convert(value, shape)
        except (msgspec.ValidationError, ValueError, TypeError, RecursionError):
            problems.append(make_problem("bad_envelope", key, right=_EXPECTED[shape]))
    return converted


def split_names(names: NameList) -> tuple[str, ...]:
    """Return the names from a list or a text with commas."""
    if not names:
        return ()
    return split_list(names) if isinstance(names, str) else tuple(names)


def first_flag(*flags: Flag) -> bool | None:
    """Return the first flag that is present, or None."""
    for flag in flags:
        if flag is not None:
            return bool(flag)
    return None
