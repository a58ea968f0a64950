"""Private keys in PEM and of PuTTY: as blocks, on one escaped line, or line by line.

The lines of a PuTTY key follow `Private-Lines:`
(https://the.earth.li/~sgtatham/putty/0.83/htmldoc/AppendixC.html). For lines that are recorded one
by one, the only state is the number of lines since the last one of a key. Other lines may stand in
between; the further away from the key, the more a line must look like one of it.
"""

from collections.abc import Iterator
from typing import Final

from dragoman.text.linear_regex import LinearRegex
from dragoman.text.redact.normalized_text import remove_hidden

# --- blocks -----------------------------------------------------------------------------------

PRIVATE_KEY: Final = "private_key"
"""Kind of a private key in a placeholder."""

KEY_STARTS: Final = ("-----BEGIN", "Private-Lines:")
"""Starts of a key."""

_HEADER: Final = (
    rb"(?:-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    rb"|Private-Lines: [0-9]{1,4})"
)

FOOTER: Final = rb"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"

_BREAK: Final = (
    rb"(?:\r?\n|\r|\\{1,3}r\\{1,3}n|\\{1,3}[nrv]"
    rb"|\\{1,3}u000[aAbBdD]|\\{1,3}x0[aAbBdD]|%0[aAdD])"
)

_NEXT_TEXT: Final = rb"\\{0,3}[\"'],[ \t]{0,4}\\{0,3}[\"']"
"""Between two lines that are items of a list."""

KEY_CHARACTER: Final = rb"(?:[A-Za-z0-9+/=]|%[0-9A-Fa-f]{2}|\\{1,3}/)"
"""Character of a key, also as URLs and JSON write it."""

KEY_HEADER: Final = rb"(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash):[^\n\\]{0,200}"

QUOTE_MARK: Final = rb"[ \t>|#*+-]{0,32}"
"""Quote mark or diff mark before a line."""

LINE_LABEL: Final = rb"(?:-{0,4}[^\r\n-]){0,64}?(?:[ \t:|>\"'`]|\xe2\x86\x92|\xe2\x94\x82)"
"""Prefix of a log or a program before a line (it may end with a quote, an arrow, or a line of a
box); never the mark of another key, and as short as possible; only a line that is surely of a key
may follow it."""

_CLOSED: Final = rb"(?:\\{1,3}[nr]){0,2}\\{0,3}[\"'`][ \t]{0,4}[+.,;)\\]{0,2}[ \t]*"
"""End of a line in a text that a program concatenates."""

LINE_TRAILER: Final = rb"[ \t]*(?:(?:\||\xe2\x94[\x82\x83]|\xe2\x95\x91)[ \t]*|" + _CLOSED + rb")?"
"""Blanks, the side of a box in which the key is shown, or a quote behind a line."""

_LONG: Final = KEY_CHARACTER + rb"{40,}"

_LINE: Final = (
    rb"(?:"
    + QUOTE_MARK
    + rb"(?:"
    + KEY_HEADER
    + rb"|"
    + KEY_CHARACTER
    + rb"*)|"
    + LINE_LABEL
    + _LONG
    + rb")"
)

_WORDS: Final = rb"[ \t]{0,4}" + _LONG
"""Words of a key whose line breaks became blanks, or nothing."""

_BEFORE: Final = _HEADER + LINE_TRAILER

_LINES: Final = (
    rb"(?:" + _BREAK + _LINE + LINE_TRAILER + rb"|" + _NEXT_TEXT + _LONG + rb"|" + _WORDS + rb")*"
)
"""Lines between header and footer."""

_SHORT: Final = (
    rb"(?:(?:"
    + _BREAK
    + LINE_LABEL
    + rb"|[ \t]{1,4}|"
    + _NEXT_TEXT
    + rb")"
    + KEY_CHARACTER
    + rb"{1,64}"
    + LINE_TRAILER
) + rb")?"
"""Last line behind a label, or last word: part of the key if the footer follows."""

_BLOCK: Final = LinearRegex(
    _BEFORE
    + rb"("
    + _LINES
    + rb")(?:("
    + _SHORT
    + rb"(?:"
    + _NEXT_TEXT
    + rb"|"
    + _BREAK
    + rb"(?:"
    + LINE_LABEL
    + rb")?)?"
    + QUOTE_MARK
    + FOOTER
    + rb")|"
    + _BREAK
    + rb"|[\"'<]|\z)|"
    + _BEFORE
    + rb"((?:"
    + _WORDS
    + rb")+)",
    longest=True,
)
"""A key without a footer ends before a line, or a word, that is no part of one."""

_OPEN: Final = LinearRegex(
    rb"-----BEGIN(?:[ ][A-Z0-9]{1,20}){0,5}[ ]?\z|Private-Lines:[ ]?[0-9]{0,4}\z|"
    + _BEFORE
    + _LINES
    + _SHORT
    + rb"(?:(?:"
    + _BREAK
    + rb"|\\{0,3}[\"'],)[^\r\n]{0,200})?"
    + QUOTE_MARK
    + rb"(?:-----END(?:[ ][A-Z0-9]{1,20}){0,5}[ ]?)?\z",
    captures=False,
)

_BEGINS: Final = tuple(begin.encode() for begin in KEY_STARTS)

_LEAST: Final = LinearRegex(KEY_CHARACTER + rb"{16}", captures=False)
"""Shortest run of characters in a key; a mere mention of one has none."""

_CLOSED_END: Final = LinearRegex(_CLOSED + rb"[\r\n]*\z", captures=False)


def find_private_keys(data: bytes) -> Iterator[tuple[int, int, str]]:
    at, last = 0, max(data.rfind(begin) for begin in _BEGINS)
    while at <= last and (found := _BLOCK.search(data, at)) is not None:
        start, at = found.span()
        body_start, body_end = max(found.span(1), found.span(3))
        if _LEAST.search(data, body_start, body_end) is not None:
            closed = _CLOSED_END.search(data[body_start:body_end])
            body_end = body_start + closed.start() if closed else body_end
            while data[body_end - 1] in b" \t\r\n":
                body_end -= 1
            yield start, max(body_end, found.end(2)), PRIVATE_KEY


def is_open_key(data: bytes) -> bool:
    """Check whether a block that begins here may go on behind the data."""
    return _OPEN.match(data) is not None


# --- line by line -----------------------------------------------------------------------------

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

_GROUP: Final = 4
"""Base64 is written in groups of this many characters."""

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
    return short is not None and not _is_likely_word(body[slice(*short.span(1))])


def _is_likely_word(short: bytes) -> bool:
    """Check whether the text behind a label is rather a word than the last line of a key."""
    is_cased = short.islower() or short.istitle() or short.isupper()
    return len(short) % _GROUP > 0 or (short.isalpha() and is_cased)
