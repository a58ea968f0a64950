"""Who may do what: one table of roles and relations, and the check that a caller holds a task."""

from typing import TYPE_CHECKING

from dragoman.core.actors import HUB, NO_HUB, Actor, Role
from dragoman.core.errors import Refusal
from dragoman.core.events import Status
from dragoman.core.moments import to_rfc3339
from dragoman.core.states.task import CLAIMABLE, TRANSITIONS, Task

if TYPE_CHECKING:
    from dragoman.core.states.agent import AgentRecord
    from dragoman.core.states.lease import Lease

Move = tuple[Status, Status]

_ALL: frozenset[Move] = frozenset((a, b) for a, targets in TRANSITIONS.items() for b in targets)
_OWNER: frozenset[Move] = frozenset(
    {("ready", "blocked"), ("blocked", "ready"), ("blocked", "review")}
)
_APPROVAL: frozenset[Move] = frozenset({("review", "done")})
_JUDGEMENT: frozenset[Move] = _APPROVAL | frozenset[Move]({("review", "ready")})

BY_FILE: frozenset[Status] = frozenset({"backlog", "ready", "blocked"})
"""A task file may be moved between these statuses: nobody works on the task or reviews it."""

_FILE: frozenset[Move] = frozenset((a, b) for a, b in _ALL if a in BY_FILE and b in BY_FILE)

