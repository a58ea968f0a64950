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
from dragoman.core.states.handoff_items import bare
from dragoman.core.states.work_item import WorkItem
from dragoman.engine.faults import fault_of, not_empty
from dragoman.engine.operation import Commands, Facts, Operation
from dragoman.engine.request import Accepted
from dragoman.engine.workq import find_item
from dragoman.protocols.acp.messages import EVERYONE
from dragoman.protocols.acp.read import shaped
from dragoman.protocols.acp.reply import Reply, with_metadata
from dragoman.protocols.acp.settings import Choices
from dragoman.protocols.acp.workq_outside import (
    DEGRADED,
    OUTSIDE,
    outside_of,
    silent,
    told,
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


def operations(choices: Choices) -> Iterator[Operation]:
    """The four operations of the work queue."""
    yield _writing(
        choices,
        "workq.create",
        NewItem,
        lambda asked: AddWorkItem(asked.title, bare(asked.item_id or "")),
        "Put an item into the work queue.",
        read=lambda value: not_empty(shaped(value, NewItem), "item_id", "item id"),
    )
    yield _writing(
        choices,
        "workq.claim",
        Claim,
        lambda asked: ClaimWorkItem(bare(asked.item_id), asked.owner),
        "Own an item of the work queue.",
    )
    yield _writing(
        choices,
        "workq.release",
        OneItem,
        lambda asked: ReleaseWorkItem(bare(asked.item_id)),
        "Own an item no more.",
    )
    yield Operation(
        name="workq.get",
        shape=OneItem,
        read=lambda value: shaped(value, OneItem),
        commands=lambda _: (),
        reply=lambda _, __, ___: None,
        roles=EVERYONE,
        ask=lambda asked, _, facts: _get(asked, facts, choices),
        summary="How an item of the work queue stands, and whose it is.",
    )


def _writing(
    choices: Choices,
    name: str,
    shape: Any,
    command: Callable[[Any], AnyCommand],
    summary: str,
    read: Callable[[Any], Any] | None = None,
) -> Operation:
    outside = outside_of(choices)
    return Operation(
        name=name,
        shape=shape,
        read=read or (lambda value: shaped(value, shape)),
        commands=lambda asked: (command(asked),),
        asks=None if outside is None else partial(OUTSIDE[name], outside),
        reply=_done,
        after=lambda _, __, facts, reply: ((), _shown(facts, reply, choices)),
        roles=MAY_WRITE,
        summary=summary,
    )


def _done(_: Any, __: Commands, accepted: Accepted) -> Reply:
    told = accepted.receipts[0]
    return {"success": True, "item_id": told.stream.partition(":")[2], "status": told.state}


def _shown(facts: Facts, reply: Reply, choices: Choices) -> Reply:
    found = find_item(facts.store, reply["item_id"])
    shown = reply if isinstance(found, Refusal) else {**_row(found), **reply}
    return shown if outside_of(choices) is None else with_metadata(shown, **DEGRADED)


def _get(asked: OneItem, facts: Facts, choices: Choices) -> Any:
    item, outside = bare(asked.item_id), outside_of(choices)
    found = find_item(facts.store, item)
    is_none = isinstance(found, Refusal)
    if is_none and (outside is None or found.code != "work_item_not_found"):
        return fault_of(found, "item_id")
    if outside is not None:
        state = outside.item_status(item)
        if state is not None:
            return told(state)
        if outside.item_exists(item) is False:
            return fault_of(missing.item_outside(item), "item_id")
    if isinstance(found, Refusal):
        return silent(item)
    row: Reply = {"success": True, **_row(found)}
    return row if outside is None else with_metadata(row, **DEGRADED)


def _row(item: WorkItem) -> Reply:
    return {
        "item_id": item.id,
        "title": item.title,
        "status": item.status,
        "owner": item.owner or None,
        "created_at": to_rfc3339(item.created_at),
    }
