"""Upper and lower case of the letters A to Z alone.

Words of a protocol are ASCII. With all of Unicode other letters would become theirs: a sharp s is
SS in capitals, a long s is S, an i without its dot is I, and the sign of Kelvin is a small k.
"""

from string import ascii_lowercase, ascii_uppercase
from typing import Final

_UPPER: Final = str.maketrans(ascii_lowercase, ascii_uppercase)
_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)


def upper(text: str) -> str:
    """The text with its letters a to z in capitals."""
    return text.upper() if text.isascii() else text.translate(_UPPER)


def lower(text: str) -> str:
    """The text with its letters A to Z as small ones."""
    return text.lower() if text.isascii() else text.translate(_LOWER)
