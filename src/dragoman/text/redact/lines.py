"""Lines that are kept as they come: those that go on with a private key of an earlier one.

All that is known of a key from line to line is how many lines came since its last one. Lines of
something else may stand in between; the further away from the key, the more a line must look like
one of it.
"""

from typing import Final

from dragoman.text.linear import LinearRegex
from dragoman.text.redact.blocks import (
    FOOTER,
    KEY_CHARACTER,
    KEY_HEADER,
    KEY_STARTS,
    LINE_LABEL,
    LINE_TRAILER,
    QUOTE_MARK,
    is_likely_word,
    is_open_key,
)
from dragoman.text.redact.hidden import remove_hidden

NO_OPEN_KEY: Final = -1
"""No key is open."""
_BEGUN: Final = 1
_FAR: Final = 32
"""Foreign lines that may stand in a key."""
_END: Final = LINE_TRAILER + rb"\r?\z"
_LABELLED_KEY_LINE: Final = LINE_LABEL + KEY_CHARACTER + rb"{40,}"
_FORMS: Final = (
    LinearRegex(
        rb"(?:" + QUOTE_MARK + KEY_CHARACTER + rb"{2,}|" + _LABELLED_KEY_LINE + rb")" + _END,
        captures=False,
    ),
    LinearRegex(
        rb"(?:" + QUOTE_MARK + KEY_CHARACTER + rb"{16,}|" + _LABELLED_KEY_LINE + rb")" + _END,
        captures=False,
    ),
    LinearRegex(QUOTE_MARK + KEY_CHARACTER + rb"{40,}" + _END, captures=False),
)
"""Line of a key: directly behind another one, behind the start, further away."""
_SHORT_LAST_LINE: Final = LinearRegex(LINE_LABEL + rb"(" + KEY_CHARACTER + rb"{1,64})" + _END)
_BESIDE: Final = LinearRegex(
    rb"(?:" + LINE_LABEL + rb")?" + QUOTE_MARK + rb"(?:" + KEY_HEADER + rb")?" + _END,
    captures=False,
)
_MENTIONED: Final = LinearRegex(rb"-[\"'`]" + _END, captures=False)
"""Start of a key in a program's source, without a key."""
_FOOTER: Final = LinearRegex(FOOTER, captures=False)


def lines_since_key_start(text: str) -> int:
    """Lines since a key that begins in a text; NO_OPEN_KEY: none begins."""
    begin = max(map(text.rfind, KEY_STARTS))
    if begin < 0:
        return NO_OPEN_KEY
    data = remove_hidden(text[begin:].encode(errors="surrogatepass")).data
    is_mentioned = _MENTIONED.search(data) is not None
    return _BEGUN if is_open_key(data + b"\n") and not is_mentioned else NO_OPEN_KEY


def key_prefix_length(text: str, lines_since: int) -> tuple[int, int]:
    """Length of the key lines at the start of a text, given the number of lines since the last one;
    and that number behind the text.
    """
    size = 0
    for line in text.split("\n"):
        part, lines_since = _key_part_of_line(line, lines_since)
        size += bool(size and part) + part  # including the line feed before it
        if part < len(line) or not part:
            break
    return size, lines_since


def _key_part_of_line(line: str, lines_since: int) -> tuple[int, int]:
    data = line.encode(errors="surrogatepass")
    reading = remove_hidden(data)
    footer = _FOOTER.search(reading.data)
    body = reading.data[: footer.start()] if footer else reading.data
    is_of_key = _is_key_line(body, lines_since)
    end = reading.original_end(len(body)) if footer else len(data)
    size = len(data[:end].decode(errors="surrogatepass")) if is_of_key else 0
    if footer:
        return size, NO_OPEN_KEY
    if is_of_key:
        return size, 0
    if _BESIDE.match(body) is None:
        lines_since += 1
    return size, lines_since if lines_since <= _FAR else NO_OPEN_KEY


def _is_key_line(body: bytes, lines_since: int) -> bool:
    if _FORMS[min(lines_since, len(_FORMS) - 1)].match(body) is not None:
        return True
    short = _SHORT_LAST_LINE.match(body) if not lines_since else None
    return short is not None and not is_likely_word(body[slice(*short.span(1))])
