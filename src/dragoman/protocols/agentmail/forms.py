"""The ten forms, as the document prints them: one table that reading, checking and writing share.

A body is a head of labelled lines and then sections. A section is free text, a list, or labelled
lines of its own.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Final, Literal

from msgspec import Struct

from dragoman.protocols.agentmail.words import MessageType

Kind = Literal["text", "list", "labels"]
"""What a section holds."""


class Label(Struct, frozen=True):
    """The word before the colon, and the field that the line fills."""

    word: str
    field: str
    goes_on: bool = False
    """Whether it is a text, which may go on in the lines below."""


Labels = Mapping[str, str]
"""What stands before a colon -> the field."""


class Section(Struct, frozen=True, dict=True):
    """A heading and what stands under it."""

    title: str
    kind: Kind
    field: str = ""
    """What a text or a list fills."""
    labels: tuple[Label, ...] = ()
    bullet: str = ""
    """What its labelled lines begin with when we write them."""

    @cached_property
    def lookup(self) -> Labels:
        """Its labels as they may be spelled."""
        return _spellings(self.labels)

    @cached_property
    def fields(self) -> frozenset[str]:
        """What its labels fill."""
        return frozenset(label.field for label in self.labels)


class Form(Struct, frozen=True, dict=True):
    """One type's body."""

    head: tuple[Label, ...]
    sections: tuple[Section, ...] = ()
    optional: frozenset[str] = frozenset()
    """What strict mode does not ask for; what depends on another field is in `check`."""
    guidance: bool = False
    """The body is free text, which a line that names the bead may precede."""

    @cached_property
    def start(self) -> Section:
        """The head, and what stands under headings that we do not know.

        Every type names its bead in either of two ways (S-MAIL-2), and may list its files touched.
        """
        return Section("", "labels", labels=(*_BEAD, *self.head, *self._files_touched))

    @cached_property
    def lookup(self) -> Mapping[str, Section]:
        """The heading, in lower case -> its section."""
        known = {section.title.lower(): section for section in self.sections}
        if self._files_touched:
            known |= {_FILES_TOUCHED.word.lower(): _FILES_TOUCHED_SECTION}
        return known

    @cached_property
    def texts(self) -> frozenset[str]:
        """The fields of labelled lines that may go on below."""
        return frozenset(label.field for label in self._labels if label.goes_on)

    @cached_property
    def anywhere(self) -> Labels:
        """The labels of the head and of all sections: no text of the type goes on beyond one."""
        return _spellings(self._labels)

    @cached_property
    def headings(self) -> Mapping[str, Section]:
        """The headings as nearly everybody writes them -> their sections."""
        return {f"## {section.title}": section for section in self.sections}

    @cached_property
    def required(self) -> tuple[tuple[str, str], ...]:
        """The fields that strict mode asks for, each with the title of its section."""
        fields = [(label.field, "") for label in self.head]
        fields += [("guidance", "")] * self.guidance
        for section in self.sections:
            inner = section.labels or (Label("", section.field),)
            fields += [(label.field, section.title) for label in inner]
        return tuple(item for item in fields if item[0] not in self.optional)

    @property
    def _labels(self) -> tuple[Label, ...]:
        return self.start.labels + tuple(
            label for section in self.sections for label in section.labels
        )

    @property
    def _files_touched(self) -> tuple[Label, ...]:
        """The label may stand for the section and the section for the label."""
        has_one = _FILES_TOUCHED in self.head or _FILES_TOUCHED_SECTION in self.sections
        return (_FILES_TOUCHED,) if has_one else ()


def _spellings(labels: tuple[Label, ...]) -> Labels:
    """Each label in lower case for those who look closely, and as nearly everybody writes it."""
    return {
        before + word: label.field
        for label in labels
        for before in ("", "- ", "* ")
        for word in (label.word, label.word.lower())
    }


_BEAD: Final = (Label("Bead", "bead_id"), Label("Accepted bead", "bead_id"))
_FILES_TOUCHED: Final = Label("Files touched", "files_touched")
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
            Label("Status", "status", goes_on=True),
            Label("Context usage", "context_usage"),
            _FILES_TOUCHED,
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
    MessageType.HELP_RESPONSE: Form(head=(), guidance=True),
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
                    Label("Reason", "reason", goes_on=True),
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
                    Label("Description", "progress", goes_on=True),
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
