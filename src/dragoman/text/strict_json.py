"""JSON of untrusted bytes: a value that every reader parses alike, or an error.

Every message passes here, so the usual case costs one decoding by msgspec and one walk by levels.
msgspec refuses bad UTF-8, NaN and half surrogate pairs by itself. It silently keeps the last of two
equal keys, so keys are counted: in the text a colon follows each, and all other colons are inside
strings. An error is located by a second, slow pass.
"""

import json
from codecs import BOM_UTF8
from itertools import islice
from math import isfinite
from typing import Any, Final, cast

import msgspec

from dragoman.text.lazy_regex import lazy_regex

# --- limits and patterns ----------------------------------------------------------------------

MAX_BYTES: Final = 256 * 1024

MAX_DEPTH: Final = 32

MAX_NODES: Final = 10_000

MAX_KEY_LENGTH: Final = 64

MAX_SAFE_INTEGER: Final = 2**53 - 1
"""Every JSON reader keeps whole numbers exactly up to here."""

_MAX_SEPARATORS: Final = 4 * MAX_NODES
"""A text of n values has at most 2 n commas and opening brackets. One of twice as many values as
are allowed is not parsed, not even to locate the error: that would take a hundred times the memory
of the text, and seconds."""

_ESCAPED_COLON: Final = lazy_regex(rb"\\u003[aA]")

