"""Secrets without a format of their own, found by the name before them.

`password = …`, `"api_key": "…"`, `--token …`, `<b>Password:</b> …`, `the password is …`, a name
above its value, in a field or in a cell of its own. The name alone is not enough: the value must
look random. Objects and lists behind a name are searched too: `"password": {"old": "…"}`,
`"X-Api-Key": ["…"]`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dragoman.text.lazy_regex import lazy_regex
from dragoman.text.linear_regex import LinearRegex
from dragoman.text.redact.likelihood import (
    is_in_placeholder,
    is_metadata_name,
    is_test_name,
    looks_random,
    without_placeholders,
)
from dragoman.text.redact.rules import NEXT_ARGUMENT

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
    + rb")|"
    + BAR
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

_BARE_VALUE: Final = lazy_regex(rb"`?" + _BARE + _INSIDE + rb"{0,127}+")

_REST: Final = lazy_regex(rb"(?:" + _INSIDE + rb"|" + _NO_TAG + rb"[(\[{}\]<>]" + _JOINED + rb")*+")
"""In a random value brackets are no code, but a tag is no part of it."""

_OF_STRING: Final = lazy_regex(
    rb"(?:(?:Some|Ok|Just|String|Secret[A-Za-z]{0,12})\()?[FRBUfrbu]{0,2}(?=\\{0,3}[\"'])"
)
"""Prefix of a string literal in some languages."""

_GOES_ON: Final = rb"(?=[^\s,;:)\]}\"'])"

_QUOTE: Final = {
    b"'": lazy_regex(rb"(?P<own>'(?:'" + _GOES_ON + rb"|\\''|\"'\"'))|(?P<behind>\\*)'"),
    b'"': lazy_regex(rb'(?P<own>""' + _GOES_ON + rb')|(?P<behind>\\*)"'),
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


# --- objects and lists ------------------------------------------------------------------------

_FIELD: Final = lazy_regex(rb"(?i)\b" + VARIANT_FIELD + QUOTES + rb"\s{0,8}[:=]\s{0,8}")

_QUOTE_MARKS: Final = lazy_regex(rb"[\"'\]`*]")
"""Behind a quoted field only a quoted value is a text; YAML has both without quotes."""

_LONGEST: Final = 400
"""Distance from its start in which a field of an object, or an item of a list, is searched."""

_ITEM: Final = lazy_regex(
    rb"""\\{0,3}["']?(?:\s|\\{1,3}[nrt]){0,40}[\[,](?:\s|\\{1,3}[nrt]){0,40}"""
)
"""Start of an item, with the quote of the one before it."""

_PLAIN: Final = rb"[^\s,\[\](){}<>\"'`]+"

_PLAIN_ITEMS: Final = lazy_regex(
    rb"\[\s{0,40}(?!\S*(?:A-Z|a-z|0-9))"
    + _PLAIN
    + rb"(?:[ \t]{0,8},\s{0,40}"
    + _PLAIN
    + rb"){0,15},?\s{0,40}\](?=[\s,\]}]|\Z)"
)
"""Items of a list without quotes, as in YAML, and no expression; Go prints a single one like this:
`map[X-Api-Key:[…]]`."""

_PLAIN_ITEM: Final = lazy_regex(_PLAIN)

_TEXT_BLANK: Final = lazy_regex(r"\s")
"""Several texts with blanks in them are sentences, or lines of a program."""


def find_nested(data: bytes, at: int) -> Iterator[tuple[int, int]]:
    """Find the secrets of an object or a list that begins here."""
    return _READERS.get(data[at : at + 1], _find_nothing)(data, at)


def _find_in_object(data: bytes, at: int) -> Iterator[tuple[int, int]]:
    """Search up to the end of the first object in it."""
    most = at + _LONGEST
    end = data.find(b"}", at, most)
    while (field := _FIELD.search(data, at, end if end >= 0 else most)) is not None:
        value, at = parse_value(data, field.end()), field.end()
        if value is None or (value.is_bare and _QUOTE_MARKS.search(field[0])):
            continue
        if looks_random(without_placeholders(data[value.start : value.end])):
            yield value.start, value.end
        at = value.end


