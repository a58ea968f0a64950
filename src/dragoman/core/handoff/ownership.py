"""Ownership of a task: who may hand it on, and who has owned it before (S-ACP-5, S-OWN)."""

from collections.abc import Callable

from dragoman.core.actor import Actor
from dragoman.core.authority import MAY_MOVE, relation_to_task
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import Handoff, extend_chain
from dragoman.core.task_state import ActiveHandoff, Task


def current_owner(task: Task, sender: str) -> str:
    """Owner of the task; the sender, if nobody owns it (S-ADOPT)."""
    return task.assignee or sender


def owner_chain(task: Task, owner: str) -> tuple[str, ...]:
    """Owners so far, the present one last."""
    return extend_chain(task.chain or task.agents, owner)


def check_may_hand_over(
    task: Task, old: Handoff | None, actor: Actor, find: Callable[[str], Handoff | None]
) -> Refusal | None:
    """Check that the caller may hand the task on: its owner, once at a time, or a recipient that
    has accepted it.

    `old` is the handoff that the new one would supersede.
    """
    if task.is_final:
        return Refusal("invalid_transition", f"{task.id} is {task.status}: nothing is left to do")
    delegate = pending_delegate(task, actor.name)
    if delegate:
        return Refusal(
            "ownership_conflict",
            f"{task.id} was delegated to {delegate}, who has not rejected it: only "
            f"{delegate} may hand it off",
            "not_owner",
        )
    under_way = task.handoff
    if under_way is not None:
        if old is None or old.id != under_way.id:
            return _open_offer_refusal(task, under_way, find(under_way.id), actor)
        if may_supersede(old, actor):
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


def _open_offer_refusal(
    task: Task, by: ActiveHandoff, handoff: Handoff | None, actor: Actor
) -> Refusal:
    """Refusal because an offer is open; it tells a caller that may supersede it how."""
    is_its_own = handoff is not None and may_supersede(handoff, actor)
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
    if (
        task.status == "ready"
        or (task.status, "ready") in MAY_MOVE[relation_to_task(actor, task, None, 0)]
    ):
        return None
    return Refusal(
        "ownership_conflict",
        f"{task.id} is {task.status} and nobody's: a person, an orchestrator or a coordinator has "
        f"to make it ready, or give it to {actor.name}, before {actor.name} can hand it over",
        "not_owner",
    )


def pending_delegate(task: Task, name: str) -> str:
    """Agent to which the task is delegated and which has not had it yet; empty: none."""
    delegation = task.delegation
    if delegation is None or not task.is_delegated or delegation.to_agent in (name, *task.agents):
        return ""
    return delegation.to_agent


def may_supersede(old: Handoff, actor: Actor) -> bool:
    """Return whether the caller may supersede an active handoff.

    A recipient that has accepted the work may pass it on (S-ACP-15); until it is activated, its
    sender may offer it anew.
    """
    if old.recipient == actor.name:
        return old.status in ("accepted", "activated")
    return old.sender == actor.name and old.status != "activated"


def check_ownership_cycle(chain: tuple[str, ...], recipient: str) -> Refusal | None:
    """Check that the recipient has not owned the work before: it goes back by reject (S-ACP-5)."""
    if recipient not in chain:
        return None
    if recipient == chain[-1]:
        return Refusal("ownership_conflict", f"{recipient} has it now: name somebody else", "cycle")
    return Refusal(
        "ownership_conflict",
        f"{recipient} has owned it before ({' → '.join(chain)}): work goes back by reject, or a "
        "person, an orchestrator or a coordinator assigns it",
        "cycle",
    )
