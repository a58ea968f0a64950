"""The handoff package as it travels: every part of it, and nothing beside.

A key that is not known is an error: `requires_human_aproval` must not pass for no approval.
"""

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

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
