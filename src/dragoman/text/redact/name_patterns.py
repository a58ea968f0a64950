"""Patterns of a name and its value, and the parser of a value behind a name.

`password = …`, `"api_key": "…"`, `--token …`, `<b>Password:</b> …`, `the password is …`, a name
above its value, in a field or in a cell of its own.
"""

import re
from typing import Final, NamedTuple

# --- names ------------------------------------------------------------------------------------

KEYS: Final = (
    rb"(?:api|access|auth|private|secret|signing|encryption|master|account|license|hmac|ssh|role"
    rb"|client|cookie|deploy|functions?|service|session|shared|storage|subscription|webhook)"
)
"""Kinds of keys that are secret."""

_PASSWORD: Final = rb"pass(?:code|phrase|wd|word)"

NAMES: Final = (
    rb"(?:[_.-]pass|sshpass|"
    + _PASSWORD
    + rb"s?|pwd|secret|(?:unexpected[ ])?tokens?|credentials?|"
    + KEYS
    + rb"""[ _.-]?keys?|[_-]auth|["']auth\\{0,3}["']|[_-](?:pat|pw)\b|(?:\b|_)(?:psk\b|creds))"""
)
"""`"auth"` is the whole key, as in the settings of docker: the Base64 of a user and a password
(https://docs.docker.com/reference/cli/docker/login/). An unexpected token is one that a parser
met."""

NAME: Final = NAMES + rb"[A-Za-z0-9_.-]{0,32}"

QUOTES: Final = rb"""\\{0,3}["'\]`*]{0,3}"""
"""End of a name: quotes, a bracket, or the marks of formatted text."""

SEPARATOR: Final = (
    rb"[ \t]*(?::[ \t]{0,2}[A-Za-z]{2,12}[ \t]{0,8}=|:=|=>|={1,3}|:|>)[ \t]*"
    rb"(?:[*_]{1,3}[ \t]{1,8})?"
)
"""Between a name and its value, with the type that some languages put there, and the marks that
close a name together with its colon (`**Password:** `); in columns many blanks stand there."""

_TAG: Final = (
    rb"</?(?:[abipsu]|em|strong|span|code|pre|tt|kbd|samp|t[dhr]|d[dt]|li|div|font|label|mark|small"
    rb"|key|string|value)(?:[ \t][^<>\r\n]{0,80})?>"
)
"""Tag of a cell, a word or a value: other tags end a line."""

_TAGS: Final = rb"(?:" + _TAG + rb"\s{0,24})"

_MARKED: Final = rb"[ \t]{0,8}[:>]?\s{0,24}" + _TAGS + rb"{1,4}(?::[ \t]{0,8}" + _TAGS + rb"{0,2})?"
"""Between name and value in HTML: `<b>Password:</b> …`, `<td>Password</td><td>…</td>`."""

_ABOUT: Final = (
    rb"(?:[ \t]{1,2}(?:\[[^\[\]\r\n]{0,40}\]|\([^()\r\n]{0,24}\)|(?:for|of)[ \t][^\s:=]{1,40}))?"
)
"""Addition behind a name: `AWS Secret Access Key [None]: …`, `Password for bob: …`."""

_CHARACTERS: Final = rb"(?:<!\[CDATA\[)?"
"""https://www.w3.org/TR/xml/#sec-cdata-sect"""

_LINE_END: Final = rb"[ \t]{0,8}(?:\r?\n|\\{1,3}n)[ \t>]{0,16}"

_ABOVE: Final = (
    rb"[ \t]{0,8}[:=][ \t]{0,8}(?:[*_]{1,3}|[|>][+-]?)?(?:"
    + _LINE_END
    + rb"(?:```[a-z]{0,12})?){1,3}(?:[*-][ \t]{1,4})?"
)
"""A name above its value, as in letters, and in YAML behind a bar; empty lines and a code fence may
stand between them."""

SCHEMES: Final = rb"(?:bearer|basic|token|digest|apikey|api-key|ssws|bot|negotiate)"

