"""Resource schemas of the hub's status: who works, what waits, what needs a person."""

from typing import Literal, cast

from msgspec import Struct

from dragoman.core.base import AttentionKind, Role, Status
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.queries.attention import AttentionItem
from dragoman.engine.queries.status import HubStatus, WaitingTask
from dragoman.engine.queries.tasks import TaskView
from dragoman.engine.schemas.agents import PauseResource, SessionResource, project_agent
from dragoman.engine.schemas.resource_fields import project


class AttentionResource(Struct, frozen=True):
    """Something that needs a person."""

    kind: AttentionKind
    task: str | None
    agent: str | None
    """The agent that it is about; of a question, who asks."""
    since: str
    text: str
    command: str
    """The command line that deals with it."""
    question: str | None
    mail: str | None
    handoff: str | None
    """The question, letter or handoff that it is about."""


class WorkingResource(Struct, frozen=True, rename="camel"):
    """A task in progress."""

    task: str
    title: str
    agent: str
    attempt: int
    since: str
    last_sign: str | None
    """Last sign of life: the last renewal of the lease."""
    last_progress: str
    """Last entry or output of its agent; at first, the claim."""
    lease_until: str | None
    lease_valid: bool


class WaitingResource(Struct, frozen=True):
    """A ready task that not everybody can claim now."""

    task: str
    title: str
    since: str
    kind: Literal["dependency", "backoff", "handoff", "reserved"]
    reason: str
    actors: tuple[str, ...]
    """The only agent that can claim it, or the owners of what it waits for."""


class AgentStatusResource(Struct, frozen=True, rename="camel"):
    """An agent that holds something or has spoken lately."""

    name: str
    role: Role
    registered: bool
    holds: tuple[str, ...]
    waiting: int
    """Number of ready tasks that are reserved for it."""
    last_seen: str | None
    paused: PauseResource | None
    sessions: tuple[SessionResource, ...]


class StatusResource(Struct, frozen=True, rename="camel"):
    """The whole hub at one moment."""

    at: str
    position: int
    counts: dict[Status, int]
    """Number of tasks in each status that some have."""
    claimable: int
    """Number of ready tasks that anybody can claim now."""
    reserved: int
    """Number of ready tasks that one agent can claim now."""
    attention: tuple[AttentionResource, ...]
    attention_counts: dict[AttentionKind, int]
    """Number of each kind, which may be more than are listed."""
    working: tuple[WorkingResource, ...]
    """Tasks in progress, the longest first."""
    waiting: tuple[WaitingResource, ...]
    agents: tuple[AgentStatusResource, ...]


def status_resource(status: HubStatus) -> StatusResource:
    """The resource of the hub's status."""
    return StatusResource(
        at=to_rfc3339(status.now),
        position=status.head,
        counts=cast(dict[Status, int], status.counts),
        claimable=status.claimable,
        reserved=status.reserved,
        attention=tuple(map(attention_resource, status.attention.items)),
        attention_counts=dict(status.attention.counts),
        working=tuple(_working_resource(view, status.now) for view in status.working),
        waiting=tuple(map(_waiting_resource, status.waiting)),
        agents=tuple(project_agent(AgentStatusResource, agent) for agent in status.agents),
    )


def attention_resource(item: AttentionItem) -> AttentionResource:
    """The resource of something that needs a person."""
    return project(AttentionResource, item)


def _working_resource(view: TaskView, now: int) -> WorkingResource:
    task, lease = view.task, view.lease
    return WorkingResource(
        task=task.id,
        title=task.title,
        agent=task.assignee,
        attempt=task.attempts,
        since=to_rfc3339(task.moved_at),
        last_sign=lease and to_rfc3339(lease.last_heartbeat),
        last_progress=to_rfc3339(task.moved_at if lease is None else lease.progress_at),
        lease_until=lease and to_rfc3339(lease.expires_at),
        lease_valid=lease is not None and lease.is_valid(now),
    )


def _waiting_resource(waiting: WaitingTask) -> WaitingResource:
    task, wait = waiting.task, waiting.wait
    return WaitingResource(
        task.id, task.title, to_rfc3339(task.moved_at), wait.kind, wait.reason, waiting.actors
    )
