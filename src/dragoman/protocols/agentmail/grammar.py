"""Grammar of letters: the ten body forms, Markdown marks, labelled lines, lists and values.

One table of forms is shared by parsing, strict checks and composing, so that every composed letter
can be parsed back (S-MAIL-3, S-MAIL-4). A body is a head of labelled lines followed by sections; a
section is free text, a list, or labelled lines of its own.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Final, Literal

from msgspec import Struct

from dragoman.protocols.agentmail import wire
from dragoman.protocols.agentmail.wire import MessageType
from dragoman.text.lazy_regex import lazy_regex

# --- ASCII case -------------------------------------------------------------------------------

_UPPER: Final = str.maketrans(ascii_lowercase, ascii_uppercase)

_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)


def ascii_upper(text: str) -> str:
    """Convert the letters a to z to upper case; with all of Unicode a long s would become an S."""
    return text.upper() if text.isascii() else text.translate(_UPPER)


def ascii_lower(text: str) -> str:
    """Convert the letters A to Z to lower case; the sign of Kelvin is no small k."""
    return text.lower() if text.isascii() else text.translate(_LOWER)


# --- forms ------------------------------------------------------------------------------------

SectionKind = Literal["text", "list", "labels"]
"""Content of a section: free text, a list, or labelled lines."""


class Label(Struct, frozen=True):
    """Word before the colon of a line, and the field that the line fills."""

    word: str
    field: str
    is_multiline: bool = False
    """The value is a text that may continue on the lines below."""


FieldsByLabel = Mapping[str, str]
"""Spelling of a label -> its field."""


class Section(Struct, frozen=True, dict=True):
    """A heading and the content under it."""

    title: str
    kind: SectionKind
    field: str = ""
    """Field that a text or a list fills."""
    labels: tuple[Label, ...] = ()
    bullet: str = ""
    """Bullet before the labelled lines when the section is rendered."""

    @cached_property
    def fields_by_label(self) -> FieldsByLabel:
        """Accepted spellings of the section's labels."""
        return _spell_labels(self.labels)

    @cached_property
    def fields(self) -> frozenset[str]:
        """Fields that the section's labels fill."""
        return frozenset(label.field for label in self.labels)


class Form(Struct, frozen=True, dict=True):
    """Form of one type's body."""

    head: tuple[Label, ...]
    sections: tuple[Section, ...] = ()
    optional: frozenset[str] = frozenset()
    """Fields that strict parsing does not require; `parse` has those that depend on another one."""
    is_guidance: bool = False
    """The body is free text, optionally after a line that names the bead."""

    @cached_property
    def head_section(self) -> Section:
        """Labels of the head, which also count under unknown headings.

        Every type may name its bead in either of two ways (S-MAIL-2), and some list their files
        touched.
        """
        return Section(
            "", "labels", labels=(*_BEAD_LABELS, *self.head, *self._files_touched_labels)
        )

    @cached_property
    def sections_by_heading(self) -> Mapping[str, Section]:
        """Heading in lower case -> its section."""
        sections = {section.title.lower(): section for section in self.sections}
        if self._files_touched_labels:
            sections |= {_FILES_TOUCHED_LABEL.word.lower(): _FILES_TOUCHED_SECTION}
        return sections

    @cached_property
    def multiline_fields(self) -> frozenset[str]:
        """Fields of labels whose text may continue below."""
        return frozenset(label.field for label in self._all_labels if label.is_multiline)

    @cached_property
    def all_fields_by_label(self) -> FieldsByLabel:
        """All labels of the type, of the head and of every section: each ends a multi-line text."""
        return _spell_labels(self._all_labels)

    @cached_property
    def sections_by_exact_heading(self) -> Mapping[str, Section]:
        """Heading in its usual spelling -> its section."""
        return {f"## {section.title}": section for section in self.sections}

    @cached_property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """All fields, each with the title of its section."""
        fields = [(label.field, "") for label in self.head]
        fields += [("guidance", "")] * self.is_guidance
        for section in self.sections:
            inner = section.labels or (Label("", section.field),)
            fields += [(label.field, section.title) for label in inner]
        return tuple(fields)

    @cached_property
    def required(self) -> tuple[tuple[str, str], ...]:
        """Fields that strict parsing requires, each with the title of its section."""
        return tuple(item for item in self.fields if item[0] not in self.optional)

    @cached_property
    def text_fields(self) -> frozenset[str]:
        """Fields of several lines that are no labels: texts of sections, and guidance."""
        texts = (section.field for section in self.sections if section.kind == "text")
        return frozenset((*texts, "guidance"))

    @property
    def _all_labels(self) -> tuple[Label, ...]:
        return self.head_section.labels + tuple(
            label for section in self.sections for label in section.labels
        )

    @property
    def _files_touched_labels(self) -> tuple[Label, ...]:
        """Label for files touched; a form with the section accepts the label, and vice versa."""
        has_one = _FILES_TOUCHED_LABEL in self.head or _FILES_TOUCHED_SECTION in self.sections
        return (_FILES_TOUCHED_LABEL,) if has_one else ()


