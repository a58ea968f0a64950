"""A body: the words of each field, and the line where they stand, in one pass (S-MAIL-3).

Nearly every line is written as the document prints it, so each is first looked up as it stands;
only what is not found so is looked at closely.
"""

from typing import Final

from msgspec import Struct

from dragoman.protocols.agentmail.escape import unescape_text
from dragoman.protocols.agentmail.forms import FieldsByLabel, Form, Section
from dragoman.protocols.agentmail.lines import (
    continuation_lines,
    parse_labelled_line,
    parse_list_below,
    parse_list_section,
    split_lines,
)
from dragoman.protocols.agentmail.marks import closes_fence, parse_heading, parse_opening_fence

RawValue = str | tuple[str, ...]

_MARKUP_STARTS: Final = frozenset("#`~ \t")
"""A line that begins with anything else is neither a heading nor a fence."""
_LIST_FIELDS: Final = frozenset({"files", "files_touched"})
_NO_LABELS: Final[FieldsByLabel] = {}


class ParsedBody(Struct, frozen=True, gc=False):
    """Fields of a body as they were written; of repeated fields the first that is not empty."""

    values: dict[str, RawValue]
    line_numbers: dict[str, int]
    """Line number of each field, also of a label without a value."""
    heading_lines: dict[str, int]
    """Line number of each section's heading, by its title."""
    misplaced_lines: dict[str, int]
    """Line number of each field whose label stands outside its section and is therefore ignored."""


def parse_body(body: str, form: Form) -> ParsedBody:
    """Collect all fields of the form that a body has, in one pass (S-MAIL-3).

    Nearly every line is written exactly as the form prints it, so each line is first looked up as
    it is; only a line that is not found that way is analysed.
    """
    parser = _BodyParser(split_lines(body), form)
    return parser.parse()


def section_text(lines: list[str]) -> str:
    """Text of a section, unescaped."""
    text = "\n".join(lines).strip()
    return unescape_text(text) if "\\" in text else text


class _BodyParser:
    """One-pass parser of a body: the current section and fence, and the fields found so far."""

    __slots__ = (
        "_fence",
        "_form",
        "_headings",
        "_labels",
        "_level",
        "_lines",
        "_misplaced",
        "_places",
        "_section",
        "_start",
        "_text_end",
        "_words",
    )

    def __init__(self, lines: list[str], form: Form) -> None:
        self._words: dict[str, RawValue] = {}
        self._places: dict[str, int] = {}
        self._headings: dict[str, int] = {}
        self._misplaced: dict[str, int] = {}
        self._lines = lines
        self._form = form
        self._section = form.head_section
        self._labels = form.head_section.fields_by_label
        """Labels that count in the current section; none in free text or in code."""
        self._level = 0
        self._start = 0
        self._text_end = 0
        """All lines before this one continue the text of a label."""
        self._fence = ""

    def parse(self) -> ParsedBody:
        words, places = self._words, self._places
        for index, line in enumerate(self._lines):
            if not line or (line[0] in _MARKUP_STARTS and self._consume_markup(index, line)):
                continue
            labels = self._labels
            if not labels or ":" not in line or index < self._text_end:
                continue
            head, _, value = line.partition(":")
            field = labels.get(head)
            if field is None or field in words or not (value := value.strip()):
                self._parse_irregular_line(index, line)
            else:
                words[field] = self._collect_value(index, field, value)
                places[field] = index + 1
        self._finish_section(len(self._lines))
        if self._form.is_guidance:
            self._parse_guidance()
        return ParsedBody(words, places, self._headings, self._misplaced)

    # --- headings and fences

    def _consume_markup(self, index: int, line: str) -> bool:
        if self._fence:
            if closes_fence(line, self._fence):
                self._fence = ""
                self._labels = self._section.fields_by_label
            return True
        section = self._form.sections_by_exact_heading.get(line)
        if section is not None:
            self._enter_section(index, 2, section)
        elif heading := parse_heading(line):
            self._enter_section(index, heading[0], self._form.sections_by_heading.get(heading[1]))
        elif fence := parse_opening_fence(line):
            self._fence = fence
            self._labels = _NO_LABELS
        else:
            return False
        return True

    def _enter_section(self, index: int, level: int, section: Section | None) -> None:
        """Start a section, unless the heading is part of the current one.

        A deeper heading belongs to a free text; elsewhere an unknown deeper heading is ignored.
        """
        if level > self._level > 0 and (section is None or self._section.kind == "text"):
            return
        self._finish_section(index)
        self._start = index + 1
        if section is None:
            self._section, self._level = self._form.head_section, 0
        else:
            self._section, self._level = section, level
            self._headings.setdefault(section.title, index + 1)
        self._labels = self._section.fields_by_label

    def _finish_section(self, end: int) -> None:
        """Close the section, and collect its content if it is a text or a list."""
        section = self._section
        if section.kind == "labels" or section.field in self._words:
            return
        lines = self._lines[self._start : end]
        value = parse_list_section(lines) if section.kind == "list" else section_text(lines)
        if value:
            self._words[section.field] = value
            self._places[section.field] = self._start

    # --- fields

    def _parse_irregular_line(self, index: int, line: str) -> None:
        """Parse a line in an unusual spelling, with a list below it, or without a field."""
        words, places = self._words, self._places
        field, value = parse_labelled_line(line, self._form.all_fields_by_label)
        if not field or field in words:
            return
        if field not in self._section.fields:
            if value:
                self._misplaced.setdefault(field, index + 1)
            return
        collected = self._collect_value(index, field, value)
        if collected:
            words[field] = collected
            places[field] = index + 1
        else:
            places.setdefault(field, index + 1)

    def _collect_value(self, index: int, field: str, value: str) -> RawValue:
        """Return the value of a labelled line, with the lines below that continue it."""
        if field in _LIST_FIELDS:
            return value or parse_list_below(self._lines, index + 1, self._labels)
        if field not in self._form.multiline_fields:
            return value
        continuation = tuple(continuation_lines(self._lines, index, self._form.all_fields_by_label))
        self._text_end = index + 1 + len(continuation)
        return "\n".join(filter(None, (value, *continuation)))

    def _parse_guidance(self) -> None:
        """Take the whole body as guidance, without a first line that names the bead."""
        lines = self._lines
        first = next((index for index, line in enumerate(lines) if line.strip()), 0)
        if parse_labelled_line(lines[first], self._form.head_section.fields_by_label)[0]:
            first += 1
        elif self._words.pop("bead_id", ""):
            del self._places["bead_id"]  # a label amid the advice names some other bead
        guidance = "\n".join(lines[first:]).strip()
        if guidance:
            self._words["guidance"] = guidance
            self._places["guidance"] = first + 1