MAY_MOVE: dict[str, frozenset[Move]] = {
    "human": _ALL,
    "orchestrator": _ALL,
    "system": _ALL,
    "coordinator": _ALL - _APPROVAL,
    "file": _FILE,
    "trusted-file": _FILE | _JUDGEMENT,
    "holder": frozenset(
        {("in-progress", "review"), ("in-progress", "ready"), ("in-progress", "blocked")}
    ),
    "assignee": _OWNER,
    "finisher": _OWNER | _APPROVAL,
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

_WORDING = frozenset({"title", "body", "priority"})
_FIELDS = _WORDING | {"review_required", "assignee"}

MAY_EDIT: dict[Role, frozenset[str]] = {
    "human": _FIELDS,
    "orchestrator": _FIELDS,
    "coordinator": _FIELDS,
    "system": _FIELDS,
    "file": _FIELDS,
    "trusted-file": _FIELDS,
    "agent": _WORDING,
    "observer": frozenset(),
}
"""Role -> the fields that it may edit; an agent only those of a task that is its own."""

_AGENTS: frozenset[Role] = frozenset({"agent", "observer", "coordinator", "orchestrator"})
_EVERYONE: frozenset[Role] = _AGENTS | frozenset[Role]({"human"})

MAY_REGISTER: dict[Role, frozenset[Role]] = {
    "human": _EVERYONE,
    "system": _EVERYONE,
    "orchestrator": _AGENTS,
    "coordinator": frozenset(),
    "agent": frozenset({"agent"}),
    "observer": frozenset(),
    "file": frozenset(),
    "trusted-file": frozenset(),
}
"""Role -> the roles that it may register; an agent only itself, and no agent becomes a human."""

MAY_VOUCH: dict[Role, frozenset[Role]] = {
    "human": _EVERYONE,
    "system": _EVERYONE,
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

MAY_REWIND: frozenset[Role] = frozenset({"human", "orchestrator"})
"""Roles that may restore an earlier state of a task."""


def why_no_worker(label: str) -> str:
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
        and lease.is_live(now)
    )


def why_no_holder(known: "AgentRecord | None") -> str:
    """Reason why this agent can hold no task; empty: it can. An unknown name counts as an agent."""
    if known is None or known.role in MAY_HOLD:
        return ""
    return f"{known.name} is registered as {known.role}, which may only read"


def dispatcher(actor: Actor, agent: str) -> str:
    """Name recorded as dispatcher of a claim for this agent; empty: none that matters.

    People may approve what they had others do, and the hub approves nothing.
    """
    return actor.name if actor.role == "orchestrator" and actor.name != agent else ""


def vouches_for(actor: Actor, known: "AgentRecord | None") -> bool:
    """True if the caller may manage this agent's credentials; an unknown name is an agent's."""
    return (known.role if known is not None else "agent") in MAY_VOUCH[actor.role]


def relation(actor: Actor, task: Task, lease: "Lease | None", now: int) -> str:
    """Relation of the caller to the task: a key of MAY_MOVE."""
    if is_own_gate(actor, task):
        return "coordinator"
    if actor.role != "agent":
        return actor.role
    if holds(actor, lease, now):
        return "holder"
    if task.assignee != actor.name:
        return "stranger"
    return "assignee" if task.review_required else "finisher"


def is_own_gate(actor: Actor, task: Task) -> bool:
    """True if a review would be of work that the caller did itself, or had done in another's name:
    it may do all but approve that.
    """
    approves = actor.role in ("human", "orchestrator") and task.review_required
    # An assignee that got the task after the work was done has done none of it.
    authors = (task.assignee,) if task.assignee in task.agents else (*task.agents, task.assignee)
    return approves and actor.name in (*authors, task.dispatched_by)


def check_write(actor: Actor) -> Refusal | None:
    """Refuse unless the caller's role may write at all, under a name that is its own."""
    if actor.role != "system" and actor.name == HUB:
        return Refusal("not_authorized", NO_HUB)
    if actor.role in MAY_WRITE:
        return None
    return Refusal("not_authorized", f"{actor.label} may only read")


def check_word(
    actor: Actor, task: Task, lease: "Lease | None", fence: int | None, now: int
) -> Refusal | None:
    """Refuse unless the caller may write about the task.

    Any role that may write at all may do so, but an agent that held the task before speaks only as
    its holder or its owner: one that was stopped and comes back must learn that its lease is lost.
    """
    refusal = check_write(actor) or check_fence(actor, task, lease, fence, now)
    if refusal or fence is not None or actor.role != "agent" or actor.name not in task.agents:
        return refusal
    if holds(actor, lease, now) or (task.assignee == actor.name and task.status != "in-progress"):
        return None
    return Refusal("lease_lost", _what_became(actor, task, lease, now))


def check_own(
    actor: Actor, task: Task, lease: "Lease | None", fence: int | None, now: int
) -> Refusal | None:
    """Refuse unless the caller may speak for the work on the task.

    An agent may as its holder, and as its owner while nobody works on it.
    """
    if actor.role != "agent":
        return check_write(actor) or check_fence(actor, task, lease, fence, now)
    if fence is None and task.assignee == actor.name and task.status != "in-progress":
        return None
    return check_hold(actor, task, lease, fence, now)


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
        return check_hold(actor, task, lease, fence, now)
    if _is_living(lease, fence, now):
        return None
    became = _what_became(actor, task, lease, now)
    return Refusal("lease_lost", f"{became}; name no fence unless you work on it")


def check_hold(
    actor: Actor, task: Task, lease: "Lease | None", fence: int | None, now: int
) -> Refusal | None:
    """Refuse unless the caller holds the task now, under this fencing token if it names one."""
    is_of_now = fence is None or _is_living(lease, fence, now)
    if is_of_now and holds(actor, lease, now):
        return None
    if not is_of_now or actor.name in task.agents:
        return Refusal("lease_lost", _what_became(actor, task, lease, now))
    if lease is None and not task.assignee:
        return Refusal("unassigned_task", f"nobody holds {task.id}{_first(actor, task)}")
    if task.assignee == actor.name:
        return Refusal(
            "unauthorized_agent", f"{actor.name} does not hold {task.id}{_first(actor, task)}"
        )
    return Refusal(
        "unauthorized_agent",
        f"{task.id} belongs to {task.assignee or 'nobody'}, not to {actor.name}",
    )


def _is_living(lease: "Lease | None", fence: int, now: int) -> bool:
    """True if this is the fencing token of the valid attempt, whoever holds it."""
    return lease is not None and lease.fence == fence and lease.is_live(now)


def _what_became(actor: Actor, task: Task, lease: "Lease | None", now: int) -> str:
    if lease is None:
        # The credential of an attempt cannot claim.
        if not actor.task and not _obstacle(actor, task):
            return f"nobody holds {task.id} now, it is {task.status}: claim it again to go on"
        is_whose = "" if task.is_final or task.assignee in ("", actor.name) else task.assignee
        whose = f", and {is_whose}'s" if is_whose else ""
        return f"nobody holds {task.id} now, it is {task.status}{whose}: stop working on it"
    if lease.is_live(now):
        return f"{task.id} is held by {lease.holder} under fence {lease.fence}: stop working on it"
    return (
        f"the lease on {task.id} (fence {lease.fence}) ended at {to_rfc3339(lease.expires_at)}: "
        "stop working on it"
    )


def _first(actor: Actor, task: Task) -> str:
    """Hint for a task without holder: claim it first, or why it cannot be claimed."""
    obstacle = _obstacle(actor, task)
    return f", and it cannot be claimed: {obstacle}" if obstacle else ": claim it first"


def _obstacle(actor: Actor, task: Task) -> str:
    """Reason why the caller cannot claim a task without holder; empty: it can."""
    if actor.role not in MAY_HOLD:
        return f"{actor.label} may hold no task"
    if task.is_final:
        return f"it is {task.status}, and that is final"
    if task.status not in CLAIMABLE:
        return f"it is {task.status}, and has to become ready first"
    # Work in review is reworked by its owner only.
    is_anothers = task.status == "review" and task.assignee != actor.name
    if is_anothers or _is_kept_from(actor, task) or task.reserved_for not in ("", actor.name):
        return "it belongs to another agent"
    return f"it waits for {', '.join(task.open_blockers)}" if task.open_blockers else ""


def _is_kept_from(actor: Actor, task: Task) -> bool:
    """True if a handoff allows only somebody else to claim it (S-OWN)."""
    return task.handoff is not None and task.handoff.only != actor.name
