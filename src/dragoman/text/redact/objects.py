"""Secrets in an object or a list that their name stands before.

`"password": {"old": "…", "new": "…"}`, `"X-Api-Key": ["…"]`.
"""

import re
from collections.abc import Iterator
from typing import Final

from dragoman.text.redact.forms import QUOTES, VARIANT_FIELD
from dragoman.text.redact.looks import looks_random
from dragoman.text.redact.placeholders import without_placeholders
from dragoman.text.redact.values import parse_value

_FIELD: Final = re.compile(rb"(?i)\b" + VARIANT_FIELD + QUOTES + rb"\s{0,8}[:=]\s{0,8}")
_QUOTE_MARKS: Final = re.compile(rb"[\"'\]`*]")
"""Behind a quoted field only a quoted value is a text; YAML has both without quotes."""
_LONGEST: Final = 400
"""Distance from its start in which a field of an object, or an item of a list, is searched."""
_ITEM: Final = re.compile(
    rb"""\\{0,3}["']?(?:\s|\\{1,3}[nrt]){0,40}[\[,](?:\s|\\{1,3}[nrt]){0,40}"""
)
"""Start of an item, with the quote of the one before it."""
_BARE: Final = rb"[^\s,\[\](){}<>\"'`]+"
_BARE_ITEMS: Final = re.compile(
    rb"\[\s{0,40}(?!\S*(?:A-Z|a-z|0-9))"
    + _BARE
    + rb"(?:[ \t]{0,8},\s{0,40}"
    + _BARE
    + rb"){0,15},?\s{0,40}\](?=[\s,\]}]|\Z)"
)
"""Items of a list without quotes, as in YAML, and no expression; Go prints a single one like this:
`map[X-Api-Key:[…]]`."""
_BARE_ITEM: Final = re.compile(_BARE)
_TEXT_BLANK: Final = re.compile(r"\s")
"""Several texts with blanks in them are sentences, or lines of a program."""


def find_nested(data: bytes, at: int) -> Iterator[tuple[int, int]]:
    """Find the secrets of an object or a list that begins here."""
    return _READERS.get(data[at : at + 1], _find_nothing)(data, at)


def _find_in_object(data: bytes, at: int) -> Iterator[tuple[int, int]]:
    """Search up to the end of the first object in it."""
    most = at + _LONGEST
    end = data.find(b"}", at, most)
    while (field := _FIELD.search(data, at, end if end >= 0 else most)) is not None:
        value, at = parse_value(data, field.end()), field.end()
        if value is None or (value.is_bare and _QUOTE_MARKS.search(field[0])):
            continue
        if looks_random(without_placeholders(data[value.start : value.end])):
            yield value.start, value.end
        at = value.end


def _find_in_list(data: bytes, at: int) -> Iterator[tuple[int, int]]:
    """Search up to the first item that is no text."""
    most = at + _LONGEST
    if (bare := _BARE_ITEMS.match(data, at, most)) is not None:
        items = _BARE_ITEM.finditer(data, at, bare.end())
        yield from (one.span() for one in items if looks_random(without_placeholders(one[0])))
        return
    while (before := _ITEM.match(data, at, most)) is not None:
        value = parse_value(data, before.end())
        if value is None or value.is_bare:
            return
        item = without_placeholders(data[value.start : value.end])
        if _TEXT_BLANK.search(item) is None and looks_random(item):
            yield value.start, value.end
        at = value.end


def _find_nothing(_: bytes, __: int) -> Iterator[tuple[int, int]]:
    yield from ()


_READERS: Final = {b"{": _find_in_object, b"[": _find_in_list}
"""First byte -> function that finds the secrets."""
