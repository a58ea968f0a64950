"""Lenient JSON parser, for readers that accept whatever comes.

`strict_json` reports what is wrong with a text; here the rest of it is read all the same. Nothing
that a message decides may be read like this: another reader may see something else in it.
"""

import json
import re
from codecs import BOM_UTF8
from math import isfinite
from typing import Any, Final

from dragoman.text.strict_json import ESCAPED_SURROGATE

_HALF_IN_UTF8: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_NO_CHARACTER: Final = "\ufffd"


def parse_loosely(text: bytes | str, default: Any = None) -> Any:
    """Parse a JSON text leniently; `default` if that is impossible.

    The last of equal keys counts; an invalid character becomes U+FFFD, an invalid number null.
    """
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    data = _HALF_IN_UTF8.sub(_NO_CHARACTER.encode(), data.removeprefix(BOM_UTF8))
    data = ESCAPED_SURROGATE.sub(lambda found: rb"\ufffd" if found[1] else found[0], data)
    try:
        return json.loads(
            data.decode(errors="replace"),
            strict=False,
            parse_int=_parse_integer,
            parse_float=_parse_float,
            parse_constant=lambda _: None,
        )
    except (ValueError, RecursionError):
        return default


def _parse_integer(digits: str) -> int | None:
    try:
        return int(digits)
    except ValueError:  # more digits than Python takes
        return None


def _parse_float(digits: str) -> float | None:
    number = float(digits)
    return number if isfinite(number) else None
