"""Resource schemas of tasks, leases, reports and ledger entries."""

from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field
from msgspec.structs import asdict

from dragoman.core.attempt import explain_wait
from dragoman.core.attempt_state import Lease
from dragoman.core.base import Outcome, Priority, Status
from dragoman.core.check_state import Evidence
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.ids import ACTOR_STREAMS
from dragoman.core.mail import MailEscalated, MailPosted
from dragoman.core.question_state import Question, QuestionKind
from dragoman.core.task_state import Delegation, DelegationState, Task
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.queries.questions import QuestionState, QuestionView
from dragoman.engine.queries.visibility import Audience, Reader
from dragoman.engine.schemas.resource_fields import project
from dragoman.ledger.entry import Entry, read_line

# --- tasks ------------------------------------------------------------------------------------


class _CamelCase(Struct, frozen=True, rename="camel"):
    """Field names in camel case; absent values are null."""


class LeaseResource(_CamelCase, frozen=True):
    """The holder of a task, and when the lease expires."""

    agent: str
    session: str | None
    fence: int
    ttl_ms: int
    """After so long without a heartbeat it expires."""
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


class QuestionResource(_CamelCase, frozen=True):
    """A question about a task, and its answer: null while it is open."""

    id: str
    kind: QuestionKind
    text: str
    asked_by: str | None
    asked_at: str
    attempt: int
    """The attempt that it was asked in; 0: nobody worked on the task."""
    mail: str | None
    """The letter that asks it, if it was asked by letter."""
    answer: str | None
    answered_by: str | None
    answered_at: str | None


class QuestionDetail(QuestionResource, frozen=True):
    """A question about a task, its answer, and its state."""

    task: str
    state: QuestionState
    """Withdrawn: it needs no answer any more; closed: its task has gone on or ended without one."""
    closed_by: str | None
    """The caller that withdrew it."""


class FeedbackResource(_CamelCase, frozen=True):
    """The reason for which a review sent the work back."""

    text: str
    at: str


class CheckResultResource(_CamelCase, frozen=True):
    """The result of a command that the hub has run to check the work."""

    command: str
    passed: bool
    exit_code: int | None
    """Null: it did not end by itself, or could not be started."""
    problem: str | None
    duration_ms: int
    output_sha256: str
    """The hash of the file with its output, in the folder `checks` of the task's runs."""
    output: str
    """The end of its output."""


class EvidenceResource(_CamelCase, frozen=True):
    """The results of the last checks of a task."""

    attempt: int
    passed: bool
    at: str
    results: tuple[CheckResultResource, ...]


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
    wait_reason: str | None
    """The reason why not anybody can claim it now although it is ready."""
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
    deadline: str | None
    """Time by which it should have ended."""
    overdue: bool
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
    questions: tuple[QuestionResource, ...]
    """The questions that wait for an answer."""
    checks: tuple[str, ...]
    """The commands that the hub runs before a completion counts."""
    proven: bool
    """True if the checks of the last attempt have passed; else its report is a claim."""


class TaskDetail(TaskSummary, frozen=True):
    """All fields of a task."""

    body: str
    answers: tuple[QuestionResource, ...]
    """The questions that were answered, the last ones."""
    feedback: tuple[FeedbackResource, ...]
    """The reasons for which reviews sent the work back, the last ones."""
    evidence: EvidenceResource | None


class TaskPage(Struct, frozen=True):
    """Tasks, newest first; `next` is the cursor of the next page, null after the last one."""

    tasks: list[TaskSummary]
    next: int | None


class QuestionedTask(TaskDetail, frozen=True):
    """A task after a question about it was asked, answered or withdrawn."""

    question: str
    """Id of that question."""


encode = msgspec.json.Encoder().encode

T = TypeVar("T", bound=TaskSummary)


def task_summary(task: Task, lease: Lease | None, now: int) -> TaskSummary:
    """The resource of a task in a list."""
    return _task_resource(TaskSummary, task, lease, now)


