"""The fields of commands that people and agents write as they like: redacted before all else.

Every other field is a name, a number or a choice, and stays as it is: a name that holds a secret is
refused. A command that is not in the table has no such field; a turn and a trace come redacted, by
whoever understands their parts. The package of a handoff is hashed, and refused if it holds a
secret.
"""

from typing import Any, Final

from dragoman.core.commands import (
    AcceptHandoff,
    ActivateHandoff,
    AddWorkItem,
    AdoptTask,
    ApproveHandoff,
    CancelIntent,
    CheckpointTask,
    CloseHandoff,
    CompleteHandoff,
    CreateTask,
    DelegateIntent,
    DraftHandoff,
    EditTask,
    EscalateEntropy,
    MoveTask,
    NoteHandoff,
    NoteTask,
    PauseAgent,
    PostMail,
    ProposeHandoff,
    ReassignHandoff,
    ReceiveResult,
    RejectDelegation,
    RejectHandoff,
    RejectMessage,
    ReleaseTask,
    ReportOutcome,
    RequestDelegation,
    ReserveFiles,
    RewindTask,
    UpdateIntent,
    UpdateTask,
    WarnTask,
    WithdrawHandoff,
)

FREE_TEXT_FIELDS: Final[dict[type[Any], tuple[str, ...]]] = {
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
    DraftHandoff: ("package",),
    ProposeHandoff: ("title", "reason"),
    AcceptHandoff: ("notes",),
    RejectHandoff: ("detail", "suggested_fix"),
    WithdrawHandoff: ("note",),
    ActivateHandoff: ("work_state_update",),
    CompleteHandoff: ("notes", "final_artifacts"),
    CloseHandoff: ("notes",),
    ApproveHandoff: ("note",),
    ReassignHandoff: ("notes",),
    NoteHandoff: ("text", "data"),
    AddWorkItem: ("title",),
    DelegateIntent: ("goal", "params", "passed_on"),
    ReceiveResult: ("output", "error", "passed_on"),
    UpdateIntent: ("message", "partial"),
    CancelIntent: ("reason",),
}
"""Command -> its fields of free text: texts, lists of them, or JSON."""

OTHER_TEXT_FIELDS: Final = frozenset({"digest", "envelope", "event_id", "package"})
"""Fields that are neither name nor free text: hashes, UUIDs, and what its dialect has redacted."""
