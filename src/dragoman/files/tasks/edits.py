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
"""Fields that only the hub changes: editing them is an error."""

_CAN_BE: Final = "title, body, priority, assignee, metadata.reviewRequired and status can"
_MOVED: Final = "the task file was moved"
_EDITABLE: Final = ("title", "body", "priority", "review_required", "assignee")


def wishes(
    file: TaskFile,
    folder: Status,
    base: TaskFile | None,
    now: TaskFile,
    others: Container[Status] = (),
) -> tuple[AnyCommand, ...]:
    """Commands that an edited or moved file asks for; BadFile when the edit is not allowed.

    `base` is the file before it was edited, `current` the file as the ledger has it now: only the
    person's own changes become commands, and only where they still change something. A file without
    a known base (None) is compared with the current one. In the folders of `other_statuses` the
    task has a file as well.
    """
    is_known, base = base is not None, base or now
    if folder != base.status:
        _check_moved(others, base.status, now.status)
    for field, name in _OURS.items():
        if getattr(file, field) != getattr(base, field):
            raise BadFile(_of_the_hub(name) if is_known else _old(name))
    if not base.body:
        # Empty lines around an empty body belong to the file's format, not to the person's text.
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


def _of_the_hub(name: str) -> str:
    return f"{name} is written by the hub and cannot be edited; {_CAN_BE}"


def _old(name: str) -> str:
    return (
        "its line `projection`, which names the version it was edited from, is missing or was "
        f"changed, and {name} differs from the task: so the edit cannot be determined. Edit the "
        "task's present file, and leave that line in it"
    )


def _check_moved(others: Container[Status], *homes: Status) -> None:
    """Check that a moved file is not a copy of one still in place."""
    for home in homes:
        if home in others:
            raise BadFile(
                f"the task's own file is in {home}: copies of it are ignored; move or edit that "
                "file"
            )


def _same(field: str, one: TaskFile, other: TaskFile) -> bool:
    left, right = getattr(one, field), getattr(other, field)
    # An editor that adds or drops the line break at the end has not changed the text.
    return left.rstrip("\n") == right.rstrip("\n") if field == "body" else left == right


def _target(says: Status, folder: Status, before: Status) -> Status | None:
    if folder == before:
        return says if says != before else None
    if says not in (before, folder):
        raise BadFile(f"the file says status {says} but was moved to {folder}: use one of them")
    return folder
