"""Permissions: one table of roles and relations, and the checks that a caller holds a task."""

from typing import TYPE_CHECKING

from dragoman.core.actor import HUB_NAME, HUB_NAME_TAKEN, Actor
from dragoman.core.base import Role, Status
from dragoman.core.errors import Refusal
from dragoman.core.read import Read
from dragoman.core.task_state import TASK_TRANSITIONS, Task
from dragoman.core.timestamps import to_rfc3339

if TYPE_CHECKING:
    from dragoman.core.agent import AgentRecord
    from dragoman.core.attempt_state import Lease

# --- tables -----------------------------------------------------------------------------------

Transition = tuple[Status, Status]

_ALL_TRANSITIONS: frozenset[Transition] = frozenset(
    (a, b) for a, targets in TASK_TRANSITIONS.items() for b in targets
)

_OWNER_TRANSITIONS: frozenset[Transition] = frozenset(
    {("ready", "blocked"), ("blocked", "ready"), ("blocked", "review")}
)

_APPROVAL_TRANSITIONS: frozenset[Transition] = frozenset({("review", "done")})

_REVIEW_TRANSITIONS: frozenset[Transition] = _APPROVAL_TRANSITIONS | frozenset[Transition](
    {("review", "ready")}
)

FILE_MOVABLE_STATUSES: frozenset[Status] = frozenset({"backlog", "ready", "blocked"})
"""A task file may be moved between these statuses: nobody works on the task or reviews it."""

_FILE_TRANSITIONS: frozenset[Transition] = frozenset(
    (a, b) for a, b in _ALL_TRANSITIONS if a in FILE_MOVABLE_STATUSES and b in FILE_MOVABLE_STATUSES
)

MAY_MOVE: dict[str, frozenset[Transition]] = {
    "human": _ALL_TRANSITIONS,
    "orchestrator": _ALL_TRANSITIONS,
    "system": _ALL_TRANSITIONS,
    "coordinator": _ALL_TRANSITIONS - _APPROVAL_TRANSITIONS,
    "file": _FILE_TRANSITIONS,
    "trusted-file": _FILE_TRANSITIONS | _REVIEW_TRANSITIONS,
    "holder": frozenset(
        {("in-progress", "review"), ("in-progress", "ready"), ("in-progress", "blocked")}
    ),
    "assignee": _OWNER_TRANSITIONS,
    "finisher": _OWNER_TRANSITIONS | _APPROVAL_TRANSITIONS,
    "stranger": frozenset(),
    "observer": frozenset(),
}
"""Relation to the task -> the transitions it may request.

An agent is holder, assignee, finisher (the assignee, where no review is required) or stranger. A
person or an orchestrator counts as a coordinator for work to be reviewed that it did itself or, as
an orchestrator, claimed for another (it then had the other's token). A file is trusted where the
settings say that moving one is a person's word.
"""

MAY_WRITE: frozenset[Role] = frozenset({"human", "orchestrator", "coordinator", "agent", "system"})
"""Roles that may create, link, name and note tasks."""

MAY_HOLD: frozenset[Role] = frozenset({"agent", "orchestrator", "coordinator", "human"})
"""Roles that can hold a task: whatever could be claimed can also be finished."""

MAY_DISPATCH: frozenset[Role] = frozenset({"human", "orchestrator", "system"})
"""Roles that may claim a task for somebody else, and that run time-driven work such as expiry."""

MAY_DELEGATE: frozenset[Role] = frozenset({"human", "orchestrator", "coordinator", "system"})
"""Roles that may delegate a part of any task; an agent may where it holds the task."""

_CONTENT_FIELDS = frozenset({"title", "body", "priority"})

_EDITABLE_FIELDS = _CONTENT_FIELDS | {"review_required", "assignee", "deadline"}

MAY_EDIT: dict[Role, frozenset[str]] = {
    "human": _EDITABLE_FIELDS | {"checks"},
    "orchestrator": _EDITABLE_FIELDS,
    "coordinator": _EDITABLE_FIELDS,
    "system": _EDITABLE_FIELDS | {"checks"},
    "file": _EDITABLE_FIELDS,
    "trusted-file": _EDITABLE_FIELDS,
    "agent": _CONTENT_FIELDS,
    "observer": frozenset(),
}
"""Role -> the fields that it may edit; an agent only those of a task that is its own."""

_AGENT_ROLES: frozenset[Role] = frozenset({"agent", "observer", "coordinator", "orchestrator"})

REGISTRABLE_ROLES: frozenset[Role] = _AGENT_ROLES | frozenset[Role]({"human"})

