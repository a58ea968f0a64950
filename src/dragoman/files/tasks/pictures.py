"""What the files of one task should hold, from its own states alone. Pure: paths and bytes."""

from collections.abc import Callable

from msgspec import Struct

from dragoman.core.states.intent import Intent
from dragoman.core.states.lease import Lease, grant_lease
from dragoman.core.states.task import Task
from dragoman.files.layout import run_folder_path, task_folder_path
from dragoman.files.tasks.documents import (
    render_delegation,
    render_delegation_page,
    render_heartbeat,
    render_intent_request,
    render_result,
    render_run,
)
from dragoman.files.tasks.story import Attempt, TaskHistory
from dragoman.files.tasks.task_file import TaskFile, TaskFileLease
from dragoman.files.tasks.work_log import visible_tail

ResolveAofId = Callable[[str], str]
"""Finds the AOF id of a task by its own name."""


class TaskSnapshot(Struct, frozen=True):
    """Content of all files of a task."""

    task: Task
    file: TaskFile
    history: TaskHistory
    current: dict[str, bytes]
    """Path -> content."""
    write_once: dict[str, bytes]
    """Files that are written if missing and then never changed: those of earlier attempts, and the
    heartbeat of an attempt whose lease is gone, of which only the claim is known."""


def build_snapshot(
    task: Task,
    version: int,
    history: TaskHistory,
    lease: Lease | None,
    aof_id_of: ResolveAofId,
    intent: Intent | None = None,
) -> TaskSnapshot:
    """Build the files of a task in its present state; of its intent only the immutable part."""
    current, once = dict[str, bytes](), dict[str, bytes]()
    for attempt in history.attempts[:-1]:
        once |= _render_run_files(
            task.aof_id, attempt, run_folder_path(task.aof_id, attempt.number)
        )
    for attempt in history.attempts[-1:]:
        current |= _render_run_files(task.aof_id, attempt, run_folder_path(task.aof_id))
        once[heartbeat_path(task.aof_id)] = render_heartbeat(task.aof_id, _lease_at_claim(attempt))
    if lease is not None:
        current[heartbeat_path(task.aof_id)] = render_heartbeat(task.aof_id, lease)
    inputs = f"{task_folder_path(task.status, task.aof_id)}/inputs"
    if intent is not None:
        current[f"{inputs}/request.json"] = render_intent_request(task.aof_id, intent)
    if task.delegation is not None:
        parent = aof_id_of(task.delegation.parent)
        current[f"{inputs}/handoff.json"] = render_delegation(task.aof_id, parent, task.delegation)
        current[f"{inputs}/handoff.md"] = render_delegation_page(task.delegation)
    return TaskSnapshot(
        task, build_task_file(task, version, history, aof_id_of), history, current, once
    )


def heartbeat_path(task_id: str) -> str:
    """Path of the heartbeat file."""
    return f"{run_folder_path(task_id)}/run_heartbeat.json"


def result_path(task_id: str) -> str:
    """Path of the present attempt's result."""
    return f"{run_folder_path(task_id)}/run_result.json"


def _lease_at_claim(attempt: Attempt) -> Lease:
    return grant_lease(attempt.agent, attempt.fence, "", attempt.ttl_ms, attempt.started_at)


def _render_run_files(task_id: str, attempt: Attempt, folder: str) -> dict[str, bytes]:
    files = {f"{folder}/run.json": render_run(task_id, attempt)}
    if attempt.report is not None:
        files[f"{folder}/run_result.json"] = render_result(task_id, attempt.report)
    return files


def build_task_file(
    task: Task, version: int, history: TaskHistory, aof_id_of: ResolveAofId
) -> TaskFile:
    """Build the content of the task file."""
    log = visible_tail(history.log)
    last = history.attempts[-1] if history.attempts and task.status == "in-progress" else None
    return TaskFile(
        id=task.aof_id,
        title=task.title,
        status=task.status,
        created_at=task.created_at,
        updated_at=task.updated_at,
        moved_at=task.moved_at,
        priority=task.priority,
        assignee=task.assignee,
        parent_id=aof_id_of(task.parent) if task.parent else "",
        lease=TaskFileLease(last.agent, last.number, last.fence, last.started_at, last.ttl_ms)
        if last
        else None,
        review_required=task.review_required,
        depth=task.depth,
        aliases=task.aliases,
        primary_id=task.id if task.id != task.aof_id else "",
        body=task.body,
        log=log,
        unseen=len(history.log) - len(log),
        version=version,
    )
