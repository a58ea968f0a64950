"""Secrets by position: in URLs, headers, cookies, password files, and on command lines."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from dragoman.text.lazy_regex import lazy_regex
from dragoman.text.linear_regex import LinearRegex
from dragoman.text.redact.likelihood import (
    is_in_placeholder,
    is_placeholder,
    looks_random,
    without_placeholders,
)
from dragoman.text.redact.named_values import (
    QUOTES,
    SCHEMES,
    SEPARATOR,
    URL_LOGIN,
    Value,
    extend_value,
    parse_value,
    strip_punctuation,
)
from dragoman.text.redact.rules import PROGRAMS, VARIABLES, ProgramRule

_URL_FORM: Final = rb"://[^\s/@\"'<>]+@"
_ORACLE_FORM: Final = rb"jdbc:oracle:(?:thin|oci8?):"
"""https://docs.oracle.com/en/database/oracle/oracle-database/23/jjdbc/data-sources-and-URLs.html"""
_DIALLED: Final = rb"@(?:tcp|tcp6|udp|unix)\("
"""https://github.com/go-sql-driver/mysql#dsn-data-source-name"""
_PORT: Final = rb":(?:[0-9]{2,5}|\*):[A-Za-z_*]"
_PGPASS_FORM: Final = (
    rb"(?:[A-Za-z0-9_.-]{1,64}|\*)" + _PORT + rb"[A-Za-z0-9_-]{0,62}:[A-Za-z_][A-Za-z0-9_-]{0,62}:"
)
"""https://www.postgresql.org/docs/current/libpq-pgpass.html"""
_COOKIE_FORM: Final = rb"\b(?:set-)?cookie" + QUOTES + rb"[:=]"
"""https://www.rfc-editor.org/rfc/rfc6265"""
_VARIABLE_FORM: Final = rb"\b(?:" + "|".join(VARIABLES).encode() + rb")="
ANY_LOGIN: Final = (
    _VARIABLE_FORM
    + rb"|(?i:authorization|bearer[ \t]|basic[ \t]|"
    + _ORACLE_FORM
    + rb"|"
    + _COOKIE_FORM
    + rb")|"
    + _PORT
    + rb"|"
    + _DIALLED
    + rb"|"
    + _URL_FORM
)
"""Every finding here needs a match of this."""

_HEADER: Final = LinearRegex(
    rb"(?i)(?:authorization"
    + QUOTES
    + SEPARATOR
    + rb"""\\{0,3}["']?(?:"""
    + SCHEMES
    + rb"[ \t]{1,4})?|(?:bearer|basic)[ \t]{1,4})([A-Za-z0-9._~+/=!#$%*?@^-]{8,})"
)
_TOGETHER: Final = LinearRegex(
    rb"(?i:"
    + _ORACLE_FORM
    + rb")[^\s/@\"'<>]{1,64}/([^\s/@\"'<>]+)@|(?m:^)[ \t]{0,8}"
    + _PGPASS_FORM
    + rb"([^\s:\"'<>]+)(?m:$)|[A-Za-z0-9_.-]{1,64}:([^\s\"'<>]{1,128})"
    + _DIALLED
)
_COOKIES: Final = LinearRegex(
    rb"(?i)" + _COOKIE_FORM + rb"""[ \t]{0,4}\\{0,3}["']?""", captures=False
)
_COOKIE: Final = lazy_regex(rb"([^\s;,=\"'\\]{1,64})=([^\s;,\"'\\]*)(?:;[ ]?)?")
_MOST_COOKIES: Final = 700
"""Largest distance between a header's name and its cookies."""
_OF_COOKIE: Final = frozenset((b"path", b"domain", b"expires", b"max-age", b"samesite"))
_LONGEST_USER: Final = 24
"""A longer random user of a URL is a token."""
_SHORTEST_PASSWORD: Final = 3
_VARIABLE: Final = LinearRegex(_VARIABLE_FORM, captures=False)

LOGIN_KIND: Final = "password"
_KindSpan = tuple[int, int, str]


def find_headers(data: bytes) -> Iterator[_KindSpan]:
    """Find credentials in Authorization headers."""
    for found in _HEADER.finditer(data):
        start, end, _ = strip_punctuation(data, Value(*found.span(1), True))
        if looks_random(_text(data, start, end)) and not is_in_placeholder(data, found.start()):
            yield start, end, "authorization"


def find_cookies(data: bytes) -> Iterator[_KindSpan]:
    """Find random cookies; others are settings, or tell where a visitor came from."""
    for found in _COOKIES.finditer(data):
        at = found.end()
        most = at + _MOST_COOKIES
        while at <= most and (cookie := _COOKIE.match(data, at)) is not None:
            at = cookie.end()
            start, end = cookie.span(2)
            if cookie[1].lower() not in _OF_COOKIE and looks_random(
                without_placeholders(cookie[2])
            ):
                yield start, end, "cookie"


