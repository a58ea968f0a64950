"""Resource schemas of tasks, leases, reports and ledger entries."""

from functools import cache
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field
from msgspec.structs import fields

from dragoman.core.attempt_state import Checkpoint, Lease, Report
from dragoman.core.base import Outcome, Priority, Status
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.mail import MailEscalated, MailPosted
from dragoman.core.task_state import Delegation, DelegationState, Task
from dragoman.core.timestamps import to_rfc3339
from dragoman.ledger.entry import Entry, read_line

# --- tasks ------------------------------------------------------------------------------------


class _CamelCase(Struct, frozen=True, rename="camel"):
    """Field names in camel case; absent values are null."""


class LeaseResource(_CamelCase, frozen=True):
    """The holder of a task, and when the lease expires."""

    agent: str
    session: str | None
    fence: int
    expires_at: str
    heartbeats: int
    valid: bool


class ReportResource(_CamelCase, frozen=True):
    """The end of an attempt, as its agent reported it."""

    outcome: Outcome
    notes: str
    blockers: tuple[str, ...]
    attempt: int
    agent: str
    by: str | None
    """The reporter, if it was not the agent: the hub."""
    at: str


class DelegationResource(_CamelCase, frozen=True):
    """A request to an agent about a task, and the agent's answer."""

    from_: str = field(name="from")
    to: str
    parent: str
    state: DelegationState
    due_by: str
    escalated: bool
    acceptance_criteria: tuple[str, ...]
    expected_outputs: tuple[str, ...]
    context_refs: tuple[str, ...]
    constraints: tuple[str, ...]


class CheckpointResource(_CamelCase, frozen=True):
    """The point at which an attempt stopped, described by its agent for the next one."""

    by: str | None
    at: str
    reason: str
    commit: str | None
    description: str
    next_steps: str


class TaskSummary(_CamelCase, frozen=True):
    """All fields of a task but its body, which may be long."""

    id: str
    aof_id: str
    title: str
    status: Status
    priority: Priority
    assignee: str | None
    reserved_for: str | None
    review_required: bool
    parent: str | None
    children: tuple[str, ...]
    blocked_by: tuple[str, ...]
    waits_for: tuple[str, ...]
    obstacle: str | None
    """The reason why it is blocked, as given by the agent that blocked it."""
    blocks: tuple[str, ...]
    discovered_from: str | None
    discovered: tuple[str, ...]
    aliases: tuple[str, ...]
    origin: str | None
    attempt: int
    fence: int
    max_attempts: int
    failures: int
    notes: int
    not_before: str | None
    created_at: str
    updated_at: str
    last_transition_at: str
    lease: LeaseResource | None
    report: ReportResource | None
    delegation: DelegationResource | None
    delegation_depth: int
    handoff: str | None
    """The handoff by which it is being handed over, or was taken over."""
    handoff_chain: tuple[str, ...]
    """Its owners so far, by its handoffs."""
    warnings: int
    checkpoint: CheckpointResource | None


class TaskDetail(TaskSummary, frozen=True):
    """All fields of a task."""

    body: str


encode = msgspec.json.Encoder().encode


def task_summary(task: Task, lease: Lease | None, now: int) -> TaskSummary:
    """The resource of a task in a list."""
    return TaskSummary(**_summary_fields(task, lease, now))


def task_detail(task: Task, lease: Lease | None, now: int) -> TaskDetail:
    """The resource of a single task."""
    return TaskDetail(**_summary_fields(task, lease, now), body=task.body)


def _summary_fields(task: Task, lease: Lease | None, now: int) -> dict[str, Any]:
    return _fields(
        TaskSummary,
        task,
        waits_for=task.open_blockers,
        attempt=task.attempts,
        not_before=to_rfc3339(task.not_before) if task.not_before else None,
        created_at=to_rfc3339(task.created_at),
        updated_at=to_rfc3339(task.updated_at),
        last_transition_at=to_rfc3339(task.moved_at),
        lease=lease and _lease_resource(lease, now),
        report=task.reported and report_resource(task.reported),
        delegation=task.delegation and _delegation_resource(task.delegation),
        delegation_depth=task.depth,
        handoff=task.handoff.id if task.handoff else None,
        handoff_chain=task.chain,
        checkpoint=task.checkpoint and _checkpoint_resource(task.checkpoint),
    )


@cache
def _field_kinds(shape: type[Struct]) -> tuple[tuple[str, bool], ...]:
    """Fields of a resource, each with whether it may be null."""
    return tuple((field.name, field.type == str | None) for field in fields(shape))


def _fields(shape: type[Struct], source: Struct, **changed: Any) -> dict[str, Any]:
    """Fields of a resource: those of the source, where empty texts become null, or others."""
    kinds = [(name, nullable) for name, nullable in _field_kinds(shape) if name not in changed]
    found = {name: getattr(source, name) for name, _ in kinds}
    return found | {name: found[name] or None for name, nullable in kinds if nullable} | changed


def _lease_resource(lease: Lease, now: int) -> LeaseResource:
    return LeaseResource(
        **_fields(
            LeaseResource,
            lease,
            agent=lease.holder,
            expires_at=to_rfc3339(lease.expires_at),
            valid=lease.is_valid(now),
        )
    )


def report_resource(report: Report) -> ReportResource:
    """The resource of a report."""
    return ReportResource(**_fields(ReportResource, report, at=to_rfc3339(report.at)))


def _checkpoint_resource(checkpoint: Checkpoint) -> CheckpointResource:
    at = to_rfc3339(checkpoint.at)
    return CheckpointResource(**_fields(CheckpointResource, checkpoint, at=at))


def _delegation_resource(delegation: Delegation) -> DelegationResource:
    due_by = to_rfc3339(delegation.due_by)
    return DelegationResource(
        **_fields(
            DelegationResource,
            delegation,
            from_=delegation.from_agent,
            to=delegation.to_agent,
            due_by=due_by,
        )
    )


# --- entries ----------------------------------------------------------------------------------


class EntryResource(_CamelCase, frozen=True, kw_only=True):
    """All fields of a ledger entry."""

    position: int
    stream: str
    version: int
    type: str
    at: str
    actor: str
    via: str | None
    cause: str
    body: Raw
    original_text: Raw | UnsetType = UNSET
    hash: str


def entry_resource(entry: Entry) -> EntryResource:
    """The resource of an entry; its body and the original text are the stored bytes."""
    line = read_line(entry.line)
    return EntryResource(
        position=entry.position,
        stream=line.stream,
        version=line.version,
        type=line.event,
        at=to_rfc3339(line.at),
        actor=line.actor,
        via=line.via or None,
        cause=line.cause,
        body=line.body,
        original_text=line.original_text,
        hash=entry.hash.hex(),
    )


class _Addressees(Struct, frozen=True):
    """The agents in whose box an entry puts a letter."""

    to: tuple[str, ...] = ()
    cc: tuple[str, ...] = ()
    auto_copied: tuple[str, ...] = ()
    notified: tuple[str, ...] = ()


_addressees_decoder = msgspec.json.Decoder(_Addressees)

_ADDRESSED_EVENTS = frozenset((EVENT_NAMES[MailPosted], EVENT_NAMES[MailEscalated]))


def addressees(entry: Entry) -> tuple[str, ...]:
    """The agents that an entry is addressed to: those of a letter, when it is sent and when it is
    escalated."""
    if entry.event not in _ADDRESSED_EVENTS:
        return ()
    named = _addressees_decoder.decode(read_line(entry.line).body)
    return (*named.to, *named.cc, *named.auto_copied, *named.notified)
