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
"""A line that begins with anything else is neither heading nor fence."""
_LISTS: Final = frozenset({"files", "files_touched"})
_NO_LABELS: Final[Labels] = {}


class Found(Struct, frozen=True, gc=False):
    """What a body says, field by field, as it was written. The first that is not empty counts."""

    words: dict[str, Words]
    lines: dict[str, int]
    """The line of each field, also of one that has a label and nothing after it."""
    headings: dict[str, int]
    """The line of each section's heading, by its title."""
    misplaced: dict[str, int]
    """The line of each field that has a label outside of its section, where it does not count."""


def read_body(body: str, form: Form) -> Found:
    """All fields of the form that a body has."""
    reader = _Reader(split_lines(body), form)
    return reader.read()


def text_of(lines: list[str]) -> str:
    """The text under a heading."""
    text = "\n".join(lines).strip()
    return unescaped(text) if "\\" in text else text


class _Reader:
    """Where in a body we are, and what it said so far."""

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
        """Which labels count here; none in a text or in code."""
        self._level = 0
        self._start = 0
        self._text_end = 0
        """Before this line, all is part of a text behind a label."""
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
        """A heading: it belongs to a text that it is deeper than, or it opens a section.

        One that we do not know and that is deeper than the section leaves us where we are.
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
        """The section ends: what it holds as a whole is read now."""
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
        """A line that is written in another way, has a list under it, or fills no field."""
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
        """What a labelled line says, with what stands below it where it may go on there."""
        if field in _LISTS:
            return value or items_below(self._lines, index + 1, self._labels)
        if field not in self._form.texts:
            return value
        more = tuple(lines_below(self._lines, index, self._form.anywhere))
        self._text_end = index + 1 + len(more)
        return "\n".join(filter(None, (value, *more)))

    def _read_guidance(self) -> None:
        """The whole body, without the line that names the bead if it begins with one."""
        lines = self._lines
        first = next((index for index, line in enumerate(lines) if line.strip()), 0)
        if labelled(lines[first], self._form.start.lookup)[0]:
            first += 1
        elif self._words.pop("bead_id", ""):
            del self._places["bead_id"]  # of another bead than its own, in the middle of advice
        words = "\n".join(lines[first:]).strip()
        if words:
            self._words["guidance"] = words
            self._places["guidance"] = first + 1
