"""Handoffs over HTTP: lists, one handoff, what happened to it, and why it is stuck.

What changes one goes by the operation `acp_handoff`, as at every door.
"""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, field

from dragoman.core.events import HandoffStatus
from dragoman.core.ids import handoff_stream
from dragoman.core.states.handoff import Handoff
from dragoman.engine.handoff_diagnosis import Diagnosis, look_at
from dragoman.engine.ports import Store
from dragoman.engine.reads.handoffs import LAST, Wanted, find_handoff, page_of
from dragoman.engine.reads.teamspaces import closed_to
from dragoman.engine.shown.handoffs import (
    HandoffSummary,
    WholeHandoff,
    handoff_summary,
    whole_handoff,
)
from dragoman.surfaces.http.endpoint import Endpoint, Query
from dragoman.surfaces.http.history import (
    Cursor,
    HistoryPage,
    HistoryQuery,
    Limit,
    history_page,
)
from dragoman.surfaces.http.names import WantedAgent, WantedTask, WantedWord
from dragoman.surfaces.http.office import Call


class HandoffsQuery(Query, frozen=True):
    """Filters for a list of handoffs."""

    status: Annotated[HandoffStatus, Meta(description="Only in this state.")] | UnsetType = UNSET
    task: WantedTask = ""
    sender: WantedAgent = field(default="", name="from")
    to: WantedAgent = ""
    teamspace: WantedWord = ""
    limit: Limit = 50
    cursor: Cursor | UnsetType = UNSET


class HandoffPage(Struct, frozen=True):
    """Handoffs, newest first; `next` is the cursor of the next page, null after the last one."""

    handoffs: list[HandoffSummary]
    next: int | None


async def list_handoffs(call: Call) -> HandoffPage:
    """List a page of handoffs; drafts only of the caller, and only if they are asked for."""
    query: HandoffsQuery = call.query
    wanted = Wanted(
        status=query.status or None,
        task=query.task,
        sender=query.sender,
        recipient=query.to,
        teamspace=query.teamspace,
        reader=_reader(call),
        closed=_closed(call),
        before=LAST if query.cursor is UNSET else query.cursor,
        limit=query.limit,
    )
    page = await call.office.found(page_of, wanted)
    return HandoffPage([handoff_summary(one) for one in page.handoffs], page.next)


async def show(call: Call) -> WholeHandoff:
    """Show one handoff."""
    return whole_handoff(await _found(call))


async def events_of(call: Call) -> HistoryPage:
    """List the entries of a handoff; counted by their version in its own stream."""
    return await history_page(call, handoff_stream((await _found(call)).id))


async def diagnosis(call: Call) -> Diagnosis:
    """Explain what a handoff waits for, who has to act, and by when."""
    handoff, door = await _found(call), call.office.door

    def look(store: Store) -> Diagnosis:
        outlook = door.interpreter.outlook(handoff)
        return look_at(store, handoff, call.now, door.settings.teamspaces, outlook)

    return await call.office.read(look)


async def _found(call: Call) -> Handoff:
    id = call.path["id"]
    return await call.office.found(find_handoff, id, _reader(call), _closed(call))


def _closed(call: Call) -> frozenset[str]:
    return closed_to(call.office.door.settings.teamspaces, call.principal.actor)


def _reader(call: Call) -> str:
    """Return the name of the caller; empty for the owner of the hub, who sees everything."""
    return "" if call.principal.is_owner else call.principal.actor.name


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/handoffs",
        "List handoffs, newest first",
        list_handoffs,
        HandoffPage,
        query=HandoffsQuery,
    ),
    Endpoint("GET", "/v1/handoffs/{id}", "Show a handoff", show, WholeHandoff),
    Endpoint(
        "GET",
        "/v1/handoffs/{id}/events",
        "Show a handoff's history",
        events_of,
        HistoryPage,
        query=HistoryQuery,
    ),
    Endpoint(
        "GET",
        "/v1/handoffs/{id}/diagnosis",
        "Diagnose why a handoff is stuck",
        diagnosis,
        Diagnosis,
    ),
)