_STRING: Final = lazy_regex(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"')

_MANY_SEPARATORS: Final = lazy_regex(
    rb'(?:(?:[^,{\["]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+[,{\[]){%d}+' % (_MAX_SEPARATORS + 1)
)
"""More commas and opening brackets than `_MAX_SEPARATORS`, outside of strings."""

_ESCAPED_SURROGATE: Final = lazy_regex(
    rb"\\\\|\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(\\u[dD][89a-fA-F]\w\w)"
)
"""An escaped backslash, a whole surrogate pair, or (group 1) half of one."""

_SURROGATE_IN_UTF8: Final = lazy_regex(rb"\xed[\xa0-\xbf]")

_DECODER_MESSAGES: Final = {"Input data was truncated": "it ends before it is complete"}
"""Message of the decoder -> our message."""

_SURROGATE: Final = lazy_regex("[\ud800-\udfff]")

INTEGER_MESSAGE: Final = (
    f"the whole number is beyond ±{MAX_SAFE_INTEGER}, where not every reader is exact"
)

_MAX_SHOWN: Final = 40

_decode = msgspec.json.Decoder().decode

_write = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


# --- parse and encode -------------------------------------------------------------------------


class StrictJsonError(ValueError):
    """A text was refused: its path (empty: as a whole) and the reason."""

    def __init__(self, reason: str, path: str = "", *, too_large: bool = False) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path = path
        self.reason = reason
        self.too_large = too_large


def parse_json(
    text: bytes | str, max_bytes: int = MAX_BYTES, *, allow_big_integers: bool = False
) -> Any:
    """Parse a JSON text within all limits (S-LIMIT); else StrictJsonError.

    `allow_big_integers`: whole numbers are unbounded here, for shapes that have limits of their
    own.
    """
    data = _as_bytes(text, max_bytes)
    if len(data) > max_bytes:
        raise too_large_error(max_bytes)
    if len(data) > _MAX_SEPARATORS and _has_far_too_many_values(data):
        raise _too_many()
    try:
        value = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _syntax_error(data, error) from None
    keys, strings = _collect_strings(value, None if allow_big_integers else MAX_SAFE_INTEGER)
    if not _has_unique_keys(data, keys, strings):
        raise StrictJsonError(
            "this key stands twice in its object", _find_duplicate_key(data.decode())
        )
    return value


def encode_json(value: object) -> bytes:
    """Encode a value that was parsed elsewhere as JSON, for `parse_json`; else StrictJsonError."""
    try:
        return _write(value).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise StrictJsonError(f"this cannot be written as JSON: {error}") from None


def check_encodable(value: Any) -> None:
    """Raise StrictJsonError for the first part of a value that JSON cannot express, or that not
    every reader keeps; its size is not checked.
    """
    pending: list[tuple[str, Any]] = [("", value)]
    while pending:
        path, item = pending.pop()
        reason = _encoding_problem(item)
        if reason:
            raise StrictJsonError(reason, path)
        pending += [(child_path(path, name), part) for name, part in reversed(_children(item))]


def get_field(value: Any, name: str) -> Any:
    """Value of an object's field; None if it is missing, or if this is no object."""
    return cast(dict[str, Any], value).get(name) if isinstance(value, dict) else None


# --- checks -----------------------------------------------------------------------------------


def _encoding_problem(item: Any) -> str:
    """Problem of a part by itself; empty: none."""
    if isinstance(item, float) and not isfinite(item):
        return f"{item} is not a number in JSON"
    if isinstance(item, int) and abs(item) > MAX_SAFE_INTEGER:
        return INTEGER_MESSAGE
    if isinstance(item, str) and not _is_utf8(item):
        return "it has half of a surrogate pair, which is no character"
    if isinstance(item, dict):
        keys = cast(dict[object, object], item)
        bad_key = next((key for key in keys if not isinstance(key, str) or not _is_utf8(key)), None)
        return "" if bad_key is None else f"the key {bad_key!a} is not a text"
    return ""


def _is_utf8(text: str) -> bool:
    return text.isascii() or not _SURROGATE.search(text)


def too_large_error(max_bytes: int) -> StrictJsonError:
    """Error for a text that is too long to be parsed, and may not have been read to its end."""
    return StrictJsonError(
        f"it has more than {max_bytes} bytes, and no more are taken", too_large=True
    )


def _too_many(path: str = "") -> StrictJsonError:
    return StrictJsonError(f"it has more than {MAX_NODES} values", path)


def _has_far_too_many_values(data: bytes) -> bool:
    """Check whether a text has more commas and brackets than one of twice the most values can have,
    if it is JSON at all.
    """
    # Few texts have as many even in their strings, so that these are seldom looked for.
    return (
        data.count(b",") + data.count(b"[") + data.count(b"{") > _MAX_SEPARATORS
        and _MANY_SEPARATORS.match(data) is not None
    )


def _as_bytes(text: bytes | str, max_bytes: int) -> bytes:
    if isinstance(text, bytes):
        return text
    if len(text) > max_bytes:
        raise too_large_error(max_bytes)
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise StrictJsonError(
            f"character {error.start + 1} is half of a surrogate pair, which is no character"
        ) from None


def _syntax_error(data: bytes, error: Exception) -> StrictJsonError:
    if isinstance(error, RecursionError):
        return StrictJsonError(f"it is nested more than {MAX_DEPTH} deep")
    return StrictJsonError(
        _text_problem(data) or f"this is not JSON: {_DECODER_MESSAGES.get(str(error), error)}"
    )


def _text_problem(data: bytes) -> str:
    """Problem of the bytes before parsing; empty: none."""
    if not data.strip():
        return "there is nothing in it"
    if data.startswith(BOM_UTF8):
        return "it begins with a byte order mark (U+FEFF): leave that out"
    try:
        data.decode()
    except UnicodeDecodeError as error:
        if _SURROGATE_IN_UTF8.match(data, error.start):
            return f"byte {error.start} begins half of a surrogate pair, which is no character"
        return f"this is not UTF-8: {error.reason} (byte {error.start})"
    for found in _ESCAPED_SURROGATE.finditer(data):
        if found[1]:
            half = found[1].decode()
            return f"{half} (byte {found.start()}) is half of a surrogate pair: it needs the other"
    return ""


def _collect_strings(value: Any, largest: int | None) -> tuple[list[str], list[str]]:
    """Collect all keys and all other strings of a value within the limits."""
    keys: list[str] = []
    strings: list[str] = []
    level: list[Any] = [value]
    nodes: int = 0
    depth: int = 0
    while level:
        nodes += len(level)
        below: list[Any] = []
        for item in level:
            kind = cast(type[Any], type(item))
            if kind is str:
                strings.append(item)
            elif kind is dict or kind is list:
                if depth == MAX_DEPTH or nodes + len(below) + len(item) > MAX_NODES:
                    raise _limit_error(value)
                if kind is dict:
                    keys += item
                    below += item.values()
                else:
                    below += item
            elif kind is int and largest is not None and not -largest <= item <= largest:
                raise _limit_error(value)
        level = below
        depth += 1
    if keys and max(map(len, keys)) > MAX_KEY_LENGTH:
        raise _limit_error(value)
    return keys, strings


def _has_unique_keys(data: bytes, keys: list[str], strings: list[str]) -> bool:
    """Check whether no key of the text was lost because its object has it twice."""
    if b"\\u003" in data and _ESCAPED_COLON.search(data):
        return _STRING.sub(b"", data).count(b":") == len(keys)
    return data.count(b":") == len(keys) + "".join(keys).count(":") + "".join(strings).count(":")


def _limit_error(value: Any) -> StrictJsonError:
    """Error for the first part, in reading order, that exceeds a limit."""
    nodes = 0
    pending: list[tuple[str, int, Any]] = [("", 1, value)]
    while pending:
        path, depth, item = pending.pop()
        nodes += 1
        if nodes > MAX_NODES:
            return _too_many(path)
        if isinstance(item, int) and not -MAX_SAFE_INTEGER <= item <= MAX_SAFE_INTEGER:
            return StrictJsonError(INTEGER_MESSAGE, path)
        if isinstance(item, dict | list) and depth > MAX_DEPTH:
            return StrictJsonError(f"it is nested more than {MAX_DEPTH} deep", path)
        # Parts beyond the count limit cannot be reached.
        for name, part in reversed(_children(item, MAX_NODES - nodes + 1)):
            if isinstance(name, str) and len(name) > MAX_KEY_LENGTH:
                shown = child_path(path, name[:_MAX_SHOWN] + "…")
                return StrictJsonError(f"a key has more than {MAX_KEY_LENGTH} characters", shown)
            pending.append((child_path(path, name), depth + 1, part))
    raise AssertionError("every bound is checked here that is checked in the walk")


def _children(item: Any, limit: int | None = None) -> list[tuple[str | int, Any]]:
    """Parts of a value, or the first ones."""
    if isinstance(item, dict):
        return list(islice(cast(dict[str, Any], item).items(), limit))
    return list(islice(enumerate(cast(list[Any], item)), limit)) if isinstance(item, list) else []


def child_path(path: str, name: str | int) -> str:
    """Path of a part."""
    if isinstance(name, int):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else name


_TWICE: Final = object()
"""Value of a key that its object has already."""


def _find_duplicate_key(text: str) -> str:
    """Path of the first key of a JSON text that its object has already."""

    def mark(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            found[key] = _TWICE if key in found else value
        return found

    value = json.loads(text, object_pairs_hook=mark, parse_int=lambda _: 0)
    pending: list[tuple[str, Any]] = [("", value)]
    while pending[-1][1] is not _TWICE:
        path, item = pending.pop()
        pending += [(child_path(path, name), part) for name, part in reversed(_children(item))]
    return pending[-1][0]


# --- lenient reading --------------------------------------------------------------------------

_HALF_IN_UTF8: Final = lazy_regex(rb"\xed[\xa0-\xbf][\x80-\xbf]")


def parse_loosely(text: bytes | str, default: Any = None) -> Any:
    """Parse a JSON text leniently; `default` if that is impossible.

    The last of equal keys counts; an invalid character becomes U+FFFD, an invalid number null. For
    readers that report what is wrong and show the rest: another reader may see something else in
    it, so that no message decides anything that is read like this.
    """
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    data = _HALF_IN_UTF8.sub("\ufffd".encode(), data.removeprefix(BOM_UTF8))
    data = _ESCAPED_SURROGATE.sub(lambda found: rb"\ufffd" if found[1] else found[0], data)
    try:
        return json.loads(
            data.decode(errors="replace"),
            strict=False,
            parse_int=_parse_integer,
            parse_float=_parse_float,
            parse_constant=lambda _: None,
        )
    except (ValueError, RecursionError):
        return default


def _parse_integer(digits: str) -> int | None:
    try:
        return int(digits)
    except ValueError:  # more digits than Python takes
        return None


def _parse_float(digits: str) -> float | None:
    number = float(digits)
    return number if isfinite(number) else None
