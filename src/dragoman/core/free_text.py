"""The fields of commands that people and agents write as they like: redacted before all else.

Every other field is a name, a number or a choice, and stays as it is. A command that is not in the
table has no such field; a turn and a trace come redacted, by whoever understands their parts.
"""

from typing import Any, Final

from dragoman.core.commands import (
    AdoptTask,
    CheckpointTask,
    CreateTask,
    EditTask,
    EscalateEntropy,
    MoveTask,
    NoteTask,
    PauseAgent,
    PostMail,
    RejectDelegation,
    RejectMessage,
    ReleaseTask,
    ReportOutcome,
    RequestDelegation,
    ReserveFiles,
    RewindTask,
    UpdateTask,
    WarnTask,
)

FREE_TEXT: Final[dict[type[Any], tuple[str, ...]]] = {
    CreateTask: ("title", "body"),
    AdoptTask: ("title",),
    EditTask: ("title", "body"),
    PostMail: ("subject", "body", "attachments"),
    MoveTask: ("reason",),
    ReleaseTask: ("reason",),
    CheckpointTask: ("reason", "description", "next_steps"),
    ReportOutcome: ("notes", "blockers", "details"),
    NoteTask: ("text",),
    UpdateTask: ("progress", "notes", "blockers"),
    WarnTask: ("detail",),
    RequestDelegation: ("acceptance_criteria", "expected_outputs", "context_refs", "constraints"),
    RejectDelegation: ("reason",),
    RejectMessage: ("detail", "target", "kind"),
    ReserveFiles: ("reason",),
    PauseAgent: ("reason",),
    RewindTask: ("reason",),
    EscalateEntropy: ("detail",),
}
"""Command -> its fields of free text: texts, lists of them, or JSON."""
