"""A body: the words of each field, and the line where they stand, in one pass (S-MAIL-3).

Nearly every line is written as the document prints it, so each is first looked up as it stands;
only what is not found so is looked at closely.
"""

from typing import Final

from msgspec import Struct

from dragoman.protocols.agentmail.escape import unescaped
from dragoman.protocols.agentmail.forms import Form, Labels, Section
from dragoman.protocols.agentmail.lines import (
    items_below,
    items_of,
    labelled,
    lines_below,
    split_lines,
)
from dragoman.protocols.agentmail.marks import closes, heading_of, opened_fence

Words = str | tuple[str, ...]

_MARKS: Final = frozenset("#`~ \t")
"""A line that begins with anything else is neither a heading nor a fence."""
_LISTS: Final = frozenset({"files", "files_touched"})
_NO_LABELS: Final[Labels] = {}


class Found(Struct, frozen=True, gc=False):
    """Fields of a body as they were written; of repeated fields the first that is not empty."""

    words: dict[str, Words]
    lines: dict[str, int]
    """Line number of each field, also of a label without a value."""
    headings: dict[str, int]
    """Line number of each section's heading, by its title."""
    misplaced: dict[str, int]
    """Line number of each field whose label stands outside its section and is therefore ignored."""


def read_body(body: str, form: Form) -> Found:
    """Collect all fields of the form that a body has, in one pass (S-MAIL-3).

    Nearly every line is written exactly as the form prints it, so each line is first looked up as
    it is; only a line that is not found that way is analysed.
    """
    reader = _Reader(split_lines(body), form)
    return reader.read()


def text_of(lines: list[str]) -> str:
    """Text of a section, unescaped."""
    text = "\n".join(lines).strip()
    return unescaped(text) if "\\" in text else text


class _Reader:
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
        self._words: dict[str, Words] = {}
        self._places: dict[str, int] = {}
        self._headings: dict[str, int] = {}
        self._misplaced: dict[str, int] = {}
        self._lines = lines
        self._form = form
        self._section = form.start
        self._labels = form.start.lookup
        """Labels that count in the current section; none in free text or in code."""
        self._level = 0
        self._start = 0
        self._text_end = 0
        """All lines before this one continue the text of a label."""
        self._fence = ""

    def read(self) -> Found:
        words, places = self._words, self._places
        for index, line in enumerate(self._lines):
            if not line or (line[0] in _MARKS and self._is_mark(index, line)):
                continue
            labels = self._labels
            if not labels or ":" not in line or index < self._text_end:
                continue
            head, _, value = line.partition(":")
            field = labels.get(head)
            if field is None or field in words or not (value := value.strip()):
                self._look_closely(index, line)
            else:
                words[field] = self._whole(index, field, value)
                places[field] = index + 1
        self._leave(len(self._lines))
        if self._form.guidance:
            self._read_guidance()
        return Found(words, places, self._headings, self._misplaced)

    # --- headings and fences

    def _is_mark(self, index: int, line: str) -> bool:
        if self._fence:
            if closes(line, self._fence):
                self._fence = ""
                self._labels = self._section.lookup
            return True
        section = self._form.headings.get(line)
        if section is not None:
            self._meet(index, 2, section)
        elif heading := heading_of(line):
            self._meet(index, heading[0], self._form.lookup.get(heading[1]))
        elif fence := opened_fence(line):
            self._fence = fence
            self._labels = _NO_LABELS
        else:
            return False
        return True

    def _meet(self, index: int, level: int, section: Section | None) -> None:
        """Start a section, unless the heading is part of the current one.

        A deeper heading belongs to a free text; elsewhere an unknown deeper heading is ignored.
        """
        if level > self._level > 0 and (section is None or self._section.kind == "text"):
            return
        self._leave(index)
        self._start = index + 1
        if section is None:
            self._section, self._level = self._form.start, 0
        else:
            self._section, self._level = section, level
            self._headings.setdefault(section.title, index + 1)
        self._labels = self._section.lookup

    def _leave(self, end: int) -> None:
        """Close the section, and collect its content if it is a text or a list."""
        section = self._section
        if section.kind == "labels" or section.field in self._words:
            return
        lines = self._lines[self._start : end]
        words = items_of(lines) if section.kind == "list" else text_of(lines)
        if words:
            self._words[section.field] = words
            self._places[section.field] = self._start

    # --- fields

    def _look_closely(self, index: int, line: str) -> None:
        """Parse a line in an unusual spelling, with a list below it, or without a field."""
        words, places = self._words, self._places
        field, value = labelled(line, self._form.anywhere)
        if not field or field in words:
            return
        if field not in self._section.fields:
            if value:
                self._misplaced.setdefault(field, index + 1)
            return
        filled = self._whole(index, field, value)
        if filled:
            words[field] = filled
            places[field] = index + 1
        else:
            places.setdefault(field, index + 1)

    def _whole(self, index: int, field: str, value: str) -> Words:
        """Return the value of a labelled line, with the lines below that continue it."""
        if field in _LISTS:
            return value or items_below(self._lines, index + 1, self._labels)
        if field not in self._form.texts:
            return value
        more = tuple(lines_below(self._lines, index, self._form.anywhere))
        self._text_end = index + 1 + len(more)
        return "\n".join(filter(None, (value, *more)))

    def _read_guidance(self) -> None:
        """Take the whole body as guidance, without a first line that names the bead."""
        lines = self._lines
        first = next((index for index, line in enumerate(lines) if line.strip()), 0)
        if labelled(lines[first], self._form.start.lookup)[0]:
            first += 1
        elif self._words.pop("bead_id", ""):
            del self._places["bead_id"]  # a label amid the advice names some other bead
        words = "\n".join(lines[first:]).strip()
        if words:
            self._words["guidance"] = words
            self._places["guidance"] = first + 1
