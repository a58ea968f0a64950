"""Tasks over HTTP: list, show, history, runs."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from dragoman.core.base import Status
from dragoman.core.limits import MAX_SAFE_INTEGER
from dragoman.core.read import Receipt
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import Store
from dragoman.engine.queries.entries import decode_event, stream_entries
from dragoman.engine.queries.tasks import TaskFilter, find_task, find_task_stream, page_of_tasks
from dragoman.engine.schemas.tasks import (
    ReportResource,
    TaskDetail,
    TaskSummary,
    report_resource,
    task_detail,
    task_summary,
)
from dragoman.files.attempt_history import Attempt, RunStatus, build_history
from dragoman.ledger.entry import read_line
from dragoman.surfaces.http.context import Call
from dragoman.surfaces.http.endpoint import Endpoint, Query
from dragoman.surfaces.http.errors import problem_error
from dragoman.surfaces.http.parameters import (
    AgentFilter,
    Cursor,
    HistoryPage,
    HistoryQuery,
    Limit,
    history_page,
)


class TasksQuery(Query, frozen=True):
    """Filters for a list of tasks."""

    status: Annotated[Status, Meta(description="Only in this status.")] | UnsetType = UNSET
    assignee: Annotated[str, Meta(description="Only this agent's.", max_length=300)] = ""
    ready: Annotated[bool, Meta(description="Only what can be claimed now.")] = False
    limit: Limit = 50
    cursor: Cursor | UnsetType = UNSET


class TaskPage(Struct, frozen=True):
    """Tasks, newest first; `next` is the cursor of the next page, null after the last one."""

    tasks: list[TaskSummary]
    next: int | None


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
    )
    now = call.now
    page = await call.context.read(page_of_tasks, page_query, now)
    return TaskPage([task_summary(view.task, view.lease, now) for view in page.tasks], page.next)


async def show_task(call: Call) -> TaskDetail:
    """Show one task by any of its names."""
    view = await call.context.find_or_raise(find_task, call.path_params["name"])
    return task_detail(view.task, view.lease, call.now)


async def task_after(call: Call, receipt: Receipt) -> TaskDetail:
    """Show a task as it was after a request; a repeat is answered as the first time (S-IDEM)."""
    view = await call.context.find_or_raise(find_task, receipt.task, receipt.version)
    return task_detail(view.task, view.lease, call.now)


async def list_task_events(call: Call) -> HistoryPage:
    """List the entries of a task; counted by their version in its own stream."""
    return await history_page(
        call, await call.context.find_or_raise(find_task_stream, call.path_params["name"])
    )


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
        report=report and report_resource(report),
    )


ENDPOINTS = (
    Endpoint("GET", "/v1/tasks", list_tasks, TaskPage, query=TasksQuery),
    Endpoint("GET", "/v1/tasks/{name}", show_task, TaskDetail),
    Endpoint("GET", "/v1/tasks/{name}/events", list_task_events, HistoryPage, query=HistoryQuery),
    Endpoint("GET", "/v1/runs/{name}", list_runs, Runs, query=RunsQuery),
)
