"""`POST /v1/work`: a long poll that returns a claimed task."""

from typing import Annotated, Any

from msgspec import Meta
from starlette.responses import Response

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.attempt import ClaimTask, ReleaseTask
from dragoman.core.errors import Refused
from dragoman.core.read import Receipt
from dragoman.engine.schemas.briefing import ClaimedTask
from dragoman.surfaces.http.context import MAX_WAIT_MS, AppContext, Call, open_waiter
from dragoman.surfaces.http.endpoint import Endpoint
from dragoman.surfaces.http.fanout import Waiter
from dragoman.surfaces.http.routes.task_actions import (
    ClaimBody,
    claim_command,
    claim_response,
)

_DISCONNECTED = "the agent disconnected before it got the task"


class WaitForWorkBody(ClaimBody, frozen=True, kw_only=True):
    """The agent that wants a task, and how long it waits for one."""

    wait_ms: Annotated[int, Meta(ge=0, le=MAX_WAIT_MS, description="How long to wait, in ms.")] = 0


async def wait_for_work(call: Call) -> Any:
    """Claim the next ready task for an agent; 204 if there was none in time."""
    body: WaitForWorkBody = call.body
    context, timeouts = call.context, call.context.deps.timeouts
    command = claim_command(call, "", body)
    end = context.deps.monotonic() + body.wait_ms / 1_000
    async with open_waiter(context, call.request) as waiter:
        while not waiter.is_closed:
            seen_position = context.feed.last_ready_position
            # A hub that stops gives out no more work; the caller waits, and asks the next one.
            receipt = None if context.deps.is_stopping() else await _claim_next(call, command)
            if receipt is not None:
                answer = await claim_response(call, command, receipt)
                if not waiter.disconnected or call.key:
                    # Under a key it repeats its request, and gets the same answer.
                    return answer
                release = ReleaseTask(receipt.task, _DISCONNECTED, receipt.fence)
                await context.submit(HUB_ACTOR, release)
                break
            now = context.deps.monotonic()
            if now >= end:
                break
            await _wait_until_ready(
                context, waiter, seen_position, min(end, now + timeouts.claim_retry)
            )
    return Response(status_code=204)


async def _claim_next(call: Call, command: ClaimTask) -> Receipt | None:
    try:
        accepted = await call.submit(command)
    except Refused as refused:
        if refused.code != "nothing_ready":
            raise
        return None
    return accepted.receipts[0]


async def _wait_until_ready(
    context: AppContext, waiter: Waiter, seen_position: int, until: float
) -> None:
    """Wait until there may be work, or until that time."""
    feed, monotonic = context.feed, context.deps.monotonic
    while (
        feed.last_ready_position == seen_position
        and not waiter.is_closed
        and (left := until - monotonic()) > 0
    ):
        await waiter.wait(left)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/work",
        wait_for_work,
        ClaimedTask,
        body=WaitForWorkBody,
        other_statuses={204: "No task was ready in that time."},
    ),
)