_OF_OPTION: Final = rb"secret|token|api[_-]?key|access[_-]?key"

OPTION: Final = (
    rb"(?:--[a-z0-9_-]{0,24}(?:pass|" + _OF_OPTION + rb")[a-z0-9_-]{0,24}"
    rb"|\B-(?:storepass|keypass|" + _PASSWORD + rb"|[a-z0-9_-]{0,24}(?:" + _OF_OPTION + rb")))"
)
"""Also behind one dash, as programs in Go and Java have them."""

NEXT_ARGUMENT: Final = rb"""\\{0,3}["'],(?:[ \t\r\n]|\\{1,3}[nrt]){0,40}"""
"""Between two words of a list of arguments."""

_OPTION_FORM: Final = OPTION + rb"(?:[ \t]{1,4}|" + NEXT_ARGUMENT + rb")"

SET_COMMANDS: Final = rb"\b(?:env|set|setenv|setx)[ \t]{1,4}(?:-[a-z]{1,3}[ \t]{1,4})?"
"""Commands that take a name and a value with only blanks between them: those of shells and of
Dockerfiles, `aws configure set`, `npm config set`."""

_SET_FORM: Final = SET_COMMANDS + rb"[^\s=]{0,64}" + NAME + rb"[ \t]{1,8}"

COLUMN_GAP: Final = rb"(?:[ \t]{2,}|\t)"

COLUMN_FORM: Final = NAME + COLUMN_GAP
"""A name in a column: the next column is its value only if it is the last."""

_PASS_FORM: Final = rb"\b(?:(?-i:pass)" + QUOTES + SEPARATOR + rb"|(?-i:PASS)=)"
"""In capitals only as a variable: tests end with `PASS:`."""

_NETRC_FORM: Final = rb"(?:machine|login|account)[ \t]{1,8}[^\s]+\s{1,16}password[ \t]{1,8}"
"""https://www.gnu.org/software/inetutils/manual/html_node/The-_002enetrc-file.html"""

_SQL_FORM: Final = rb"(?:password|identified[ \t]{1,4}by(?:[ \t]{1,4}password)?)[ \t]{1,4}"
"""`ALTER USER … WITH PASSWORD '…'`."""

_CALL_FORM: Final = (
    rb"""(?:password\(|[(\[]b?\\{0,3}["'][A-Za-z0-9_.-]{0,40}""" + NAME + NEXT_ARGUMENT + rb")"
)
"""A call with a value, with its name or by it: `set("api_key", "…")`, `PASSWORD('…')`; and a pair:
`["x-api-key", "…"]`."""

QUOTED_FORM: Final = rb"(?:" + _SQL_FORM + rb"|" + _CALL_FORM + rb")"
"""Only a quoted text behind it is a value."""

_SENTENCE_FORM: Final = (
    rb"(?:"
    + _PASSWORD
    + rb"|secret|token|"
    + KEYS
    + rb"[ _-]?key)"
    + _ABOUT
    + rb"[ \t]{1,4}(?:is|was)(?:[ \t]{1,4}now)?:?[ \t]{1,4}[*_`]{0,3}"
)
"""`the password is …`."""

FIELD: Final = rb"""(?:name|key)\\{0,3}["']?[ \t]{0,8}[:=][ \t]{0,8}\\{0,3}["']?"""

BETWEEN: Final = rb"(?:[ \t\r\n,]|\\{1,3}[nrt])"

_KEY: Final = rb"""\\{0,3}["']?[A-Za-z_]+\\{0,3}["']?[ \t]{0,8}[:=][ \t]{0,8}"""

OTHER_FIELDS: Final = (
    rb"(?:"
    + _KEY
    + rb"""(?:\\{0,3}["'][^"'\\\r\n{}]*\\{0,3}["']|[A-Za-z0-9.]+)"""
    + BETWEEN
    + rb"+)"
)
"""Other fields in between: its type, or where it is used."""

FIELD_NAME: Final = rb"[A-Za-z0-9_./-]*"