def _spell_labels(labels: tuple[Label, ...]) -> FieldsByLabel:
    """Spell each label as usual and in lower case, for the fast and the careful lookup."""
    return {
        bullet + word: label.field
        for label in labels
        for bullet in ("", "- ", "* ")
        for word in (label.word, label.word.lower())
    }


_BEAD_LABELS: Final = (Label("Bead", "bead_id"), Label("Accepted bead", "bead_id"))

_FILES_TOUCHED_LABEL: Final = Label("Files touched", "files_touched")

_FILES_TOUCHED_SECTION: Final = Section("Files Touched", "list", "files_touched")

_COMPLETION: Final = Form(
    head=(Label("Bead", "bead_id"), Label("Status", "status")),
    sections=(
        Section(
            "Changes",
            "labels",
            labels=(Label("Commit", "commit_sha"), Label("Files", "files")),
            bullet="- ",
        ),
        Section(
            "Self-Validation",
            "labels",
            labels=(
                Label("Tests", "tests_pass"),
                Label("Lint", "lint_pass"),
                Label("Build", "build_pass"),
            ),
            bullet="- ",
        ),
        Section("Summary", "text", "summary"),
    ),
)

FORMS: Final[Mapping[MessageType, Form]] = {
    MessageType.BEAD_ACCEPTED: Form(
        head=(
            Label("Accepted bead", "bead_id"),
            Label("Title", "title"),
            Label("Starting implementation at", "started_at"),
        ),
    ),
    MessageType.PROGRESS: Form(
        head=(
            Label("Bead", "bead_id"),
            Label("Step", "step"),
            Label("Status", "status", is_multiline=True),
            Label("Context usage", "context_usage"),
            _FILES_TOUCHED_LABEL,
        ),
        optional=frozenset({"files_touched"}),
    ),
    MessageType.HELP_REQUEST: Form(
        head=(Label("Bead", "bead_id"), Label("Issue Type", "issue_type")),
        sections=(
            Section("Problem", "text", "problem"),
            Section("What I Tried", "text", "what_tried"),
            _FILES_TOUCHED_SECTION,
            Section("Question", "text", "question"),
        ),
        optional=frozenset({"files_touched"}),
    ),
    MessageType.HELP_RESPONSE: Form(head=(), is_guidance=True),
    MessageType.OFFERING_READY: _COMPLETION,
    MessageType.DONE: _COMPLETION,
    MessageType.FAILED: Form(
        head=(Label("Bead", "bead_id"), Label("Status", "status")),
        sections=(
            Section(
                "Failure",
                "labels",
                labels=(
                    Label("Type", "failure_type"),
                    Label("Reason", "reason", is_multiline=True),
                    Label("Internal Attempts", "internal_attempts"),
                ),
            ),
            Section(
                "Partial Progress",
                "labels",
                labels=(Label("Commit", "partial_commit_sha"), Label("Files", "files")),
                bullet="- ",
            ),
            Section("Recommendation", "text", "recommendation"),
        ),
        optional=frozenset({"partial_commit_sha", "files", "recommendation"}),
    ),
    MessageType.CHECKPOINT: Form(
        head=(Label("Bead", "bead_id"), Label("Reason", "checkpoint_reason")),
        sections=(
            Section(
                "Progress",
                "labels",
                labels=(
                    Label("Commit", "partial_commit_sha"),
                    Label("Description", "progress", is_multiline=True),
                    Label("Context usage", "context_usage"),
                ),
                bullet="- ",
            ),
            Section("Next Steps for Successor", "text", "next_steps"),
        ),
    ),
    MessageType.SPAWN_REQUEST: Form(
        head=(
            Label("Issue", "issue_id"),
            Label("Resume", "resume"),
            Label("Checkpoint", "partial_commit_sha"),
            Label("Orchestrator", "orchestrator"),
        ),
        optional=frozenset({"partial_commit_sha"}),
    ),
    MessageType.SPAWN_ACK: Form(
        head=(
            Label("Issue", "issue_id"),
            Label("Status", "status"),
            Label("Session", "session"),
        ),
        optional=frozenset({"session"}),
    ),
    MessageType.UNKNOWN: Form(head=()),
}

