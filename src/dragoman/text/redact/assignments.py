"""Secrets without a format of their own, found by the name before them.

The name alone is not enough: the value must look random. Objects and lists behind a name are
searched too: `"password": {"old": "…", "new": "…"}`, `"X-Api-Key": ["…"]`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from dragoman.text.linear_regex import LinearRegex
from dragoman.text.redact.likelihood import (
    is_in_placeholder,
    is_metadata_name,
    is_test_name,
    looks_random,
    without_placeholders,
)
from dragoman.text.redact.logins import url_login_end
from dragoman.text.redact.name_patterns import (
    ASSIGNED_FORM,
    BAR,
    COLUMN_FORM,
    NAME,
    NAME_ABOVE_FORM,
    NAMES,
    QUOTED_FORM,
    QUOTES,
    VARIANT_FIELD,
    Value,
    extend_value,
    parse_value,
    strip_punctuation,
)

# --- objects and lists ------------------------------------------------------------------------

_FIELD: Final = re.compile(rb"(?i)\b" + VARIANT_FIELD + QUOTES + rb"\s{0,8}[:=]\s{0,8}")

_QUOTE_MARKS: Final = re.compile(rb"[\"'\]`*]")
"""Behind a quoted field only a quoted value is a text; YAML has both without quotes."""

_LONGEST: Final = 400
"""Distance from its start in which a field of an object, or an item of a list, is searched."""

_ITEM: Final = re.compile(
    rb"""\\{0,3}["']?(?:\s|\\{1,3}[nrt]){0,40}[\[,](?:\s|\\{1,3}[nrt]){0,40}"""
)
"""Start of an item, with the quote of the one before it."""

_BARE: Final = rb"[^\s,\[\](){}<>\"'`]+"

_BARE_ITEMS: Final = re.compile(
    rb"\[\s{0,40}(?!\S*(?:A-Z|a-z|0-9))"
    + _BARE
    + rb"(?:[ \t]{0,8},\s{0,40}"
    + _BARE
    + rb"){0,15},?\s{0,40}\](?=[\s,\]}]|\Z)"
)
"""Items of a list without quotes, as in YAML, and no expression; Go prints a single one like this:
`map[X-Api-Key:[…]]`."""

_BARE_ITEM: Final = re.compile(_BARE)

_TEXT_BLANK: Final = re.compile(r"\s")
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
    if (bare := _BARE_ITEMS.match(data, at, most)) is not None:
        items = _BARE_ITEM.finditer(data, at, bare.end())
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

_IS_OPTION: Final = re.compile(r"--?[A-Za-z0-9][A-Za-z0-9_-]{0,63}")

_QUOTED: Final = re.compile(rb"(?i)" + QUOTED_FORM)

_ABOVE: Final = re.compile(rb"(?i)(?:" + NAME_ABOVE_FORM + rb"|" + COLUMN_FORM + rb"\Z)")

_END_OF_LINE: Final = re.compile(rb"`{0,3}[ \t]{0,8}(?:[\r\n\\\"']|\Z)")

_IS_NAMED: Final = re.compile(rb"[A-Za-z_.-]+[=:].")
"""A value with a name of its own."""

_BLANK: Final = re.compile(rb"\s")
"""A value with blanks is a sentence."""

_LONGEST_BELOW: Final = 256

_END_OF_CELL: Final = re.compile(rb"[*_`]{0,3}[ \t]{0,40}" + BAR)

_END_OF_PAIR: Final = re.compile(rb"""\\{0,3}["'](?:\s|\\{1,3}[nrt]){0,40}\]""")

_END_OF_ELEMENT: Final = re.compile(rb"\s{0,40}</")

_PASS: Final = re.compile(rb"(?i)pass\b")

_CALL: Final = re.compile(rb"(?=[A-Za-z0-9_.]*[a-z]{4})[A-Za-z_][A-Za-z0-9_.]*+\([^\r\n)]{0,200}\)")
"""A function call whose name has a word in it."""

_APART: Final = rb"(?:(?<!\S)|(?<=\\[nrt]))"

_WORD: Final = re.compile(_APART + rb"[A-Za-z0-9_.-]+(?:=|:[ ])\Z")

_VARIABLE: Final = re.compile(_APART + rb"[A-Z0-9_]+=\Z")

_LONGEST_WORD: Final = 64

_REST_OF_LINE: Final = re.compile(
    rb"[^\s]{7,127}?[^\s.,;:](?=[.,;:]{0,2}(?:[\r\n]|\Z)"
    rb"|\\{1,3}[nr]|\\{0,3}[\"'][,;)}\]]*(?:[\r\n]|\Z))"
)

_TAG: Final = re.compile(rb"</|[\"']>")

_PROGRAM: Final = re.compile(
    rb"[!(\[{*&+-]*[A-Za-z_][A-Za-z0-9_.]*[(\[{<]|[(\[{]+[\"']|\[[^\]]{1,127}\]\("
)
"""A call, a type, an index, a list of texts, or a link."""

_BEFORE_NAME: Final = re.compile(rb"(?i)set|env|--?")
"""Prefix of a command before a name; in SQL or a diff also a sign."""

_ARROW: Final = re.compile(rb"""(?:\\{0,3}["']){0,2}[ \t]{1,8}->[ \t]{1,8}(?=\\{0,3}["'])""")

_NOT_OWN: Final = {
    b"f": re.compile(r"\{(?:[^{}]|\{[^{}]*\})*\}"),
    b"r": re.compile(r"\[.*\].*", re.DOTALL),
}
"""Prefix of a string literal -> parts that the program replaces, or a regular expression."""

_ADDRESS: Final = re.compile(
    rb"arn:[a-z0-9-]{1,32}:[a-z0-9-]{1,32}:[a-z0-9-]{0,32}:[0-9]{0,12}:[A-Za-z0-9:/_+.@*-]*+"
)
"""https://docs.aws.amazon.com/IAM/latest/UserGuide/reference-arns.html"""

_LONGEST_ADDRESS: Final = 512

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
    if rest.end() <= end or _TAG.search(data, end, rest.end()):
        return 0
    is_named = form.search(data, max(0, begin - _LONGEST_WORD), at) is not None
    return rest.end() if is_named and looks_random(without_placeholders(rest[0])) else 0


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
    is_above = _ABOVE.match(name) is not None
    if not value.is_bare:
        if data[begin] == ord("["):
            return _END_OF_PAIR.match(data, value.end) is not None
        return not (is_above and _BLANK.search(data, value.start, value.end))
    if b"," in name or (not is_above and _QUOTED.fullmatch(name) is not None):
        return False
    if _CALL.match(data, value.start) is not None or data.startswith(_QUOTE_SIGNS, value.start):
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
