"""Passwords on the command lines of programs: a row for each program, with its source."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct

from dragoman.text.linear_regex import LinearRegex
from dragoman.text.redact.likelihood import looks_random, without_placeholders
from dragoman.text.redact.name_patterns import NEXT_ARGUMENT, Value, extend_value, parse_value

LOGIN_KIND: Final = "password"
_ParseValue = Callable[[bytes, int], Value | None]
"""Parses the value at a position."""
_APART: Final = rb"(?:[ \t]{1,4}|" + NEXT_ARGUMENT + rb")"


class ProgramRule(Struct, frozen=True):
    """Option of a program that takes a password."""

    names: tuple[str, ...]
    option_text: str
    """Spelling in the documentation."""
    option: bytes
    """Regular expression of the option, with what stands between it and the password."""
    source: str
    has_user: bool = False
    """True if a user and a colon stand before the password."""


PROGRAMS: Final = (
    ProgramRule(
        ("curl",),
        "-u user:…, --user, -U, --proxy-user",
        rb"(?:-[A-Za-z]{0,8}[uU]|--user|--proxy-user)(?:=|" + _APART + rb")?",
        "https://curl.se/docs/manpage.html#-u",
        has_user=True,
    ),
    ProgramRule(
        ("mysql", "mysqldump", "mysqladmin", "mariadb", "mariadb-dump", "mariadb-admin"),
        "-p…",
        rb"-p",
        "https://dev.mysql.com/doc/refman/8.4/en/password-security-user.html",
    ),
    ProgramRule(
        ("sshpass",),
        "-p …",
        rb"-p" + _APART + rb"?",
        "https://manpages.ubuntu.com/manpages/oracular/man1/sshpass.1.html",
    ),
    ProgramRule(
        ("docker", "podman"),
        "login -p …",
        rb"login" + _APART + rb"(?:[^\r\n]{0,80}[ \t\"'])?-p" + _APART + rb"?",
        "https://docs.docker.com/reference/cli/docker/login/",
    ),
    ProgramRule(
        ("az",),
        "login -p …",
        rb"login" + _APART + rb"(?:[^\r\n]{0,160}[ \t\"'])?-p" + _APART,
        "https://learn.microsoft.com/en-us/cli/azure/reference-index#az-login",
    ),
    ProgramRule(
        ("mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport", "cqlsh", "twine"),
        "-p …",
        rb"-p" + _APART,
        "https://www.mongodb.com/docs/mongodb-shell/reference/options/",
    ),
    ProgramRule(
        ("sqlcmd",),
        "-P …",
        rb"-P" + _APART + rb"?",
        "https://learn.microsoft.com/en-us/sql/tools/sqlcmd/sqlcmd-utility",
    ),
    ProgramRule(
        ("redis-cli", "valkey-cli"),
        "-a …",
        rb"-a" + _APART + rb"?",
        "https://redis.io/docs/latest/develop/tools/cli/",
    ),
    ProgramRule(
        ("ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldapwhoami", "ldappasswd"),
        "-w …",
        rb"-w" + _APART + rb"?",
        "https://www.openldap.org/software/man.cgi?query=ldapsearch",
    ),
)
_BY_NAME: Final = {
    name.encode(): (program, LinearRegex(rb"[ \t\"']" + program.option, captures=False))
    for program in PROGRAMS
    for name in program.names
}
_LONGEST_NAME: Final = max(map(len, _BY_NAME)) + 1
ANY_COMMAND: Final = rb"\b(?:" + b"|".join(sorted(_BY_NAME, reverse=True)) + rb""")[ \t"']"""
"""Every finding here needs a match of this; longer names go before shorter ones."""
_COMMAND: Final = LinearRegex(ANY_COMMAND, captures=False)
_LONGEST: Final = 256
"""Largest distance between program and option."""
_LONGEST_LIST: Final = 4_096
"""The same in a list of arguments."""
_LONGEST_OPEN: Final = 480
"""Largest distance of an open value with blanks in it."""
_OF_ARGUMENT: Final = bytes.maketrans(b" \t\r\n\"'", b"______")
"""Replaces characters that would end an argument, or begin the next one, by harmless ones."""


def find_command_passwords(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Find the passwords in command lines."""
    return ((start, end, LOGIN_KIND) for start, end in _find_passwords(data, parse_value, _LONGEST))


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
            if value is not None and looks_random(
                without_placeholders(data[value.start : value.end])
            ):
                start, at, _ = extend_value(data, value) if value.is_bare else value
                yield start, at


def open_command_start(data: bytes) -> int:
    """Start of a command whose password may follow; -1: none."""
    line = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
    at = max(line, len(data) - _LONGEST_OPEN - _LONGEST_NAME)
    while (found := _COMMAND.search(data, at)) is not None:
        at = found.end() - 1
        if len(data) - at <= _LONGEST_OPEN:
            return found.start()
    return -1


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
