"""Models of the hub's responses. A field that this client does not know is ignored."""

from typing import Any, TypeAlias

from msgspec import Struct

from dragoman.core.base import Status
from dragoman.engine.schemas.briefing import BriefingResource
from dragoman.engine.schemas.status import StatusResource
from dragoman.engine.schemas.tasks import TaskDetail, TaskSummary

Task: TypeAlias = TaskDetail
"""A task with everything about it."""


Briefing: TypeAlias = BriefingResource
"""All that earlier attempts, answers and reviews left for whoever works on a task next."""


HubStatus: TypeAlias = StatusResource
"""The whole hub at one moment."""


class Event(Struct, frozen=True, rename="camel"):
    """An entry of the ledger: something that happened."""

    position: int
    stream: str
    version: int
    type: str
    at: str
    actor: str
    cause: str
    body: dict[str, Any]
    hash: str
    via: str | None = None
    original_text: Any = None
    """The original text of the message that caused it."""
    withheld: bool = False
    """True if only others may read what it says; its type is `withheld` then, its body empty."""

    @property
    def task(self) -> str:
        """The task that it happened to; empty: none."""
        kind, _, name = self.stream.partition(":")
        return name if kind == "task" else ""


class TaskStatusAfter(Struct, frozen=True):
    """A task that a message was about, and its status after the message; of a repeat, after the
    first one."""

    id: str
    status: Status | None


class AcceptedMessage(Struct, frozen=True):
    """The outcome of a message that the hub accepted."""

    dialect: str
    type: str
    agent: str
    reply: Any
    """In the dialect's own form."""
    tasks: tuple[TaskStatusAfter, ...]
    warnings: tuple[str, ...]
    repeated: bool
    """Sent before: nothing was added."""


class Problem(Struct, frozen=True):
    """A refusal of the hub (RFC 9457): `code` is for programs, `detail` for people."""

    code: str
    detail: str
    status: int = 0
    path: str = ""
    """Path in the message, if it is about one field."""


class RejectedMessage(Struct, frozen=True):
    """The outcome of a message of a batch that was refused."""

    problem: Problem


class Claim(Struct, frozen=True, rename="camel"):
    """A task that an agent has claimed."""

    agent: str
    attempt: int
    fence: int
    task: Task
    briefing: Briefing | None = None
    """All that earlier attempts, answers and reviews left; None if there is nothing."""
    token: str | None = None
    """The token of its writes, if another than the agent has claimed it."""


class AskedQuestion(Struct, frozen=True):
    """The id of a question that was asked."""

    question: str


class TaskPage(Struct, frozen=True):
    """A page of tasks, and the cursor of the next one."""

    tasks: tuple[TaskSummary, ...]
    next: int | None


class EventPage(Struct, frozen=True):
    """A page of events, and the position after which the next one begins."""

    events: tuple[Event, ...]
    next: int
