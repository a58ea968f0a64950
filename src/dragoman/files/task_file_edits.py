"""Edits of task files: the commands for what a person changed or moved."""

from collections.abc import Container
from typing import Any, Final, cast

from msgspec.structs import replace

from dragoman.core.base import Command, Status
from dragoman.core.task_state import EditTask, MoveTask
from dragoman.files.errors import BadFile
from dragoman.files.task_file import EditedFile

_EDITABLE_NAMES: Final = "title, body, priority, assignee, metadata.reviewRequired and status can"

_EDITABLE_FIELDS: Final = ("title", "body", "priority", "review_required", "assignee")


def commands_of_edit(
    task_id: str,
    file: EditedFile,
    folder: Status,
    base: EditedFile | None,
    current: EditedFile,
    other_statuses: Container[str] = (),
) -> tuple[Command, ...]:
    """Commands that an edited or moved file asks for; BadFile when the edit is not allowed.

    `base` is the file before it was edited, `current` the file as the ledger has it now: only the
    person's own changes become commands, and only where they still change something. A file without
    a known base (None) is compared with the current one. In the folders of `other_statuses` the
    task has a file as well.
    """
    is_known, base = base is not None, base or current
    if folder != base.status:
        _check_not_copied(other_statuses, base.status, current.status)
    for name in sorted(file.hub_parts.keys() | base.hub_parts.keys()):
        if file.hub_parts.get(name) != base.hub_parts.get(name):
            raise BadFile(_hub_field_error(name) if is_known else _unknown_base_error(name))
    if not base.body:
        # Empty lines around an empty body belong to the file's format, not to the person's text.
        file = replace(file, body=file.body.strip("\n"))
    edit: dict[str, Any] = {
        field: getattr(file, field)
        for field in _EDITABLE_FIELDS
        if not _is_equal_field(field, file, base) and not _is_equal_field(field, file, current)
    }
    commands: list[Command] = [EditTask(task_id, **edit)] if edit else []
    to = _target_status(file.status, folder, base.status)
    if to not in (base.status, current.status):
        is_moved = folder != base.status
        reason = "the task file was moved" if is_moved else "the status in the task file was edited"
        commands.append(MoveTask(task_id, cast(Status, to), reason))
    return tuple(commands)


def _hub_field_error(name: str) -> str:
    return (
        f"{name} is no field of a task, or is written by the hub and cannot be edited; "
        f"{_EDITABLE_NAMES}"
    )


def _unknown_base_error(name: str) -> str:
    return (
        "its line `projection`, which names the version it was edited from, is missing or was "
        f"changed, and {name} differs from the task: so the edit cannot be determined. Edit the "
        "task's present file, and leave that line in it"
    )


def _check_not_copied(other_statuses: Container[str], *expected: str) -> None:
    """Check that a moved file is not a copy of one still in place."""
    for home in expected:
        if home in other_statuses:
            raise BadFile(
                f"the task's own file is in {home}: copies of it are ignored; move or edit that "
                "file"
            )


def _is_equal_field(field: str, file: EditedFile, base: EditedFile) -> bool:
    left, right = getattr(file, field), getattr(base, field)
    # An editor that adds or drops the line break at the end has not changed the text.
    return left.rstrip("\n") == right.rstrip("\n") if field == "body" else left == right


def _target_status(stated: str, folder: str, before: str) -> str:
    if folder == before:
        return stated
    if stated not in (before, folder):
        raise BadFile(f"the file says status {stated} but was moved to {folder}: use one of them")
    return folder
