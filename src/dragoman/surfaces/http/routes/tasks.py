"""Tasks over HTTP: list, show, history, story, runs."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.responses import Response

from dragoman.core.base import Status
from dragoman.core.limits import MAX_SAFE_INTEGER
from dragoman.core.read import Receipt
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import Store
from dragoman.engine.queries.briefing import find_briefing
from dragoman.engine.queries.entries import decode_event, stream_entries
from dragoman.engine.queries.story import read_story
from dragoman.engine.queries.tasks import (
    TaskFilter,
    find_task,
    find_task_stream,
    page_of_past_tasks,
    page_of_tasks,
    task_as_of,
)
from dragoman.engine.schemas.briefing import BriefingResource, briefing_resource
from dragoman.engine.schemas.resource_fields import project
from dragoman.engine.schemas.story import StoryPage, story_page
from dragoman.engine.schemas.tasks import (
    ReportResource,
    TaskDetail,
    TaskPage,
    task_detail,
    task_summary,
)
from dragoman.files.attempt_history import Attempt, RunStatus, build_history
from dragoman.ledger.entry import read_line
from dragoman.surfaces.http.context import Call
from dragoman.surfaces.http.endpoint import Endpoint, Query
from dragoman.surfaces.http.errors import problem_error
from dragoman.surfaces.http.parameters import (
    After,
    AgentFilter,
    Cursor,
    HistoryPage,
    HistoryQuery,
    Limit,
    history_page,
)

AsOf = Annotated[
    int,
    Meta(
        ge=0,
        le=MAX_SAFE_INTEGER,
        description="As it was at this position of the ledger, which is replayed up to there.",
    ),
]


class TasksQuery(Query, frozen=True):
    """Filters for a list of tasks."""

    status: Annotated[Status, Meta(description="Only in this status.")] | UnsetType = UNSET
    assignee: Annotated[str, Meta(description="Only this agent's.", max_length=300)] = ""
    words: Annotated[
        str,
        Meta(description="Only those whose names and texts have all these words.", max_length=300),
    ] = ""
    ready: Annotated[bool, Meta(description="Only what can be claimed now.")] = False
    limit: Limit = 50
    cursor: Cursor | UnsetType = UNSET
    as_of: AsOf | UnsetType = UNSET


async def list_tasks(call: Call) -> TaskPage:
    """List a page of tasks."""
    query: TasksQuery = call.query
    if query.ready and query.status not in (UNSET, "ready"):
        raise problem_error(
            "invalid_request", f"ready and status={query.status} exclude each other"
        )
    page_query = TaskFilter(
        status="ready" if query.ready else query.status or None,
        assignee=query.assignee,
        is_claimable=query.ready,
        before=None if query.cursor is UNSET else query.cursor,
        limit=query.limit,
        words=tuple(query.words.split()),
    )
    now = call.now
    page = (
        await call.context.read(page_of_tasks, page_query, now)
        if query.as_of is UNSET
        else await call.context.read(page_of_past_tasks, page_query, query.as_of, now)
    )
    return TaskPage([task_summary(view.task, view.lease, now) for view in page.tasks], page.next)


class PastTaskQuery(Query, frozen=True):
    """The moment as of which a task is shown; else now."""

    as_of: AsOf | UnsetType = UNSET


async def show_task(call: Call) -> TaskDetail:
    """Show one task by any of its names."""
    as_of = call.query.as_of
    if as_of is not UNSET:
        task = await call.context.find_or_raise(task_as_of, call.path_params["name"], as_of)
        return task_detail(task, None, call.now)
    view = await call.context.find_or_raise(find_task, call.path_params["name"])
    return task_detail(view.task, view.lease, call.now)


async def task_after(call: Call, receipt: Receipt) -> TaskDetail:
    """Show a task as it was after a request; a repeat is answered as the first time (S-IDEM)."""
    view = await call.context.find_or_raise(find_task, receipt.task, receipt.version)
    return task_detail(view.task, view.lease, call.now)


async def show_briefing(call: Call) -> Any:
    """Show what earlier attempts, answers and reviews left for whoever works on a task next."""
    view = await call.context.find_or_raise(find_task, call.path_params["name"])
    briefing = await call.context.read(find_briefing, view.task)
    return Response(status_code=204) if briefing is None else briefing_resource(briefing)


async def list_task_events(call: Call) -> HistoryPage:
    """List the entries of a task; counted by their version in its own stream."""
    return await history_page(
        call, await call.context.find_or_raise(find_task_stream, call.path_params["name"])
    )


class StoryQuery(Query, frozen=True):
    """Paging of a story."""

    after: After = 0
    limit: Limit = 200


async def show_story(call: Call) -> StoryPage:
    """Show everything about a task over all its streams, in the order of the ledger."""
    query: StoryQuery = call.query
    deps = call.context.deps
    story = await call.context.find_or_raise(
        read_story,
        call.path_params["name"],
        deps.router.dialects,
        after=query.after,
        limit=query.limit,
        reader=call.reader,
    )
    return story_page(story, call.now)


class Run(Struct, frozen=True, rename="camel"):
    """One attempt: a claim and its outcome."""

    attempt: int
    agent: str
    fence: int
    status: RunStatus
    started_at: str
    ended_at: str | None
    reason: str | None
    ttl_ms: int
    report: ReportResource | None


class RunsQuery(Query, frozen=True):
    """Filters for attempts."""

    agent: Annotated[AgentFilter, Meta(description="Only this agent's.")] = ""
    status: Annotated[RunStatus, Meta(description="Only in this state.")] | UnsetType = UNSET
    after: Annotated[
        int, Meta(ge=0, le=MAX_SAFE_INTEGER, description="Begin after this attempt, by its number.")
    ] = 0
    limit: Limit = 100


class Runs(Struct, frozen=True):
    """Attempts on a task, oldest first; `next` is the `after` of the next page, or null."""

    task: str
    runs: list[Run]
    next: int | None


async def list_runs(call: Call) -> Runs:
    """List a page of the attempts on a task."""
    query: RunsQuery = call.query
    stream = await call.context.find_or_raise(find_task_stream, call.path_params["name"])
    found = await call.context.read(_read_attempts, stream, query)
    page = found[: query.limit]
    next_after = page[-1].number if found[query.limit :] else None
    return Runs(stream.partition(":")[2], [_to_run(attempt) for attempt in page], next_after)


def _read_attempts(store: Store, stream: str, query: RunsQuery) -> list[Attempt]:
    """Read all matching attempts; a page shows the first of them."""
    entries = stream_entries(store, stream)
    history = build_history((read_line(entry.line).at, decode_event(entry)) for entry in entries)
    return [
        attempt
        for attempt in history.attempts
        if attempt.number > query.after
        and query.agent in ("", attempt.agent)
        and query.status in (UNSET, attempt.status)
    ]


def _to_run(attempt: Attempt) -> Run:
    report = attempt.report or attempt.unreported
    return Run(
        attempt=attempt.number,
        agent=attempt.agent,
        fence=attempt.fence,
        status=attempt.status,
        started_at=to_rfc3339(attempt.started_at),
        ended_at=to_rfc3339(attempt.ended_at) if attempt.ended_at else None,
        reason=attempt.reason or None,
        ttl_ms=attempt.ttl_ms,
        report=report and project(ReportResource, report),
    )


ENDPOINTS = (
    Endpoint("GET", "/v1/tasks", list_tasks, TaskPage, query=TasksQuery),
    Endpoint("GET", "/v1/tasks/{name}", show_task, TaskDetail, query=PastTaskQuery),
    Endpoint(
        "GET",
        "/v1/tasks/{name}/briefing",
        show_briefing,
        BriefingResource,
        other_statuses={204: "There is nothing besides the text of the task."},
    ),
    Endpoint("GET", "/v1/tasks/{name}/events", list_task_events, HistoryPage, query=HistoryQuery),
    Endpoint("GET", "/v1/tasks/{name}/story", show_story, StoryPage, query=StoryQuery),
    Endpoint("GET", "/v1/runs/{name}", list_runs, Runs, query=RunsQuery),
)
