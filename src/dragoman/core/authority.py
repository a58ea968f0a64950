"""Who may do what: one table of roles and relations, and the check that a caller holds a task."""

from dragoman.core.actors import HUB, NO_HUB, Actor, Role
from dragoman.core.errors import Refusal
from dragoman.core.events import Status
from dragoman.core.moments import to_rfc3339
from dragoman.core.states.agent import AgentRecord
from dragoman.core.states.lease import Lease
from dragoman.core.states.task import CLAIMABLE, TRANSITIONS, Task

Move = tuple[Status, Status]

_ALL: frozenset[Move] = frozenset((a, b) for a, targets in TRANSITIONS.items() for b in targets)
_OWNER: frozenset[Move] = frozenset(
    {("ready", "blocked"), ("blocked", "ready"), ("blocked", "review")}
)
_APPROVAL: frozenset[Move] = frozenset({("review", "done")})
_JUDGEMENT: frozenset[Move] = _APPROVAL | frozenset[Move]({("review", "ready")})

BY_FILE: frozenset[Status] = frozenset({"backlog", "ready", "blocked"})
"""A task file may be moved between these: nobody works on the task, and nobody judges it."""

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
"""Relation -> the transitions it may ask for.

An agent is holder, assignee, finisher (the assignee, where no review is required) or stranger. A
person or an orchestrator stands to work that is to be reviewed, and that it did itself or (an
orchestrator, which then had the token of the other) claimed for another, as a coordinator does. A
file is trusted where the settings say that moving one is a person's word.
"""

MAY_WRITE: frozenset[Role] = frozenset({"human", "orchestrator", "coordinator", "agent", "system"})
"""Roles that may create, link, name and note tasks."""

MAY_HOLD: frozenset[Role] = frozenset({"agent", "orchestrator", "coordinator", "human"})
"""Roles whose names can be those of holders: whatever could be claimed can also be finished."""

MAY_DISPATCH: frozenset[Role] = frozenset({"human", "orchestrator", "system"})
"""Roles that may claim a task for somebody else, and that see to what time asks for."""

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
"""Role -> the fields that it may give new values; an agent only those of a task that is its own."""

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
"""Role -> the roles that it may give; an agent only to itself, and nobody makes itself a human."""

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

Whoever has somebody's token speaks as that one, so that nobody may give one of a higher role, nor,
but for people, of its own. An agent may take back its own.
"""

MAY_PAUSE: frozenset[Role] = frozenset({"human", "orchestrator", "system"})
"""Roles that may have nothing more started for an agent."""

MAY_RESUME: frozenset[Role] = MAY_PAUSE - frozenset[Role]({"system"})
"""Roles that may let it go on: the hub asks, and somebody has to answer."""

MAY_REWIND: frozenset[Role] = frozenset({"human", "orchestrator"})
"""Roles that may make a task what it was before."""


def why_no_worker(label: str) -> str:
    """Why whoever entries name so may not ask for workers; empty: it may."""
    if label.partition(":")[0] in MAY_DISPATCH:
        return ""
    return f"{label} may not ask for workers; that is for orchestrators"


def holds(actor: Actor, lease: Lease | None, now: int) -> bool:
    """Whether the caller has the living lease, whatever its role: a lease knows a name only."""
    return (
        lease is not None
        and actor.role in MAY_HOLD
        and lease.holder == actor.name
        and lease.is_live(now)
    )


def why_no_holder(known: AgentRecord | None) -> str:
    """Why whoever is known so can have no task; empty: it can. An unknown name is an agent's."""
    if known is None or known.role in MAY_HOLD:
        return ""
    return f"{known.name} is registered as {known.role}, which may only read"


def dispatcher(actor: Actor, agent: str) -> str:
    """Who is on record for having claimed a task for this agent; empty: nobody who matters.

    People approve what they had others do, and the hub approves nothing.
    """
    return actor.name if actor.role == "orchestrator" and actor.name != agent else ""


def vouches_for(actor: Actor, known: AgentRecord | None) -> bool:
    """Whether the caller may have a credential of this one; an unknown name is an agent's."""
    return (known.role if known is not None else "agent") in MAY_VOUCH[actor.role]