_FIELDS_FORM: Final = (
    FIELD
    + FIELD_NAME
    + NAME
    + rb"""\\{0,3}["']?"""
    + BETWEEN
    + rb"{1,40}"
    + OTHER_FIELDS
    + rb"""{0,2}\\{0,3}["']?value\\{0,3}["']?[ \t]{0,8}[:=][ \t]{0,8}"""
)
"""A name and its value, each in a field of its own: `{"name": "API_KEY", "value": "…"}`."""

BAR: Final = rb"(?:\||\xe2\x94\x82)"

_ROW_FORM: Final = (
    BAR
    + rb"[ \t]{0,40}[*_`]{0,3}(?:[A-Za-z0-9_]{1,24}[ ]){0,3}[A-Za-z0-9_]{0,24}"
    + NAME
    + rb"[*_`]{0,3}[ \t]{0,40}"
    + BAR
    + rb"[ \t]{0,8}"
)
"""A name in a cell of a table: its value stands in the next one."""

NAME_ABOVE_FORM: Final = NAME + QUOTES + _ABOVE
"""The line below such a name is its value only if nothing else stands in it."""

_ELEMENT: Final = rb"<[A-Za-z0-9:._-]{0,24}" + NAME

_TAG_FORM: Final = (
    _ELEMENT
    + rb"(?:[ \t](?:[^<>\r\n]{0,80}[ \t])?value=|[ \t][^<>\r\n]{0,80}>"
    + _CHARACTERS
    + rb"|>\s{0,2}\n[ \t]{0,40})"
)
"""`<wsse:Password Type="…">`, `<Password Value="…"/>`, and `<password>` in a line of its own."""

VARIANT_FIELDS: Final = frozenset(
    {"current", "default", "new", "old", "plain", "previous", "value"}
)
"""Fields that only say which secret it is; others may say anything about it."""

VARIANT_FIELD: Final = rb"(?:" + "|".join(sorted(VARIANT_FIELDS)).encode() + rb")"

BLOCK: Final = rb"[ \t]{0,8}(?:[:=]|[:=]?[ \t]{0,4}\{)" + _LINE_END

_BELOW_FORM: Final = NAME + QUOTES + BLOCK + VARIANT_FIELD + rb"[ \t]{0,8}[:=][ \t]{1,8}"
"""A field in the line below its name, as in YAML and the files of Terraform."""

_NAMED_FORM: Final = (
    NAME + rb"(?:" + QUOTES + _ABOVE + rb"|" + _MARKED + rb"|" + _ABOUT + QUOTES + SEPARATOR + rb")"
) + _CHARACTERS

ASSIGNED_FORM: Final = (
    rb"(?:"
    + rb"|".join(
        (
            _TAG_FORM,
            _BELOW_FORM,
            _NAMED_FORM,
            _PASS_FORM,
            _NETRC_FORM,
            _SENTENCE_FORM,
            COLUMN_FORM,
            QUOTED_FORM,
            _FIELDS_FORM,
            _ROW_FORM,
            _OPTION_FORM,
            _SET_FORM,
        )
    )
    + rb")"
)

SECRET_WORDS: Final = rb"(?:pass|pwd|secret|token|cred|key|[_-]?auth|[_-]pat|[_-]pw|psk)"

SPLIT_NAME_START: Final = rb"(?:" + KEYS + rb"|unexpected)[ ]"
"""First word of a name that consists of two."""

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


# --- values -----------------------------------------------------------------------------------

_BARE: Final = rb"[!#$%*+\-./0-9:=?@A-Z^_a-z~\x80-\xff]"

_JOINED: Final = rb"""(?![A-Za-z_][A-Za-z0-9_.-]{0,40}[ ]?["']?[=:])(?=""" + _BARE + rb")"
"""Allowed in the middle of a password, unless the next name follows."""

_NO_ENTITY: Final = rb"(?!&(?:amp|lt|gt|quot|apos|nbsp|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});)"
"""HTML entities are left to the unescaped text."""

