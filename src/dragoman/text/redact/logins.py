"""Secrets by position: in URLs, headers, cookies and password files."""

import re
from collections.abc import Iterator
from typing import Final

from dragoman.text.linear_regex import LinearRegex
from dragoman.text.redact.likelihood import (
    is_in_placeholder,
    is_placeholder,
    looks_random,
    without_placeholders,
)
from dragoman.text.redact.name_patterns import QUOTES, SCHEMES, SEPARATOR, Value, strip_punctuation

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
ANY_LOGIN: Final = (
    rb"(?i:authorization|bearer[ \t]|basic[ \t]|"
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
_IN_URL: Final = LinearRegex(rb"://([^\s/@:\"'<>]*)(?::([^\s/@\"'<>]+))?@")
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
_COOKIE: Final = re.compile(rb"([^\s;,=\"'\\]{1,64})=([^\s;,\"'\\]*)(?:;[ ]?)?")
_MOST_COOKIES: Final = 700
"""Largest distance between a header's name and its cookies."""
_LONGEST_HEADER: Final = 32
_OF_COOKIE: Final = frozenset((b"path", b"domain", b"expires", b"max-age", b"samesite"))
_LONGEST_USER: Final = 24
"""A longer random user of a URL is a token."""
_SHORTEST_PASSWORD: Final = 3
_LONGEST_LOGIN: Final = 64
"""Longest user of a URL whose name ends like that of a secret."""

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


def open_cookies_start(data: bytes) -> int:
    """Start of cookies of which more may follow; -1: none."""
    line = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
    at = max(line, len(data) - _MOST_COOKIES - _LONGEST_HEADER)
    while (found := _COOKIES.search(data, at)) is not None:
        at = found.end()
        if len(data) - at <= _MOST_COOKIES:
            return found.start()
    return -1


def find_url_logins(data: bytes) -> Iterator[_KindSpan]:
    """Find passwords of URLs, and users that are tokens."""
    for found in _IN_URL.finditer(data):
        start, end = found.span(2)
        if start < 0:
            start, end = found.span(1)
            user = without_placeholders(data[start:end])
            if len(user) >= _LONGEST_USER and looks_random(user):
                yield start, end, "url_user"
        elif _is_password(without_placeholders(data[start:end])):
            yield start, end, "url_password"


def find_user_passwords(data: bytes) -> Iterator[_KindSpan]:
    """Find passwords behind a user, as Oracle, the password file of PostgreSQL and Go write
    them."""
    for found in _TOGETHER.finditer(data):
        start, end = max(found.span(1), found.span(2), found.span(3))
        if looks_random(without_placeholders(data[start:end])):
            yield start, end, "password"


def url_login_end(data: bytes, name: int, value: int) -> int:
    """End of the login of a URL whose user the name is; 0: none. The password and the host follow,
    and `find_url_logins` tells them apart.
    """
    scheme = data.rfind(b"://", max(0, name - _LONGEST_LOGIN), name)
    found = _IN_URL.match(data, scheme) if scheme >= 0 else None
    return found.end() if found is not None and found.start(2) == value else 0


def _is_password(value: str) -> bool:
    return len(value) >= _SHORTEST_PASSWORD and not is_placeholder(value)


def _text(data: bytes, start: int, end: int) -> str:
    return data[start:end].decode(errors="replace")
