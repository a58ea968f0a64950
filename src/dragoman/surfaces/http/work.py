"""`POST /v1/work`: an agent waits for a task and gets it, claimed."""

from typing import Annotated, Any

from msgspec import Meta
from starlette.responses import Response

from dragoman.core.actors import SYSTEM
from dragoman.core.commands import ClaimTask, ReleaseTask
from dragoman.core.errors import Refused
from dragoman.core.reading import Receipt
from dragoman.surfaces.http.actions import Claim, Claimed, claim_command, claimed
from dragoman.surfaces.http.endpoint import Endpoint
from dragoman.surfaces.http.office import Call, Office
from dragoman.surfaces.http.seat import Seat
from dragoman.surfaces.http.waiting import MOST_WAIT_MS, waiting

_GONE = "the agent disconnected before it got the task"


class Work(Claim, frozen=True, kw_only=True):
    """The agent that wants a task, and how long it waits for one."""

    wait_ms: Annotated[int, Meta(ge=0, le=MOST_WAIT_MS, description="How long to wait, in ms.")] = 0


async def work(call: Call) -> Any:
    """Claim the next ready task for an agent; 204 if there was none in time."""
    asked: Work = call.body
    office, patience = call.office, call.office.door.patience
    command = claim_command(call, "", asked)
    end = office.door.monotonic() + asked.wait_ms / 1_000
    async with waiting(office, call.request) as seat:
        while not seat.gone:
            seen = office.feed.made_ready
            # A hub that stops gives out no more work; the caller waits, and asks the next one.
            receipt = None if office.door.is_stopping() else await _taken(call, command)
            if receipt is not None:
                answer = await claimed(call, command, receipt)
                if not seat.hung_up or call.key:
                    # Under a key it repeats its request, and gets the same answer.
                    return answer
                back = ReleaseTask(receipt.task, _GONE, receipt.fence)
                await office.do(SYSTEM, back)
                break
            now = office.door.monotonic()
            if now >= end:
                break
            await _wait(office, seat, seen, min(end, now + patience.retry))
    return Response(status_code=204)


async def _taken(call: Call, command: ClaimTask) -> Receipt | None:
    try:
        accepted = await call.do(command)
    except Refused as refused:
        if refused.code != "nothing_ready":
            raise
        return None
    return accepted.receipts[0]


async def _wait(office: Office, seat: Seat, seen: int, until: float) -> None:
    """Wait until there may be work, or until that time."""
    feed, monotonic = office.feed, office.door.monotonic
    while feed.made_ready == seen and not seat.gone and (left := until - monotonic()) > 0:
        await seat.wait(left)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/work",
        "Wait for a task and take it",
        work,
        Claimed,
        body=Work,
        others={204: "No task was ready in that time."},
    ),
)
