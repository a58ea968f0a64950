"""Scope of an attempt's credential: commands about its one task, under its one fencing token."""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from dragoman.core.actor import Actor, RejectMessage
from dragoman.core.authority import attempt_ended_refusal, check_attempt_valid, holder_objection
from dragoman.core.base import Command
from dragoman.core.errors import Refusal
from dragoman.core.handoff.duplicates import find_applied
from dragoman.core.handoff.state import (
    ActivateHandoff,
    HandoffCommand,
)
from dragoman.core.intent.state import DelegateIntent, ReceiveResult, UpdateIntent
from dragoman.core.mail import AckMail, AnswerMail, PostMail, ReadMail
from dragoman.core.read import Read
from dragoman.core.reservation import ReleaseReservations, ReserveFiles
from dragoman.core.task_state import AdoptTask, CreateTask, Task, WarnTask
from dragoman.core.trace import RecordTrace

_ABOUT_NO_TASK: Final = (
    *(WarnTask, RejectMessage, RecordTrace),
    *(PostMail, ReadMail, AckMail, AnswerMail),
    *(ReserveFiles, ReleaseReservations),
)
"""Commands that any attempt may give, because they change no task. A warning accompanies a command
that is bound itself, and is about that one's task."""

_TASK_NAMES: Final[dict[type[Command], Callable[[Any], str]]] = {
    CreateTask: lambda command: command.parent or command.discovered_from,
    AdoptTask: lambda command: command.name,
    DelegateIntent: lambda command: f"intent:{command.follows}" if command.follows else "",
}
"""Command -> the task that must be the credential's, where its holder renews no lease by it. All
other commands are about the task of their heartbeat, and never allowed if there is none."""

_RESULT_COMMANDS: Final = (ReceiveResult, UpdateIntent)
"""About another intent than the attempt's, or a request that has ended, these are repeats or
anomalies for their decider to record: it accepts nothing else from a caller bound to another task,
or to an attempt that has ended."""
_ALLOWED_AFTER_END: Final = (RejectMessage, RecordTrace, ReleaseReservations, PostMail, WarnTask)
"""Commands about the ended attempt: its trace, what it releases, what it has to say, what was odd
about the message that ended it."""


def bind_to_attempt(command: Command, read: Read, now: int) -> Command | Refusal:
    """Bind the command to the credential's fencing token, or refuse what is outside its scope."""
    actor = read.actor
    forbidden = _check_bearer(read)
    if forbidden is not None:
        return forbidden
    if isinstance(command, _ABOUT_NO_TASK):
        own = read.task(actor.task)
        refusal = own if isinstance(own, Refusal) else check_attempt_valid(own, read, now)
        return command if isinstance(command, _ALLOWED_AFTER_END) else refusal or command
    name = _task_name(command, read)
    task = read.task(name) if name else None
    is_own = isinstance(task, Task) and task.id == actor.task
    if isinstance(command, _RESULT_COMMANDS) and not is_own:
        task = read.task(actor.task)
    if isinstance(task, Refusal) and not isinstance(command, AdoptTask):
        return task
    if not isinstance(task, Task) or task.id != actor.task:
        return _out_of_scope(actor)
    named = getattr(command, "fence", None)
    if task.fence != actor.fence or named not in (None, actor.fence):
        return _wrong_attempt(actor, task, named)
    if hasattr(command, "fence"):
        return replace(command, fence=actor.fence)
    # Nothing else checks the attempt: the command names no fencing token.
    refusal = (
        None if isinstance(command, _RESULT_COMMANDS) else check_attempt_valid(task, read, now)
    )
    return command if refusal is None or _has_ended_attempt(command, read) else refusal


def _task_name(command: Command, read: Read) -> str:
    """Name of the task that must be the credential's; empty: never allowed."""
    if isinstance(command, HandoffCommand):
        handoff = read.handoff(command.handoff)
        return handoff.task if handoff else ""
    name_of = _TASK_NAMES.get(type(command))
    return command.heartbeat_task if name_of is None else name_of(command)


def _has_ended_attempt(command: Command, read: Read) -> bool:
    """True if it repeats what ended the attempt: the answer to that may have been lost."""
    return (
        isinstance(command, HandoffCommand)
        and not isinstance(command, ActivateHandoff)
        and find_applied(command, read) is not None
    )


def _check_bearer(read: Read) -> Refusal | None:
    """Refuse a caller that may hold no task."""
    # An agent that was made an observer during an attempt may not act in it any more.
    cannot_hold = holder_objection(read.agent(read.actor.name))
    return Refusal("not_authorized", cannot_hold) if cannot_hold else None


def _out_of_scope(actor: Actor) -> Refusal:
    """Refusal of a command outside the credential's scope."""
    detail = f"this credential of {actor.name} is for an attempt on {actor.task} only"
    return Refusal("not_authorized", detail)


def _wrong_attempt(actor: Actor, task: Task, named: int | None) -> Refusal:
    """Refusal because another attempt has begun, or another fencing token was named."""
    if task.fence != actor.fence:
        return attempt_ended_refusal(actor.name, actor.fence, task.id)
    return Refusal(
        "lease_lost",
        f"this credential of {actor.name} is for {task.id} under fence {actor.fence}, and "
        f"the command names fence {named}: name fence {actor.fence}, or none",
    )
