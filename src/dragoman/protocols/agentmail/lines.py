"""Labelled lines and lists: what one line of a body says."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from dragoman.protocols.agentmail.forms import FieldsByLabel
from dragoman.protocols.agentmail.marks import closes_fence, parse_heading, parse_opening_fence
from dragoman.text.ascii_case import ascii_lower

_BULLETS: Final = frozenset({"- ", "* ", "+ ", "• ", "-\t", "*\t", "+\t", "•\t"})
_BARE_BULLETS: Final = frozenset("-*+•")
_BOLD_SIGNS: Final = ("**", "__")
_VALUE_MARKUP: Final = ("`", "**")
_LIST_NUMBER: Final = re.compile(r"^[0-9]{1,9}[.)][ \t]+")
_CHECKBOX: Final = re.compile(r"^\[[ xX]\][ \t]+")
"""Box of a checklist item; the text behind it counts, not the tick."""
_BYTE_ORDER_MARK: Final = "\ufeff"
"""Written by some editors at the beginning of a file."""
_MAX_LABEL_CHARS: Final = 80
"""Limit of a label with a bullet, bold signs and generous spaces."""


def split_lines(body: str) -> list[str]:
    """Split a body into lines at any of the three line ends."""
    if "\r" in body:
        body = body.replace("\r\n", "\n").replace("\r", "\n")
    return body.split("\n")


def parse_labelled_line(line: str, labels: FieldsByLabel) -> tuple[str, str]:
    """Return the field that a line fills and its value; an empty field without a label.

    `- Commit: abc`, `1. Commit: abc`, `- [ ] Commit: abc`, `**Commit:** abc` and `COMMIT: abc` are
    all the same line.
    """
    head, colon, value = line.partition(":")
    if not colon or len(head) > _MAX_LABEL_CHARS:
        return "", ""
    name = _LIST_NUMBER.sub("", strip_bullet(head.strip().removeprefix(_BYTE_ORDER_MARK)), count=1)
    name = _CHECKBOX.sub("", name, count=1)
    sign = name[:2] if name.startswith(_BOLD_SIGNS) else ""
    if sign:
        name = name[2:]
        if name.endswith(sign):
            name = name[:-2]
        else:
            value = _strip_bold(value, sign)
    return labels.get(" ".join(ascii_lower(name).split()), ""), value.strip()


def _strip_bold(value: str, sign: str) -> str:
    """Return the value of `**Label:** value` or of `**Label: value**`."""
    if value.startswith(sign):
        return value[2:]
    value = value.rstrip()
    return value[:-2] if value.endswith(sign) else value


def strip_markup(value: str, signs: Sequence[str] = _VALUE_MARKUP) -> str:
    """Strip code or bold marks that surround the whole value."""
    for sign in signs:
        inner = value[len(sign) : -len(sign)].strip()
        if inner and sign not in inner and value.startswith(sign) and value.endswith(sign):
            return strip_markup(inner, signs)
    return value


def strip_bullet(line: str) -> str:
    """Strip the bullet from a line that is already stripped of space."""
    if line in _BARE_BULLETS:
        return ""
    return line[2:].lstrip() if line[:2] in _BULLETS else line


def _parse_list_item(line: str) -> str | None:
    """Return the text behind a bullet or number and a box; None if the line is no list item."""
    item = strip_bullet(line)
    if item is line:
        item = _LIST_NUMBER.sub("", line, count=1)
    return None if item == line else _CHECKBOX.sub("", item, count=1)


def format_list_item(item: str) -> str:
    """Format an item as a list line that parses back to it, even if it begins like a box."""
    return f"- [ ] {item}" if _CHECKBOX.match(item) else f"- {item}"


def parse_list_below(lines: Sequence[str], start: int, labels: FieldsByLabel) -> tuple[str, ...]:
    """Collect the list that begins at a line, up to anything else, such as the next label."""
    items: list[str] = []
    for index in range(start, len(lines)):
        line = lines[index].strip()
        if not line:
            continue
        item = _parse_list_item(line)
        if item is None or parse_labelled_line(line, labels)[0]:
            break
        items.append(item)
    return tuple(filter(None, items))


def continuation_lines(
    lines: Sequence[str], label_index: int, labels: FieldsByLabel
) -> Iterator[str]:
    """Yield the lines that continue the text of a label: the rest of its paragraph.

    The text ends at a line no deeper than the label that begins with a bullet or with one of
    `labels`. Other words before a colon are part of the text, such as the `Error: ` of a quoted
    program.
    """
    margin = _indentation(lines[label_index])
    for index in range(label_index + 1, len(lines)):
        line = lines[index]
        text = line.strip()
        at_margin = _indentation(line) <= margin
        if not text or parse_heading(line) or parse_opening_fence(line):
            return
        if at_margin and (strip_bullet(text) != text or parse_labelled_line(line, labels)[0]):
            return
        yield text


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def parse_list_section(lines: Sequence[str]) -> tuple[str, ...]:
    """Parse a list section: bulleted and numbered items, and plain lines split at commas."""
    items: list[str] = []
    fence = ""
    for raw in lines:
        line = raw.strip()
        item = _parse_list_item(line)
        if item is not None:
            items.append(item)
        elif fence and closes_fence(line, fence):
            fence = ""
        elif not fence and (opening := parse_opening_fence(line)):
            fence = opening
        else:
            items += split_list(line)
    return tuple(filter(None, items))


def split_list(value: str) -> tuple[str, ...]:
    r"""Split a list at commas; `\,` is a comma within a part. The inverse of `join_list`."""
    if "\\," not in value:
        return tuple([part for raw in value.split(",") if (part := raw.strip())])
    pieces = value.split(",")
    parts: list[list[str]] = [[]]
    for piece in pieces[:-1]:
        unescaped = piece.rstrip("\\")
        slashes = len(piece) - len(unescaped)
        parts[-1] += unescaped, "\\" * (slashes // 2)
        if slashes % 2:
            parts[-1].append(",")
        else:
            parts.append([])
    parts[-1].append(pieces[-1])
    return tuple([part for raw in parts if (part := "".join(raw).strip())])


def join_list(parts: Sequence[str]) -> str:
    r"""Join parts with commas so that `split_list` restores them.

    A comma within a part becomes `\,`. Backslashes before a comma are doubled, and all others stay
    as they are, so that Windows paths stay readable.
    """
    escaped = [_escape_commas(part) for part in parts]
    last = len(parts) - 1
    return ", ".join(
        part if index == last else part + _trailing_backslashes(part)
        for index, part in enumerate(escaped)
    )


def _escape_commas(part: str) -> str:
    pieces = part.split(",")
    return "\\,".join(
        piece if index == len(pieces) - 1 else piece + _trailing_backslashes(piece)
        for index, piece in enumerate(pieces)
    )


def _trailing_backslashes(text: str) -> str:
    return text[len(text.rstrip("\\")) :]
