"""Private keys in PEM: blocks of several lines, or one line in which the breaks are escaped."""

from collections.abc import Iterator
from typing import Final

from dragoman.text.linear import Linear

BEGIN: Final = "-----BEGIN"
_HEADER: Final = rb"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_FOOTER: Final = rb"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_BREAK: Final = rb"(?:\r?\n|\r|\\{1,3}r\\{1,3}n|\\{1,3}n|\\{1,3}r)"
_ABOUT: Final = rb"(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash):[^\n\\]{0,200}"
_LINE: Final = rb"[ \t]{0,32}(?:" + _ABOUT + rb"|[A-Za-z0-9+/=]*)[ \t]{0,8}"
_LINES: Final = rb"(?:" + _BREAK + _LINE + rb"|[ \t]{1,4}[A-Za-z0-9+/=]{40,})*"
"""What stands between, line by line; or words of a key whose line breaks became spaces."""

_BLOCK: Final = Linear(
    _HEADER
    + rb"("
    + _LINES
    + rb")(?:((?:"
    + _BREAK
    + rb"|[ \t])?[ \t]{0,32}"
    + _FOOTER
    + rb")|"
    + _BREAK
    + rb"|[\"'<]|\z)"
)
"""A key without a footer ends where a line is no part of one."""
_OPEN: Final = Linear(
    rb"-----BEGIN(?:[ ][A-Z0-9]{1,20}){0,5}[ ]?\z|"
    + _HEADER
    + _LINES
    + rb"(?:"
    + _BREAK
    + rb")?[ \t]{0,32}(?:-----END(?:[ ][A-Z0-9]{1,20}){0,5}[ ]?)?\z",
    captures=False,
)
_LEAST: Final = 24
"""A key has more characters than this; a mere mention of one has not."""


def blocks(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Where private keys are."""
    at = 0
    while data.find(BEGIN.encode(), at) >= 0 and (found := _BLOCK.search(data, at)) is not None:
        (start, at), (body_start, body_end) = found.span(), found.span(1)
        if body_end - body_start >= _LEAST:
            while data[body_end - 1] in b" \t\r\n":
                body_end -= 1
            yield start, max(body_end, found.end(2)), "private_key"


def is_open(data: bytes) -> bool:
    """Whether a block that begins here may not have ended when the data does."""
    return _OPEN.match(data) is not None
