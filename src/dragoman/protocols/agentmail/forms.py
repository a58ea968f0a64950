"""The ten forms, as the document prints them: one table that reading, checking and writing share.

A body is a head of labelled lines and then sections. A section is free text, a list, or labelled
lines of its own.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Final, Literal

from msgspec import Struct

from dragoman.protocols.agentmail.words import MessageType

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
    def required(self) -> tuple[tuple[str, str], ...]:
        """Fields that strict parsing requires, each with the title of its section."""
        fields = [(label.field, "") for label in self.head]
        fields += [("guidance", "")] * self.is_guidance
        for section in self.sections:
            inner = section.labels or (Label("", section.field),)
            fields += [(label.field, section.title) for label in inner]
        return tuple(item for item in fields if item[0] not in self.optional)

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
