"""Visible form of a text: no invisible characters, confusable letters mapped to one.

For rules that words must not slip past; for finding things, see `search_terms`.
"""

import re
import unicodedata
from typing import Final

from msgspec import Struct

from dragoman.text.search_terms import Words

_WORD: Final = re.compile(r"[^\W_]+")
_MARKS: Final = re.compile(
    "[\u0300-\u034e\u0350-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
"""Combining marks."""
_HIDDEN: Final = re.compile(
    "[\0-\x08\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]+"
)
"""Characters that are invisible, or change how others look."""
_WITHIN: Final = re.compile(rf"[^\W_]{_HIDDEN.pattern}[^\W_]")

_CAPITALS: Final = str.maketrans(
    "АВСЕНІЈКМОРЅТУХ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",  # noqa: RUF001  Cyrillic and Greek, for once
    "abcehijkmopstyx" + "abezhikmnoptyx",
)
_LETTERS: Final = str.maketrans(
    "аԁеһіјкӏмոорԛгѕтусхԝ" + "αεικνορτυχω" + "ıȷɑɡɩ",
    "adehijklmnopqrstycxw" + "aeikvoptuxw" + "ijagi",
)
"""Confusable letter -> letter that it looks like. Both sides of a comparison are mapped."""


class VisibleText(Struct, frozen=True, gc=False):
    """Visible words of a text, and all of its letters joined if a hidden character is within a
    word.
    """

    words: Words
    letters: str = ""


def visible_words(text: str) -> VisibleText:
    """Visible words of a text, for comparison."""
    shown = text.casefold() if text.isascii() else _fold_confusables(text)
    words = tuple(_WORD.findall(_HIDDEN.sub("", shown)))
    return VisibleText(words, "".join(words) if _WITHIN.search(shown) else "")


def has_visible_text(text: str) -> bool:
    """Check whether a text has any visible character."""
    return bool(_HIDDEN.sub("", text).strip())


def _fold_confusables(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text).translate(_CAPITALS).casefold()
    # Folding may add a mark to a letter that had none: decompose again.
    return _MARKS.sub("", unicodedata.normalize("NFKD", decomposed)).translate(_LETTERS)
