"""Strict CBOR (RFC 8949) for untrusted bytes: the same values and limits as our JSON.

Only values that JSON has are accepted: no byte strings, tags, undefined or indefinite lengths, and
no duplicate keys. The encoder writes the deterministic form of RFC 8949, section 4.2.1, so that
equal values are equal bytes.
"""

import math
import struct
from collections.abc import Iterable
from typing import Any, Final, cast

from dragoman.text.strict_json import (
    INTEGER_MESSAGE,
    MAX_BYTES,
    MAX_DEPTH,
    MAX_KEY_LENGTH,
    MAX_NODES,
    MAX_SAFE_INTEGER,
    StrictJsonError,
    child_path,
    too_large_error,
)

_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _LIST, _MAP, _TAG, _SIMPLE = range(8)
_LENGTHS: Final = {24: 1, 25: 2, 26: 4, 27: 8}
"""Low five bits of a head -> length of the number that follows, in bytes."""
_CONSTANTS: Final[dict[int, bool | None]] = {20: False, 21: True, 22: None}
_FLOATS: Final = {25: ">e", 26: ">f", 27: ">d"}
_UNSUPPORTED: Final = {
    _BYTES: "a byte string, which JSON does not have: send text, or base64url as text",
    _TAG: "a tag: send the value without it",
}
_INDEFINITE: Final = 31


def is_cbor_map(data: bytes) -> bool:
    """Check whether bytes begin like a CBOR map; no JSON text and no UTF-8 begins like that."""
    return bool(data) and data[0] >> 5 == _MAP


def parse_cbor(data: bytes, most_bytes: int = MAX_BYTES) -> Any:
    """Parse CBOR within all limits (S-LIMIT); else StrictJsonError."""
    if len(data) > most_bytes:
        raise too_large_error(most_bytes)
    reader = _Reader(data)
    try:
        value = reader.read_value("", 0)
        if reader.position != len(data):
            raise StrictJsonError(f"something follows the value, from byte {reader.position} on")
    except StrictJsonError as error:
        raise StrictJsonError(f"it cannot be read as CBOR: {error.reason}", error.path) from None
    return value


class _Reader:
    """Reads the bytes once."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._nodes = 0
        self.position = 0

    def read_value(self, path: str, depth: int) -> Any:
        """Read the value at the current position."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise StrictJsonError(f"it has more than {MAX_NODES} values", path)
        major, low = divmod(self._read_bytes(1, path)[0], 32)
        if major == _SIMPLE:
            return self._read_simple(low, path)
        if major in _UNSUPPORTED:
            raise StrictJsonError(f"this is {_UNSUPPORTED[major]}", path)
        number = self._read_number(low, path)
        if major == _TEXT:
            return self._read_text(number, path)
        if major in (_LIST, _MAP):
            if depth == MAX_DEPTH:
                raise StrictJsonError(f"it is nested more than {MAX_DEPTH} deep", path)
            read = self._read_list if major == _LIST else self._read_map
            return read(number, path, depth + 1)
        number = -1 - number if major == _NEGATIVE else number
        if abs(number) > MAX_SAFE_INTEGER:
            raise StrictJsonError(INTEGER_MESSAGE, path)
        return number

    def _read_bytes(self, count: int, path: str) -> bytes:
        taken = self._data[self.position : self.position + count]
        if len(taken) < count:
            raise StrictJsonError("it ends before it is complete", path)
        self.position += count
        return taken

    def _read_number(self, low: int, path: str) -> int:
        if low < min(_LENGTHS):
            return low
        if low == _INDEFINITE:
            raise StrictJsonError("its length is indefinite: send it with a definite length", path)
        if low not in _LENGTHS:
            raise StrictJsonError("it has a reserved initial byte", path)
        return int.from_bytes(self._read_bytes(_LENGTHS[low], path))

    def _read_simple(self, low: int, path: str) -> Any:
        if low in _CONSTANTS:
            return _CONSTANTS[low]
        if low not in _FLOATS:
            raise StrictJsonError("this is a value that JSON does not have", path)
        (number,) = struct.unpack(_FLOATS[low], self._read_bytes(_LENGTHS[low], path))
        if not math.isfinite(number):
            raise StrictJsonError(f"{number} is not a number in JSON", path)
        return number

    def _read_text(self, length: int, path: str) -> str:
        try:
            return self._read_bytes(length, path).decode()
        except UnicodeDecodeError as error:
            raise StrictJsonError(f"the text is not UTF-8: {error.reason}", path) from None

    def _read_list(self, length: int, path: str, depth: int) -> list[Any]:
        return [self.read_value(child_path(path, index), depth) for index in range(length)]

    def _read_map(self, length: int, path: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(length):
            major, low = divmod(self._read_bytes(1, path)[0], 32)
            if major != _TEXT:
                raise StrictJsonError("a key is not a text", path)
            key = self._read_text(self._read_number(low, path), path)
            if len(key) > MAX_KEY_LENGTH:
                raise StrictJsonError(f"a key has more than {MAX_KEY_LENGTH} characters", path)
            if key in found:
                raise StrictJsonError("this key stands twice in its object", child_path(path, key))
            found[key] = self.read_value(child_path(path, key), depth)
        return found


def encode_cbor(value: object) -> bytes:
    """Encode a JSON value in deterministic CBOR."""
    if isinstance(value, bool) or value is None:
        low = next(low for low, constant in _CONSTANTS.items() if constant is value)
        return bytes((_SIMPLE << 5 | low,))
    if isinstance(value, int):
        return _encode_head(_NEGATIVE, -1 - value) if value < 0 else _encode_head(_UNSIGNED, value)
    if isinstance(value, float):
        return _encode_float(value)
    if isinstance(value, str):
        text = value.encode()
        return _encode_head(_TEXT, len(text)) + text
    if isinstance(value, dict):
        items = cast(dict[str, object], value).items()
        pairs = sorted((encode_cbor(key), encode_cbor(part)) for key, part in items)
        return _encode_head(_MAP, len(pairs)) + b"".join(key + part for key, part in pairs)
    if isinstance(value, list | tuple):
        parts = [encode_cbor(part) for part in cast(Iterable[object], value)]
        return _encode_head(_LIST, len(parts)) + b"".join(parts)
    raise TypeError(f"{type(value).__name__} is no value of JSON")


def _encode_head(major: int, number: int) -> bytes:
    if number < min(_LENGTHS):
        return bytes((major << 5 | number,))
    for low, length in _LENGTHS.items():
        if number < 1 << 8 * length:
            return bytes((major << 5 | low,)) + number.to_bytes(length)
    raise ValueError(f"{number} is too large for CBOR")


def _encode_float(number: float) -> bytes:
    """Encode in the shortest of the three lengths that keeps the value."""
    if not math.isfinite(number):
        raise ValueError(f"{number} is not a number in JSON")
    for low, form in _FLOATS.items():
        try:
            written = struct.pack(form, number)
        except OverflowError:
            continue
        if struct.unpack(form, written) == (number,):
            return bytes((_SIMPLE << 5 | low,)) + written
    raise AssertionError("eight bytes keep every number")
