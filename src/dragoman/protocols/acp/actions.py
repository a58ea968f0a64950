"""What each action of `acp_handoff` is given, and the one shape that doors publish for all."""

from typing import Annotated, Any, Final, Literal, get_args

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict, fields

from dragoman.core.events import HandoffStatus, RejectReason
from dragoman.core.limits import MAX_PAGE
from dragoman.protocols.acp.wire import (
    Artifacts,
    Context,
    Moment,
    Name,
    Names,
    NonEmptyText,
    Policy,
    Sha256,
    Task,
    WorkState,
    WorkStateUpdate,
)

ActionName = Literal[
    "initiate",
    "accept",
    "reject",
    "activate",
    "complete",
    "close",
    "query",
    "draft",
    "validate",
    "propose",
    "discard",
    "withdraw",
    "extend_sla",
    "reassign",
    "approve",
    "deny",
]
ACTION_NAMES: Final[tuple[str, ...]] = get_args(ActionName)

Notes = Annotated[str, Meta(max_length=65_536)]
Duration = Annotated[
    str,
    Meta(
        pattern="^[0-9]{1,12}(ms|s|m|h|d)$",
        extra={"reason": "a number with its unit, such as 90s, 30m or 24h"},
    ),
]
PageSize = Annotated[int, Meta(ge=1, le=MAX_PAGE)]
Position = Annotated[int, Meta(ge=0, le=2**53 - 1)]


class ActionArguments(Struct, frozen=True, forbid_unknown_fields=True):
    """An action on handoffs."""

    action: ActionName


class ProvenanceInput(Struct, frozen=True, forbid_unknown_fields=True):
    """Provenance as a sender states it; the hub overwrites what it knows itself."""

    origin_session: str = ""
    related_sessions: Names = ()
    decision_refs: Names = ()
    message_thread_refs: Names = ()
    handoff_chain: Names = ()


class SlaInput(Struct, frozen=True, forbid_unknown_fields=True):
    """SLA of each state, as a sender states it."""

    proposed: Duration | UnsetType = UNSET
    validating: Duration | UnsetType = UNSET
    accepted: Duration | UnsetType = UNSET
    activated: Duration | UnsetType = UNSET

    @property
    def by_stage(self) -> dict[str, str]:
        """State -> its stated duration."""
        return {stage: span for stage, span in asdict(self).items() if span is not UNSET}


