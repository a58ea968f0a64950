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
_LINK_TARGET: Final = re.compile(r"\](?=[(:])")
"""Bracket before the address of a link or image, or of a reference definition, in Markdown."""

_REFERENCE: Final = re.compile(r"&((?:amp;)*)#x([0-9a-f]{1,6});")
_MAX_CODE_POINT: Final = 0x10FFFF

_BACKSLASH_ESCAPES: Final = {"\\": "\\\\", "\n": "\\n", "|": "\\|"}
_BACKSLASH_ESCAPE: Final = re.compile(r"\\(?:u\{([0-9a-f]{1,6})\}|(.))", re.DOTALL)


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


def unescape_line(text: str) -> str:
    """Reverse `escape_line`."""
    return _BACKSLASH_ESCAPE.sub(_decode_backslash, text)


def _decode_backslash(found: re.Match[str]) -> str:
    if found[1] is not None:
        code = int(found[1], 16)
        return chr(code) if code <= _MAX_CODE_POINT else found[0]
    return "\n" if found[2] == "n" else found[2]


def split_unescaped(text: str, separator: str) -> list[str]:
    """Split at separators that no backslash precedes."""
    parts, start, at = list[str](), 0, 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == separator:
            parts.append(text[start:at])
            start = at + 1
        at += 1
    return [*parts, text[start:]]