NO_BEAD_NEEDED: Final = frozenset({MessageType.HELP_RESPONSE, MessageType.UNKNOWN})
"""Types whose form need not name a bead; an answer is found by its thread."""

SPAWN_TYPES: Final = frozenset({MessageType.SPAWN_REQUEST, MessageType.SPAWN_ACK})
"""Types that name their bead as an issue."""


# --- headings and code fences -----------------------------------------------------------------

INDENT: Final = " \t"

_MAX_HEADING_LEVEL: Final = 6

_MAX_HEADING_INDENT: Final = 3
"""A heading that is indented further is code."""

_MIN_FENCE_CHARS: Final = 3

_HEADING_DECORATION: Final = " \t*_:"
"""Decoration around a heading's title: bold signs, or a colon."""


def parse_heading(line: str) -> tuple[int, str] | None:
    """Return level and title, in lower case, of a heading, or None."""
    unindented = line.lstrip(" ")
    title = unindented.lstrip("#")
    level = len(unindented) - len(title)
    if not 1 <= level <= _MAX_HEADING_LEVEL or len(line) - len(unindented) > _MAX_HEADING_INDENT:
        return None
    if title and title[0] not in INDENT:
        return None
    return level, ascii_lower(title.rstrip("# \t\r").strip(_HEADING_DECORATION))


def parse_opening_fence(line: str) -> str:
    """Return the fence that a line opens, with all its signs, or an empty text."""
    unindented = line.lstrip(INDENT)
    sign = unindented[:1]
    if sign not in ("`", "~"):
        return ""
    rest = unindented.lstrip(sign)
    length = len(unindented) - len(rest)
    if length < _MIN_FENCE_CHARS or (sign == "`" and sign in rest):
        return ""  # too short, or inline code
    return sign * length


def closes_fence(line: str, fence: str) -> bool:
    """Tell whether a line closes the fence: the same sign, at least as often, and nothing else."""
    stripped = line.strip()
    return stripped.startswith(fence) and not stripped.strip(fence[0])


# --- escaping of free text --------------------------------------------------------------------

SECTION_LEVEL: Final = 2

_MARKUP_SIGNS: Final = frozenset("#`~")


def escape_text(text: str) -> str:
    r"""Escape free text so that nothing in it can end its section or open another.

    A line that would act (a heading of a section's level or above, a fence that never closes) gets
    a backslash before it, as in Markdown: `\## Question` is shown as `## Question`. So does a line
    that already looks escaped, so that removing one backslash restores every text. Closed fences
    stay as they are, and nothing within them is touched.
    """
    return _rewrite_lines(text, _escape_line)


def unescape_text(text: str) -> str:
    """Undo `escape_text`."""
    return _rewrite_lines(text, _unescape_line)


def _rewrite_lines(text: str, rewrite: Callable[[str], str]) -> str:
    """Rewrite every line of a text that is not code."""
    lines = text.split("\n")
    in_code = _mark_code_lines(lines)
    return "\n".join(
        line if is_code else rewrite(line) for line, is_code in zip(lines, in_code, strict=True)
    )