def find_url_logins(data: bytes) -> Iterator[_KindSpan]:
    """Find passwords of URLs, and users that are tokens."""
    for found in URL_LOGIN.finditer(data):
        start, end = found.span(2)
        if start < 0:
            start, end = found.span(1)
            user = without_placeholders(data[start:end])
            if len(user) >= _LONGEST_USER and looks_random(user):
                yield start, end, "url_user"
        elif is_password(without_placeholders(data[start:end])):
            yield start, end, "url_password"


def find_user_passwords(data: bytes) -> Iterator[_KindSpan]:
    """Find passwords behind a user, as Oracle, the password file of PostgreSQL and Go write
    them."""
    for found in _TOGETHER.finditer(data):
        start, end = max(found.span(1), found.span(2), found.span(3))
        if looks_random(without_placeholders(data[start:end])):
            yield start, end, LOGIN_KIND


def find_variables(data: bytes) -> Iterator[_KindSpan]:
    """Find passwords in variables that hold nothing else, also those that are ordinary words."""
    for found in _VARIABLE.finditer(data):
        value = parse_value(data, found.end())
        if value is not None and is_password(without_placeholders(data[value.start : value.end])):
            start, end, _ = extend_value(data, value) if value.is_bare else value
            yield start, end, LOGIN_KIND


def is_password(value: str) -> bool:
    """Check whether a value is a password where nothing else stands."""
    return (
        len(value) >= _SHORTEST_PASSWORD and not value.startswith("-") and not is_placeholder(value)
    )


def _text(data: bytes, start: int, end: int) -> str:
    return data[start:end].decode(errors="replace")


# --- command lines ----------------------------------------------------------------------------

_ParseValue = Callable[[bytes, int], Value | None]
"""Parses the value at a position."""
_BY_NAME: Final = {
    name.encode(): (program, LinearRegex(rb"[ \t\"']" + program.option, captures=False))
    for program in PROGRAMS
    for name in program.names
}
ANY_COMMAND: Final = rb"\b(?:" + b"|".join(sorted(_BY_NAME, reverse=True)) + rb""")[ \t"']"""
"""Every finding here needs a match of this; longer names go before shorter ones."""
_COMMAND: Final = LinearRegex(ANY_COMMAND, captures=False)
_LONGEST_COMMAND: Final = 256
"""Largest distance between program and option."""
_LONGEST_LIST: Final = 4_096
"""The same in a list of arguments."""
_OF_ARGUMENT: Final = bytes.maketrans(b" \t\r\n\"'", b"______")
"""Replaces characters that would end an argument, or begin the next one, by harmless ones."""


def find_command_passwords(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Find the passwords in command lines."""
    return (
        (start, end, LOGIN_KIND)
        for start, end in _find_passwords(data, parse_value, _LONGEST_COMMAND)
    )


def find_argument_passwords(arguments: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Find the arguments of a command list that end with a password, and its start in each. A
    password is all of its argument, whatever characters are in it.
    """
    line = b" ".join(argument.translate(_OF_ARGUMENT) for argument in arguments)
    behind = list(accumulate(len(argument) + 1 for argument in arguments))

    def argument_at(_: bytes, at: int) -> Value:
        return Value(at, behind[bisect_right(behind, at)] - 1, False)

    for start, _ in _find_passwords(line, argument_at, _LONGEST_LIST):
        number = bisect_right(behind, start)
        yield number, start - (behind[number - 1] if number else 0)


def _find_passwords(
    data: bytes, parse: _ParseValue, max_distance: int
) -> Iterator[tuple[int, int]]:
    at = 0
    while (found := _COMMAND.search(data, at)) is not None:
        at = found.end() - 1
        program, option = _BY_NAME[data[found.start() : at]]
        border = _command_end(data, at, max_distance)
        while (given := option.search(data, at, border)) is not None:
            at = given.end()
            value = _skip_user(data, parse(data, at), program)
            is_secret = is_password if program.takes_words else looks_random
            if value is not None and is_secret(without_placeholders(data[value.start : value.end])):
                start, at, _ = extend_value(data, value) if value.is_bare else value
                yield start, at


def _command_end(data: bytes, at: int, longest: int) -> int:
    """Latest end of a command."""
    most = min(at + longest, len(data))
    ends = (data.find(end, at, most) for end in (b"\n", b"\r"))
    return min((end for end in ends if end >= 0), default=most)


def _skip_user(data: bytes, value: Value | None, program: ProgramRule) -> Value | None:
    if value is None or not program.has_user:
        return value
    colon = data.find(b":", value.start, value.end)
    return value._replace(start=colon + 1) if colon >= 0 else None