_INSIDE: Final = rb"(?:" + _BARE + rb"|" + _NO_ENTITY + rb"[&;,)|]" + _JOINED + rb")"

_NO_TAG: Final = rb"(?!</?[A-Za-z][A-Za-z0-9:._-]{0,40}(?:[ \t][^<>\r\n]{0,80})?/?>|\]\]>)"

_BARE_VALUE: Final = re.compile(rb"`?" + _BARE + _INSIDE + rb"{0,127}+")

_REST: Final = re.compile(rb"(?:" + _INSIDE + rb"|" + _NO_TAG + rb"[(\[{}\]<>]" + _JOINED + rb")*+")
"""In a random value brackets are no code, but a tag is no part of it."""

_OF_STRING: Final = re.compile(
    rb"(?:(?:Some|Ok|Just|String|Secret[A-Za-z]{0,12})\()?[FRBUfrbu]{0,2}(?=\\{0,3}[\"'])"
)
"""Prefix of a string literal in some languages."""

_GOES_ON: Final = rb"(?=[^\s,;:)\]}\"'])"

_QUOTE: Final = {
    b"'": re.compile(rb"(?P<own>'(?:'" + _GOES_ON + rb"|\\''|\"'\"'))|(?P<behind>\\*)'"),
    b'"': re.compile(rb'(?P<own>""' + _GOES_ON + rb')|(?P<behind>\\*)"'),
}
"""A quote; one that is doubled, or put between others as in a shell, belongs to the text."""

_LONGEST_QUOTED: Final = 200


class Value(NamedTuple):
    """Span of a value, and whether it has no quotes."""

    start: int
    end: int
    is_bare: bool


def parse_value(data: bytes, at: int) -> Value | None:
    """Parse the value here: quoted, or a word."""
    prefix = _OF_STRING.match(data, at)
    quote = begin = prefix.end() if prefix else at
    while data[quote : quote + 1] == b"\\":
        quote += 1
    sign = data[quote : quote + 1]
    if sign not in _QUOTE:
        return _parse_bare(data, at)
    if data.startswith(3 * sign, quote):
        start, end = quote + 3, data.find(3 * sign, quote + 3, quote + 4 + _LONGEST_QUOTED)
    else:
        start, end = quote + 1, _closing_quote(data, quote + 1, sign, quote - begin)
    if end > start and b"\n" not in data[start:end]:
        return Value(start, end, False)
    return _parse_unclosed(data, start) if end != start else None


def extend_value(data: bytes, value: Value) -> Value:
    """Extend a value without quotes, of which a bounded part was parsed, to its end."""
    rest = _REST.match(data, value.end)
    assert rest is not None, "it matches nothing, too"
    return strip_punctuation(data, value._replace(end=rest.end()))


def strip_punctuation(data: bytes, value: Value) -> Value:
    """Remove the punctuation of the sentence around a word."""
    end = value.end
    while end > value.start and data[end - 1] in b".,;:":
        end -= 1
    return value._replace(end=end)


def _parse_unclosed(data: bytes, at: int) -> Value | None:
    """Parse the first word of a quoted text that is too long, or does not end in its line."""
    word = _parse_bare(data, at)
    return extend_value(data, word)._replace(is_bare=False) if word else None


def _parse_bare(data: bytes, at: int) -> Value | None:
    bare = _BARE_VALUE.match(data, at)
    return Value(at + (data[at] == ord("`")), bare.end(), True) if bare else None


def _closing_quote(data: bytes, start: int, quote_character: bytes, opening: int) -> int:
    """Position of the closing quote behind as many backslashes as the opening one; -1: none.

    One behind more of them belongs to the text, unless they are backslashes of the text.
    """
    for quote in _QUOTE[quote_character].finditer(data, start, start + _LONGEST_QUOTED + 1):
        if quote["own"] and not opening:
            continue
        backslashes = len(quote["behind"] or b"")
        if backslashes <= opening or (backslashes + 1) // (opening + 1) % 2:
            return quote.start() + backslashes - min(backslashes, opening)
    return -1
