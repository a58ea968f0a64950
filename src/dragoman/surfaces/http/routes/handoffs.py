"""Handoffs over HTTP: list, show, history and diagnosis.

A handoff is changed by the operation `acp_handoff`, as on every surface.
"""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, field

from dragoman.core.handoff.state import Handoff, HandoffStatus
from dragoman.core.ids import handoff_stream
from dragoman.engine.handoff_diagnosis import HandoffDiagnosis, diagnose_handoff
from dragoman.engine.ports import Store
from dragoman.engine.queries.entries import END_OF_LIST
from dragoman.engine.queries.handoffs import (
    HandoffFilter,
    find_handoff,
    handoff_page,
)
from dragoman.engine.schemas.handoffs import (
    HandoffDetail,
    HandoffSummary,
    handoff_detail,
    handoff_summary,
)
from dragoman.surfaces.http.context import Call
from dragoman.surfaces.http.endpoint import Endpoint, Query
from dragoman.surfaces.http.parameters import (
    AgentFilter,
    Cursor,
    HistoryPage,
    HistoryQuery,
    Limit,
    TaskFilter,
    WordFilter,
    history_page,
)


class HandoffsQuery(Query, frozen=True):
    """Filters for a list of handoffs."""

    status: Annotated[HandoffStatus, Meta(description="Only in this state.")] | UnsetType = UNSET
    task: TaskFilter = ""
    sender: AgentFilter = field(default="", name="from")
    to: AgentFilter = ""
    teamspace: WordFilter = ""
    limit: Limit = 50
    cursor: Cursor | UnsetType = UNSET


class HandoffPage(Struct, frozen=True):
    """Handoffs, newest first; `next` is the cursor of the next page, null after the last one."""

    handoffs: list[HandoffSummary]
    next: int | None


async def list_handoffs(call: Call) -> HandoffPage:
    """List a page of handoffs, newest first."""
    query: HandoffsQuery = call.query
    page_query = HandoffFilter(
        status=query.status or None,
        task=query.task,
        sender=query.sender,
        recipient=query.to,
        teamspace=query.teamspace,
        reader=call.reader,
        before=END_OF_LIST if query.cursor is UNSET else query.cursor,
        limit=query.limit,
    )
    page = await call.context.find_or_raise(handoff_page, page_query)
    return HandoffPage([handoff_summary(one) for one in page.handoffs], page.next)


async def show_handoff(call: Call) -> HandoffDetail:
    """Show one handoff."""
    return handoff_detail(await _find(call))


async def list_handoff_events(call: Call) -> HistoryPage:
    """List the entries of a handoff; counted by their version in its own stream."""
    return await history_page(call, handoff_stream((await _find(call)).id))


async def diagnose(call: Call) -> HandoffDiagnosis:
    """Explain what a handoff waits for, who has to act, and by when."""
    handoff, deps = await _find(call), call.context.deps

    def read(store: Store) -> HandoffDiagnosis:
        return diagnose_handoff(store, handoff, call.now, deps.settings.teamspaces)

    return await call.context.read(read)


async def _find(call: Call) -> Handoff:
    return await call.context.find_or_raise(find_handoff, call.path_params["id"], call.reader)


ENDPOINTS = (
    Endpoint("GET", "/v1/handoffs", list_handoffs, HandoffPage, query=HandoffsQuery),
    Endpoint("GET", "/v1/handoffs/{id}", show_handoff, HandoffDetail),
    Endpoint(
        "GET", "/v1/handoffs/{id}/events", list_handoff_events, HistoryPage, query=HistoryQuery
    ),
    Endpoint("GET", "/v1/handoffs/{id}/diagnosis", diagnose, HandoffDiagnosis),
)
