"""Makes untrusted text harmless for terminals and logs (CWE-150).

The rule, in this order:

1. A whole escape sequence disappears: CSI, OSC (ended by BEL or ST), DCS, SOS, PM and APC (ended
   by ST), the short escapes, each in its 7-bit (ESC ...) and its 8-bit (C1) form.
2. CR LF becomes LF.
3. Every other character that steers or hides becomes U+FFFD, one for one: C0 except line feed and
   tab, DEL, C1, bidi controls, line and paragraph separators, invisible and zero-width characters,
   tag characters, variation selectors other than the text and emoji style, lone surrogates.
4. On one line, a line feed becomes U+23CE and a tab becomes a space.

A sequence that is malformed or never ends is not a sequence: its first character becomes U+FFFD
and its payload stays readable, because a stray ESC must not hide what a reader should see. The
payload of a string such as OSC ends at the line's end at the latest.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from dragoman.text.lazy_regex import lazy_regex

REPLACEMENT: Final = "\ufffd"
LINE_MARK: Final = "\u23ce"

_encode = msgspec.json.Encoder().encode

# Possessive quantifiers and disjoint classes: no alternative is ever tried twice over the same
# characters, and no payload contains the start of another sequence, so the scan is linear.
_SEQUENCE: Final = lazy_regex(
    r"""
      (?: \x1b\[ | \x9b ) [0-?]*+ [ -/]*+ [@-~]                            # CSI
    | (?: \x1b\] | \x9d ) [^\x00-\x1f\x7f-\x9f]*+ (?: \x07 | \x1b\\ | \x9c )  # OSC
    | (?: \x1b[PX^_] | [\x90\x98\x9e\x9f] )
      [^\x00-\x1f\x7f-\x9f]*+ (?: \x1b\\ | \x9c )                          # DCS SOS PM APC
    | \x1b [ -/]++ [0-~]                                                   # such as ESC ( B
    | \x1b [0-OQ-WYZ\\`-~]                                                 # such as ESC c
    """,
    re.VERBOSE,
)

HARMFUL_CLASS: Final = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # zero width, separators, bidi
    r"\u3164\ud800-\udfff"  # Hangul filler, surrogates
    r"\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"  # tags, supplementary variation selectors
)
"""Content of a character class: control, bidi and invisible characters."""
HARMFUL: Final = lazy_regex(f"[{HARMFUL_CLASS}]")
"""A control, bidi or invisible character."""

_ON_ONE_LINE: Final = str.maketrans({"\n": LINE_MARK, "\t": " "})


def harmless_json(text: str) -> str:
    """Equivalent JSON with every control, bidi or invisible character as an escape.

    In JSON, a character beyond the BMP is escaped as a surrogate pair.
    """
    return HARMFUL.sub(lambda found: json.dumps(found[0])[1:-1], text)


def harmless_line(fields: Mapping[str, Any]) -> bytes:
    """Encode fields as JSON on one line, for readers with any idea of a line's end."""
    line = _encode(fields)
    return line if line.isascii() else harmless_json(line.decode()).encode()


def safe_text(text: str, *, one_line: bool = False) -> str:
    """Make a text harmless: nothing in it steers a terminal, forges a log line or hides."""
    if text.isascii() and text.isprintable():
        return text
    if HARMFUL.search(text) is not None:
        text = _SEQUENCE.sub("", text).replace("\r\n", "\n")
        text = HARMFUL.sub(REPLACEMENT, text)
    return text.translate(_ON_ONE_LINE) if one_line else text