def _mark_code_lines(lines: Sequence[str]) -> list[bool]:
    """Mark the lines that belong to a code fence that closes."""
    is_code = [False] * len(lines)
    fence, start = "", 0
    for index, line in enumerate(lines):
        if fence:
            if closes_fence(line, fence):
                is_code[start : index + 1] = [True] * (index + 1 - start)
                fence = ""
        elif fence := parse_opening_fence(line):
            start = index
    return is_code


def _escape_line(line: str) -> str:
    content = line.lstrip(INDENT)
    if not (_is_markup(line) or _is_escaped(content)):
        return line
    return line[: len(line) - len(content)] + "\\" + content


def _unescape_line(line: str) -> str:
    content = line.lstrip(INDENT)
    return line[: len(line) - len(content)] + content[1:] if _is_escaped(content) else line


def _is_markup(line: str) -> bool:
    heading = parse_heading(line)
    if heading is not None:
        return heading[0] <= SECTION_LEVEL
    return bool(parse_opening_fence(line))


def _is_escaped(content: str) -> bool:
    return content[:1] == "\\" and content.lstrip("\\")[:1] in _MARKUP_SIGNS


# --- labelled lines and lists -----------------------------------------------------------------

_BULLETS: Final = frozenset({"- ", "* ", "+ ", "• ", "-\t", "*\t", "+\t", "•\t"})

_BARE_BULLETS: Final = frozenset("-*+•")

_BOLD_SIGNS: Final = ("**", "__")

_VALUE_MARKUP: Final = ("`", "**")

_LIST_NUMBER: Final = lazy_regex(r"^[0-9]{1,9}[.)][ \t]+")

_CHECKBOX: Final = lazy_regex(r"^\[[ xX]\][ \t]+")
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


# --- field values -----------------------------------------------------------------------------

_MAX_DIGITS: Final = 9

_MAX_PERCENT: Final = 100

_PERCENT: Final = lazy_regex(
    r"(?<![\w.,+\N{MINUS SIGN}-])([0-9]{1,9})(?:\.0++)?\s*+(?:%|percent(?!\w))", re.IGNORECASE
)
"""A whole percentage, but not the end of a fraction or of a negative number."""

_PERCENT_END: Final = lazy_regex(r"\d\s*+(?:%|percent(?!\w))", re.IGNORECASE)
"""End of any percentage."""

_DIGIT: Final = lazy_regex(r"\d")

_DATE_TIME_SEPARATORS: Final = ("T", "t", " ")
"""Accepted between date and time; Python would accept any character."""

ParsedValue = tuple[Any, str]
"""Value, and the name of its problem or an empty text."""

ValueParser = Callable[[Any], ParsedValue]


def is_timestamp(text: str) -> bool:
    """Tell whether this is a calendar date with a time in ISO 8601, with or without an offset."""
    try:
        date = datetime.fromisoformat(text).date().isoformat()
    except ValueError:
        return False
    # No week dates: few readers know them.
    spellings = (date, date.replace("-", ""))
    return text.startswith(
        tuple(form + separator for form in spellings for separator in _DATE_TIME_SEPARATORS)
    )


def _parse_timestamp(text: str) -> ParsedValue:
    return text, "" if is_timestamp(text) else "bad_timestamp"


