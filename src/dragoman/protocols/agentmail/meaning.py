"""What each type of letter asks of its task, as commands in one table (S-MAIL-9)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from dragoman.core.actors import Actor
from dragoman.core.authority import dispatch_objection
from dragoman.core.commands import (
    AdoptTask,
    AnyCommand,
    CheckpointTask,
    ClaimTask,
    MoveTask,
    RejectMessage,
    ReportOutcome,
    UpdateTask,
)
from dragoman.engine.reads.letter_names import BEAD_KIND
from dragoman.protocols.agentmail.settings import Choices
from dragoman.protocols.agentmail.shapes import Message
from dragoman.protocols.agentmail.words import (
    MessageType,
)

ORIGIN: Final = "agentmail"

CommandBuilder = Callable[[Message, Actor, Choices], Iterator[AnyCommand]]


def _task_name(message: Message, choices: Choices) -> str:
    """Name by which the task is looked up; adoption has just given it this one."""
    return f"{BEAD_KIND}:{message.bead_id}" if choices.adopt else message.bead_id


def _adopt_commands(
    message: Message, choices: Choices, worker: Actor | None = None
) -> Iterator[AdoptTask]:
    """Adopt the task, new here or not; only a letter of an agent claims it for its sender."""
    if choices.adopt:
        claim_for = worker.name if worker and worker.role == "agent" else ""
        yield AdoptTask(
            BEAD_KIND,
            message.bead_id,
            title=message.parsed.title,
            origin=ORIGIN,
            review_required=choices.review_required,
            max_attempts=choices.max_attempts,
            claim_for=claim_for,
            ttl_ms=choices.ttl_ms,
        )


def _claim_commands(message: Message, actor: Actor, choices: Choices) -> Iterator[AnyCommand]:
    yield from _adopt_commands(message, choices)
    yield ClaimTask(_task_name(message, choices), actor.name, ttl_ms=choices.ttl_ms, or_renew=True)


def _progress_commands(message: Message, actor: Actor, choices: Choices) -> Iterator[AnyCommand]:
    fields = message.parsed
    usage = "" if fields.context_usage is None else f"context {fields.context_usage}%"
    files = f"files: {', '.join(fields.files_touched)}" if fields.files_touched else ""
    yield from _adopt_commands(message, choices, actor)
    yield UpdateTask(
        _task_name(message, choices),
        progress=": ".join(filter(None, (fields.step, fields.status))) or message.subject,
        notes="; ".join(filter(None, (usage, files))),
    )


def _help_commands(message: Message, actor: Actor, choices: Choices) -> Iterator[AnyCommand]:
    fields = message.parsed
    kind = f" ({fields.issue_type})" if fields.issue_type else ""
    question = fields.question or fields.problem or message.subject
    yield from _adopt_commands(message, choices, actor)
    yield UpdateTask(_task_name(message, choices), notes=f"help wanted{kind}: {question}")


def _completion_commands(message: Message, actor: Actor, choices: Choices) -> Iterator[AnyCommand]:
    fields = message.parsed
    checks = (fields.tests_pass, fields.lint_pass, fields.build_pass)
    yield from _adopt_commands(message, choices, actor)
    yield ReportOutcome(
        _task_name(message, choices),
        "needs_review" if False in checks else "done",
        notes=fields.summary,
        details=_non_empty(
            commit=fields.commit_sha,
            files=fields.files,
            tests_pass=fields.tests_pass,
            lint_pass=fields.lint_pass,
            build_pass=fields.build_pass,
        ),
        apply=True,
        backoff=choices.backoff,
    )


def _failure_commands(message: Message, actor: Actor, choices: Choices) -> Iterator[AnyCommand]:
    fields = message.parsed
    if fields.failure_type == "CONTEXT_HIGH":
        yield from _adopt_commands(message, choices, actor)
        yield CheckpointTask(
            _task_name(message, choices),
            fields.failure_type,
            fields.partial_commit_sha,
            fields.reason,
            fields.recommendation,
            backoff=choices.backoff,
        )
        return
    is_hopeless = fields.failure_type == "SPEC_IMPOSSIBLE"
    reason = fields.reason or fields.failure_type or "no reason given"
    yield from _adopt_commands(message, choices, actor)
    yield ReportOutcome(
        _task_name(message, choices),
        "blocked" if is_hopeless else "failed",
        notes=fields.recommendation,
        blockers=(reason,),
        details=_non_empty(
            failure_type=fields.failure_type,
            commit=fields.partial_commit_sha,
            files=fields.files,
            internal_attempts=fields.internal_attempts,
        ),
        apply=True,
        backoff=choices.backoff,
    )


def _checkpoint_commands(message: Message, actor: Actor, choices: Choices) -> Iterator[AnyCommand]:
    fields = message.parsed
    yield from _adopt_commands(message, choices, actor)
    yield CheckpointTask(
        _task_name(message, choices),
        fields.checkpoint_reason or "MANUAL",
        fields.partial_commit_sha,
        fields.progress,
        fields.next_steps,
        backoff=choices.backoff,
    )


def _spawn_commands(message: Message, actor: Actor, choices: Choices) -> Iterator[AnyCommand]:
    """Make the task ready for a spawner, with or without its checkpoint."""
    if reason := dispatch_objection(actor.label):
        yield RejectMessage("not_authorized", reason, message.bead_id, message.type)
        return
    fields, task = message.parsed, _task_name(message, choices)
    yield from _adopt_commands(message, choices)
    # First, because a task that somebody works on must be refused before anything changes.
    yield MoveTask(task, "ready", "worker requested", if_at_rest=True)
    if fields.resume and fields.partial_commit_sha:
        yield CheckpointTask(task, "RESUME", fields.partial_commit_sha)
    elif fields.resume is False:
        yield CheckpointTask(task, "RESTART", anew=True)


def _non_empty(**fields: object) -> dict[str, object]:
    """Drop fields without a value."""
    return {name: value for name, value in fields.items() if value not in (None, "", ())}


COMMAND_BUILDERS: Final[Mapping[MessageType, CommandBuilder]] = {
    MessageType.BEAD_ACCEPTED: _claim_commands,
    MessageType.PROGRESS: _progress_commands,
    MessageType.HELP_REQUEST: _help_commands,
    MessageType.OFFERING_READY: _completion_commands,
    MessageType.DONE: _completion_commands,
    MessageType.FAILED: _failure_commands,
    MessageType.CHECKPOINT: _checkpoint_commands,
    MessageType.SPAWN_REQUEST: _spawn_commands,
}
"""Type -> builder of the commands for its task; a type that is not listed has no effect."""

APPLIED_IF_UNCHANGED: Final = frozenset({MessageType.SPAWN_REQUEST})
"""Types that still want action when the task stays as it is, so that nothing_changed is no failure.
"""
