"""Rewinding: a task becomes what it was at one of its transitions, by a new entry (S-SAOP-10).

What happened since stays on record. What concerns others stays as it is too: names, links, who was
asked to take it, how many attempts there were and under which tokens. Only whoever waits for it is
told: it has ended, or not any more.
"""

import re
from typing import Any, Final

from msgspec.structs import asdict, replace

from dragoman.core.authority import MAY_REWIND, relation_to_task
from dragoman.core.commands import RewindTask
from dragoman.core.deciding.tasks.lifecycle import reblock_events, unblock_events
from dragoman.core.errors import Refusal
from dragoman.core.events import RestoredState, Status, TaskCheckpointed, TaskReported, TaskRewound
from dragoman.core.ids import task_stream
from dragoman.core.limits import MAX_REASON, MAX_TITLE, check_text
from dragoman.core.reading import Decision, LeaseChange, Read, StreamEvents, task_receipt
from dragoman.core.states.task import FINAL_STATUSES, ActiveHandoff, Task

_COMMIT: Final = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})?", re.ASCII)


def decide_rewind_task(command: RewindTask, read: Read, now: int) -> Decision | Refusal:
    """Restore the task as it was then; a no-op if nothing differs."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    refusal = _check_rewind(command, task, read)
    if refusal:
        return refusal
    task_then = read.task_at(task, command.version)
    if task_then is None:
        return Refusal("invalid_field", f"{task.id} has no entry {command.version} in its stream")
    target = without_attempt(restorable_state(task_then))
    if target.status == "done" and relation_to_task(
        read.actor, task, read.lease(task), now
    ) not in (MAY_REWIND):
        return Refusal(
            "not_authorized",
            f"{read.actor.label} has worked on {task.id}, and may not make it done again",
        )
    if restorable_state(task) == target:
        return Decision(task_receipt(task, task.status))
    event = TaskRewound(
        task.status,
        target.status,
        command.version,
        target,
        command.commit,
        command.branch,
        command.reason,
    )
    return Decision(
        task_receipt(task, target.status),
        ((task_stream(task.id), event), *_dependent_events(task, target.status, read)),
        LeaseChange(task.id, None) if task.status == "in-progress" else None,
    )


def _dependent_events(task: Task, status: Status, read: Read) -> StreamEvents:
    if status in FINAL_STATUSES:
        return unblock_events(task, status, read)
    return reblock_events(task, read) if task.is_final else ()


def restorable_state(task: Task) -> RestoredState:
    """State that a rewind to this version of a task brings back."""
    report, checkpoint = task.reported, task.checkpoint
    return RestoredState(
        status=task.status,
        title=task.title,
        body=task.body,
        priority=task.priority,
        review_required=task.review_required,
        reserved_for=task.reserved_for,
        assignee=task.assignee,
        failures=task.failures,
        obstacle=task.obstacle,
        report=report and TaskReported(**_without_timestamp(asdict(report))),
        reported_at=report.at if report else 0,
        checkpoint=checkpoint and TaskCheckpointed(**_without_timestamp(asdict(checkpoint))),
        checkpointed_at=checkpoint.at if checkpoint else 0,
    )


def without_attempt(state: RestoredState) -> RestoredState:
    """The state without an attempt: in-progress becomes ready, for the agent it is reserved for."""
    if state.status != "in-progress":
        return state
    return replace(state, status="ready", assignee=state.reserved_for, report=None, reported_at=0)


def handoff_ended_by_rewind(task: Task, target: RestoredState) -> ActiveHandoff | None:
    """Handoff that ends by a rewind: the task is final then, or not with its claimant."""
    under_way = task.handoff
    if under_way is None or (
        target.status not in FINAL_STATUSES and target.assignee == under_way.claimant
    ):
        return None
    return under_way


def _check_rewind(command: RewindTask, task: Task, read: Read) -> Refusal | None:
    if read.actor.role not in MAY_REWIND:
        return Refusal(
            "not_authorized",
            f"{read.actor.label} may not rewind {task.id}: a human or an orchestrator may",
        )
    if not _COMMIT.fullmatch(command.commit):
        return Refusal("invalid_field", "commit is not a full commit hash")
    return check_text("branch", command.branch, MAX_TITLE) or check_text(
        "reason", command.reason, MAX_REASON
    )


def _without_timestamp(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != "at"}
