"""Operations of the work queue: create, claim, release, get.

They work on the hub's own queue, or on the external one that the settings name (section 8). Of an
item of the external queue the hub has a copy only if that queue did not answer when the item had
to be transferred; the copy counts only while the queue does not answer.
"""

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from dragoman.core import not_found
from dragoman.core.actor import Actor
from dragoman.core.authority import MAY_WRITE
from dragoman.core.command_table import AnyCommand
from dragoman.core.errors import Refusal
from dragoman.core.handoff.common import COORDINATOR_ROLES
from dragoman.core.handoff.state import strip_item_prefix
from dragoman.core.ids import check_agent, check_id
from dragoman.core.timestamps import to_rfc3339
from dragoman.core.work_queue import AddWorkItem, ClaimWorkItem, ReleaseWorkItem, WorkItem
from dragoman.engine.operation import (
    Facts,
    Fault,
    Operation,
    Plan,
    QueryOperation,
    always,
    fault_from_refusal,
    never,
    require_id,
)
from dragoman.engine.request import Commands, Committed
from dragoman.engine.workq import ItemState, WorkQueue, find_work_item
from dragoman.protocols.acp.mail_operations import ALL_ROLES
from dragoman.protocols.acp.parse import parse_shape
from dragoman.protocols.acp.render import Reply, add_metadata
from dragoman.protocols.acp.settings import Choices

# --- arguments --------------------------------------------------------------------------------


class NewItem(Struct, frozen=True, forbid_unknown_fields=True):
    """New item of the work queue."""

    title: Annotated[str, Meta(max_length=500)] = ""
    item_id: str | None = None
    """Empty: the hub makes one."""


class OneItem(Struct, frozen=True, forbid_unknown_fields=True):
    """An item of the work queue."""

    item_id: str


class Claim(OneItem, frozen=True, forbid_unknown_fields=True):
    """An item, and its new owner; empty: the caller."""

    owner: str = ""


# --- operations -------------------------------------------------------------------------------


def workq_operations(choices: Choices) -> Iterator[Operation]:
    """The four operations of the work queue."""
    yield _write_operation(
        choices,
        "workq.create",
        NewItem,
        lambda message: AddWorkItem(message.title, strip_item_prefix(message.item_id or "")),
        "Put an item into the work queue.",
        read=lambda value: require_id(parse_shape(value, NewItem), "item_id", "item id"),
    )
    yield _write_operation(
        choices,
        "workq.claim",
        Claim,
        lambda message: ClaimWorkItem(strip_item_prefix(message.item_id), message.owner),
        "Own an item of the work queue.",
    )
    yield _write_operation(
        choices,
        "workq.release",
        OneItem,
        lambda message: ReleaseWorkItem(strip_item_prefix(message.item_id)),
        "Own an item no more.",
    )
    yield QueryOperation(
        name="workq.get",
        input=OneItem,
        parse=lambda value: parse_shape(value, OneItem),
        roles=ALL_ROLES,
        plan=lambda message, _, facts: _query_item(message, facts, choices),
        summary="How an item of the work queue stands, and whose it is.",
    )


def _write_operation(
    choices: Choices,
    name: str,
    shape: Any,
    command: Callable[[Any], AnyCommand],
    summary: str,
    read: Callable[[Any], Any] | None = None,
) -> Operation:
    external = external_workq(choices)

    def plan(message: Any, actor: Actor, facts: Facts) -> Any:
        """Ask the external queue, if there is one; None: it does not answer."""
        result = external and EXTERNAL_OPERATIONS[name](external, message, actor, facts)
        return result or Plan(
            (command(message),),
            follow_up=lambda reply: _add_item_state(facts, reply, choices),
        )

    return Operation(
        name=name,
        input=shape,
        parse=read or (lambda value: parse_shape(value, shape)),
        roles=MAY_WRITE,
        plan=plan,
        needs_io=never if external is None else always,
        reply=_item_reply,
        summary=summary,
    )


def _item_reply(_: Any, __: Commands, accepted: Committed) -> Reply:
    receipt = accepted.receipts[0]
    return {"success": True, "item_id": receipt.stream.partition(":")[2], "status": receipt.state}


def _add_item_state(facts: Facts, reply: Reply, choices: Choices) -> Reply:
    found = find_work_item(facts.store, reply["item_id"])
    state = reply if isinstance(found, Refusal) else {**_item_row(found), **reply}
    return state if external_workq(choices) is None else add_metadata(state, **DEGRADED)


def _query_item(args: OneItem, facts: Facts, choices: Choices) -> Any:
    item, external = strip_item_prefix(args.item_id), external_workq(choices)
    found = find_work_item(facts.store, item)
    is_none = isinstance(found, Refusal)
    if is_none and (external is None or found.code != "work_item_not_found"):
        return fault_from_refusal(found, "item_id")
    if external is not None:
        state = external.item_status(item)
        if state is not None:
            return external_item_reply(state)
        if external.item_exists(item) is False:
            return fault_from_refusal(not_found.external_work_item(item), "item_id")
    if isinstance(found, Refusal):
        return unavailable_fault(item)
    row: Reply = {"success": True, **_item_row(found)}
    return row if external is None else add_metadata(row, **DEGRADED)


def _item_row(item: WorkItem) -> Reply:
    return {
        "item_id": item.id,
        "title": item.title,
        "status": item.status,
        "owner": item.owner or None,
        "created_at": to_rfc3339(item.created_at),
    }


# --- external work queue ----------------------------------------------------------------------

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
    return Fault("conflict_retry", f"the work queue outside cannot say how {item} stands: {detail}")


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
        return fault_from_refusal(not_found.external_work_item(item), "item_id")
    is_kept = not isinstance(find_work_item(facts.store, item), Refusal)
    return None if is_kept else unavailable_fault(item, moved.detail)


EXTERNAL_OPERATIONS: Final[dict[str, Callable[[WorkQueue, Any, Actor, Facts], Any]]] = {
    "workq.create": _create_external,
    "workq.claim": _claim_external,
    "workq.release": _release_external,
}
"""Operation -> its function for an external queue."""
