"""What is asked for, in the imperative. Deciders check the contents before anything else."""

from dragoman.core.commands.agents import DEFAULT_PAUSE_REASON as DEFAULT_PAUSE_REASON
from dragoman.core.commands.agents import (
    IssueToken,
    PauseAgent,
    RegisterAgent,
    RejectMessage,
    ResumeAgent,
    RevokeToken,
    SetAgentKey,
)
from dragoman.core.commands.base import DEFAULT_LEASE_MS as DEFAULT_LEASE_MS
from dragoman.core.commands.base import DEFAULT_MAX_ATTEMPTS as DEFAULT_MAX_ATTEMPTS
from dragoman.core.commands.base import Command as Command
from dragoman.core.commands.base import TaskCommand as TaskCommand
from dragoman.core.commands.handoffs import (
    AcceptHandoff,
    ActivateHandoff,
    AddWorkItem,
    ApproveHandoff,
    ClaimWorkItem,
    CloseHandoff,
    CompleteHandoff,
    DiscardDraft,
    DraftHandoff,
    EscalateHandoff,
    ExtendHandoff,
    NoteHandoff,
    ProposeHandoff,
    ReassignHandoff,
    RejectHandoff,
    ReleaseWorkItem,
    WithdrawHandoff,
)
from dragoman.core.commands.handoffs import GateFailure as GateFailure
from dragoman.core.commands.handoffs import HandoffCommand as HandoffCommand
from dragoman.core.commands.intents import (
    CancelIntent,
    DelegateIntent,
    DescribeAgent,
    ExpireRequest,
    ReceiveResult,
    UpdateIntent,
)
from dragoman.core.commands.intents import IntentCommand as IntentCommand
from dragoman.core.commands.mail import (
    AckMail,
    AdvanceWave,
    AnswerMail,
    EscalateMail,
    PostMail,
    ReadMail,
    ReleaseReservations,
    RenewReservations,
    ReserveFiles,
    StartWave,
)
from dragoman.core.commands.tasks import (
    AcceptDelegation,
    AdoptTask,
    AliasTask,
    CheckpointTask,
    ClaimTask,
    CreateTask,
    EditTask,
    EndAttempt,
    EscalateDelegation,
    ExpireLease,
    LinkTask,
    MoveTask,
    NoteTask,
    RejectDelegation,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
    RequestDelegation,
    RewindTask,
    SetLeaseDuration,
    UpdateTask,
    WarnTask,
)
from dragoman.core.commands.traces import (
    EscalateEntropy,
    RecordTrace,
    RecordTurn,
    RequestTransition,
    SettleEntropy,
)

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
    | SetLeaseDuration
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
    | DraftHandoff
    | ProposeHandoff
    | AcceptHandoff
    | RejectHandoff
    | DiscardDraft
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
    | RenewReservations
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
