"""What an attempt's credential may say: words about its one task, under its one fencing token."""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from dragoman.core.commands import (
    AdoptTask,
    AnyCommand,
    CreateTask,
    IssueToken,
    KeyAgent,
    RegisterAgent,
    RejectMessage,
    RevokeToken,
    TaskCommand,
)
from dragoman.core.errors import Refusal
from dragoman.core.reading import Read

SPEAKS_FOR: Final[dict[type[Any], Callable[[Any], str] | None]] = {
    TaskCommand: lambda command: command.held,
    CreateTask: lambda command: command.parent or command.discovered_from,
    AdoptTask: lambda _: "",
    RegisterAgent: lambda _: "",
    KeyAgent: lambda _: "",
    IssueToken: lambda _: "",
    RevokeToken: lambda _: "",
    RejectMessage: None,
}
"""Command (a kind of them) -> the task that must be the credential's; empty: never is; None: need
not be, because it changes no task."""


def bound(command: AnyCommand, read: Read) -> AnyCommand | Refusal:
    """The command under the caller's fencing token, or why its credential does not reach so far."""
    actor = read.actor
    speaks_for = SPEAKS_FOR[TaskCommand if isinstance(command, TaskCommand) else type(command)]
    if speaks_for is None:
        return command
    name = speaks_for(command)
    task = read.task(name) if name else None
    if isinstance(task, Refusal):
        return task
    if task is None or task.id != actor.task:
        return Refusal(
            "not_authorized",
            f"this credential of {actor.name} speaks for an attempt on {actor.task} only",
        )
    named = getattr(command, "fence", None)
    if task.fence != actor.fence or named not in (None, actor.fence):
        return Refusal(
            "lease_lost",
            f"this credential of {actor.name} belongs to attempt {actor.fence} on {task.id}, which "
            "is over: stop working on it",
        )
    return replace(command, fence=actor.fence) if hasattr(command, "fence") else command
