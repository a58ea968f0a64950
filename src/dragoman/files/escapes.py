"""Escapes that can be undone: any text comes back from a file as it was put in.

A body is Markdown that people edit, so only what steers or hides is written as a reference
(`&#x1b;`). A value on one line (a work log, a front matter) takes backslashes: these are words of
others, in which no tag and no link of Markdown may act.
"""

import re
from typing import Final

from dragoman.text.safe_text import HARMFUL

TAG: Final = re.compile(r"<(?=[A-Za-z/!?])")
"""Beginning of a tag, a comment, or a link in angle brackets in Markdown."""
_LINK: Final = re.compile(r"\](?=[(:])")
"""Bracket before the address of a link or image, or of a reference definition, in Markdown."""

_REFERENCE: Final = re.compile(r"&((?:amp;)*)#x([0-9a-f]{1,6});")
_LAST_CODE: Final = 0x10FFFF

_BACKSLASHED: Final = {"\\": "\\\\", "\n": "\\n", "|": "\\|"}
_ESCAPE: Final = re.compile(r"\\(?:u\{([0-9a-f]{1,6})\}|(.))", re.DOTALL)


def without_markup(text: str) -> str:
    """Escape tags and links, for Markdown files that are never parsed."""
    return _LINK.sub(r"]\\", TAG.sub("&lt;", text))


def with_references(text: str) -> str:
    """Encode every control or invisible character as a reference."""
    text = _REFERENCE.sub(lambda m: f"&amp;{m[0][1:]}" if _means_harm(m[2]) else m[0], text)
    return HARMFUL.sub(lambda m: f"&#x{ord(m[0]):x};", text)


def without_references(text: str) -> str:
    """Reverse `encode_references`."""
    return _REFERENCE.sub(_dereferenced, text)


def _dereferenced(found: re.Match[str]) -> str:
    if not _means_harm(found[2]):
        return found[0]
    return f"&{found[0][5:]}" if found[1] else chr(int(found[2], 16))


def _means_harm(digits: str) -> bool:
    code = int(digits, 16)
    return code <= _LAST_CODE and HARMFUL.match(chr(code)) is not None


def on_one_line(text: str, also: str = "") -> str:
    """Escape line breaks, bars, tags and links, and the characters in `also`."""
    marks = {**_BACKSLASHED, **{mark: f"\\{mark}" for mark in also}}
    text = text.translate(str.maketrans(marks))
    for acting in (TAG, HARMFUL):
        text = acting.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text)
    return _LINK.sub(r"]\\", text)


def from_one_line(text: str) -> str:
    """Reverse `escape_line`."""
    return _ESCAPE.sub(_unescaped, text)


def _unescaped(found: re.Match[str]) -> str:
    if found[1] is not None:
        code = int(found[1], 16)
        return chr(code) if code <= _LAST_CODE else found[0]
    return "\n" if found[2] == "n" else found[2]


def split_unescaped(text: str, mark: str) -> list[str]:
    """Split at separators that no backslash precedes."""
    parts, start, at = list[str](), 0, 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == mark:
            parts.append(text[start:at])
            start = at + 1
        at += 1
    return [*parts, text[start:]]