MAY_REGISTER: dict[Role, frozenset[Role]] = {
    "human": REGISTRABLE_ROLES,
    "system": REGISTRABLE_ROLES,
    "orchestrator": _AGENT_ROLES,
    "coordinator": frozenset(),
    "agent": frozenset({"agent"}),
    "observer": frozenset(),
    "file": frozenset(),
    "trusted-file": frozenset(),
}
"""Role -> the roles that it may register; an agent only itself, and no agent becomes a human."""

MAY_MANAGE_CREDENTIALS: dict[Role, frozenset[Role]] = {
    "human": REGISTRABLE_ROLES,
    "system": REGISTRABLE_ROLES,
    "orchestrator": frozenset({"agent", "observer"}),
    "coordinator": frozenset(),
    "agent": frozenset(),
    "observer": frozenset(),
    "file": frozenset(),
    "trusted-file": frozenset(),
}
"""Role -> the roles whose holders it may give credentials, and take them from.

A token lets its bearer speak as its owner, so nobody may issue one for a higher role nor, except
people, for its own. An agent may revoke its own.
"""

MAY_PAUSE: frozenset[Role] = frozenset({"human", "orchestrator", "system"})
"""Roles that may pause an agent: nothing more is started for it."""

MAY_RESUME: frozenset[Role] = MAY_PAUSE - frozenset[Role]({"system"})
"""Roles that may resume an agent: the hub pauses it and asks, somebody has to answer."""

MAY_ANSWER: frozenset[Role] = frozenset({"human", "orchestrator", "system"})
"""Roles that may answer a question about any task, and withdraw those of others."""

MAY_REWIND: frozenset[Role] = frozenset({"human", "orchestrator"})
"""Roles that may restore an earlier state of a task."""


# --- relations --------------------------------------------------------------------------------


def dispatch_objection(label: str) -> str:
    """Reason why the actor with this label may not ask for workers; empty: it may."""
    if label.partition(":")[0] in MAY_DISPATCH:
        return ""
    return f"{label} may not ask for workers; that is for orchestrators"


def holds(actor: Actor, lease: "Lease | None", now: int) -> bool:
    """True if the caller has the valid lease, whatever its role: a lease knows a name only."""
    return (
        lease is not None
        and actor.role in MAY_HOLD
        and lease.holder == actor.name
        and lease.is_valid(now)
    )


def holder_objection(known: "AgentRecord | None") -> str:
    """Reason why this agent can hold no task; empty: it can. An unknown name counts as an agent."""
    if known is None or known.role in MAY_HOLD:
        return ""
    return f"{known.name} is registered as {known.role}, which may only read"


def recorded_dispatcher(actor: Actor, agent: str) -> str:
    """Name recorded as dispatcher of a claim for this agent; empty: none that matters.

    People may approve what they had others do, and the hub approves nothing.
    """
    return actor.name if actor.role == "orchestrator" and actor.name != agent else ""


def may_manage_credentials_of(actor: Actor, known: "AgentRecord | None") -> bool:
    """True if the caller may manage this agent's credentials; an unknown name is an agent's."""
    return (known.role if known is not None else "agent") in MAY_MANAGE_CREDENTIALS[actor.role]


def relation_to_task(actor: Actor, task: Task, lease: "Lease | None", now: int) -> str:
    """Relation of the caller to the task: a key of MAY_MOVE."""
    if is_own_review(actor, task):
        return "coordinator"
    if actor.role != "agent":
        return actor.role
    if holds(actor, lease, now):
        return "holder"
    if not is_idle_owner(actor.name, task):
        return "stranger"
    return "assignee" if task.review_required else "finisher"


def is_idle_owner(name: str, task: Task) -> bool:
    """True if this agent owns the task while nobody works on it, and has not lost its lease.

    An agent that has held the task remains its owner if it ended the last attempt itself. Once its
    lease has expired or its work was taken away, it must claim the task again, even one that is
    assigned to it: until then whatever it writes is late.
    """
    is_owner = task.assignee == name and task.status != "in-progress"
    return is_owner and (name not in task.agents or task.ended_by == name)


def is_own_review(actor: Actor, task: Task) -> bool:
    """True if a review would be of work that the caller did itself, or had done in another's name:
    it may do all but approve that.
    """
    approves = actor.role in ("human", "orchestrator") and task.review_required
    # An assignee that got the task after the work was done has done none of it.
    authors = (task.assignee,) if task.assignee in task.agents else (*task.agents, task.assignee)
    return approves and actor.name in (*authors, task.dispatched_by)


# --- checks -----------------------------------------------------------------------------------


