"""Edits of task files: the commands for what a person changed or moved."""

from collections.abc import Container, Mapping
from typing import Any, Final

from msgspec.structs import replace

from dragoman.core.base import Status
from dragoman.core.command_table import AnyCommand
from dragoman.core.task_state import EditTask, MoveTask
from dragoman.files.errors import BadFile
from dragoman.files.task_file import TaskFile

# --- edits ------------------------------------------------------------------------------------

_HUB_FIELDS: Final[Mapping[str, str]] = {
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

_EDITABLE_NAMES: Final = "title, body, priority, assignee, metadata.reviewRequired and status can"

_MOVED_REASON: Final = "the task file was moved"

_EDITABLE_FIELDS: Final = ("title", "body", "priority", "review_required", "assignee")


def commands_of_edit(
    file: TaskFile,
    folder: Status,
    base: TaskFile | None,
    current: TaskFile,
    other_statuses: Container[Status] = (),
) -> tuple[AnyCommand, ...]:
    """Commands that an edited or moved file asks for; BadFile when the edit is not allowed.

    `base` is the file before it was edited, `current` the file as the ledger has it now: only the
    person's own changes become commands, and only where they still change something. A file without
    a known base (None) is compared with the current one. In the folders of `other_statuses` the
    task has a file as well.
    """
    is_known, base = base is not None, base or current
    if folder != base.status:
        _check_not_copied(other_statuses, base.status, current.status)
    for field, name in _HUB_FIELDS.items():
        if getattr(file, field) != getattr(base, field):
            raise BadFile(_hub_field_error(name) if is_known else _unknown_base_error(name))
    if not base.body:
        # Empty lines around an empty body belong to the file's format, not to the person's text.
        file = replace(file, body=file.body.strip("\n"))
    edit: dict[str, Any] = {
        field: getattr(file, field)
        for field in _EDITABLE_FIELDS
        if not _is_equal_field(field, file, base) and not _is_equal_field(field, file, current)
    }
    commands: list[AnyCommand] = [EditTask(current.id, **edit)] if edit else []
    to = _target_status(file.status, folder, base.status)
    if to is not None and to != current.status:
        reason = (
            "the status in the task file was edited" if folder == base.status else _MOVED_REASON
        )
        commands.append(MoveTask(current.id, to, reason))
    return tuple(commands)


def _hub_field_error(name: str) -> str:
    return f"{name} is written by the hub and cannot be edited; {_EDITABLE_NAMES}"


def _unknown_base_error(name: str) -> str:
    return (
        "its line `projection`, which names the version it was edited from, is missing or was "
        f"changed, and {name} differs from the task: so the edit cannot be determined. Edit the "
        "task's present file, and leave that line in it"
    )


def _check_not_copied(other_statuses: Container[Status], *expected: Status) -> None:
    """Check that a moved file is not a copy of one still in place."""
    for home in expected:
        if home in other_statuses:
            raise BadFile(
                f"the task's own file is in {home}: copies of it are ignored; move or edit that "
                "file"
            )


def _is_equal_field(field: str, file: TaskFile, base: TaskFile) -> bool:
    left, right = getattr(file, field), getattr(base, field)
    # An editor that adds or drops the line break at the end has not changed the text.
    return left.rstrip("\n") == right.rstrip("\n") if field == "body" else left == right


def _target_status(stated: Status, folder: Status, before: Status) -> Status | None:
    if folder == before:
        return stated if stated != before else None
    if stated not in (before, folder):
        raise BadFile(f"the file says status {stated} but was moved to {folder}: use one of them")
    return folder
