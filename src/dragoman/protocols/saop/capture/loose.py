"""Fields of records that others own: whatever is not as expected counts as not there."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, cast

import msgspec

from dragoman.core.moments import parse_rfc3339

Record = Mapping[str, Any]

_encode = msgspec.json.Encoder().encode
_NOTHING: Record = {}


def record(value: Any) -> Record:
    """Return an object, or an empty one for anything else."""
    return cast(Record, value) if isinstance(value, dict) else _NOTHING


def records(value: Any) -> Iterator[Record]:
    """Yield the items of a list that are objects."""
    if isinstance(value, list):
        yield from (cast(Record, item) for item in cast(list[Any], value) if isinstance(item, dict))


def text(value: Any) -> str:
    """Return a text, or an empty one for anything else."""
    return value if isinstance(value, str) else ""


def moment(value: Any) -> int | None:
    """Parse an RFC 3339 timestamp to milliseconds, or return None."""
    with suppress(ValueError):
        return parse_rfc3339(text(value))
    return None


def milliseconds(value: Any, unit: float = 1) -> int | None:
    """Convert a duration in units of so many milliseconds, or return None."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12:
        return round(value * unit)
    return None


def as_text(value: Any) -> str:
    """Make a value readable: a text as it is, the texts of a list's parts, others as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = [part.get("text", part.get("content")) for part in records(cast(Any, value))]
        if parts and len(parts) == len(cast(list[Any], value)):
            return "\n".join(map(_part_as_text, parts, records(cast(Any, value))))
    return "" if value is None else _encode(value).decode()


def _part_as_text(said: Any, part: Record) -> str:
    return said if isinstance(said, str) else f"[{text(part.get('type')) or 'something'}]"


def arguments(value: Any) -> dict[str, Any]:
    """Return a tool call's arguments: an object, also as JSON text; anything else under `input`."""
    if isinstance(value, str):
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            read = msgspec.json.decode(value.encode(errors="replace"))
            if isinstance(read, dict):
                return cast(dict[str, Any], read)
    if isinstance(value, dict):
        return cast(dict[str, Any], value)
    return {} if value is None else {"input": value}
