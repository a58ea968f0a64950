"""The work queue by its operations: create, claim, release, get.

They are about the hub's own, or about the one outside that the settings name.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any

from msgspec import Meta, Struct

from dragoman.core import missing
from dragoman.core.authority import MAY_WRITE
from dragoman.core.commands import AddWorkItem, AnyCommand, ClaimWorkItem, ReleaseWorkItem
from dragoman.core.errors import Refusal
from dragoman.core.moments import to_rfc3339
from dragoman.core.states.handoff_items import strip_item_prefix
from dragoman.core.states.work_item import WorkItem
from dragoman.engine.faults import fault_from_refusal, require_id
from dragoman.engine.operation import Commands, Facts, Operation
from dragoman.engine.request import Committed
from dragoman.engine.workq import find_work_item
from dragoman.protocols.acp.messages import ALL_ROLES
from dragoman.protocols.acp.read import parse_shape
from dragoman.protocols.acp.reply import Reply, add_metadata
from dragoman.protocols.acp.settings import Choices
from dragoman.protocols.acp.workq_outside import (
    DEGRADED,
    EXTERNAL_OPERATIONS,
    external_item_reply,
    external_workq,
    unavailable_fault,
)


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


def workq_operations(choices: Choices) -> Iterator[Operation]:
    """The four operations of the work queue."""
    yield _write_operation(
        choices,
        "workq.create",
        NewItem,
        lambda asked: AddWorkItem(asked.title, strip_item_prefix(asked.item_id or "")),
        "Put an item into the work queue.",
        read=lambda value: require_id(parse_shape(value, NewItem), "item_id", "item id"),
    )
    yield _write_operation(
        choices,
        "workq.claim",
        Claim,
        lambda asked: ClaimWorkItem(strip_item_prefix(asked.item_id), asked.owner),
        "Own an item of the work queue.",
    )
    yield _write_operation(
        choices,
        "workq.release",
        OneItem,
        lambda asked: ReleaseWorkItem(strip_item_prefix(asked.item_id)),
        "Own an item no more.",
    )
    yield Operation(
        name="workq.get",
        input_type=OneItem,
        validate=lambda value: parse_shape(value, OneItem),
        commands=lambda _: (),
        reply=lambda _, __, ___: None,
        roles=ALL_ROLES,
        query=lambda asked, _, facts: _query_item(asked, facts, choices),
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
    return Operation(
        name=name,
        input_type=shape,
        validate=read or (lambda value: parse_shape(value, shape)),
        commands=lambda asked: (command(asked),),
        maybe_query=None if external is None else partial(EXTERNAL_OPERATIONS[name], external),
        reply=_item_reply,
        follow_up=lambda _, __, facts, reply: ((), _add_item_state(facts, reply, choices)),
        roles=MAY_WRITE,
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
            return fault_from_refusal(missing.external_work_item(item), "item_id")
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