def _parse_integer(text: str) -> int | None:
    """Parse a whole number in ASCII digits; int() would also take 4_5 and other scripts' digits."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _MAX_DIGITS:
        return None
    return int(text)


def _parse_percentage(text: str) -> ParsedValue:
    number = _parse_integer(text.removesuffix("%").rstrip())
    if number is None:
        return _find_percentage(text), "bad_percentage"
    return number, "" if 0 <= number <= _MAX_PERCENT else "bad_percentage"


def _find_percentage(text: str) -> int | None:
    """Find the only percentage in a longer text such as `about 45% of 200k`; no end of a range."""
    match = _PERCENT.search(text)
    if match is None or _DIGIT.search(text, 0, match.start()):
        return None
    return int(match[1]) if len(_PERCENT_END.findall(text)) == 1 else None


def _parse_count(text: str) -> ParsedValue:
    number = _parse_integer(text)
    return number, "" if number is not None and number >= 0 else "bad_number"


def _parse_verdict(text: str) -> ParsedValue:
    verdict = wire.VERDICTS.get(ascii_lower(text))
    return verdict, "bad_verdict" if verdict is None else ""


def _parse_files(paths: str | tuple[str, ...]) -> ParsedValue:
    parts = split_list(paths) if isinstance(paths, str) else paths
    return tuple(clean_file_name(part) for part in parts), ""


def clean_file_name(part: str) -> str:
    """Strip code marks from a file name; stars are part of a name."""
    return strip_markup(part, ("`",))


def _parse_word(text: str) -> ParsedValue:
    return text, ""


def _enum_parser(allowed: tuple[str, ...]) -> ValueParser:
    """Build a parser of an enumeration, which returns any word in upper case."""

    def parse(text: str) -> ParsedValue:
        word = ascii_upper(text)
        return word, "" if word in allowed else "bad_value"

    return parse


def _parse_spawn_status(text: str) -> ParsedValue:
    """Keep the spelling (see SPEC.md)."""
    return text, "" if ascii_lower(text) in wire.SPAWN_STATUSES else "bad_value"


def _parse_failed_status(text: str) -> ParsedValue:
    """Return FAILED, whatever the status says."""
    return "FAILED", "" if ascii_upper(text) in wire.FAILED_STATUSES else "bad_value"


class ValueKind(Struct, frozen=True):
    """Kind of a field's value: how it is parsed and written, and its allowed values in words."""

    parse: ValueParser
    format: Callable[[Any], str] = str
    allowed: str = ""


def _word_kind(
    parse: ValueParser, write: Callable[[Any], str] = str, allowed: str = ""
) -> ValueKind:
    """Build the kind of a value that may stand in code or bold marks."""
    return ValueKind(lambda text: parse(strip_markup(text)), write, allowed)


def _enum_kind(allowed: tuple[str, ...], parse: ValueParser | None = None) -> ValueKind:
    return _word_kind(parse or _enum_parser(allowed), allowed=", ".join(allowed))


_WORD: Final = _word_kind(_parse_word)

_FILES: Final = ValueKind(_parse_files, join_list, "with commas between them")

_CHECK: Final = _word_kind(
    _parse_verdict, lambda passed: "PASS" if passed else "FAIL", "PASS or FAIL"
)

_KINDS: Final[Mapping[str, ValueKind]] = {
    "bead_id": _WORD,
    "issue_id": _WORD,
    "commit_sha": _WORD,
    "partial_commit_sha": _WORD,
    "orchestrator": _WORD,
    "session": _WORD,
    "started_at": _word_kind(_parse_timestamp, allowed="a date with a time"),
    "context_usage": _word_kind(_parse_percentage, "{}%".format, "0 to 100"),
    "internal_attempts": _word_kind(_parse_count, allowed="a whole number"),
    "files": _FILES,
    "files_touched": _FILES,
    "tests_pass": _CHECK,
    "lint_pass": _CHECK,
    "build_pass": _CHECK,
    "resume": _word_kind(_parse_verdict, lambda yes: str(yes).lower(), "true or false"),
    "issue_type": _enum_kind(wire.ISSUE_TYPES),
    "failure_type": _enum_kind(wire.FAILURE_TYPES),
    "checkpoint_reason": _enum_kind(wire.CHECKPOINT_REASONS),
}

_STATUS_KINDS: Final[Mapping[MessageType, ValueKind]] = {
    MessageType.OFFERING_READY: _enum_kind(wire.COMPLETED_STATUSES),
    MessageType.DONE: _enum_kind(wire.COMPLETED_STATUSES),
    MessageType.FAILED: _enum_kind(wire.FAILED_STATUSES, _parse_failed_status),
    MessageType.SPAWN_ACK: _enum_kind(wire.SPAWN_STATUSES, _parse_spawn_status),
}
"""Kinds of `status`, by type; in other types it is free text."""

VALUE_KINDS: Final[Mapping[MessageType, Mapping[str, ValueKind]]] = {
    type: {**_KINDS, **({"status": _STATUS_KINDS[type]} if type in _STATUS_KINDS else {})}
    for type in MessageType
}
"""Type -> field -> kind of its value; a field that is not listed is text."""
