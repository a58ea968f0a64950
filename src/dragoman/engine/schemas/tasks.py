"""Resource schemas of tasks, leases, reports and ledger entries."""

from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

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
    return {
        "id": task.id,
        "aof_id": task.aof_id,
        "title": task.title,
        "status": task.status,
        "priority": task.priority,
        "assignee": task.assignee or None,
        "reserved_for": task.reserved_for or None,
        "review_required": task.review_required,
        "parent": task.parent or None,
        "children": task.children,
        "blocked_by": task.blocked_by,
        "waits_for": task.open_blockers,
        "obstacle": task.obstacle or None,
        "blocks": task.blocks,
        "discovered_from": task.discovered_from or None,
        "discovered": task.discovered,
        "aliases": task.aliases,
        "origin": task.origin or None,
        "attempt": task.attempts,
        "fence": task.fence,
        "max_attempts": task.max_attempts,
        "failures": task.failures,
        "notes": task.notes,
        "not_before": to_rfc3339(task.not_before) if task.not_before else None,
        "created_at": to_rfc3339(task.created_at),
        "updated_at": to_rfc3339(task.updated_at),
        "last_transition_at": to_rfc3339(task.moved_at),
        "lease": lease and _lease_resource(lease, now),
        "report": task.reported and report_resource(task.reported),
        "delegation": task.delegation and _delegation_resource(task.delegation),
        "delegation_depth": task.depth,
        "handoff": task.handoff.id if task.handoff else None,
        "handoff_chain": task.chain,
        "warnings": task.warnings,
        "checkpoint": task.checkpoint and _checkpoint_resource(task.checkpoint),
    }


def _lease_resource(lease: Lease, now: int) -> LeaseResource:
    return LeaseResource(
        agent=lease.holder,
        session=lease.session or None,
        fence=lease.fence,
        expires_at=to_rfc3339(lease.expires_at),
        heartbeats=lease.heartbeats,
        valid=lease.is_valid(now),
    )


def report_resource(report: Report) -> ReportResource:
    """The resource of a report."""
    return ReportResource(
        outcome=report.outcome,
        notes=report.notes,
        blockers=report.blockers,
        attempt=report.attempt,
        agent=report.agent,
        by=report.by or None,
        at=to_rfc3339(report.at),
    )


def _checkpoint_resource(checkpoint: Checkpoint) -> CheckpointResource:
    return CheckpointResource(
        by=checkpoint.by or None,
        at=to_rfc3339(checkpoint.at),
        reason=checkpoint.reason,
        commit=checkpoint.commit or None,
        description=checkpoint.description,
        next_steps=checkpoint.next_steps,
    )


def _delegation_resource(delegation: Delegation) -> DelegationResource:
    return DelegationResource(
        from_=delegation.from_agent,
        to=delegation.to_agent,
        parent=delegation.parent,
        state=delegation.state,
        due_by=to_rfc3339(delegation.due_by),
        escalated=delegation.escalated,
        acceptance_criteria=delegation.acceptance_criteria,
        expected_outputs=delegation.expected_outputs,
        context_refs=delegation.context_refs,
        constraints=delegation.constraints,
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