def _find_in_list(data: bytes, at: int) -> Iterator[tuple[int, int]]:
    """Search up to the first item that is no text."""
    most = at + _LONGEST
    if (bare := _PLAIN_ITEMS.match(data, at, most)) is not None:
        items = _PLAIN_ITEM.finditer(data, at, bare.end())
        yield from (one.span() for one in items if looks_random(without_placeholders(one[0])))
        return
    while (before := _ITEM.match(data, at, most)) is not None:
        value = parse_value(data, before.end())
        if value is None or value.is_bare:
            return
        item = without_placeholders(data[value.start : value.end])
        if _TEXT_BLANK.search(item) is None and looks_random(item):
            yield value.start, value.end
        at = value.end


def _find_nothing(_: bytes, __: int) -> Iterator[tuple[int, int]]:
    yield from ()


_READERS: Final = {b"{": _find_in_object, b"[": _find_in_list}
"""First byte -> function that finds the secrets."""


# --- assignments ------------------------------------------------------------------------------

_ASSIGNED: Final = LinearRegex(rb"(?i)" + ASSIGNED_FORM, captures=False)

_NAME: Final = LinearRegex(rb"(?i)(?:" + NAMES + rb"|authorization)", captures=False)

_WHOLE_NAME: Final = LinearRegex(rb"(?i)" + NAME, captures=False)

_ALONE: Final = frozenset({"auth", "pass"})
"""Keys of secrets only as whole keys."""

_IS_OPTION: Final = lazy_regex(r"--?[A-Za-z0-9][A-Za-z0-9_-]{0,63}")

_ONLY_QUOTED: Final = lazy_regex(rb"(?i)" + QUOTED_FORM)

_IS_ABOVE: Final = lazy_regex(rb"(?i)(?:" + NAME_ABOVE_FORM + rb"|" + COLUMN_FORM + rb"\Z)")

_END_OF_LINE: Final = lazy_regex(rb"`{0,3}[ \t]{0,8}(?:[\r\n\\\"']|\Z)")

_IS_NAMED: Final = lazy_regex(rb"[A-Za-z_.-]+[=:].")
"""A value with a name of its own."""

_BLANK: Final = lazy_regex(rb"\s")
"""A value with blanks is a sentence."""

_LONGEST_BELOW: Final = 256

_END_OF_CELL: Final = lazy_regex(rb"[*_`]{0,3}[ \t]{0,40}" + BAR)

_END_OF_PAIR: Final = lazy_regex(rb"""\\{0,3}["'](?:\s|\\{1,3}[nrt]){0,40}\]""")

_END_OF_ELEMENT: Final = lazy_regex(rb"\s{0,40}</")

_PASS: Final = lazy_regex(rb"(?i)pass\b")

_IS_CALL: Final = lazy_regex(
    rb"(?=[A-Za-z0-9_.]*[a-z]{4})[A-Za-z_][A-Za-z0-9_.]*+\([^\r\n)]{0,200}\)"
)
"""A function call whose name has a word in it."""

_APART: Final = rb"(?:(?<!\S)|(?<=\\[nrt]))"

_WORD: Final = lazy_regex(_APART + rb"[A-Za-z0-9_.-]+(?:=|:[ ])\Z")

_VARIABLE: Final = lazy_regex(_APART + rb"[A-Z0-9_]+=\Z")

_LONGEST_WORD: Final = 64

_REST_OF_LINE: Final = lazy_regex(
    rb"[^\s]{7,127}?[^\s.,;:](?=[.,;:]{0,2}(?:[\r\n]|\Z)"
    rb"|\\{1,3}[nr]|\\{0,3}[\"'][,;)}\]]*(?:[\r\n]|\Z))"
)

_TAG_INSIDE: Final = lazy_regex(rb"</|[\"']>")

_PROGRAM: Final = lazy_regex(
    rb"[!(\[{*&+-]*[A-Za-z_][A-Za-z0-9_.]*[(\[{<]|[(\[{]+[\"']|\[[^\]]{1,127}\]\("
)
"""A call, a type, an index, a list of texts, or a link."""

_BEFORE_NAME: Final = lazy_regex(rb"(?i)set|env|--?")
"""Prefix of a command before a name; in SQL or a diff also a sign."""

_ARROW: Final = lazy_regex(rb"""(?:\\{0,3}["']){0,2}[ \t]{1,8}->[ \t]{1,8}(?=\\{0,3}["'])""")

