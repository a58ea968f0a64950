"""`dragoman logs` and `dragoman task path`: what an attempt printed, and the folders of a task."""

from codecs import getincrementaldecoder
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO, Final, Literal

from dragoman.core.errors import Refusal, Refused
from dragoman.core.task_state import Task
from dragoman.files.layout import (
    OUTPUT_LOG,
    run_folder_path,
    task_folder_path,
    task_path,
    worktree_path,
)
from dragoman.surfaces.cli.command import CliCommand, TaskArgument, argument, option
from dragoman.surfaces.cli.commands.task_read import load_task
from dragoman.surfaces.cli.context import CommandContext, CommandResult
from dragoman.surfaces.cli.data_directory import ReadOnlyDirectory
from dragoman.surfaces.cli.render import Screen

# --- path -------------------------------------------------------------------------------------

FolderKind = Literal["file", "folder", "runs", "worktree"]


def path(
    context: CommandContext,
    task: TaskArgument,
    kind: Annotated[FolderKind | None, argument("KIND", "Print nothing but this path.")] = None,
) -> CommandResult:
    """Print the paths of a task's files.

    They are its file, its own folder, its runs, its worktree. Those that are not there are left
    out; one that is asked for by its kind is printed all the same.

    \b
    Examples:
      dragoman task path TASK-2026-02-09-001
      ls "$(dragoman task path TASK-2026-02-09-001 folder)"
      cd "$(dragoman task path bead:ol-527.1 worktree)"
    """
    with context.open_readonly() as directory:
        found = load_task(directory, task).task
    paths = task_paths(context.data.absolute(), found)
    there = {name: f"{where}" for name, where in paths.items() if kind == name or where.exists()}

    def show(screen: Screen) -> None:
        if kind is not None:
            screen.line(there[kind])
            return
        for name, where in there.items():
            screen.line((f"{name:<9} ", "bold"), where)

    return CommandResult({"id": found.id, **{name: there.get(name) for name in paths}}, show)


def task_paths(data: Path, task: Task) -> dict[FolderKind, Path]:
    """Paths of a task's files, whether they are there or not."""
    status, name = task.status, task.aof_id
    return {
        "file": data / task_path(status, name),
        "folder": data / task_folder_path(status, name),
        "runs": data / run_folder_path(name),
        "worktree": data / worktree_path(name),
    }


# --- logs -------------------------------------------------------------------------------------

_BLOCK_BYTES: Final = 65_536

_POLLS_PER_LOOK: Final = 5
"""Polls of the file after which it is looked whether the attempt has ended."""


def logs(
    context: CommandContext,
    task: TaskArgument,
    follow: Annotated[
        bool,
        option("--follow -f", "", "Wait for it to begin; go on until it has ended, or Ctrl-C."),
    ] = False,
    attempt: Annotated[
        int | None, option("--attempt", "N", "Of this attempt; else of the last one.", min=1)
    ] = None,
) -> None:
    """Print what the program of an attempt printed.

    The hub that started it keeps that.

    \b
    Examples:
      dragoman logs TASK-2026-02-09-001 --follow
      dragoman logs TASK-2026-02-09-001 --attempt 1
    """
    with context.open_readonly() as directory:
        found = load_task(directory, task).task
        number = attempt or found.attempts or 1
        if follow:
            opened = _open_log_in_time(context, directory, found, number)
        else:
            opened = _open_log(context.data.absolute(), found, number)
        with opened as log:
            for line in _read_lines(context, directory, log, found.id, number, follow=follow):
                _print_line(context, line)


def _open_log_in_time(
    context: CommandContext, directory: ReadOnlyDirectory, task: Task, number: int
) -> BinaryIO:
    """Open the output of an attempt once there is some; refused when none can come any more."""
    is_told = False
    while True:
        try:
            return _open_log(context.data.absolute(), task, number)
        except Refused:
            runs = (task.status, task.attempts) == ("in-progress", number)
            is_to_come = runs or (number > task.attempts and not task.is_final)
            if not is_to_come:
                raise
            if not is_told:
                context.err.line(f"waiting for the output of attempt {number} on {task.id}")
                is_told = True
            if not context.wait():
                raise
        task = load_task(directory, task.id).task


def _open_log(data: Path, task: Task, number: int) -> BinaryIO:
    """Open the output of an attempt; that of an earlier one was moved when the next one began."""
    folders = [run_folder_path(task.aof_id, number)]
    if number == task.attempts:
        folders.append(run_folder_path(task.aof_id))
    for folder in folders:
        try:
            return (data / folder / OUTPUT_LOG).open("rb")
        except FileNotFoundError:
            continue
    if number > task.attempts:
        detail = f"{task.id} has had {task.attempts} attempts"
    else:
        detail = f"there is no output of attempt {number} on {task.id}: no hub started its agent"
    raise Refused(Refusal("invalid_field", detail, path="attempt"))


def _read_lines(
    context: CommandContext,
    directory: ReadOnlyDirectory,
    log: BinaryIO,
    task: str,
    number: int,
    *,
    follow: bool,
) -> Iterator[str]:
    """Lines of a log, as they are written; to the end of the attempt if it is followed."""
    decode = getincrementaldecoder("utf-8")("replace").decode
    rest, polls, is_over = "", 0, not follow
    while True:
        while block := log.read(_BLOCK_BYTES):
            *lines, rest = (rest + decode(block)).split("\n")
            yield from lines
        context.out.flush()
        if is_over or not context.wait():
            break
        if polls % _POLLS_PER_LOOK == 0:
            # What it printed last is read once more after its end.
            now = load_task(directory, task).task
            is_over = (now.status, now.attempts) != ("in-progress", number)
        polls += 1
    if rest:
        yield rest


def _print_line(context: CommandContext, line: str) -> None:
    context.print_result(CommandResult({"line": line}, lambda screen: screen.block(line, "")))


COMMANDS = (
    CliCommand("logs", logs, takes_as=False),
    CliCommand("path", path, takes_as=False),
)
