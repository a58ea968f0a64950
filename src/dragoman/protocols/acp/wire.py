"""ACP on the wire: the handoff package, the arguments of each action, and typed messages.

A key that is not known is an error: `requires_human_aproval` must not pass for no approval.
"""

from typing import Annotated, Any, Final, Literal, cast, get_args

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict, fields

from dragoman.core.handoff.state import HandoffStatus, RejectReason
from dragoman.core.limits import MAX_PAGE

# --- handoff package --------------------------------------------------------------------------

SCHEMA_VERSION: Final = "1.0.0"

Priority = Literal["low", "normal", "high", "critical"]

Visibility = Literal["private", "team", "human-audit"]

Sensitivity = Literal["low", "moderate", "high"]

Classification = Literal["internal", "restricted"]


def _non_empty_text(limit: int) -> Meta:
    """A text that is not blank."""
    reason = f"a text of at most {limit} characters, not empty and not blank"
    return Meta(min_length=1, max_length=limit, pattern=r"\S", extra={"reason": reason})


NonEmptyText = Annotated[str, _non_empty_text(65_536)]

Title = Annotated[str, _non_empty_text(500)]

Name = Annotated[str, Meta(min_length=1, max_length=256)]
"""An id or a name; its grammar is checked where it is looked up."""

Moment = Annotated[str, Meta(max_length=64, extra_json_schema={"format": "date-time"})]

Sha256 = Annotated[
    str,
    Meta(
        min_length=64,
        max_length=64,
        pattern="^[0-9a-f]{64}$",
        extra={"reason": "a SHA-256 of 64 lower-case hexadecimal digits, without a prefix"},
    ),
]
"""SHA-256 in its only accepted form."""

_MAX_TEXTS: Final = 1_000

MAX_ARTIFACTS: Final = 256

Texts = Annotated[tuple[NonEmptyText, ...], Meta(max_length=_MAX_TEXTS)]

Names = Annotated[tuple[Name, ...], Meta(max_length=_MAX_TEXTS)]


