"""The hub's own work queue by its operations: create, claim, release, get."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any

from msgspec import Meta, Struct

from dragoman.core.actors import Actor
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
from dragoman.protocols.acp.reply import Reply


class NewItem(Struct, frozen=True, forbid_unknown_fields=True):
    """Something to be seen to."""

    title: Annotated[str, Meta(max_length=500)] = ""
    item_id: str | None = None
    """Without one it gets an id."""


class OneItem(Struct, frozen=True, forbid_unknown_fields=True):
    """An item of the work queue."""

    item_id: str


class Claim(OneItem, frozen=True, forbid_unknown_fields=True):
    """An item, and for whom; else for you."""

    owner: str = ""


def operations() -> Iterator[Operation]:
    """All of them."""
    yield _writing(
        "workq.create",
        NewItem,
        lambda asked: AddWorkItem(asked.title, bare(asked.item_id or "")),
        "Put an item into the work queue.",
        read=lambda value: not_empty(shaped(value, NewItem), "item_id", "item id"),
    )
    yield _writing(
        "workq.claim",
        Claim,
        lambda asked: ClaimWorkItem(bare(asked.item_id), asked.owner),
        "Own an item of the work queue.",
    )
    yield _writing(
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
        ask=_get,
        summary="How an item of the work queue stands, and whose it is.",
    )


def _writing(
    name: str,
    shape: Any,
    command: Callable[[Any], AnyCommand],
    summary: str,
    read: Callable[[Any], Any] | None = None,
) -> Operation:
    return Operation(
        name=name,
        shape=shape,
        read=read or (lambda value: shaped(value, shape)),
        commands=lambda asked: (command(asked),),
        reply=_done,
        after=_shown,
        roles=MAY_WRITE,
        summary=summary,
    )


def _done(_: Any, __: Commands, accepted: Accepted) -> Reply:
    told = accepted.receipts[0]
    return {"success": True, "item_id": told.stream.partition(":")[2], "status": told.state}


def _shown(_: Any, __: Actor, facts: Facts, reply: Reply) -> tuple[Commands, Any]:
    found = find_item(facts.store, reply["item_id"])
    return (), reply if isinstance(found, Refusal) else {**_row(found), **reply}


def _get(asked: OneItem, _: Actor, facts: Facts) -> Any:
    found = find_item(facts.store, bare(asked.item_id))
    if isinstance(found, Refusal):
        return fault_of(found, "item_id")
    return {"success": True, **_row(found)}


def _row(item: WorkItem) -> Reply:
    return {
        "item_id": item.id,
        "title": item.title,
        "status": item.status,
        "owner": item.owner or None,
        "created_at": to_rfc3339(item.created_at),
    }
