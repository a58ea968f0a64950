"""What a text ends with when a secret may follow that is told by what stands there."""

from typing import Final

from dragoman.text.linear import AnyRegex, LinearRegex
from dragoman.text.redact.commands import ANY_COMMAND, open_command_start
from dragoman.text.redact.forms import (
    BAR,
    BETWEEN,
    COLUMN_GAP,
    FIELD,
    FIELD_NAME,
    KEYS,
    NEXT_ARGUMENT,
    OPTION,
    OTHER_FIELDS,
    QUOTES,
    SCHEMES,
    SET_COMMANDS,
    VARIANT_FIELD,
)
from dragoman.text.redact.logins import ANY_LOGIN, open_cookies_start

SECRET_WORDS: Final = rb"(?:pass|pwd|secret|token|cred|key|[_-]?auth|[_-]pat|[_-]pw|psk)"
_WORD: Final = SECRET_WORDS + rb"[A-Za-z0-9_.-]{0,40}"
_ABOUT: Final = (
    rb"[ \t]{1,2}(?:\[[^\[\]\r\n]{0,40}\]?|\([^()\r\n]{0,24}\)?|(?:for|of)(?:[ \t][^\s:=]{0,40})?)"
)
"""Addition behind a name, before its value."""
SPLIT_NAME_START: Final = rb"(?:" + KEYS + rb"|unexpected)[ ]"
"""First word of a name that consists of two."""
_BEGUN: Final = (
    rb"""(?:"(?:[^"\\\n]|\\[^\n]|"")*|'(?:[^'\\\n]|\\[^\n]|''|'\\''|'"'"')*"""
    rb"""|\\{1,3}(?:"(?:[^"\n]|\\{3}")*|'[^'\n]*)?)?"""
)
"""A quoted value with quotes of its own, as `name_patterns` parses it. Unbounded: the searched part
is bounded, and counting takes a state for each number."""
_LINE_END: Final = rb"[ \t]{0,8}(?:\r|\r?\n|\\{1,3}n?)[ \t>]{0,16}"
_FILE: Final = rb"(?:machine|login|account)"
_NAMED: Final = LinearRegex(
    rb"(?i)(?:"
    + rb"|".join(
        (
            rb"(?:" + SPLIT_NAME_START + rb")?" + _WORD + QUOTES
            + rb"(?:[ \t]*:[ \t]{0,2}[A-Za-z]{0,12})?[ \t]*(?::=?|=>|={1,3}|>)?[ \t]*"
            + rb"(?:[*_]{1,3}[ \t]{1,8})?(?:" + _BEGUN + rb"|" + SCHEMES + rb"[ \t]{0,4})?",
            _WORD + QUOTES + rb"[ \t]{0,8}[:=][ \t]{0,8}(?:[*_]{1,3}|[|>][+-]?)?(?:" + _LINE_END
            + rb"(?:```[a-z]{0,12})?){1,3}(?:[*-][ \t]{1,4})?(?:[^\s]{0,256}[ \t]{0,8}|"
            + _BEGUN + rb")",
            _WORD + rb"[ \t]{0,8}[:>]?[ \t]{0,8}(?:</?[A-Za-z][^<>\r\n]{0,80}>\s{0,24}){0,4}"
            + rb"(?::[ \t]{0,8})?(?:</?[A-Za-z][^<>\r\n]{0,80}>\s{0,24}){0,2}"
            + rb"(?:</?[A-Za-z]?[^<>\r\n]{0,80}|" + _BEGUN + rb")",
            rb"<[A-Za-z0-9:._-]{0,24}" + _WORD + rb"[ \t][^<>\r\n]{0,80}>?",
            rb"<[A-Za-z0-9:._-]{0,24}" + _WORD + rb">\s{0,44}[^\s<]{0,256}\s{0,40}<?",
            _WORD + QUOTES + rb"[ \t]{0,8}[:=]?[ \t]{0,4}\{?" + _LINE_END + VARIANT_FIELD
            + rb"[ \t]{0,8}[:=][ \t]{0,8}(?:[^\s]{0,256}[ \t]{0,8}|" + _BEGUN + rb")",
            _WORD + QUOTES + rb"[ \t]{0,8}[:=]?[ \t]{0,4}\{" + _LINE_END + rb"[a-z]{0,8}[ \t]{0,8}",
            _WORD + rb"[ \t]{1,4}(?:is|was)(?:[ \t]{1,4}(?:now)?)?:?[ \t]{0,4}[*_`]{0,3}"
            + rb"(?:" + _BEGUN + rb")?",
            _WORD + _ABOUT + QUOTES + rb"[ \t]*(?:(?:[:=]|(?:is|was):?)[ \t]*)?(?:" + _BEGUN
            + rb")?",
            _WORD + QUOTES + rb"""[ \t]*[:=][ \t]*(?:"[^"\r\n]*"|null)[ \t]+(?:->?[ \t]*(?:"""
            + _BEGUN + rb")?)?",
            SET_COMMANDS + rb"(?:-|[^\s=]*(?:[ \t]{1,8}(?:" + _BEGUN + rb")?)?)?",
            _WORD + COLUMN_GAP + rb"[^\s]{0,256}[ \t]{0,8}",
            SPLIT_NAME_START,
            rb"(?:bearer|basic)[ \t]{0,4}",
            OPTION + NEXT_ARGUMENT + rb"(?:" + _BEGUN + rb")?",
            _WORD + QUOTES + rb"[ \t]{0,8}[:=][ \t]{0,8}(?:\{[^{}]*|\[[^\[\]]*)",
            _WORD + NEXT_ARGUMENT + rb"(?:" + _BEGUN + rb")?",
            rb"password\(" + _BEGUN,
            _FILE + rb"(?:[ \t]{1,8}(?:[^\s]+(?:\s{1,16}(?:p[a-z]{0,7}[ \t]{0,8})?)?)?)?",
            rb"identified(?:[ \t]{1,4}(?:by[ \t]{0,4}(?:" + _BEGUN + rb")?)?)?",
            FIELD + rb"(?:" + FIELD_NAME + _WORD + rb"""\\{0,3}["']?""" + BETWEEN + rb"*"
            + OTHER_FIELDS + rb"""{0,2}(?:\\{0,3}["']?[A-Za-z_]*\\{0,3}["']?[ \t]{0,8}"""
            + rb"(?:[:=][ \t]{0,8}(?:" + _BEGUN + rb"|[A-Za-z0-9.]*))?)?)?",
            BAR + rb"[^\n|]{0,80}(?:\|[^\n|]{0,200})?",
        )
    )
    + rb")\z",
    captures=False,
)  # fmt: skip
ANY_SECRET_WORD: Final = (
    rb"(?i:"
    + SECRET_WORDS
    + rb"|machine|login|account|bearer|basic|identified|cookie|"
    + FIELD
    + rb"|"
    + SPLIT_NAME_START
    + rb"|"
    + SET_COMMANDS
    + rb")|\|"
)
"""Every named secret in a text that goes on needs a match of this."""
_BY_PLACE: Final = AnyRegex(ANY_LOGIN + rb"|" + ANY_COMMAND)
"""Cookies and commands need a match of this."""
MAX_OPEN_NAME: Final = 640


def open_name_start(data: bytes) -> int:
    """Start of a name whose secret may follow when more text comes; -1: none."""
    named = _NAMED.search(data, max(0, len(data) - MAX_OPEN_NAME))
    starts = [named.start()] if named else []
    if _BY_PLACE.matches(data):
        starts += (open_cookies_start(data), open_command_start(data))
    return min((begin for begin in starts if begin >= 0), default=-1)