def relation(actor: Actor, task: Task, lease: Lease | None, now: int) -> str:
    """How the caller stands to the task: a key of MAY_MOVE."""
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
    """Whether a review would be of what the caller did itself, or had done in another's name: it
    may do all but approve that.
    """
    approves = actor.role in ("human", "orchestrator") and task.review_required
    # Whom a task was given to after the work has done none of it.
    authors = (task.assignee,) if task.assignee in task.agents else (*task.agents, task.assignee)
    return approves and actor.name in (*authors, task.dispatched_by)


def check_write(actor: Actor) -> Refusal | None:
    """None when the caller's role may write at all, under a name that is its own."""
    if actor.role != "system" and actor.name == HUB:
        return Refusal("not_authorized", NO_HUB)
    if actor.role in MAY_WRITE:
        return None
    return Refusal("not_authorized", f"{actor.label} may only read")


def check_word(
    actor: Actor, task: Task, lease: Lease | None, fence: int | None, now: int
) -> Refusal | None:
    """None when the caller may write about the task.

    Anyone may who may write at all, but an agent that held the task before speaks only as its
    holder or its owner: one that was stopped and comes back must learn that its lease is lost.
    """
    refusal = check_write(actor) or check_fence(actor, task, lease, fence, now)
    if refusal or fence is not None or actor.role != "agent" or actor.name not in task.agents:
        return refusal
    if holds(actor, lease, now) or (task.assignee == actor.name and task.status != "in-progress"):
        return None
    return Refusal("lease_lost", _what_became(actor, task, lease, now))


def check_own(
    actor: Actor, task: Task, lease: Lease | None, fence: int | None, now: int
) -> Refusal | None:
    """None when the caller may speak for the work on the task.

    An agent may as its holder, and as its owner while nobody works on it.
    """
    if actor.role != "agent":
        return check_write(actor) or check_fence(actor, task, lease, fence, now)
    if fence is None and task.assignee == actor.name and task.status != "in-progress":
        return None
    return check_hold(actor, task, lease, fence, now)


def check_fence(
    actor: Actor, task: Task, lease: Lease | None, fence: int | None, now: int
) -> Refusal | None:
    """None when no fencing token is named, or that of the living attempt, which is an agent's own.

    Other roles need no token. Whoever of them names one means that attempt, and no later one.
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
    return Refusal("lease_lost", f"{became}; who does not work on it names no fence")


def check_hold(
    actor: Actor, task: Task, lease: Lease | None, fence: int | None, now: int
) -> Refusal | None:
    """None when the caller holds the task now, under this fencing token if it names one."""
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


def _is_living(lease: Lease | None, fence: int, now: int) -> bool:
    """Whether this is the fencing token of the attempt that lives, whosever that is."""
    return lease is not None and lease.fence == fence and lease.is_live(now)


def _what_became(actor: Actor, task: Task, lease: Lease | None, now: int) -> str:
    if lease is None:
        # The token of an attempt claims nothing.
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
    """What has to come before a word about a task that nobody holds, or why nothing can."""
    obstacle = _obstacle(actor, task)
    return f", and it cannot be claimed: {obstacle}" if obstacle else ": claim it first"


def _obstacle(actor: Actor, task: Task) -> str:
    """What keeps this one from claiming a task that nobody holds; empty: nothing does."""
    if actor.role not in MAY_HOLD:
        return f"{actor.label} may hold no task"
    if task.is_final:
        return f"it is {task.status}, and that is final"
    if task.status not in CLAIMABLE:
        return f"it is {task.status}, and has to become ready first"
    # Work that is in review is reworked by whose it is, and by nobody else.
    is_anothers = task.status == "review" and task.assignee != actor.name
    if is_anothers or _is_kept_from(actor, task) or task.reserved_for not in ("", actor.name):
        return "it is another's"
    return f"it waits for {', '.join(task.open_blockers)}" if task.open_blockers else ""


def _is_kept_from(actor: Actor, task: Task) -> bool:
    """Whether only another may claim it, as it is handed over (S-OWN)."""
    return task.handoff is not None and task.handoff.only != actor.name