class VerificationInput(Struct, frozen=True, forbid_unknown_fields=True):
    """Schema version and package hash, as a sender states them."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    package_hash: Sha256 | UnsetType = UNSET


class Initiate(ActionArguments, frozen=True, kw_only=True):
    """Propose a package."""

    to_agent: Name
    task: Task
    context: Context
    work_state: WorkState
    policy: Policy
    artifacts: Artifacts = ()
    deadline: Moment = ""
    reason: Annotated[str, Meta(max_length=4_000)] = ""
    thread_id: str = ""
    teamspace_id: str = "default"
    provenance: ProvenanceInput = ProvenanceInput()
    verification: VerificationInput = VerificationInput()
    supersedes: str = ""
    from_agent: str = ""
    handoff_id: str = ""
    """Id of the draft that is proposed; else the hub makes one."""
    sla: SlaInput = SlaInput()


class Draft(ActionArguments, frozen=True, kw_only=True):
    """Write parts of a package; what is left out stays unchanged."""

    handoff_id: str = ""
    to_agent: str = ""
    task: dict[str, Any] | UnsetType = UNSET
    context: dict[str, Any] | UnsetType = UNSET
    work_state: dict[str, Any] | UnsetType = UNSET
    artifacts: list[dict[str, Any]] | UnsetType = UNSET
    policy: dict[str, Any] | UnsetType = UNSET
    provenance: dict[str, Any] | UnsetType = UNSET
    verification: dict[str, Any] | UnsetType = UNSET
    deadline: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    thread_id: str | UnsetType = UNSET
    teamspace_id: str = ""
    supersedes: str | UnsetType = UNSET
    sla: dict[str, str] | UnsetType = UNSET
    from_agent: str = ""


class HandoffAction(ActionArguments, frozen=True, kw_only=True):
    """An action on one handoff."""

    handoff_id: Name


class Accept(HandoffAction, frozen=True, kw_only=True):
    """Accept a handoff, or all of it but some artifacts."""

    notes: Notes = ""
    leave_out: Annotated[tuple[Name, ...], Meta(max_length=256)] = ()


class Reject(HandoffAction, frozen=True, kw_only=True):
    """Reject a handoff, or give the work back."""

    reason: RejectReason
    detail: NonEmptyText
    suggested_fix: Notes = ""


class Activate(HandoffAction, frozen=True, kw_only=True):
    """Begin the work."""

    work_state_update: WorkStateUpdate = WorkStateUpdate()
    session: str = ""


class Complete(HandoffAction, frozen=True, kw_only=True):
    """Complete the work."""

    completion_notes: Notes = ""
    final_artifacts: Artifacts = ()


class Close(HandoffAction, frozen=True, kw_only=True):
    """Close the record."""

    closure_notes: Notes = ""


class Withdraw(HandoffAction, frozen=True, kw_only=True):
    """Withdraw a proposal."""

    notes: Notes = ""


class ExtendSla(HandoffAction, frozen=True, kw_only=True):
    """Extend the present stage."""

    by: Duration
    stage: str = ""


class Reassign(HandoffAction, frozen=True, kw_only=True):
    """Offer the same package to another recipient."""

    to_agent: Name
    notes: Notes = ""


class Approve(HandoffAction, frozen=True, kw_only=True):
    """Approve or deny a package, by a person."""

    package_hash: Sha256 | UnsetType = UNSET
    notes: Notes = ""


class Query(ActionArguments, frozen=True, kw_only=True):
    """Query handoffs."""

    handoff_id: str = ""
    task_id: str = ""
    from_agent: str = ""
    to_agent: str = ""
    status: HandoffStatus | UnsetType = UNSET
    teamspace_id: str = ""
    limit: PageSize = 50
    cursor: Position | UnsetType = UNSET


ACTION_SHAPES: Final[dict[str, type[ActionArguments]]] = {
    "initiate": Initiate,
    "draft": Draft,
    "validate": HandoffAction,
    "propose": HandoffAction,
    "discard": HandoffAction,
    "accept": Accept,
    "reject": Reject,
    "activate": Activate,
    "complete": Complete,
    "close": Close,
    "withdraw": Withdraw,
    "extend_sla": ExtendSla,
    "reassign": Reassign,
    "approve": Approve,
    "deny": Approve,
    "query": Query,
}
"""Action -> shape of its arguments."""


def _hint(text: str) -> Any:
    return Meta(description=text)


class HandoffCall(Struct, frozen=True, omit_defaults=True):
    """Hand a task over to another agent, take one over, or look handoffs up.

    What each action needs is checked when it is called, so that the answer says where.
    """

    action: ActionName
    handoff_id: str = ""
    to_agent: str = ""
    task: Annotated[
        dict[str, Any],
        _hint("task_id, title, objective, success_criteria[], priority?, deadline?"),
    ] = {}
    context: Annotated[dict[str, Any], _hint("summary, constraints?, known_risks?")] = {}
    work_state: Annotated[
        dict[str, Any], _hint("status not_started|in_progress|blocked|review, next_step")
    ] = {}
    artifacts: Annotated[
        list[Any], _hint("{artifact_id, ref:{type:file, path, sha256?, required?}}")
    ] = []
    leave_out: Annotated[list[str], _hint("accept: artifact ids not to take")] = []
    policy: Annotated[dict[str, Any], _hint("classification?, requires_human_approval?")] = {}
    deadline: str = ""
    reason: Annotated[str, _hint("Of a reject: " + ", ".join(get_args(RejectReason)))] = ""
    detail: str = ""
    suggested_fix: str = ""
    notes: str = ""
    work_state_update: dict[str, Any] = {}
    session: str = ""
    completion_notes: str = ""
    final_artifacts: list[Any] = []
    closure_notes: str = ""
    by: Annotated[str, _hint("extend_sla: 30m")] = ""
    stage: str = ""
    task_id: str = ""
    from_agent: str = ""
    status: str = ""
    limit: int = 50
    cursor: int = 0
    thread_id: str = ""
    teamspace_id: str = ""
    provenance: dict[str, Any] = {}
    verification: dict[str, Any] = {}
    supersedes: str = ""
    sla: dict[str, str] = {}
    package_hash: str = ""


CALL_DEFAULTS: Final[dict[str, Any]] = msgspec.to_builtins(
    {
        field.name: field.default_factory() if field.default is NODEFAULT else field.default
        for field in fields(HandoffCall)
        if not field.required
    }
)
"""Field -> its published default; sending it is the same as leaving it out."""
