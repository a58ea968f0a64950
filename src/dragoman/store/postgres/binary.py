"""Values as PostgreSQL reads them in binary: numbers, texts, bytes, and lists of each."""

from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from struct import Struct

Scalar = int | str | bytes

_NUMBER = Struct("!q")
_LENGTH = Struct("!i")
_NUMBER_AND_LENGTH = Struct("!iq")
_HEADER = Struct("!iiIii")
_NULL = _LENGTH.pack(-1)

_BYTEA, _BIGINT, _TEXT = 17, 20, 25
"""Type oids of PostgreSQL, the same on every server."""


def scalar(value: Scalar) -> bytes:
    """A bigint, a text or a bytea."""
    if isinstance(value, int):
        return _NUMBER.pack(value)
    return value.encode() if isinstance(value, str) else value


def numbers(values: Iterable[int]) -> bytes:
    """A bigint[]."""
    items = list(map(_NUMBER_AND_LENGTH.pack, repeat(_NUMBER.size), values))
    return _header(_BIGINT, len(items)) + b"".join(items)


def texts(values: Iterable[str]) -> bytes:
    """A text[]."""
    return _array(_TEXT, list(map(str.encode, values)))


def blobs(values: Iterable[bytes]) -> bytes:
    """A bytea[]."""
    return _array(_BYTEA, list(values))


def nullable_numbers(values: Sequence[int | None]) -> bytes:
    """A bigint[] in which values may be NULL."""
    return _nullable_array(
        _BIGINT, [None if value is None else _NUMBER.pack(value) for value in values]
    )


def nullable_texts(values: Sequence[str | None]) -> bytes:
    """A text[] in which values may be NULL."""
    return _nullable_array(_TEXT, [None if value is None else value.encode() for value in values])


def _header(kind: int, count: int, *, with_null: bool = False) -> bytes:
    """An array header: one dimension, counted from 1."""
    return _HEADER.pack(1, with_null, kind, count, 1)


def _array(kind: int, items: Sequence[bytes]) -> bytes:
    """Each item after its length. Written for speed: every column of a batch passes here."""
    lengths = map(_LENGTH.pack, map(len, items))
    return _header(kind, len(items)) + b"".join(
        chain.from_iterable(zip(lengths, items, strict=True))
    )


def _nullable_array(kind: int, items: Sequence[bytes | None]) -> bytes:
    parts = (_NULL if item is None else _LENGTH.pack(len(item)) + item for item in items)
    return _header(kind, len(items), with_null=True) + b"".join(parts)
