"""What the operations of the work queue mean where it is outside: that one is asked (section 8).

Of its items the hub has a copy only where it was silent when they had to be handed on; that counts
while it is silent, and for nothing else.
"""

from collections.abc import Callable
from typing import Any, Final

from dragoman.core import missing
from dragoman.core.actors import Actor
from dragoman.core.deciding.handoffs.common import COORDINATOR_ROLES
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_agent, check_id
from dragoman.core.states.handoff_items import strip_item_prefix
from dragoman.engine.faults import Fault, fault_from_refusal
from dragoman.engine.operation import Facts
from dragoman.engine.workq import ItemState, WorkQueue, find_work_item
from dragoman.protocols.acp.reply import Reply
from dragoman.protocols.acp.settings import Choices

DEGRADED: Final = {"workq_status": "degraded"}
"""Metadata of the hub's own answer, if the external queue gave none."""


def external_workq(choices: Choices) -> WorkQueue | None:
    """The external queue, if there is one."""
    return None if choices.uses_own_workq else choices.workq


def external_item_reply(state: ItemState) -> Reply:
    """Reply with the state of an external item."""
    return {
        "success": True,
        "item_id": state.item_id,
        "status": state.status,
        "owner": state.owner or None,
    }


def unavailable_fault(item: str, detail: str = "it does not answer") -> Fault:
    """Fault: the external queue does not answer."""
    return Fault("try_again", f"the work queue outside cannot say how {item} stands: {detail}")


def _create_external(_: WorkQueue, __: Any, ___: Actor, ____: Facts) -> Fault:
    detail = "items are made in the work queue outside that [workq] url names, not here"
    return Fault("policy_violation", detail)


def _release_external(external: WorkQueue, args: Any, _: Actor, facts: Facts) -> Fault | None:
    """Refuse: the protocol has no such call (section 8.3). While the queue does not answer, the
    hub's copy is released.
    """
    item = strip_item_prefix(args.item_id)
    is_kept = not isinstance(find_work_item(facts.store, item), Refusal)
    if is_kept and external.item_exists(item) is None:
        return None
    detail = "its owner gives it back in the work queue outside that [workq] url names, not here"
    return Fault("policy_violation", detail, "item_id")


def _claim_external(external: WorkQueue, args: Any, actor: Actor, facts: Facts) -> Any:
    """Claim in the external queue; None: it does not answer, and the hub's copy counts."""
    item, owner = strip_item_prefix(args.item_id), args.owner or actor.name
    malformed = check_id(item, "item id") or check_agent(owner)
    if malformed is not None:
        return fault_from_refusal(malformed)
    if actor.task:
        return None  # an attempt's credential has no such rights, and is told so by the decider
    state = external.item_status(item) if owner != actor.name else None
    former = actor.name if state is None else state.owner
    if former != actor.name and actor.role not in COORDINATOR_ROLES:
        return Fault("not_authorized", f"{actor.label} may not give {item} to {owner}")
    moved = external.transfer_ownership(item, former, owner)
    if moved.outcome == "transferred":
        return external_item_reply(ItemState(item, "claimed", owner))
    if moved.outcome == "refused":
        return Fault("already_claimed", f"the work queue outside says no: {moved.detail}")
    if moved.outcome == "missing":
        return fault_from_refusal(missing.external_work_item(item), "item_id")
    is_kept = not isinstance(find_work_item(facts.store, item), Refusal)
    return None if is_kept else unavailable_fault(item, moved.detail)


EXTERNAL_OPERATIONS: Final[dict[str, Callable[[WorkQueue, Any, Actor, Facts], Any]]] = {
    "workq.create": _create_external,
    "workq.claim": _claim_external,
    "workq.release": _release_external,
}
"""Operation -> its function for an external queue."""