_NOT_OWN: Final = {
    b"f": lazy_regex(r"\{(?:[^{}]|\{[^{}]*\})*\}"),
    b"r": lazy_regex(r"\[.*\].*", re.DOTALL),
}
"""Prefix of a string literal -> parts that the program replaces, or a regular expression."""

_ADDRESS: Final = lazy_regex(
    rb"arn:[a-z0-9-]{1,32}:[a-z0-9-]{1,32}:[a-z0-9-]{0,32}:[0-9]{0,12}:[A-Za-z0-9:/_+.@*-]*+"
)
"""https://docs.aws.amazon.com/IAM/latest/UserGuide/reference-arns.html"""

_LONGEST_ADDRESS: Final = 512

URL_LOGIN: Final = LinearRegex(rb"://([^\s/@:\"'<>]*)(?::([^\s/@\"'<>]+))?@")

_LONGEST_LOGIN: Final = 64
"""Longest user of a URL whose name ends like that of a secret."""

_BARS: Final = (b"|", b"\xe2\x94\x82")

_QUOTE_SIGNS: Final = (b"%22", b"%27")
"""Quotes of a value in a URL: it is found in the unescaped text."""

KindSpan = tuple[int, int, str]
"""Start, end and kind of a secret."""


def find_assignments(data: bytes) -> Iterator[KindSpan]:
    """Find the secrets behind a name."""
    at = 0
    while (found := _ASSIGNED.search(data, at)) is not None:
        begin, at = found.span()
        spans, further = _value_spans(data, begin, at)
        if not spans:
            before = _BEFORE_NAME.match(data, begin)
            at = before.end() if before else further  # the name may tell more without it
        elif kind := kind_at(data, begin, at):
            yield from ((*span, kind) for span in spans)
            at = further


def _value_spans(data: bytes, begin: int, at: int) -> tuple[Sequence[tuple[int, int]], int]:
    """Secrets behind a name, and the position where the search continues."""
    if behind := url_login_end(data, begin, at):
        return (), behind
    value = parse_value(data, at)
    if (value is None or value.is_bare) and (rest := _rest_of_line_end(data, begin, at, value)):
        return ((at, rest),), rest
    if value is None:
        return (*find_nested(data, at), *_find_new_value(data, at)), at
    if address := _arn_end(data, value.start):
        return (), address
    if not _is_value_position(data, begin, at, value):
        return (), at  # the name of a variable, a call, or another word
    spans = tuple(_find_new_value(data, value.end))
    if looks_random(_literal_part(data, at, value)):
        start, end, _ = extend_value(data, value) if value.is_bare else value
        spans = ((start, end), *spans)
    if spans:
        return spans, spans[-1][1]
    # a word is no secret; a quoted text may have names of its own
    is_word = (
        value.is_bare
        and data[value.end - 1] not in b"=:"
        and data[value.end : value.end + 1] != b"("
    )
    return (), value.end if is_word else at


def _find_new_value(data: bytes, at: int) -> Iterator[tuple[int, int]]:
    """New value behind an arrow, as in a plan of Terraform."""
    arrow = _ARROW.match(data, at)
    value = parse_value(data, arrow.end()) if arrow else None
    if value is not None and looks_random(without_placeholders(data[value.start : value.end])):
        yield value.start, value.end


def _rest_of_line_end(data: bytes, begin: int, at: int, value: Value | None) -> int:
    """End of an unquoted value that is the rest of its line, like in a dump of an environment,
    although it has characters that would end a word; 0: there is none.
    """
    rest = _REST_OF_LINE.match(data, at)
    if rest is None or data[at - 1] not in b"= " or _PROGRAM.match(data, at):
        return 0
    form, end = _WORD, at
    if value is not None:
        end = value.end
        if looks_random(_literal_part(data, at, value)):
            form, end = (
                _VARIABLE,
                extend_value(data, value).end,
            )  # else it is rather followed by code
    if rest.end() <= end or _TAG_INSIDE.search(data, end, rest.end()):
        return 0
    is_named = form.search(data, max(0, begin - _LONGEST_WORD), at) is not None
    return rest.end() if is_named and looks_random(without_placeholders(rest[0])) else 0


