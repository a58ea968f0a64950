"""The owners of a piece of work: who may hand it on, and who has had it before (S-ACP-5)."""

from collections.abc import Callable

from dragoman.core.actors import Actor
from dragoman.core.authority import MAY_MOVE, relation
from dragoman.core.errors import Refusal
from dragoman.core.states.handoff import Handoff, with_owner
from dragoman.core.states.task import ActiveHandoff, Task


def owner_of(task: Task, sender: str) -> str:
    """Owner of the task; the sender, if nobody owns it (S-ADOPT)."""
    return task.assignee or sender


def chain_of(task: Task, owner: str) -> tuple[str, ...]:
    """Owners so far, the present one last."""
    return with_owner(task.chain, owner)


def check_owner(
    task: Task, old: Handoff | None, actor: Actor, find: Callable[[str], Handoff | None]
) -> Refusal | None:
    """Check that the caller may hand the task on: its owner, once at a time, or a recipient that
    has accepted it.

    `old` is the handoff that the new one would supersede.
    """
    if task.is_final:
        return Refusal("invalid_transition", f"{task.id} is {task.status}: nothing is left to do")
    promised = promised_to(task, actor.name)
    if promised:
        return Refusal(
            "ownership_conflict",
            f"{task.id} was delegated to {promised}, who has not rejected it: only "
            f"{promised} may hand it off",
            "not_owner",
        )
    under_way = task.handoff
    if under_way is not None:
        if old is None or old.id != under_way.id:
            return _under_way(task, under_way, find(under_way.id), actor)
        if may_replace(old, actor):
            return None
    if under_way is None and task.assignee == actor.name:
        return None
    if under_way is None and not task.assignee:
        return _check_unowned(task, actor)
    return Refusal(
        "ownership_conflict",
        f"{task.id} belongs to {task.assignee or 'nobody'}, not to {actor.name}",
        "not_owner",
    )


def _under_way(task: Task, by: ActiveHandoff, handoff: Handoff | None, actor: Actor) -> Refusal:
    """Refusal because an offer is open; it tells a caller that may supersede it how."""
    is_its_own = handoff is not None and may_replace(handoff, actor)
    # The same at all surfaces: the argument and the option have one name.
    instead = f": supersede that offer (supersedes {by.id})" if is_its_own else ""
    where = f"{by.recipient}'s" if by.is_taken else f"being handed over to {by.recipient}"
    return Refusal(
        "ownership_conflict", f"{task.id} is {where} already, by {by.id}{instead}", "active_handoff"
    )


def _check_unowned(task: Task, actor: Actor) -> Refusal | None:
    """Check that the caller may offer a task without an owner: it could claim it or make it ready.

    Else an offer would lift a block, or take a task out of the backlog that nobody has queued.
    """
    if task.status == "ready" or (task.status, "ready") in MAY_MOVE[relation(actor, task, None, 0)]:
        return None
    return Refusal(
        "ownership_conflict",
        f"{task.id} is {task.status} and nobody's: a person, an orchestrator or a coordinator has "
        f"to make it ready, or give it to {actor.name}, before {actor.name} can hand it over",
        "not_owner",
    )


def on_its_way(task: Task, by: ActiveHandoff) -> Refusal:
    """Refusal of a change of owner while a handoff is active."""
    where, instead = f"being handed over to {by.recipient}", ", or its sender withdraw it"
    if by.is_taken:
        where, instead = f"{by.recipient}'s", ""
    return Refusal(
        "ownership_conflict",
        f"{task.id} is {where} by {by.id}: {by.recipient} or a coordinator has to reject that "
        f"handoff first{instead}",
        "active_handoff",
    )


def promised_to(task: Task, name: str) -> str:
    """Agent to which the task is delegated and which has not had it yet; empty: none."""
    asked = task.delegation
    if asked is None or not task.is_delegated or asked.to_agent in (name, *task.agents):
        return ""
    return asked.to_agent


def may_replace(old: Handoff, actor: Actor) -> bool:
    """Return whether the caller may supersede an active handoff.

    A recipient that has accepted the work may pass it on (S-ACP-15); until it is activated, its
    sender may offer it anew.
    """
    if old.recipient == actor.name:
        return old.status in ("accepted", "activated")
    return old.sender == actor.name and old.status != "activated"


def may_go_back(
    chain: tuple[str, ...],
    recipient: str,
    old: Handoff | None,
    find: Callable[[str], Handoff | None],
) -> bool:
    """Return whether the last owner may offer the work to the owner before it, superseding `old`.

    An owner that has passed activated work on has no handoff left that the former owner could get
    it back by: it goes back by superseding the offer that was rejected. Between the two, other
    rejected offers are allowed.
    """
    if chain[-2:-1] != (recipient,):
        return False
    owner = chain[-1]
    while old is not None and old.sender == owner and old.rejection is not None:
        old = find(old.supersedes) if old.supersedes else None
        if old is not None and old.recipient == owner and old.was_passed_on:
            return True
    return False


def check_cycle(
    chain: tuple[str, ...], recipient: str, *, goes_back: bool = False, way: str = ""
) -> Refusal | None:
    """Check that the recipient has not owned the work before, unless it had it last and gets it
    back.

    `hint` says how else the work can get to it.
    """
    if recipient not in chain or (goes_back and chain[-2:-1] == (recipient,)):
        return None
    if recipient == chain[-1]:
        return Refusal("ownership_conflict", f"{recipient} has it now: name somebody else", "cycle")
    before = f"{recipient} has owned it before ({' → '.join(chain)})"
    return Refusal("ownership_conflict", f"{before}: {way}" if way else before, "cycle")


def way_back(task: Task, chain: tuple[str, ...], recipient: str) -> str:
    """Hint how the work gets back to a former owner, if its owner may not offer it."""
    under_way = task.handoff
    if under_way is not None and under_way.is_taken and under_way.owner == recipient:
        return f"reject {under_way.id} to give it back"
    by_hand = (
        "once nobody works on it and no handoff of it is open, a person, an orchestrator or a "
        f"coordinator can make {recipient} its assignee"
    )
    if chain[-2:-1] != (recipient,):
        return by_hand
    return (
        f"{by_hand}; {chain[-1]} can offer it back by an offer that supersedes the one which was "
        "rejected"
    )
