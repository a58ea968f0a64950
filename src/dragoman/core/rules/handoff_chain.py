"""The owners of a piece of work: who may hand it on, and who has had it before (S-ACP-5)."""

from collections.abc import Callable

from dragoman.core.actors import Actor
from dragoman.core.authority import MAY_MOVE, relation
from dragoman.core.errors import Refusal
from dragoman.core.states.handoff import Handoff, with_owner
from dragoman.core.states.task import ActiveHandoff, Task


def owner_of(task: Task, sender: str) -> str:
    """Whose the task is; what nobody has taken is the sender's by its word (S-ADOPT)."""
    return task.assignee or sender


def chain_of(task: Task, owner: str) -> tuple[str, ...]:
    """The owners so far, the present one last."""
    return with_owner(task.chain, owner)


def check_owner(
    task: Task, old: Handoff | None, actor: Actor, find: Callable[[str], Handoff | None]
) -> Refusal | None:
    """Only its owner hands work on, once at a time; or whoever has accepted it, further.

    `old` is the handoff in whose place a new one is to come.
    """
    if task.is_final:
        return Refusal("invalid_transition", f"{task.id} is {task.status}: nothing is left to do")
    promised = promised_to(task, actor.name)
    if promised:
        return Refusal(
            "ownership_conflict",
            f"{task.id} was delegated to {promised}, who has not said no: only they hand it on",
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
    """There is an offer already; who may put another in its place is told how."""
    is_its_own = handoff is not None and may_replace(handoff, actor)
    # Told at every door: the argument and the option are called alike.
    instead = f": offer it in the place of that (supersedes {by.id})" if is_its_own else ""
    where = f"{by.recipient}'s" if by.is_taken else f"on its way to {by.recipient}"
    return Refusal(
        "ownership_conflict", f"{task.id} is {where} already, by {by.id}{instead}", "active_handoff"
    )


def _check_unowned(task: Task, actor: Actor) -> Refusal | None:
    """What nobody has is offered by whoever could take it, or could make it ready.

    Else an offer would lift a block, or take out of the backlog what nobody has put into the queue.
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
    """Nobody else decides whose the task is while it is handed over."""
    where, instead = f"on its way to {by.recipient}", ", or its sender withdraw it"
    if by.is_taken:
        where, instead = f"{by.recipient}'s", ""
    return Refusal(
        "ownership_conflict",
        f"{task.id} is {where} by {by.id}: {by.recipient} or a coordinator has to reject that "
        f"handoff first{instead}",
        "active_handoff",
    )


def promised_to(task: Task, name: str) -> str:
    """To whom else the task is delegated who has not had it yet; empty: to nobody."""
    asked = task.delegation
    if asked is None or not task.is_delegated or asked.to_agent in (name, *task.agents):
        return ""
    return asked.to_agent


def may_replace(old: Handoff, actor: Actor) -> bool:
    """Whether the caller may put another handoff in the place of one that is under way.

    Whoever has accepted the work may pass it on (S-ACP-15); until it is activated, its sender may
    offer it anew.
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
    """Whether the last owner of a chain may offer the work to the one before, in the place of one.

    Whoever passes work on that it has begun has no handoff left by whose rejection it could go
    back: it goes back by an offer in the place of the one that has come to nothing. Between the two
    there may be others that have come to nothing as well.
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
    """None when the recipient has not owned the work before, or had it last and gets it back.

    `way` is how else the work can get to it.
    """
    if recipient not in chain or (goes_back and chain[-2:-1] == (recipient,)):
        return None
    if recipient == chain[-1]:
        return Refusal("ownership_conflict", f"{recipient} has it now: name somebody else", "cycle")
    before = f"{recipient} has owned it before ({' → '.join(chain)})"
    return Refusal("ownership_conflict", f"{before}: {way}" if way else before, "cycle")


def way_back(task: Task, chain: tuple[str, ...], recipient: str) -> str:
    """How work gets back to one who has owned it, if its owner may not offer it to that one."""
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
        f"{by_hand}; what {chain[-1]} has begun and passed on in vain goes back by an offer that "
        "supersedes the one which has failed"
    )
