"""`GET /v1/tasks/{name}/questions/{question}`: one question, with a long poll for its answer."""

from typing import Annotated

from msgspec import Meta

from dragoman.core.ids import task_stream
from dragoman.engine.queries.questions import QuestionView, find_question
from dragoman.engine.schemas.tasks import QuestionDetail, question_detail
from dragoman.surfaces.http.context import MAX_WAIT_MS, AppContext, Call, open_waiter
from dragoman.surfaces.http.endpoint import Endpoint, Query
from dragoman.surfaces.http.fanout import EntryFilter, Waiter


class QuestionQuery(Query, frozen=True):
    """Time to wait while the question is open."""

    wait: Annotated[
        int,
        Meta(ge=0, le=MAX_WAIT_MS, description="How long to wait for its answer, in ms."),
    ] = 0


async def show_question(call: Call) -> QuestionDetail:
    """Show a question; while it is open, wait for its answer. The wait renews no lease."""
    query: QuestionQuery = call.query
    view = await _find(call)
    if not query.wait or view.state != "open":
        return question_detail(view)
    context, stream = call.context, task_stream(view.task.id)
    end = context.deps.monotonic() + query.wait / 1_000
    async with open_waiter(context, call.request) as waiter:
        is_over = False
        while not is_over:
            seen_head = context.feed.head
            view = await _find(call)
            is_over = view.state != "open" or await _has_ended(
                context, waiter, stream, seen_head, end
            )
    return question_detail(view)


async def _find(call: Call) -> QuestionView:
    names = call.path_params
    return await call.context.find_or_raise(find_question, names["name"], names["question"])


async def _has_ended(
    context: AppContext, waiter: Waiter, stream: str, after: int, end: float
) -> bool:
    """Wait for an entry of a stream after a position; True if the time is up before, or the caller
    has gone."""
    entry_filter = EntryFilter(stream)
    while not waiter.is_closed and (left := end - context.deps.monotonic()) > 0:
        frames = context.feed.kept_frames(after, entry_filter)
        if frames is None or any(frame.stream == stream for frame in frames):
            return False
        after = context.feed.head
        await waiter.wait(left)
    return True


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/tasks/{name}/questions/{question}",
        show_question,
        QuestionDetail,
        query=QuestionQuery,
    ),
)
