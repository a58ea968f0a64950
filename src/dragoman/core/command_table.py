"""All commands in one union, their stable names, and their fields of free text.

Free text is what people and agents write as they like: it is redacted before all else. Every
other field is a name, a number or a choice, and stays as it is: a name that holds a secret is
refused. A command that is not in the table has no such field; turns and traces arrive redacted
by the dialect that understands their parts. The package of a handoff is hashed, and refused if
it has a secret.
"""

from typing import Any, Final

from dragoman.core.actor import RejectMessage
from dragoman.core.agent import (
    DescribeAgent,
    IssueToken,
    PauseAgent,
    RegisterAgent,
    ResumeAgent,
    RevokeToken,
    SetAgentKey,
)
from dragoman.core.attempt import (
    CheckpointTask,
    ClaimTask,
    EndAttempt,
    ExpireLease,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
)
from dragoman.core.delegation import (
    AcceptDelegation,
    EscalateDelegation,
    RejectDelegation,
    RequestDelegation,
)
from dragoman.core.handoff.state import (
    AcceptHandoff,
    ActivateHandoff,
    ApproveHandoff,
    CloseHandoff,
    CompleteHandoff,
    EscalateHandoff,
    ExtendHandoff,
    NoteHandoff,
    ProposeHandoff,
    ReassignHandoff,
    RejectHandoff,
    WithdrawHandoff,
)
from dragoman.core.intent.state import (
    CancelIntent,
    DelegateIntent,
    ExpireRequest,
    ReceiveResult,
    UpdateIntent,
)
from dragoman.core.mail import AckMail, AnswerMail, EscalateMail, PostMail, ReadMail
from dragoman.core.reservation import ReleaseReservations, ReserveFiles
from dragoman.core.task_state import (
    AdoptTask,
    AliasTask,
    CreateTask,
    EditTask,
    LinkTask,
    MoveTask,
    NoteTask,
    RewindTask,
    UpdateTask,
    WarnTask,
)
from dragoman.core.trace import (
    EscalateEntropy,
    RecordTrace,
    RecordTurn,
    RequestTransition,
    SettleEntropy,
)
from dragoman.core.wave import AdvanceWave, StartWave
from dragoman.core.work_queue import AddWorkItem, ClaimWorkItem, ReleaseWorkItem

AnyCommand = (
    CreateTask
    | AdoptTask
    | MoveTask
    | ClaimTask
    | RenewLease
    | ReleaseTask
    | CheckpointTask
    | ReportOutcome
    | EndAttempt
    | ExpireLease
    | LinkTask
    | AliasTask
    | NoteTask
    | UpdateTask
    | EditTask
    | WarnTask
    | RequestDelegation
    | AcceptDelegation
    | RejectDelegation
    | EscalateDelegation
    | RegisterAgent
    | SetAgentKey
    | IssueToken
    | RevokeToken
    | PauseAgent
    | ResumeAgent
    | RejectMessage
    | PostMail
    | ReadMail
    | AckMail
    | AnswerMail
    | EscalateMail
    | ProposeHandoff
    | AcceptHandoff
    | RejectHandoff
    | WithdrawHandoff
    | ActivateHandoff
    | CompleteHandoff
    | CloseHandoff
    | ApproveHandoff
    | EscalateHandoff
    | ExtendHandoff
    | ReassignHandoff
    | NoteHandoff
    | AddWorkItem
    | ClaimWorkItem
    | ReleaseWorkItem
    | StartWave
    | AdvanceWave
    | ReserveFiles
    | ReleaseReservations
    | DescribeAgent
    | DelegateIntent
    | ReceiveResult
    | UpdateIntent
    | ExpireRequest
    | CancelIntent
    | RewindTask
    | RecordTurn
    | RecordTrace
    | RequestTransition
    | EscalateEntropy
    | SettleEntropy
)


def command_name(command: AnyCommand) -> str:
    """Stable name of a command, as refusals record it."""
    return str(type(command).__struct_config__.tag)


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
    DelegateIntent: ("goal", "params", "extra_fields"),
    ReceiveResult: ("output", "error", "extra_fields"),
    UpdateIntent: ("message", "partial"),
    CancelIntent: ("reason",),
}
"""Command -> its fields of free text: texts, lists of them, or JSON."""

OTHER_TEXT_FIELDS: Final = frozenset({"digest", "envelope", "event_id", "package"})
"""Fields that are neither name nor free text: hashes, UUIDs, and what its dialect has redacted."""
