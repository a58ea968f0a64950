"""Operations of the work queue: create, claim, release, get.

They work on the hub's own queue (section 8), also where the settings name an external one: then
it holds the items that the external queue did not take over, as orphaned. An item that it does not
have is looked up in the external one.
"""

from collections.abc import Callable, Iterator
from typing import Annotated, Any

from msgspec import Meta, Struct

from dragoman.core.authority import MAY_WRITE
from dragoman.core.base import Command
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import strip_item_prefix
from dragoman.core.timestamps import to_rfc3339
from dragoman.core.work_queue import AddWorkItem, ClaimWorkItem, ReleaseWorkItem, WorkItem
from dragoman.engine.operation import (
    Facts,
    Operation,
    Plan,
    QueryOperation,
    fault_from_refusal,
    require_id,
)
from dragoman.engine.request import Commands, Committed
from dragoman.engine.workq import find_work_item
from dragoman.protocols.acp.parse import parse_shape
from dragoman.protocols.acp.render import Reply
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
        "workq.create",
        NewItem,
        lambda message: AddWorkItem(message.title, strip_item_prefix(message.item_id or "")),
        "Put an item into the work queue.",
        read=lambda value: require_id(parse_shape(value, NewItem), "item_id", "item id"),
    )
    yield _write_operation(
        "workq.claim",
        Claim,
        lambda message: ClaimWorkItem(strip_item_prefix(message.item_id), message.owner),
        "Own an item of the work queue.",
    )
    yield _write_operation(
        "workq.release",
        OneItem,
        lambda message: ReleaseWorkItem(strip_item_prefix(message.item_id)),
        "Own an item no more.",
    )
    yield QueryOperation(
        name="workq.get",
        input=OneItem,
        parse=lambda value: parse_shape(value, OneItem),
        plan=lambda message, _, facts: _query_item(message, facts, choices),
        summary="How an item of the work queue stands, and whose it is.",
    )


def _write_operation(
    name: str,
    shape: Any,
    command: Callable[[Any], Command],
    summary: str,
    read: Callable[[Any], Any] | None = None,
) -> Operation:
    return Operation(
        name=name,
        input=shape,
        parse=read or (lambda value: parse_shape(value, shape)),
        roles=MAY_WRITE,
        plan=lambda message, _, facts: Plan(
            (command(message),), follow_up=lambda reply: _add_item_state(facts, reply)
        ),
        reply=_item_reply,
        summary=summary,
    )


def _item_reply(_: Any, __: Commands, accepted: Committed) -> Reply:
    receipt = accepted.receipts[0]
    return {"success": True, "item_id": receipt.stream.partition(":")[2], "status": receipt.state}


def _add_item_state(facts: Facts, reply: Reply) -> Reply:
    found = find_work_item(facts.store, reply["item_id"])
    return reply if isinstance(found, Refusal) else {**_item_row(found), **reply}


def _query_item(args: OneItem, facts: Facts, choices: Choices) -> Any:
    item, workq = strip_item_prefix(args.item_id), choices.workq
    found = find_work_item(facts.store, item)
    if not isinstance(found, Refusal):
        return {"success": True, **_item_row(found)}
    is_unknown = found.code == "work_item_not_found"
    state = workq.item_status(item) if workq is not None and is_unknown else None
    if state is None:
        return fault_from_refusal(found, "item_id")
    return {
        "success": True,
        "item_id": state.item_id,
        "status": state.status,
        "owner": state.owner or None,
    }


def _item_row(item: WorkItem) -> Reply:
    return {
        "item_id": item.id,
        "title": item.title,
        "status": item.status,
        "owner": item.owner or None,
        "created_at": to_rfc3339(item.created_at),
    }
