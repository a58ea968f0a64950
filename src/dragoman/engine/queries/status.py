"""Status of the whole hub: who works on what, what waits and for whom, what needs a person."""

from collections.abc import Iterator, Mapping
from itertools import islice

from msgspec import Struct

from dragoman.core import not_found
from dragoman.core.agent import AgentRecord, Pause
from dragoman.core.attempt import Wait, explain_wait
from dragoman.core.authority import REGISTRABLE_ROLES
from dragoman.core.base import Role
from dragoman.core.errors import Refusal
from dragoman.core.presence import Presence
from dragoman.core.task_state import Task
from dragoman.engine.ports import Store, TaskQuery
from dragoman.engine.queries.agents import all_agents, list_actors
from dragoman.engine.queries.attention import Attention
from dragoman.engine.queries.tasks import TaskView, all_tasks, find_task, list_tasks
from dragoman.ledger.entry import read_line

MAX_WORKING = 200
"""Tasks in progress that are listed."""

_RECENT_ENTRIES = 300
"""Entries of the ledger in which agents have spoken lately."""

_LATELY_MS = 3_600_000

_MAX_SCANNED = 200
"""Ready tasks that are looked at for those that wait."""

_MAX_BLOCKERS = 5
"""Blockers of a task whose owners are looked up."""


class WaitingTask(Struct, frozen=True):
    """A ready task that not everybody can claim now, and who has to act."""

    task: Task
    wait: Wait
    actors: tuple[str, ...]
    """The only agent that can claim it, or the owners of what it waits for."""


class AgentStatus(Struct, frozen=True):
    """An agent or a person, registered or not: what it holds, and its last sign of life."""

    name: str
    role: Role
    record: AgentRecord | None
    """None: it is not registered."""
    holds: tuple[str, ...]
    """Tasks that it holds."""
    waiting: int
    """Number of ready tasks that are reserved for it."""
    seen_at: int | None
    """Last sign of life, as far as that is known."""
    pause: Pause | None
    sessions: tuple[Presence, ...] = ()
    """Presence of its sessions."""


class HubStatus(Struct, frozen=True):
    """The hub at one moment."""

    now: int
    head: int
    counts: Mapping[str, int]
    """Number of tasks in each status that some have."""
    claimable: int
    """Number of ready tasks that anybody can claim."""
    reserved: int
    """Number of ready tasks that one agent can claim."""
    working: tuple[TaskView, ...]
    """Tasks in progress, the longest first."""
    waiting: tuple[WaitingTask, ...]
    agents: tuple[AgentStatus, ...]
    attention: Attention


def find_status(store: Store, now: int, attention: Attention, limit: int = 20) -> HubStatus:
    """Find the status of the hub; of what waits at most so many tasks are listed."""
    queues = store.queue_counts()
    claimable = queues.pop("", 0)
    held = list_tasks(store, TaskQuery("in-progress", limit=MAX_WORKING))
    working = sorted(held, key=lambda view: view.task.moved_at)
    return HubStatus(
        now,
        store.head(),
        store.status_counts(),
        claimable,
        sum(queues.values()),
        tuple(working),
        tuple(islice(_waiting_tasks(store, now), limit)),
        find_agents_status(store, now, working, queues),
        attention,
    )


def find_agents_status(
    store: Store, now: int, working: list[TaskView], queues: Mapping[str, int]
) -> tuple[AgentStatus, ...]:
    """Find the agents that hold something or have spoken lately; `queues`: ready tasks by agent."""
    return tuple(
        one
        for one in _find_everybody(store, now, working, queues)
        if one.seen_at is not None and (one.role == "agent" or one.holds)
    )


def list_everybody(store: Store, now: int) -> list[AgentStatus]:
    """List by name everybody who is registered, has ever spoken or holds a task, with all that they
    hold."""
    working = sorted(all_tasks(store, "in-progress"), key=lambda view: view.task.moved_at)
    return _find_everybody(store, now, working, store.queue_counts())


def find_anybody(store: Store, now: int, name: str) -> AgentStatus | Refusal:
    """Find one of them by its name."""
    found = (one for one in list_everybody(store, now) if one.name == name)
    return next(found, None) or not_found.agent(name)


def _find_everybody(
    store: Store, now: int, working: list[TaskView], queues: Mapping[str, int]
) -> list[AgentStatus]:
    seen = recently_seen(store, now)
    holds = dict[str, list[str]]()
    for view in working:
        holder, lease = view.task.assignee, view.lease
        holds.setdefault(holder, []).append(view.task.id)
        sign = view.task.moved_at if lease is None else lease.last_heartbeat
        seen[holder] = max(sign, seen.get(holder, 0))
    records = all_agents(store)
    roles = list_actors(store)
    found: list[AgentStatus] = []
    for name in sorted(records.keys() | roles.keys() | holds.keys()):
        record = records.get(name)
        role = roles.get(name, "agent") if record is None else record.role
        if role in REGISTRABLE_ROLES or name in holds:
            found.append(
                AgentStatus(
                    name,
                    role,
                    record,
                    tuple(holds.get(name, ())),
                    queues.get(name, 0),
                    seen.get(name),
                    record and record.active_pause(now),
                    record.current_sessions(now) if record else (),
                )
            )
    return found


def recently_seen(store: Store, now: int) -> dict[str, int]:
    """Writers of the last entries of the ledger, each with the time of its latest."""
    seen = dict[str, int]()
    for entry in store.entries(max(0, store.head() - _RECENT_ENTRIES), _RECENT_ENTRIES):
        line = read_line(entry.line)
        if line.at > now - _LATELY_MS:
            seen[line.actor.partition(":")[2]] = line.at
    return seen


def _waiting_tasks(store: Store, now: int) -> Iterator[WaitingTask]:
    for view in list_tasks(store, TaskQuery("ready", limit=_MAX_SCANNED)):
        wait = explain_wait(view.task, now)
        if wait is not None:
            actors = (wait.agent,) if wait.agent else _blocker_owners(store, view.task)
            yield WaitingTask(view.task, wait, actors)


def _blocker_owners(store: Store, task: Task) -> tuple[str, ...]:
    found = (find_task(store, name) for name in task.open_blockers[:_MAX_BLOCKERS])
    owners = (view.task.assignee for view in found if isinstance(view, TaskView))
    return tuple(dict.fromkeys(filter(None, owners)))
