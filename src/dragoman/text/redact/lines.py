"""Lines that are kept as they come: those that go on with a private key of an earlier one.

All that is known of a key from line to line is how many lines came since its last one. Lines of
something else may stand in between; the further away from the key, the more a line must look like
one of it.
"""

from typing import Final

from dragoman.text.linear import Linear
from dragoman.text.redact.blocks import (
    ABOUT,
    BEGINS,
    BEHIND,
    FOOTER,
    KEY,
    LABEL,
    MARK,
    is_open,
    is_word,
)
from dragoman.text.redact.hidden import read

OVER: Final = -1
"""No key is open."""
_BEGUN: Final = 1
_FAR: Final = 32
"""Foreign lines that may stand in a key."""
_END: Final = BEHIND + rb"\r?\z"
_LABELLED: Final = LABEL + KEY + rb"{40,}"
_FORMS: Final = (
    Linear(rb"(?:" + MARK + KEY + rb"{2,}|" + _LABELLED + rb")" + _END, captures=False),
    Linear(rb"(?:" + MARK + KEY + rb"{16,}|" + _LABELLED + rb")" + _END, captures=False),
    Linear(MARK + KEY + rb"{40,}" + _END, captures=False),
)
"""Line of a key: directly behind another one, behind the start, further away."""
_SHORT: Final = Linear(LABEL + rb"(" + KEY + rb"{1,64})" + _END)
_BESIDE: Final = Linear(
    rb"(?:" + LABEL + rb")?" + MARK + rb"(?:" + ABOUT + rb")?" + _END, captures=False
)
_MENTIONED: Final = Linear(rb"-[\"'`]" + _END, captures=False)
"""Start of a key in a program's source, without a key."""
_FOOTER: Final = Linear(FOOTER, captures=False)


def begun(text: str) -> int:
    """Lines since a key that begins in a text; NO_OPEN_KEY: none begins."""
    begin = max(map(text.rfind, BEGINS))
    if begin < 0:
        return OVER
    data = read(text[begin:].encode(errors="surrogatepass")).data
    is_mentioned = _MENTIONED.search(data) is not None
    return _BEGUN if is_open(data + b"\n") and not is_mentioned else OVER


def of_key(text: str, since: int) -> tuple[int, int]:
    """Length of the key lines at the start of a text, given the number of lines since the last one;
    and that number behind the text.
    """
    size = 0
    for line in text.split("\n"):
        part, since = _of_line(line, since)
        size += bool(size and part) + part  # including the line feed before it
        if part < len(line) or not part:
            break
    return size, since


def _of_line(line: str, since: int) -> tuple[int, int]:
    data = line.encode(errors="surrogatepass")
    reading = read(data)
    footer = _FOOTER.search(reading.data)
    body = reading.data[: footer.start()] if footer else reading.data
    is_of_key = _is_of_key(body, since)
    end = reading.end(len(body)) if footer else len(data)
    size = len(data[:end].decode(errors="surrogatepass")) if is_of_key else 0
    if footer:
        return size, OVER
    if is_of_key:
        return size, 0
    if _BESIDE.match(body) is None:
        since += 1
    return size, since if since <= _FAR else OVER


def _is_of_key(body: bytes, since: int) -> bool:
    if _FORMS[min(since, len(_FORMS) - 1)].match(body) is not None:
        return True
    short = _SHORT.match(body) if not since else None
    return short is not None and not is_word(body[slice(*short.span(1))])
