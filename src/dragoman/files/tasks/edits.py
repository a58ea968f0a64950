"""What a person asks for by editing or moving a task file. Pure: three states, one answer."""

from collections.abc import Container, Mapping
from typing import Any, Final

from msgspec.structs import replace

from dragoman.core.commands import AnyCommand, EditTask, MoveTask
from dragoman.core.events import Status
from dragoman.files.problems import BadFile
from dragoman.files.tasks.task_file import TaskFile

_OURS: Final[Mapping[str, str]] = {
    "id": "id",
    "created_at": "createdAt",
    "updated_at": "updatedAt",
    "moved_at": "lastTransitionAt",
    "parent_id": "parentId",
    "lease": "lease",
    "depth": "metadata.delegationDepth",
    "aliases": "aliases",
    "primary_id": "primaryId",
    "log": "the work log",
    "unseen": "the work log",
}
"""What the hub keeps: an edit of these cannot be a wish."""

_MOVED: Final = "the task file was moved"
_EDITABLE: Final = ("title", "body", "priority", "review_required", "assignee")


def wishes(
    file: TaskFile,
    folder: Status,
    base: TaskFile,
    now: TaskFile,
    others: Container[Status] = (),
) -> tuple[AnyCommand, ...]:
    """The commands that a file in this folder asks for; BadFile where it cannot be had.

    `base` is what the file said before it was touched, `now` what the ledger says today: only what
    the person has changed is asked for, and only where it is not so already. In the folders
    `others` the task has a file as well.
    """
    if folder != base.status:
        _check_moved(others, base.status, now.status)
    for field, name in _OURS.items():
        if getattr(file, field) != getattr(base, field):
            raise BadFile(
                f"{name} is written by the hub and cannot be edited; title, body, priority, "
                "assignee, metadata.reviewRequired and status can"
            )
    if not base.body:
        # The empty lines around a body that was none are the file's own, not the person's.
        file = replace(file, body=file.body.strip("\n"))
    edit: dict[str, Any] = {
        field: getattr(file, field)
        for field in _EDITABLE
        if not _same(field, file, base) and not _same(field, file, now)
    }
    commands: list[AnyCommand] = [EditTask(now.id, **edit)] if edit else []
    to = _target(file.status, folder, base.status)
    if to is not None and to != now.status:
        how = "the status in the task file was edited" if folder == base.status else _MOVED
        commands.append(MoveTask(now.id, to, how))
    return tuple(commands)


def _check_moved(others: Container[Status], *homes: Status) -> None:
    """A file that was moved has left the place where it stood."""
    for home in homes:
        if home in others:
            raise BadFile(
                f"the task's own file stands in {home}: a copy of it asks for nothing; move or "
                "edit that file"
            )


def _same(field: str, one: TaskFile, other: TaskFile) -> bool:
    left, right = getattr(one, field), getattr(other, field)
    # An editor that adds or drops the line break at the end has not changed the text.
    return left.rstrip("\n") == right.rstrip("\n") if field == "body" else left == right


def _target(says: Status, folder: Status, before: Status) -> Status | None:
    if folder == before:
        return says if says != before else None
    if says not in (before, folder):
        raise BadFile(f"the file says status {says} but was moved to {folder}: say one of them")
    return folder
