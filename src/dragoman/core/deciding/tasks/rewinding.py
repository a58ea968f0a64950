"""Rewinding: a task becomes what it was at one of its transitions, by a new entry (S-SAOP-10).

What happened since stays on record. What concerns others stays as it is too: names, links, who was
asked to take it, how many attempts there were and under which tokens. Only whoever waits for it is
told: it has ended, or not any more.
"""

import re
from typing import Any, Final

from msgspec.structs import asdict, replace

from dragoman.core.authority import MAY_REWIND, relation
from dragoman.core.commands import RewindTask
from dragoman.core.deciding.tasks.lifecycle import blocked_again, unblocked
from dragoman.core.errors import Refusal
from dragoman.core.events import Restored, Status, TaskCheckpointed, TaskReported, TaskRewound
from dragoman.core.ids import task_stream
from dragoman.core.limits import REASON, TITLE, check_text
from dragoman.core.reading import Decision, LeaseChange, Read, StreamEvents, receipt
from dragoman.core.states.task import FINAL, ActiveHandoff, Task

_COMMIT: Final = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})?", re.ASCII)


def rewind(command: RewindTask, read: Read, now: int) -> Decision | Refusal:
    """Restore the task as it was then; a no-op if nothing differs."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    refusal = _check(command, task, read)
    if refusal:
        return refusal
    past = read.task_at(task, command.version)
    if past is None:
        return Refusal("invalid_field", f"{task.id} has no entry {command.version} in its stream")
    wanted = at_rest(restored(past))
    if wanted.status == "done" and relation(read.actor, task, read.lease(task), now) not in (
        MAY_REWIND
    ):
        return Refusal(
            "not_authorized",
            f"{read.actor.label} has worked on {task.id}, and may not make it done again",
        )
    if restored(task) == wanted:
        return Decision(receipt(task, task.status))
    event = TaskRewound(
        task.status,
        wanted.status,
        command.version,
        wanted,
        command.commit,
        command.branch,
        command.reason,
    )
    return Decision(
        receipt(task, wanted.status),
        ((task_stream(task.id), event), *_told_to_who_waits(task, wanted.status, read)),
        LeaseChange(task.id, None) if task.status == "in-progress" else None,
    )


def _told_to_who_waits(task: Task, status: Status, read: Read) -> StreamEvents:
    if status in FINAL:
        return unblocked(task, status, read)
    return blocked_again(task, read) if task.is_final else ()


def restored(task: Task) -> Restored:
    """State that a rewind to this version of a task brings back."""
    report, left = task.reported, task.checkpoint
    return Restored(
        status=task.status,
        title=task.title,
        body=task.body,
        priority=task.priority,
        review_required=task.review_required,
        reserved_for=task.reserved_for,
        assignee=task.assignee,
        failures=task.failures,
        obstacle=task.obstacle,
        report=report and TaskReported(**_without_time(asdict(report))),
        reported_at=report.at if report else 0,
        checkpoint=left and TaskCheckpointed(**_without_time(asdict(left))),
        checkpointed_at=left.at if left else 0,
    )


def at_rest(was: Restored) -> Restored:
    """The state without an attempt: in-progress becomes ready, for the agent it is reserved for."""
    if was.status != "in-progress":
        return was
    return replace(was, status="ready", assignee=was.reserved_for, report=None, reported_at=0)


def lost_handoff(task: Task, wanted: Restored) -> ActiveHandoff | None:
    """Handoff that ends by a rewind: the task is final then, or not with its claimant."""
    under_way = task.handoff
    if under_way is None or (wanted.status not in FINAL and wanted.assignee == under_way.only):
        return None
    return under_way


def _check(command: RewindTask, task: Task, read: Read) -> Refusal | None:
    if read.actor.role not in MAY_REWIND:
        return Refusal(
            "not_authorized",
            f"{read.actor.label} may not rewind {task.id}: a human or an orchestrator may",
        )
    if not _COMMIT.fullmatch(command.commit):
        return Refusal("invalid_field", "commit is not a full commit hash")
    return check_text("branch", command.branch, TITLE) or check_text(
        "reason", command.reason, REASON
    )


def _without_time(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != "at"}
