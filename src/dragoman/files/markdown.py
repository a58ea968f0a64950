"""Markdown files: escapes that can be undone, and front matter.

A body is Markdown that people edit, so only control and invisible characters are written as a
reference (`&#x1b;`). A value on one line (a work log, front matter) takes backslashes: it was
written by others, and no tag or link of Markdown may act in it.

Front matter is a small part of YAML, strictly parsed. A value is a text on one line (plain,
'quoted' or "quoted"), or, indented on the lines below, a list of such texts or a map of them. All
else of YAML is refused, comments too (which the next projection would lose), and nothing is
guessed: `no` is the text "no".
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from dragoman.files.errors import line_error
from dragoman.text.safe_text import HARMFUL

# --- escapes ----------------------------------------------------------------------------------

TAG: Final = re.compile(r"<(?=[A-Za-z/!?])")
"""Beginning of a tag, a comment, or a link in angle brackets in Markdown."""

_LINK_TARGET: Final = re.compile(r"\](?=[(:])")
"""Bracket before the address of a link or image, or of a reference definition, in Markdown."""

_REFERENCE: Final = re.compile(r"&((?:amp;)*)#x([0-9a-f]{1,6});")

_MAX_CODE_POINT: Final = 0x10FFFF

_BACKSLASH_ESCAPES: Final = {"\\": "\\\\", "\n": "\\n", "|": "\\|"}


def escape_markup(text: str) -> str:
    """Escape tags and links, for Markdown files that are never parsed."""
    return _LINK_TARGET.sub(r"]\\", TAG.sub("&lt;", text))


def encode_references(text: str) -> str:
    """Encode every control or invisible character as a reference."""
    text = _REFERENCE.sub(lambda m: f"&amp;{m[0][1:]}" if _is_harmful_code(m[2]) else m[0], text)
    return HARMFUL.sub(lambda m: f"&#x{ord(m[0]):x};", text)


def decode_references(text: str) -> str:
    """Reverse `encode_references`."""
    return _REFERENCE.sub(_decode_reference, text)


def _decode_reference(found: re.Match[str]) -> str:
    if not _is_harmful_code(found[2]):
        return found[0]
    return f"&{found[0][5:]}" if found[1] else chr(int(found[2], 16))


def _is_harmful_code(digits: str) -> bool:
    code = int(digits, 16)
    return code <= _MAX_CODE_POINT and HARMFUL.match(chr(code)) is not None


def escape_line(text: str, also: str = "") -> str:
    """Escape line breaks, bars, tags and links, and the characters in `also`."""
    escapes = {**_BACKSLASH_ESCAPES, **{mark: f"\\{mark}" for mark in also}}
    text = text.translate(str.maketrans(escapes))
    for acting in (TAG, HARMFUL):
        text = acting.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text)
    return _LINK_TARGET.sub(r"]\\", text)


# --- front matter -----------------------------------------------------------------------------

Value = str | Sequence[str] | Mapping[str, str]

Fields = dict[str, Value]

_Decode = Callable[[str, int], str]

FENCE: Final = "---"

_KEY: Final = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):(?:[ \t]+(.*))?", re.ASCII)

_PLAIN_SCALAR: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]*", re.ASCII)

_YAML_KEYWORDS: Final = frozenset(("y", "yes", "n", "no", "on", "off", "true", "false", "null"))

_YAML_SHORT_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}

_SHORT_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}

_YAML_FORBIDDEN: Final = re.compile("[\ufffe\uffff]")
"""Characters that YAML allows only as an escape, though they do no harm."""

_YAML_ESCAPE: Final = re.compile(
    r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2})|([nrtbf\"\\/]))"
)

_DOUBLE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')

_SINGLE: Final = re.compile(r"'((?:[^']|'')*)'")

_MAX_YAML_CODE: Final = 0x10FFFF


def format_fields(fields: Mapping[str, Value | bool | int]) -> str:
    """Format fields as lines of YAML, without the fences."""
    return "".join(_format_lines(fields))


def _format_lines(fields: Mapping[str, Value | bool | int]) -> Iterator[str]:
    for key, value in fields.items():
        if isinstance(value, Mapping):
            yield f"{key}:\n"
            yield from (f"  {name}: {_format_scalar(inner)}\n" for name, inner in value.items())
        elif isinstance(value, str | bool | int):
            yield f"{key}: {_format_scalar(value)}\n"
        else:
            yield f"{key}:\n"
            yield from (f"  - {_format_scalar(item)}\n" for item in value)


def _format_scalar(value: str | bool | int) -> str:
    if not isinstance(value, str):
        return str(value).lower()
    if _PLAIN_SCALAR.fullmatch(value) and value.lower() not in _YAML_KEYWORDS:
        return value
    return quote_yaml(value)


def quote_yaml(text: str) -> str:
    """Quote a text as YAML, escaping control and invisible characters, and tags, images and links,
    in case the file is read as Markdown."""
    text = text.translate(str.maketrans(_SHORT_ESCAPES))
    for acting in (TAG, _LINK_TARGET, HARMFUL, _YAML_FORBIDDEN):
        text = acting.sub(lambda found: _escape_code(ord(found[0])), text)
    return f'"{text}"'


def _escape_code(code: int) -> str:
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def parse_fields(lines: Sequence[str], first: int) -> Fields:
    """Parse the lines between the fences; `first` is the number of the first one."""
    fields: Fields = {}
    reader = _LineReader(lines, first)
    while (line := reader.next()) is not None:
        key, text = _parse_key(line, reader.number)
        if key in fields:
            raise line_error(reader.number, f"{key} occurs twice")
        fields[key] = _parse_value(text, reader)
    return fields


class _LineReader:
    """Reads lines that are not empty; the last one can be put back."""

    def __init__(self, lines: Sequence[str], first: int) -> None:
        self._lines = lines
        self._first = first
        self._at = 0

    @property
    def number(self) -> int:
        return self._first + self._at - 1

    def next(self) -> str | None:
        while self._at < len(self._lines):
            self._at += 1
            line = self._lines[self._at - 1].rstrip()
            if line.lstrip().startswith("#"):
                raise line_error(self.number, "a comment would not be kept: write it into the body")
            if line:
                return line
        return None

    def next_indented(self) -> str | None:
        before = self._at
        line = self.next()
        if line is not None and line[0] in " -":
            return line.strip()
        self._at = before
        return None


def _parse_key(line: str, number: int) -> tuple[str, str]:
    found = _KEY.fullmatch(line)
    if found is None:
        raise line_error(number, f"{line[:40]!a} is not of the form `name: value`")
    return found[1], (found[2] or "").strip()


def _parse_value(text: str, reader: _LineReader) -> Value:
    if not text:
        return _parse_block(reader)
    return _parse_scalar(text, reader.number)


def _parse_block(reader: _LineReader) -> Value:
    """Parse the indented lines under a key: a list, a map, or nothing."""
    items, inner = list[str](), dict[str, str]()
    while (line := reader.next_indented()) is not None:
        if line.startswith("- ") or line == "-":
            items.append(_parse_scalar(line[1:].strip(), reader.number))
            continue
        key, text = _parse_key(line, reader.number)
        if key in inner:
            raise line_error(reader.number, f"{key} occurs twice")
        inner[key] = _parse_scalar(text, reader.number)
    if items and inner:
        raise line_error(reader.number, "a list and a map are mixed under one name")
    return items or inner or ""


def _parse_scalar(text: str, number: int) -> str:
    if text.startswith('"'):
        return _parse_quoted(text, _DOUBLE, number, _decode_yaml_escapes)
    if text.startswith("'"):
        return _parse_quoted(text, _SINGLE, number, lambda inner, _: inner.replace("''", "'"))
    if text and text[0] in "&*!|>%@`{[":
        raise line_error(number, f"a value that begins with {text[0]} must stand in double quotes")
    if " #" in text or "\t#" in text:
        raise line_error(
            number, "a # after a space begins a comment: put the value in double quotes"
        )
    return text


def _parse_quoted(text: str, pattern: re.Pattern[str], number: int, decode: _Decode) -> str:
    found = pattern.fullmatch(text)
    if found is None:
        raise line_error(number, "the quotes around the value do not end where the line does")
    return decode(found[1], number)


def _decode_yaml_escapes(inner: str, number: int) -> str:
    def character(found: re.Match[str]) -> str:
        digits = found[1] or found[2] or found[3]
        if digits is None:
            return _YAML_SHORT_ESCAPES.get(found[4], found[4])
        code = int(digits, 16)
        if code > _MAX_YAML_CODE or 0xD800 <= code <= 0xDFFF:
            raise line_error(number, f"\\{found[0][1:]} is not a character")
        return chr(code)

    if "\\" in _YAML_ESCAPE.sub("", inner):
        raise line_error(number, 'a backslash in double quotes stands before n, t, ", \\ or u1234')
    return _YAML_ESCAPE.sub(character, inner)