def task_detail(task: Task, lease: Lease | None, now: int) -> TaskDetail:
    """The resource of a single task."""
    return _task_resource(
        TaskDetail,
        task,
        lease,
        now,
        answers=tuple(map(question_resource, task.answers)),
        feedback=tuple(project(FeedbackResource, one) for one in task.feedback),
        evidence=task.evidence and _evidence_resource(task.evidence),
    )


def questioned_task(task: TaskDetail, question: str) -> QuestionedTask:
    """The resource of a task, with the question that an action was about."""
    return QuestionedTask(**asdict(task), question=question)


def _task_resource(shape: type[T], task: Task, lease: Lease | None, now: int, **others: Any) -> T:
    return project(
        shape,
        task,
        waits_for=task.open_blockers,
        wait_reason=wait.reason if (wait := explain_wait(task, now)) else None,
        attempt=task.attempts,
        overdue=task.is_overdue(now),
        last_transition_at=to_rfc3339(task.moved_at),
        lease=lease and _lease_resource(lease, now),
        report=task.reported and project(ReportResource, task.reported),
        delegation=task.delegation and _delegation_resource(task.delegation),
        delegation_depth=task.depth,
        handoff=task.handoff.id if task.handoff else None,
        handoff_chain=task.chain,
        checkpoint=task.checkpoint and project(CheckpointResource, task.checkpoint),
        questions=tuple(map(question_resource, task.questions)),
        checks=task.required_checks,
        proven=task.is_proven,
        **others,
    )


def _lease_resource(lease: Lease, now: int) -> LeaseResource:
    return project(LeaseResource, lease, agent=lease.holder, valid=lease.is_valid(now))


def question_resource(question: Question) -> QuestionResource:
    """The resource of a question."""
    return project(QuestionResource, question, answer=_answer(question))


def question_detail(view: QuestionView) -> QuestionDetail:
    """The resource of a single question."""
    return project(
        QuestionDetail,
        view.question,
        answer=_answer(view.question),
        task=view.task.id,
        state=view.state,
        closed_by=view.closed_by or None,
    )


def _answer(question: Question) -> str | None:
    return question.answer if question.answered_at else None


def _evidence_resource(evidence: Evidence) -> EvidenceResource:
    results = tuple(
        project(CheckResultResource, one, passed=one.has_passed) for one in evidence.results
    )
    return project(EvidenceResource, evidence, results=results)


def _delegation_resource(delegation: Delegation) -> DelegationResource:
    return project(
        DelegationResource, delegation, from_=delegation.from_agent, to=delegation.to_agent
    )


# --- entries ----------------------------------------------------------------------------------


class EntryResource(_CamelCase, frozen=True, kw_only=True):
    """All fields of a ledger entry; of one that is withheld place, time and hash."""

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
    withheld: Literal[True] | UnsetType = UNSET
    """True if only others may read what the entry says, or the original of a refused message."""


WITHHELD: Final = "withheld"
"""Type of an entry whose content is withheld from the reader."""

_NO_CONTENT: Final = Raw(b"{}")


def shown_resource(entry: Entry, audience: Audience | None, reader: Reader) -> EntryResource:
    """The resource of an entry for a reader, who may or may not be of its audience."""
    return entry_resource(entry) if reader.may_read(audience) else withheld_resource(entry)


def withheld_resource(entry: Entry) -> EntryResource:
    """The resource of an entry without its content; with its hash, so that the chain can be
    verified. A refusal only lacks the message that was refused."""
    if entry.stream.startswith(ACTOR_STREAMS):
        return msgspec.structs.replace(entry_resource(entry), original_text=UNSET, withheld=True)
    return EntryResource(
        position=entry.position,
        stream=entry.stream,
        version=entry.version,
        type=WITHHELD,
        at=to_rfc3339(read_line(entry.line).at),
        actor="",
        via=None,
        cause="",
        body=_NO_CONTENT,
        hash=entry.hash.hex(),
        withheld=True,
    )


def entry_resource(entry: Entry) -> EntryResource:
    """The resource of an entry for everybody in its audience; its body and the original text are
    the stored bytes."""
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
