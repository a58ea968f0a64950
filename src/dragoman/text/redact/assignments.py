"""Secrets without a form of their own: told by the name that stands before them.

`password = …`, `"api_key": "…"`, `--token …`, `Authorization: Bearer …`, `https://user:…@host`. The
name alone is not enough: what follows must look as if chance had made it.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from dragoman.text.linear import Linear
from dragoman.text.redact.looks import is_placeholder, looks_random, tells_about

_KEYS: Final = (
    rb"(?:api|access|auth|private|secret|signing|encryption|master|account|license|hmac|ssh|role)"
)
"""Of what a key is one that nobody is to see."""
_NAMES: Final = (
    rb"(?:[_.-]pass|sshpass|pass(?:code|phrase|wd|word)s?|pwd|secret|tokens?|credentials?|"
    + _KEYS
    + rb"""[ _.-]?keys?|(?:[_-])auth|["']auth\\{0,3}["'])"""
)
"""`"auth"` is the whole key, as the settings of docker have it: the Base64 of a user and a password
(https://docs.docker.com/reference/cli/docker/login/)."""
_ALONE: Final = frozenset({"auth", "pass"})
"""Keys that are those of secrets only if nothing else belongs to them."""
_TAIL: Final = rb"[A-Za-z0-9_.-]{0,32}"
_QUOTES: Final = rb"""\\{0,3}["'\]`*]{0,3}"""
"""What closes a name: quotes, a bracket, or the marks of a text that is set."""
_BARE: Final = rb"[!#$%*+\-./0-9:=?@A-Z^_a-z~\x80-\xff]"
_JOINED: Final = rb"""(?![A-Za-z_][A-Za-z0-9_.-]{0,40}[ ]?["']?[=:])(?=""" + _BARE + rb")"
"""What may stand in the middle of a password goes on with it, unless the next name follows."""
_INSIDE: Final = rb"(?:" + _BARE + rb"|[&;,)|]" + _JOINED + rb")"
_SEPARATOR: Final = (
    rb"(?:[ \t]{0,8}:[ \t]{0,2}[A-Za-z]{2,12})?[ \t]{0,8}(?::=|=>|={1,2}|:|>)[ \t]{0,8}"
    rb"(?:[*_]{1,3}[ \t]{1,8})?"
)
"""Between a name and its value, with the type that some languages put there, and the marks that
close a name together with its colon (`**Password:** `)."""
_SCHEMES: Final = rb"(?:bearer|basic|token|digest|apikey|api-key|ssws|bot|negotiate)"
_OPTION: Final = (
    rb"--[a-z0-9_-]{0,24}(?:pass|secret|token|api[_-]?key|access[_-]?key)[a-z0-9_-]{0,24}"
)
_NEXT: Final = rb"""\\{0,3}["'],(?:[ \t\r\n]|\\{1,3}[nrt]){0,40}"""
"""Between two words of a list of arguments."""
_OPTION_FORM: Final = _OPTION + rb"(?:[ \t]{1,4}|" + _NEXT + rb")"
_PASS_FORM: Final = rb"\b(?:(?-i:pass)" + _QUOTES + _SEPARATOR + rb"|(?-i:PASS)=)"
"""In capitals only as a variable: `PASS:` is how tests end."""
_NETRC_FORM: Final = rb"login[ \t]{1,8}[^\s]+\s{1,16}password[ \t]{1,8}"
"""https://www.gnu.org/software/inetutils/manual/html_node/The-_002enetrc-file.html"""
_SPOKEN_FORM: Final = rb"(?:password|identified[ \t]{1,4}by(?:[ \t]{1,4}password)?)[ \t]{1,4}"
"""`ALTER USER … WITH PASSWORD '…'`: only what is quoted behind it is a value."""
_FIELD: Final = rb"""(?:name|key)\\{0,3}["']?[ \t]{0,8}[:=][ \t]{0,8}\\{0,3}["']?"""
_BETWEEN: Final = rb"(?:[ \t\r\n,]|\\{1,3}[nrt])"
_FIELDS_FORM: Final = (
    _FIELD
    + rb"[A-Za-z0-9_.-]{0,40}"
    + _NAMES
    + _TAIL
    + rb"""\\{0,3}["']?"""
    + _BETWEEN
    + rb"""{1,40}\\{0,3}["']?value\\{0,3}["']?[ \t]{0,8}[:=][ \t]{0,8}"""
)
"""A name and its value, each in a field of its own: `{"name": "API_KEY", "value": "…"}`."""
_BAR: Final = rb"(?:\||\xe2\x94\x82)"
_ROW_FORM: Final = (
    _BAR
    + rb"[ \t]{0,40}[*_`]{0,3}(?:[A-Za-z0-9_]{1,24}[ ]){0,3}[A-Za-z0-9_]{0,24}"
    + _NAMES
    + _TAIL
    + rb"[*_`]{0,3}[ \t]{0,40}"
    + _BAR
    + rb"[ \t]{0,8}"
)
"""A name in a cell of a table: its value stands in the next one."""
_ASSIGNED_FORM: Final = (
    rb"(?:"
    + rb"|".join(
        (
            _NAMES + _TAIL + _QUOTES + _SEPARATOR,
            _PASS_FORM,
            _NETRC_FORM,
            _SPOKEN_FORM,
            _FIELDS_FORM,
            _ROW_FORM,
        )
    )
    + rb")"
)
_IS_OPTION: Final = re.compile(r"--[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SPOKEN: Final = re.compile(rb"(?i)" + _SPOKEN_FORM)
_END_OF_CELL: Final = re.compile(rb"[*_`]{0,3}[ \t]{0,40}" + _BAR)
_BEHIND_NAME: Final = re.compile(r"(?:[,|\u2502]|\bvalue\b).*", re.DOTALL)
"""What follows a name in a list, in fields or in a table."""
_OF_STRING: Final = re.compile(rb"[FRBUfrbu]{1,2}(?=[\"'])")
"""What some languages write before a quoted text."""
_NOT_OWN: Final = {
    b"f": re.compile(r"\{(?:[^{}]|\{[^{}]*\})*\}"),
    b"r": re.compile(r"\[.*\].*", re.DOTALL),
}
"""What a program puts into such a text, or reads as an expression."""
_URL_FORM: Final = rb"://[^\s/@\"'<>]+@"

_ASSIGNED: Final = Linear(rb"(?i)" + _ASSIGNED_FORM + rb"|" + _OPTION_FORM, captures=False)
_NAME: Final = Linear(rb"(?i)(?:" + _NAMES + rb"|authorization)", captures=False)
_BARE_VALUE: Final = re.compile(rb"`?" + _BARE + _INSIDE + rb"{0,127}+")
_REST: Final = re.compile(rb"(?:" + _INSIDE + rb"|[(\[{}\]<>]" + _JOINED + rb")*+")
"""Behind what looks random brackets are no part of a program."""
_HEADER: Final = Linear(
    rb"(?i)(?:authorization"
    + _QUOTES
    + _SEPARATOR
    + rb"""\\{0,3}["']?(?:"""
    + _SCHEMES
    + rb"[ \t]{1,4})?|(?:bearer|basic)[ \t]{1,4})([A-Za-z0-9._~+/=-]{8,})"
)
_IN_URL: Final = Linear(rb"://([^\s/@:\"'<>]*)(?::([^\s/@\"'<>]+))?@")

ANY_NAME: Final = (
    rb"(?i:"
    + _ASSIGNED_FORM
    + rb"|"
    + _OPTION_FORM
    + rb"|authorization|bearer[ \t]|basic[ \t])|"
    + _URL_FORM
)
"""What every finding here needs somewhere in the text."""
ANY_WORD: Final = (
    rb"(?i:pass|login|pwd|secret|token|credential|key|auth|bearer|basic|identified|"
    + _FIELD
    + rb"|"
    + _KEYS
    + rb"[ ])|\||"
    + _URL_FORM
)
"""The same for a text that goes on: a name is enough."""
_WORD: Final = rb"(?:pass|pwd|secret|token|credential|key|auth)[A-Za-z0-9_.-]{0,40}"
_BEGUN: Final = rb"""\\{0,3}(?:"[^"\n]{0,200}|'[^'\n]{0,200})?"""
_PENDING: Final = Linear(
    rb"(?i)(?:"
    + rb"|".join(
        (
            rb"(?:" + _KEYS + rb"[ ])?" + _WORD + _QUOTES
            + rb"(?:[ \t]{0,8}:[ \t]{0,2}[A-Za-z]{0,12})?[ \t]{0,8}(?::=?|=>|={1,2}|>)?[ \t]{0,8}"
            + rb"(?:[*_]{1,3}[ \t]{1,8})?(?:" + _BEGUN + rb"|" + _SCHEMES + rb"[ \t]{0,4})?",
            _KEYS + rb"[ ]",
            rb"(?:bearer|basic)[ \t]{0,4}",
            _OPTION + _NEXT + rb"(?:" + _BEGUN + rb")?",
            rb"login(?:[ \t]{1,8}(?:[^\s]+(?:\s{1,16}(?:p[a-z]{0,7}[ \t]{0,8})?)?)?)?",
            rb"identified(?:[ \t]{1,4}(?:by[ \t]{0,4}(?:" + _BEGUN + rb")?)?)?",
            _FIELD + rb"(?:[A-Za-z0-9_.-]{0,40}" + _WORD + rb"""\\{0,3}["']?""" + _BETWEEN
            + rb"""{0,40}(?:\\{0,3}["']?(?:v[a-z]{0,4}\\{0,3}["']?[ \t]{0,8}"""
            + rb"(?:[:=][ \t]{0,8}(?:" + _BEGUN + rb")?)?)?)?)?",
            _BAR + rb"[^\n|]{0,80}(?:\|[^\n|]{0,200})?",
        )
    )
    + rb")\z",
    captures=False,
)  # fmt: skip
LONGEST_PENDING: Final = 400
_LONGEST_QUOTED: Final = 200
_LONGEST_USER: Final = 24
"""A user of a URL that is longer, and made by chance, is a token."""
_SHORTEST_PASSWORD: Final = 3
_LONGEST_LOGIN: Final = 64
"""So long a user of a URL is whose name ends like that of a secret."""

_ADDRESS: Final = re.compile(
    rb"arn:[a-z0-9-]{1,32}:[a-z0-9-]{1,32}:[a-z0-9-]{0,32}:[0-9]{0,12}:[A-Za-z0-9:/_+.@*-]*+"
)
"""https://docs.aws.amazon.com/IAM/latest/UserGuide/reference-arns.html"""
_LONGEST_ADDRESS: Final = 512

PLACEHOLDER: Final = Linear(rb"\[REDACTED:[a-z0-9_]{1,64}:[0-9a-f]{8}\]", captures=False)
"""What stands in the place of a secret already."""
_MASKED: Final = re.compile(PLACEHOLDER.pattern)
_LONGEST_PLACEHOLDER: Final = 84
_BARS: Final = (b"|", b"\xe2\x94\x82")

Told = tuple[int, int, str]
"""Where a secret is, and what it is called."""


class _Value(NamedTuple):
    start: int
    end: int
    is_bare: bool


def assignments(data: bytes) -> Iterator[Told]:
    """The secrets that follow a name."""
    at = 0
    while (found := _ASSIGNED.search(data, at)) is not None:
        begin, at = found.span()
        if behind := _behind_login(data, begin, at):
            at = behind
            continue
        value = _value_at(data, at)
        if value is None:
            continue
        start, end, is_bare = value
        if address := _end_of_address(data, start):
            at = address
            continue
        if is_bare and _needs_quotes(data[begin:at]):
            continue  # the name of a variable, a call, or another word
        if data.startswith(_BARS, begin) and not _is_cell(data, start, end):
            continue
        if not looks_random(_own(data, at, value)):
            if data[end - 1] not in b"=:":
                at = end  # words are no secrets, and are not looked at twice
            continue
        name = _text(data, begin, at)
        if not tells_about(_bare(name)) and not _in_placeholder(data, begin):
            end = _without_punctuation(data, start, _whole(data, end)) if is_bare else end
            yield start, end, kind_of(name)
            at = end


def headers(data: bytes) -> Iterator[Told]:
    """What an Authorization header shows."""
    for found in _HEADER.finditer(data):
        start, end = found.span(1)
        end = _without_punctuation(data, start, end)
        if looks_random(_text(data, start, end)) and not _in_placeholder(data, found.start()):
            yield start, end, "authorization"


def in_urls(data: bytes) -> Iterator[Told]:
    """Passwords of URLs, and users that are tokens."""
    for found in _IN_URL.finditer(data):
        start, end = found.span(2)
        if start < 0:
            start, end = found.span(1)
            user = _unmasked(data, start, end)
            if len(user) >= _LONGEST_USER and looks_random(user):
                yield start, end, "url_user"
        else:
            password = _unmasked(data, start, end)
            if len(password) >= _SHORTEST_PASSWORD and not is_placeholder(password):
                yield start, end, "url_password"


def pending(data: bytes) -> int:
    """Where a name begins whose secret may follow when more of the text has come; -1: nowhere."""
    found = _PENDING.search(data, max(0, len(data) - LONGEST_PENDING))
    return found.start() if found else -1


def names_secret(name: str) -> str:
    """The kind of secret that a name alone stands for, like that of a variable; empty: none."""
    found = _NAME.search(name.encode(errors="replace"))
    return "" if found is None or tells_about(name) else kind_of(name)


def is_option(word: str) -> bool:
    """Whether a word is an option, which names what follows it in a list of arguments."""
    return _IS_OPTION.fullmatch(word) is not None


def key_names_secret(key: str) -> str:
    """The kind of secret that the key of an object stands for; empty: none."""
    return kind_of(f'"{key}"') if key.lower() in _ALONE else names_secret(key)


def kind_of(name: str) -> str:
    """What a placeholder calls a secret behind this name."""
    data = name.encode(errors="replace")
    found = _NAME.search(data)
    named = _text(data, found.start(), found.end()) if found else "password"
    plain = re.sub(r"[^a-z]+", "_", named.lower()).strip("_")
    is_password = plain.startswith(("pass", "pwd", "sshpass"))
    return "password" if is_password else plain.removesuffix("s")


def _behind_login(data: bytes, name: int, value: int) -> int:
    """Where the login of a URL ends whose user the name is: what follows is the password, and the
    host, and `in_urls` tells them apart; 0: it is none."""
    scheme = data.rfind(b"://", max(0, name - _LONGEST_LOGIN), name)
    found = _IN_URL.match(data, scheme) if scheme >= 0 else None
    return found.end() if found is not None and found.start(2) == value else 0


def _value_at(data: bytes, at: int) -> _Value | None:
    """What stands here in quotes, or as a word."""
    prefix = _OF_STRING.match(data, at)
    quote = prefix.end() if prefix else at
    while data[quote : quote + 1] == b"\\":
        quote += 1
    if data[quote : quote + 1] not in (b'"', b"'"):
        bare = _BARE_VALUE.match(data, at)
        return _Value(at + (data[at] == ord("`")), bare.end(), True) if bare else None
    sign = data[quote : quote + 1]
    sign = 3 * sign if data.startswith(3 * sign, quote) else sign
    start = quote + len(sign)
    end = data.find(sign, start, start + _LONGEST_QUOTED + 1)
    inside = data[start:end].rstrip(b"\\")
    return (
        None
        if end < 0 or not inside or b"\n" in inside
        else _Value(start, start + len(inside), False)
    )


def _end_of_address(data: bytes, at: int) -> int:
    """Where the Amazon Resource Name ends that something stands in: it says where a secret is kept,
    and may have `secret:` in it itself; 0: it stands in none."""
    begin = data.rfind(b"arn:", max(0, at - _LONGEST_ADDRESS), at + len(b"arn:"))
    found = _ADDRESS.match(data, begin) if begin >= 0 else None
    return found.end() if found is not None and found.end() > at else 0


def _bare(name: str) -> str:
    """A name without the signs that stand around it."""
    return _BEHIND_NAME.sub("", name.lstrip("|\u2502 \t")).rstrip(" \t\r\n:=>\\\"']`*")


def _needs_quotes(name: bytes) -> bool:
    """Whether only what is quoted behind a name is its value: the next word of a list, or of a
    sentence, may be anything."""
    is_listed = b"," in name and name[:5].lower() != b"login"
    return is_listed or _SPOKEN.fullmatch(name) is not None


def _text(data: bytes, start: int, end: int) -> str:
    return data[start:end].decode(errors="replace")


def _unmasked(data: bytes, start: int, end: int) -> str:
    """What stands here beside placeholders."""
    value = data[start:end]
    return (_MASKED.sub(b"", value) if b"[" in value else value).decode(errors="replace")


def _own(data: bytes, at: int, value: _Value) -> str:
    """What a value says itself: beside placeholders, and beside what its program makes of it."""
    said = _unmasked(data, value.start, value.end)
    kinds = data[at : value.start].lower()
    for kind in () if value.is_bare else _NOT_OWN:
        said = _NOT_OWN[kind].sub("", said) if kind in kinds else said
    return said


def _is_cell(data: bytes, start: int, end: int) -> bool:
    """Whether a value is all of a cell, and not a program in a pipe, or a type beside others."""
    return _END_OF_CELL.match(data, end) is not None and not names_secret(_text(data, start, end))


def _whole(data: bytes, end: int) -> int:
    """Where a bare value ends of which so much was looked at."""
    rest = _REST.match(data, end)
    assert rest is not None, "it matches nothing, too"
    return rest.end()


def _without_punctuation(data: bytes, start: int, end: int) -> int:
    while end > start and data[end - 1] in b".,;:":
        end -= 1
    return end


def _in_placeholder(data: bytes, at: int) -> bool:
    """Whether the name is part of a placeholder that stands here already."""
    begin = data.rfind(b"[REDACTED:", max(0, at - _LONGEST_PLACEHOLDER), at)
    found = PLACEHOLDER.match(data, begin) if begin >= 0 else None
    return found is not None and at < found.end()
