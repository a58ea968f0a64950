"""Upper and lower case of the letters A to Z alone.

Words of a protocol are ASCII. With all of Unicode other letters would become theirs: a sharp s is
SS in capitals, a long s is S, an i without its dot is I, and the sign of Kelvin is a small k.
"""

from string import ascii_lowercase, ascii_uppercase
from typing import Final

_UPPER: Final = str.maketrans(ascii_lowercase, ascii_uppercase)
_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)


def ascii_upper(text: str) -> str:
    """Convert the letters a to z to upper case."""
    return text.upper() if text.isascii() else text.translate(_UPPER)


def ascii_lower(text: str) -> str:
    """Convert the letters A to Z to lower case."""
    return text.lower() if text.isascii() else text.translate(_LOWER)