def check_write(actor: Actor) -> Refusal | None:
    """Refuse unless the caller's role may write at all, under a name that is its own."""
    if actor.role != "system" and actor.name == HUB_NAME:
        return Refusal("not_authorized", HUB_NAME_TAKEN)
    if actor.role in MAY_WRITE:
        return None
    return Refusal("not_authorized", f"{actor.label} may only read")


def check_may_comment(
    actor: Actor, task: Task, lease: "Lease | None", fence: int | None, now: int
) -> Refusal | None:
    """Refuse unless the caller may write about the task.

    Any role that may write at all may do so, but an agent that held the task before speaks only as
    its holder or its owner: one that was stopped and comes back must learn that its lease is lost.
    """
    refusal = check_write(actor) or check_fence(actor, task, lease, fence, now)
    if refusal or fence is not None or actor.role != "agent" or actor.name not in task.agents:
        return refusal
    if holds(actor, lease, now) or is_idle_owner(actor.name, task):
        return None
    return Refusal("lease_lost", _explain_lost_lease(task, lease, now))


def check_may_act_for_work(
    actor: Actor, task: Task, lease: "Lease | None", fence: int | None, now: int
) -> Refusal | None:
    """Refuse unless the caller may speak for the work on the task.

    An agent may as its holder, and as its owner while nobody works on it.
    """
    if actor.role != "agent":
        return check_write(actor) or check_fence(actor, task, lease, fence, now)
    if fence is None and is_idle_owner(actor.name, task):
        return None
    return check_holds(actor, task, lease, fence, now)


def check_fence(
    actor: Actor, task: Task, lease: "Lease | None", fence: int | None, now: int
) -> Refusal | None:
    """Refuse a fencing token that is not the valid attempt's or, for an agent, not its own.

    Other roles need no token. One that they name means that attempt, and no later one.
    """
    if fence is None:
        return None
    if actor.role == "observer":
        return check_write(actor)
    if actor.role == "agent":
        return check_holds(actor, task, lease, fence, now)
    if _is_current_fence(lease, fence, now):
        return None
    explanation = _explain_lost_lease(task, lease, now)
    return Refusal("lease_lost", f"{explanation}; name no fence unless you work on it")


def check_holds(
    actor: Actor, task: Task, lease: "Lease | None", fence: int | None, now: int
) -> Refusal | None:
    """Refuse unless the caller holds the task now, under this fencing token if it names one."""
    is_current_fence = fence is None or _is_current_fence(lease, fence, now)
    if is_current_fence and holds(actor, lease, now):
        return None
    if not is_current_fence or actor.name in task.agents:
        return Refusal("lease_lost", _explain_lost_lease(task, lease, now))
    if lease is None and not task.assignee:
        return Refusal("unassigned_task", f"nobody holds {task.id}: claim it first")
    if task.assignee == actor.name:
        return Refusal(
            "unauthorized_agent", f"{actor.name} does not hold {task.id}: claim it first"
        )
    return Refusal(
        "unauthorized_agent",
        f"{task.id} belongs to {task.assignee or 'nobody'}, not to {actor.name}",
    )


def check_attempt_valid(task: Task, read: Read, now: int) -> Refusal | None:
    """Refuse a caller whose credential belongs to an attempt on this task that has ended."""
    actor, lease = read.actor, read.lease(task)
    is_alive = lease is not None and lease.fence == actor.fence and lease.is_valid(now)
    if is_alive or not actor.task:
        return None
    return attempt_ended_refusal(actor.name, actor.fence, task.id)


def attempt_ended_refusal(agent: str, fence: int, task: str) -> Refusal:
    """Refusal for the bearer of a credential whose attempt has ended."""
    return Refusal(
        "lease_lost",
        f"this credential of {agent} belongs to attempt {fence} on {task}, which is over: stop "
        "working on it",
    )


# --- wording ----------------------------------------------------------------------------------


def _is_current_fence(lease: "Lease | None", fence: int, now: int) -> bool:
    """True if this is the fencing token of the valid attempt, whoever holds it."""
    return lease is not None and lease.fence == fence and lease.is_valid(now)


def _explain_lost_lease(task: Task, lease: "Lease | None", now: int) -> str:
    if lease is None:
        return f"nobody holds {task.id} now, it is {task.status}: stop working on it"
    if lease.is_valid(now):
        return f"{task.id} is held by {lease.holder} under fence {lease.fence}: stop working on it"
    return (
        f"the lease on {task.id} (fence {lease.fence}) ended at {to_rfc3339(lease.expires_at)}: "
        "stop working on it"
    )
