"""Front matter: the small part of YAML that task files use, written and strictly read.

A value is a text on one line (plain, 'quoted' or "quoted"), a list of such texts, or a map of them.
Anchors, aliases, tags, block texts and comments (which the next projection would lose) are refused,
and nothing is guessed: `no` is the text "no".
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from dragoman.files.escapes import TAG
from dragoman.files.problems import at_line
from dragoman.text.safe_text import HARMFUL

Value = str | Sequence[str] | Mapping[str, str]
Fields = dict[str, Value]
_Decode = Callable[[str, int], str]

FENCE: Final = "---"

_KEY: Final = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):(?:[ \t]+(.*))?", re.ASCII)
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]*", re.ASCII)
_WORDS_WITH_A_MEANING: Final = frozenset(
    ("y", "yes", "n", "no", "on", "off", "true", "false", "null")
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_SHORT: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
_NO_YAML: Final = re.compile("[\ufffe\uffff]")
"""Characters that YAML allows only as an escape, though they do no harm."""
_ESCAPE: Final = re.compile(
    r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2})|([nrtbf\"\\/]))"
)
_DOUBLE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_SINGLE: Final = re.compile(r"'((?:[^']|'')*)'")
_LAST_CODE: Final = 0x10FFFF
_ITEM_END: Final = re.compile(r"\s*(?:,\s*|(?=\])|\Z)")


def write_fields(fields: Mapping[str, Value | bool | int]) -> str:
    """Format fields as lines of YAML, without the fences."""
    return "".join(_lines_of(fields))


def _lines_of(fields: Mapping[str, Value | bool | int]) -> Iterator[str]:
    for key, value in fields.items():
        if isinstance(value, Mapping):
            yield f"{key}:\n"
            yield from (f"  {name}: {_scalar(inner)}\n" for name, inner in value.items())
        elif isinstance(value, str | bool | int):
            yield f"{key}: {_scalar(value)}\n"
        else:
            yield f"{key}:\n"
            yield from (f"  - {_scalar(item)}\n" for item in value)


def _scalar(value: str | bool | int) -> str:
    if not isinstance(value, str):
        return str(value).lower()
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS_WITH_A_MEANING:
        return value
    return quoted(value)


def quoted(text: str) -> str:
    """Quote a text as YAML, escaping control and invisible characters, and tags, in case the file
    is read as Markdown."""
    text = text.translate(str.maketrans(_SHORT))
    for acting in (TAG, HARMFUL, _NO_YAML):
        text = acting.sub(lambda found: _code(ord(found[0])), text)
    return f'"{text}"'


def _code(code: int) -> str:
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def read_fields(lines: Sequence[str], first: int) -> Fields:
    """Parse the lines between the fences; `first` is the number of the first one."""
    fields: Fields = {}
    reader = _Lines(lines, first)
    while (line := reader.next()) is not None:
        key, text = _key(line, reader.number)
        if key in fields:
            raise at_line(reader.number, f"{key} occurs twice")
        fields[key] = _value(text, reader)
    return fields


class _Lines:
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
                raise at_line(self.number, "a comment would not be kept: write it into the body")
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


def _key(line: str, number: int) -> tuple[str, str]:
    found = _KEY.fullmatch(line)
    if found is None:
        raise at_line(number, f"{line[:40]!a} is not of the form `name: value`")
    return found[1], (found[2] or "").strip()


def _value(text: str, reader: _Lines) -> Value:
    if not text:
        return _block(reader)
    if text.startswith("["):
        return _inline_list(text, reader.number)
    if text == "{}":
        return {}
    return _read_scalar(text, reader.number)


def _block(reader: _Lines) -> Value:
    """Parse the indented lines under a key: a list, a map, or nothing."""
    items, inner = list[str](), dict[str, str]()
    while (line := reader.next_indented()) is not None:
        if line.startswith("- ") or line == "-":
            items.append(_read_scalar(line[1:].strip(), reader.number))
            continue
        key, text = _key(line, reader.number)
        if key in inner:
            raise at_line(reader.number, f"{key} occurs twice")
        inner[key] = _read_scalar(text, reader.number)
    if items and inner:
        raise at_line(reader.number, "a list and a map are mixed under one name")
    return items or inner or ""


def _inline_list(text: str, number: int) -> list[str]:
    items, at = list[str](), 1
    while at < len(text) and text[at] == " ":
        at += 1
    while at < len(text) and text[at] != "]":
        found = _DOUBLE.match(text, at) or _SINGLE.match(text, at)
        end = found.end() if found else min(_ends(text, at))
        items.append(_read_scalar(text[at:end].strip(), number))
        after = _ITEM_END.match(text, end)
        if after is None:
            raise at_line(number, "the items of a list in brackets are separated by commas")
        at = after.end()
    if text[at:] != "]":
        raise at_line(number, "a list in brackets ends with `]` on the same line")
    return items


def _ends(text: str, at: int) -> Iterator[int]:
    yield len(text)
    yield from (end for mark in ",]" if (end := text.find(mark, at)) >= 0)


def _read_scalar(text: str, number: int) -> str:
    if text.startswith('"'):
        return _from_quotes(text, _DOUBLE, number, _unescaped)
    if text.startswith("'"):
        return _from_quotes(text, _SINGLE, number, lambda inner, _: inner.replace("''", "'"))
    if text and text[0] in "&*!|>%@`{[":
        raise at_line(number, f"a value that begins with {text[0]} must stand in double quotes")
    if " #" in text or "\t#" in text:
        raise at_line(number, "a # after a space begins a comment: put the value in double quotes")
    return text


def _from_quotes(text: str, pattern: re.Pattern[str], number: int, decode: _Decode) -> str:
    found = pattern.fullmatch(text)
    if found is None:
        raise at_line(number, "the quotes around the value do not end where the line does")
    return decode(found[1], number)


def _unescaped(inner: str, number: int) -> str:
    def character(found: re.Match[str]) -> str:
        digits = found[1] or found[2] or found[3]
        if digits is None:
            return _ESCAPES.get(found[4], found[4])
        code = int(digits, 16)
        if code > _LAST_CODE or 0xD800 <= code <= 0xDFFF:
            raise at_line(number, f"\\{found[0][1:]} is not a character")
        return chr(code)

    if "\\" in _ESCAPE.sub("", inner):
        raise at_line(number, 'a backslash in double quotes stands before n, t, ", \\ or u1234')
    return _ESCAPE.sub(character, inner)
