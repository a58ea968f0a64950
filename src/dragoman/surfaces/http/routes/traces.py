"""Traces over HTTP: turns and events of a task."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import Gap
from dragoman.engine.queries.tasks import find_task_stream
from dragoman.engine.queries.traces import (
    CURSOR_DESCRIPTION,
    CURSOR_PATTERN,
    MissingTurns,
    TurnView,
    trace_page,
    turn_page,
)
from dragoman.surfaces.http.context import Call
from dragoman.surfaces.http.endpoint import Endpoint, Query
from dragoman.surfaces.http.errors import problem_error
from dragoman.surfaces.http.parameters import After, Limit


class TurnsQuery(Query, frozen=True):
    """Filters for turns."""

    attempt: (
        Annotated[
            int,
            Meta(
                ge=-(2**53) + 1,
                le=2**53 - 1,
                description="Only of this attempt; below 0: of an agent that held none.",
            ),
        ]
        | UnsetType
    ) = UNSET
    after: Annotated[
        int, Meta(ge=-1, le=2**53 - 1, description="Begin after this turn of the attempt.")
    ] = -1
    limit: Limit = 100
    cursor: Annotated[
        str,
        Meta(
            pattern=CURSOR_PATTERN,
            description="`cursor` of the page before.",
            extra={"reason": CURSOR_DESCRIPTION},
        ),
    ] = ""


class TurnRow(Struct, frozen=True):
    """A recorded turn, and its position in the ledger."""

    position: int
    attempt: int
    masked: bool
    recorded_at: str
    envelope: dict[str, Any]
    by: str = ""
    """The agent that recorded it, for a turn that stands beside the attempts."""
    after_attempt: int | None = None
    """The attempt beside which it stands; null if it belongs to an attempt."""


class TurnPage(Struct, frozen=True):
    """Turns in their order; `missing` are those that have not come, by attempt."""

    task: str
    turns: list[TurnRow]
    gaps: tuple[int, ...]
    """Indexes of turns that have not come, in any attempt; the first 1,000."""
    missing: tuple[MissingTurns, ...]
    more: bool
    cursor: str
    """The `cursor` of the next page."""


async def list_turns(call: Call) -> TurnPage:
    """List the turns of a task, whatever the order in which they came."""
    query: TurnsQuery = call.query
    task = await _task_id(call)
    attempt = None if query.attempt is UNSET else query.attempt
    if query.after >= 0 and attempt is None:
        detail = "after counts turns of one attempt: name it, or go on with the cursor of a page"
        raise problem_error("invalid_request", detail, "attempt")
    page = await call.context.read(turn_page, task, attempt, query.after, query.limit, query.cursor)
    rows = list(map(_turn_row, page.turns))
    return TurnPage(task, rows, page.gaps, page.missing, page.more, page.cursor)


def _turn_row(turn: TurnView) -> TurnRow:
    at = to_rfc3339(turn.at)
    return TurnRow(
        turn.position, turn.attempt, turn.masked, at, turn.envelope, turn.by, turn.after_attempt
    )


class TraceQuery(Query, frozen=True):
    """Filters for trace events."""

    session: Annotated[str, Meta(max_length=256, description="Only of this session.")] = ""
    after: After = 0
    limit: Limit = 100


class TraceRow(Struct, frozen=True):
    """An event in the form of SAOP, and its position in the ledger."""

    position: int
    masked: bool
    event: dict[str, Any]


class TracePage(Struct, frozen=True):
    """Events, oldest first; `next` is the `after` of the next request, at the end too.

    With a `gap` the ledger does not go as far as `after`: `next` is its end.
    """

    task: str
    events: list[TraceRow]
    next: int
    gap: Gap | UnsetType = UNSET


async def show_trace(call: Call) -> TracePage:
    """Show what happened while a task was worked on, its own transitions included."""
    query: TraceQuery = call.query
    task = await _task_id(call)
    page = await call.context.read(
        trace_page, task=task, session=query.session, after=query.after, limit=query.limit
    )
    rows = [TraceRow(event.position, event.masked, event.event) for event in page.events]
    return TracePage(task, rows, page.next, page.gap or UNSET)


async def _task_id(call: Call) -> str:
    stream = await call.context.find_or_raise(find_task_stream, call.path_params["name"])
    return stream.partition(":")[2]


ENDPOINTS = (
    Endpoint("GET", "/v1/tasks/{name}/turns", list_turns, TurnPage, query=TurnsQuery),
    Endpoint("GET", "/v1/tasks/{name}/trace", show_trace, TracePage, query=TraceQuery),
)
