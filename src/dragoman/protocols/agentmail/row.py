"""The envelope: a row of ours or of an MCP Agent Mail server, as far as one can read it."""

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from dragoman.protocols.agentmail.lines import parts_of
from dragoman.protocols.agentmail.problems import problem
from dragoman.protocols.agentmail.shapes import Problem
from dragoman.text.loose_json import loosely
from dragoman.text.shape_words import kind_of
from dragoman.text.strict_json import StrictJsonError, field_of, parse_json

Raw = bytes | str | Mapping[str, Any]
"""A letter as it is received: JSON text, or the parsed object."""
Problems = list[Problem]

Text = str | None
Names = list[str] | str | None
"""A list, or one text with commas between the names."""
Sign = bool | int | str | float | None
"""A flag, or the time at which it was set, which counts as true."""
OTHER_NAMES: Final[Mapping[str, str]] = {
    "body_md": "body",
    "from": "sender_name",
    "timestamp": "created_ts",
}
"""Own field name -> the name that other servers use, which counts if ours is absent or empty."""
_NO_BLIND_COPIES: Final = (
    "bcc is not supported: every reader sees all recipients of a letter; name them in cc, or send "
    "them a separate letter"
)


class Row(Struct, frozen=True, kw_only=True, gc=False, rename={"sender": "from"}.get):
    """All accepted field names, our own first."""

    id: str | int | None = None
    subject: Text = None
    body_md: Text = None
    body: Text = None
    thread_id: Text = None
    sender: Text = None
    sender_name: Text = None
    to: Names = None
    cc: Names = None
    timestamp: Text = None
    created_ts: Text = None
    importance: Text = None
    ack_required: bool | int | None = None
    acknowledged: Sign = None
    acked: Sign = None
    ack_ts: Sign = None
    read: Sign = None
    read_ts: Sign = None


EMPTY: Final = Row()
_FIELDS: Final = {
    field.encode_name: (field.name, field.type) for field in msgspec.structs.fields(Row)
}
_RIGHT: Final[Mapping[Any, str]] = {
    Text: "a text",
    Names: "a list of names",
    str | int | None: "a text or a whole number",
    Sign: "true, false or a time",
    bool | int | None: "true or false",
}
_decode = msgspec.json.Decoder(Row).decode
_decode_any = msgspec.json.Decoder().decode
_UNREADABLE: Final = (msgspec.DecodeError, ValueError, RecursionError)


def why_not_taken(value: Any) -> str:
    """Return the reason for refusing a readable row, its `bcc`, or an empty text."""
    return _NO_BLIND_COPIES if field_of(value, "bcc") else ""


def row_of(raw: Raw, problems: Problems) -> Row:
    """Decode a row without its malformed fields; never raises."""
    try:
        return _decode(raw) if isinstance(raw, bytes | str) else msgspec.convert(raw, Row)
    except (*_UNREADABLE, TypeError):
        return _salvaged(raw, problems)


def strict_row_of(raw: Raw, problems: Problems) -> Row:
    """Decode a row, if its JSON is unambiguous."""
    if not isinstance(raw, bytes | str):
        return row_of(raw, problems)
    try:
        # A character takes at most four bytes; the limit of a letter's size is checked by the hub.
        value = parse_json(raw, most_bytes=4 * len(raw))
    except StrictJsonError as error:
        problems.append(problem("not_a_row", error.path, right=error.reason))
        return EMPTY
    if isinstance(value, str):  # a JSON string is not parsed a second time
        problems.append(problem("not_a_row", right="this is a text"))
        return EMPTY
    return row_of(value, problems)


def _salvaged(raw: Any, problems: Problems) -> Row:
    """Recover every readable field of a row, each on its own."""
    if isinstance(raw, bytes | str):
        try:
            raw = _decode_any(raw)
        except _UNREADABLE as error:
            problems.append(problem("not_a_row", right=f"this is not JSON: {error}"))
            raw = loosely(raw)
            if raw is None:
                return EMPTY
    if not isinstance(raw, Mapping):
        problems.append(problem("not_a_row", right=f"this is {kind_of(raw)}"))
        return EMPTY
    return Row(**_fitting(cast(Mapping[Any, Any], raw), problems))


def _fitting(row: Mapping[Any, Any], problems: Problems) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for key, (name, shape) in _FIELDS.items():
        value = row.get(key)
        try:
            read[name] = msgspec.convert(value, shape)
        except (msgspec.ValidationError, ValueError, TypeError, RecursionError):
            problems.append(problem("bad_envelope", key, right=_RIGHT[shape]))
    return read


def names_of(names: Names) -> tuple[str, ...]:
    """Return the names from a list or a text with commas."""
    if not names:
        return ()
    return parts_of(names) if isinstance(names, str) else tuple(names)


def happened(*signs: Sign) -> bool | None:
    """Return the first flag that is present, or None."""
    for sign in signs:
        if sign is not None:
            return bool(sign)
    return None