class PackagePart(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a package."""


class ExternalRef(PackagePart, frozen=True):
    """Reference to something outside that concerns the task."""

    type: Literal["workq_item", "file", "branch", "pr", "url", "session", "ticket", "other"]
    value: NonEmptyText
    description: str | UnsetType = UNSET
    version: str | UnsetType = UNSET


class Task(PackagePart, frozen=True):
    """Task to be done."""

    task_id: Name
    title: Title
    objective: NonEmptyText
    success_criteria: Annotated[tuple[NonEmptyText, ...], Meta(min_length=1, max_length=_MAX_TEXTS)]
    priority: Priority
    deadline: Moment | UnsetType = UNSET
    external_refs: Annotated[tuple[ExternalRef, ...], Meta(max_length=_MAX_TEXTS)] = ()


class Context(PackagePart, frozen=True):
    """Context that the recipient needs."""

    summary: NonEmptyText
    constraints: Texts = ()
    assumptions: Texts = ()
    open_questions: Texts = ()
    known_risks: Texts = ()


class WorkState(PackagePart, frozen=True):
    """State of the work."""

    status: Literal["not_started", "in_progress", "blocked", "review"]
    next_step: NonEmptyText
    percent_complete: Annotated[float, Meta(ge=0, le=100)] | UnsetType = UNSET
    completed_steps: Texts = ()
    branch: str | UnsetType = UNSET
    worktree_path: str | UnsetType = UNSET
    test_status: Literal["passing", "failing", "untested"] | UnsetType = UNSET


class WorkStateUpdate(PackagePart, frozen=True):
    """Change of the work state; the package itself does not change (S-ACP-11)."""

    status: Literal["not_started", "in_progress", "blocked", "review"] | UnsetType = UNSET
    next_step: NonEmptyText | UnsetType = UNSET
    percent_complete: Annotated[float, Meta(ge=0, le=100)] | UnsetType = UNSET
    completed_steps: Texts = ()
    branch: str | UnsetType = UNSET
    worktree_path: str | UnsetType = UNSET
    test_status: Literal["passing", "failing", "untested"] | UnsetType = UNSET


class ArtifactRef(PackagePart, frozen=True):
    """Location and hash of an artifact."""

    type: Literal["file", "branch", "pr", "url", "session", "workq_item"]
    path: Annotated[str, Meta(min_length=1, max_length=4_096)]
    sha256: Sha256 | UnsetType = UNSET
    description: str | UnsetType = UNSET
    version: str | UnsetType = UNSET
    size_bytes: Annotated[int, Meta(ge=0, le=2**53 - 1)] | UnsetType = UNSET
    required: bool = True


class Artifact(PackagePart, frozen=True):
    """Artifact that is handed over."""

    artifact_id: Name
    ref: ArtifactRef


Artifacts = Annotated[tuple[Artifact, ...], Meta(max_length=MAX_ARTIFACTS)]


class Provenance(PackagePart, frozen=True):
    """Origin of the package; the hub fills in what it knows itself."""

    origin_session: str
    related_sessions: Names = ()
    decision_refs: Names = ()
    message_thread_refs: Names = ()
    handoff_chain: Names = ()


class Policy(PackagePart, frozen=True):
    """Policy of the package."""

    classification: Classification
    requires_human_approval: bool
    export_restrictions: Texts = ()
    visibility: Visibility | UnsetType = UNSET
    sensitivity: Sensitivity | UnsetType = UNSET
    human_gate: Literal["none", "required"] | UnsetType = UNSET


class Verification(PackagePart, frozen=True):
    """Schema version and hash of the package."""

    schema_version: Literal["1.0.0"]
    package_hash: Sha256


class Package(PackagePart, frozen=True):
    """Handoff package: it never changes once it is proposed (S-ACP-2)."""

    handoff_id: Name
    thread_id: Name
    task: Task
    context: Context
    work_state: WorkState
    artifacts: Artifacts
    provenance: Provenance
    policy: Policy
    verification: Verification


SECTIONS: Final = (
    "task",
    "context",
    "work_state",
    "artifacts",
    "provenance",
    "policy",
    "verification",
)
"""Parts that a sender writes; the hub adds the ids."""


# --- JSON Schema of the package ---------------------------------------------------------------

JSON_SCHEMA_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"

PACKAGE_SCHEMA_ID: Final = f"urn:dragoman:acp:package:{SCHEMA_VERSION}"


def package_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a handoff package, made from the shapes that validate it."""
    (root,), parts = msgspec.json.schema_components([Package])
    defined = cast(dict[str, dict[str, Any]], parts)
    own = defined.pop(str(root["$ref"]).rpartition("/")[2])
    return {
        "$schema": JSON_SCHEMA_DRAFT,
        "$id": PACKAGE_SCHEMA_ID,
        **own,
        "title": "ACPHandoffPackage",
        "$defs": defined,
    }


# --- arguments of actions ---------------------------------------------------------------------

ActionName = Literal[
    "initiate",
    "accept",
    "reject",
    "activate",
    "complete",
    "close",
    "query",
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
    """Id of the handoff; empty: the hub makes one."""
    sla: SlaInput = SlaInput()


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


# --- messages ---------------------------------------------------------------------------------

MessageType = Literal[
    "handoff.initiate",
    "handoff.accept",
    "handoff.reject",
    "handoff.complete",
    "status.update",
    "status.blocked",
    "status.complete",
    "knowledge.push",
    "knowledge.query",
    "knowledge.response",
    "system.ack",
    "system.error",
]

MESSAGE_TYPES: Final[frozenset[str]] = frozenset(get_args(MessageType))

MAX_PAYLOAD_BYTES: Final = 4_096

HANDOFF_PAYLOAD_KEYS: Final = frozenset({"handoff_id", "package_hash"})
"""Payload keys of a message about a handoff; everything else is looked up by them."""


class Send(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename={"from_": "from"}.get
):
    """A message to agents."""

    to: Annotated[
        tuple[str, ...],
        Meta(min_length=1, max_length=1_000, description="Names; `coordinator`: who has that role"),
    ]
    type: MessageType
    payload: Annotated[dict[str, Any], Meta(description="At most 4,096 bytes")]
    thread_id: str = ""
    task_id: str = ""
    reply_to: str = ""
    from_: str = ""


class Inbox(Struct, frozen=True, forbid_unknown_fields=True):
    """Messages to you, oldest first."""

    unread: bool = False
    type: MessageType | Literal[""] = ""
    after: Position = 0
    limit: PageSize = 50


class Lookup(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename={"from_": "from"}.get
):
    """Messages by thread, task, sender or recipient, oldest first; else those to you."""

    thread_id: str = ""
    task_id: str = ""
    from_: str = ""
    to: str = ""
    type: MessageType | Literal[""] = ""
    after: Position = 0
    limit: PageSize = 50
