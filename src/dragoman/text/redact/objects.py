"""Secrets in an object that their name stands before: `"password": {"old": "…", "new": "…"}`."""

import re
from collections.abc import Iterator
from typing import Final

from dragoman.text.redact.forms import QUOTES
from dragoman.text.redact.looks import looks_random
from dragoman.text.redact.placeholders import unmasked
from dragoman.text.redact.values import value_at

WHICH: Final = frozenset({"current", "default", "new", "old", "plain", "previous", "value"})
"""Fields that only say which secret it is; others may say anything about it."""
_FIELD: Final = re.compile(
    rb"(?i)\b(?:" + "|".join(sorted(WHICH)).encode() + rb")" + QUOTES + rb"\s{0,8}[:=]\s{0,8}"
)
_LONGEST: Final = 400
"""So far behind its beginning a field of an object is looked for."""


def in_object(data: bytes, at: int) -> Iterator[tuple[int, int]]:
    """Where the secrets are of an object that begins here, up to where the first one ends."""
    if data[at : at + 1] != b"{":
        return
    most = at + _LONGEST
    end = data.find(b"}", at, most)
    while (field := _FIELD.search(data, at, end if end >= 0 else most)) is not None:
        value, at = value_at(data, field.end()), field.end()
        if value is None or value.is_bare:
            continue
        if looks_random(unmasked(data[value.start : value.end])):
            yield value.start, value.end
        at = value.end