def url_login_end(data: bytes, name: int, value: int) -> int:
    """End of the login of a URL whose user the name is; 0: none. The password and the host follow,
    and `find_url_logins` tells them apart.
    """
    scheme = data.rfind(b"://", max(0, name - _LONGEST_LOGIN), name)
    found = URL_LOGIN.match(data, scheme) if scheme >= 0 else None
    return found.end() if found is not None and found.start(2) == value else 0


def kind_of_name(name: str) -> str:
    """Kind of secret that a name like that of a variable stands for; empty: none."""
    found = _NAME.search(name.encode(errors="replace"))
    return "" if found is None or is_metadata_name(name) else placeholder_kind(name)


def is_option(word: str) -> bool:
    """Check whether a word is an option, which names the next argument."""
    return _IS_OPTION.fullmatch(word) is not None


def kind_of_key(key: str) -> str:
    """Kind of secret that the key of an object stands for; empty: none."""
    return placeholder_kind(f'"{key}"') if key.lower() in _ALONE else kind_of_name(key)


def kind_at(data: bytes, begin: int, end: int) -> str:
    """Kind of secret that a found name stands for; empty: none."""
    named = _WHOLE_NAME.search(data, begin, end)
    is_about = named is not None and is_metadata_name(_text(data, *named.span()))
    return (
        ""
        if is_about or is_in_placeholder(data, begin)
        else placeholder_kind(_text(data, begin, end))
    )


def placeholder_kind(name: str) -> str:
    """Kind for the placeholder of a secret behind this name."""
    data = name.encode(errors="replace")
    found = _NAME.search(data)
    named = _text(data, found.start(), found.end()) if found else "password"
    plain = re.sub(r"[^a-z]+", "_", named.lower()).strip("_")
    is_password = plain.startswith(("pass", "pwd", "sshpass"))
    return "password" if is_password else plain.removesuffix("s")


def _is_value_position(data: bytes, begin: int, at: int, value: Value) -> bool:
    """Check whether a value has the position and form that its name asks for."""
    name = data[begin:at]
    if data.startswith(_BARS, begin):
        return _is_cell(data, value)
    if name.startswith(b"<") and b"\n" in name:
        return _END_OF_ELEMENT.match(data, value.end) is not None
    is_above = _IS_ABOVE.match(name) is not None
    if not value.is_bare:
        if data[begin] == ord("["):
            return _END_OF_PAIR.match(data, value.end) is not None
        return not (is_above and _BLANK.search(data, value.start, value.end))
    if b"," in name or (not is_above and _ONLY_QUOTED.fullmatch(name) is not None):
        return False
    if _IS_CALL.match(data, value.start) is not None or data.startswith(_QUOTE_SIGNS, value.start):
        return False
    if _PASS.match(name) is not None and is_test_name(_text(data, value.start, value.end)):
        return False
    return not is_above or _is_line(data, value)


def _is_cell(data: bytes, value: Value) -> bool:
    """Check whether a value is all of a cell, and not a program in a pipe, or a type beside
    others."""
    is_all = _END_OF_CELL.match(data, value.end) is not None
    return is_all and not kind_of_name(_text(data, value.start, value.end))


def _is_line(data: bytes, value: Value) -> bool:
    """Check whether a value is all of a line, and has no name of its own."""
    end = extend_value(data, value).end
    is_all = end - value.start <= _LONGEST_BELOW and _END_OF_LINE.match(data, end) is not None
    return is_all and _IS_NAMED.match(data, value.start, end) is None


def _literal_part(data: bytes, at: int, value: Value) -> str:
    """Literal part of a value: without placeholders and what its program replaces."""
    if value.is_bare:
        _, end, _ = strip_punctuation(data, value)
        return without_placeholders(data[value.start : end])
    literal = without_placeholders(data[value.start : value.end])
    kinds = data[at : value.start].lower()
    for kind, form in _NOT_OWN.items():
        literal = form.sub("", literal) if kind in kinds else literal
    return literal


def _arn_end(data: bytes, at: int) -> int:
    """End of the Amazon Resource Name around a position; 0: none. It tells where a secret is kept,
    and may have `secret:` in it itself.
    """
    begin = data.rfind(b"arn:", max(0, at - _LONGEST_ADDRESS), at + len(b"arn:"))
    found = _ADDRESS.match(data, begin) if begin >= 0 else None
    return found.end() if found is not None and found.end() > at else 0


def _text(data: bytes, start: int, end: int) -> str:
    return data[start:end].decode(errors="replace")
