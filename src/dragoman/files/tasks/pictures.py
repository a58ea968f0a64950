"""What the files of one task should hold, from its own states alone. Pure: paths and bytes."""

from collections.abc import Callable

from msgspec import Struct

from dragoman.core.states.intent import Intent
from dragoman.core.states.lease import Lease, granted
from dragoman.core.states.task import Task
from dragoman.files.layout import folder_path, run_folder
from dragoman.files.tasks.documents import (
    handoff_document,
    handoff_page,
    heartbeat_document,
    request_document,
    result_document,
    run_document,
)
from dragoman.files.tasks.story import Attempt, Story
from dragoman.files.tasks.task_file import Hold, TaskFile
from dragoman.files.tasks.work_log import shown_of

AofIdOf = Callable[[str], str]
"""Finds the AOF id of a task by its own name."""


class Picture(Struct, frozen=True):
    """Content of all files of a task."""

    task: Task
    file: TaskFile
    story: Story
    current: dict[str, bytes]
    """Path -> content."""
    once: dict[str, bytes]
    """Files that are written if missing and then never changed: those of earlier attempts, and the
    heartbeat of an attempt whose lease is gone, of which only the claim is known."""


def picture(
    task: Task,
    version: int,
    story: Story,
    lease: Lease | None,
    aof_id_of: AofIdOf,
    intent: Intent | None = None,
) -> Picture:
    """Build the files of a task in its present state; of its intent only the immutable part."""
    current, once = dict[str, bytes](), dict[str, bytes]()
    for attempt in story.attempts[:-1]:
        once |= _run_files(task.aof_id, attempt, run_folder(task.aof_id, attempt.number))
    for attempt in story.attempts[-1:]:
        current |= _run_files(task.aof_id, attempt, run_folder(task.aof_id))
        once[heartbeat_path(task.aof_id)] = heartbeat_document(task.aof_id, _as_claimed(attempt))
    if lease is not None:
        current[heartbeat_path(task.aof_id)] = heartbeat_document(task.aof_id, lease)
    inputs = f"{folder_path(task.status, task.aof_id)}/inputs"
    if intent is not None:
        current[f"{inputs}/request.json"] = request_document(task.aof_id, intent)
    if task.delegation is not None:
        parent = aof_id_of(task.delegation.parent)
        current[f"{inputs}/handoff.json"] = handoff_document(task.aof_id, parent, task.delegation)
        current[f"{inputs}/handoff.md"] = handoff_page(task.delegation)
    return Picture(task, task_file(task, version, story, aof_id_of), story, current, once)


def heartbeat_path(task_id: str) -> str:
    """Path of the heartbeat file."""
    return f"{run_folder(task_id)}/run_heartbeat.json"


def result_path(task_id: str) -> str:
    """Path of the present attempt's result."""
    return f"{run_folder(task_id)}/run_result.json"


def _as_claimed(attempt: Attempt) -> Lease:
    return granted(attempt.agent, attempt.fence, "", attempt.ttl_ms, attempt.started_at)


def _run_files(task_id: str, attempt: Attempt, folder: str) -> dict[str, bytes]:
    files = {f"{folder}/run.json": run_document(task_id, attempt)}
    if attempt.report is not None:
        files[f"{folder}/run_result.json"] = result_document(task_id, attempt.report)
    return files


def task_file(task: Task, version: int, story: Story, aof_id_of: AofIdOf) -> TaskFile:
    """Build the content of the task file."""
    log = shown_of(story.log)
    last = story.attempts[-1] if story.attempts and task.status == "in-progress" else None
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
        lease=Hold(last.agent, last.number, last.fence, last.started_at, last.ttl_ms)
        if last
        else None,
        review_required=task.review_required,
        depth=task.depth,
        aliases=task.aliases,
        primary_id=task.id if task.id != task.aof_id else "",
        body=task.body,
        log=log,
        unseen=len(story.log) - len(log),
        version=version,
    )
