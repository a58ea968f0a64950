"""`dragoman task`: all that can be done to a task and asked about one."""

import typer

from dragoman.surfaces.cli import task_hold, task_make, task_read
from dragoman.surfaces.cli.values import QuickGroup
from dragoman.surfaces.cli.verb import add_verb, help_when_alone

VERBS = (*task_make.VERBS, *task_read.VERBS, *task_hold.VERBS)


def group() -> typer.Typer:
    """The group with its commands."""
    tasks = typer.Typer(help="Make, take, move and read tasks.", cls=QuickGroup)
    tasks.callback(invoke_without_command=True)(help_when_alone)
    for verb in VERBS:
        add_verb(tasks, verb)
    return tasks
