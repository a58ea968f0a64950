"""`POST /v1/work`: an agent waits for a task and gets it, claimed."""

from typing import Annotated, Any

from msgspec import Meta
from starlette.responses import Response

from dragoman.core.errors import Refused
from dragoman.surfaces.http.actions import Claim, Claimed, claim_command, claimed
from dragoman.surfaces.http.departure import until_gone
from dragoman.surfaces.http.endpoint import Endpoint
from dragoman.surfaces.http.feed import Feed, Seat
from dragoman.surfaces.http.office import Call

MOST_WAIT_MS = 60_000


class Work(Claim, frozen=True, kw_only=True):
    """Who wants a task, and how long it waits for one."""

    wait_ms: Annotated[int, Meta(ge=0, le=MOST_WAIT_MS, description="How long to wait, in ms.")] = 0


async def work(call: Call) -> Any:
    """The next task that is ready for an agent, in its hands; 204 when there was none in time."""
    asked: Work = call.body
    office, patience = call.office, call.office.door.patience
    command = claim_command(call, "", asked)
    end = office.door.monotonic() + asked.wait_ms / 1_000
    async with office.feed.seat() as seat, until_gone(call.request.receive, seat):
        while not seat.gone:
            seen = office.feed.made_ready
            try:
                accepted = await office.do(call.principal.actor, command, key=call.key)
            except Refused as refused:
                if refused.code != "nothing_ready":
                    raise
            else:
                return await claimed(call, command, accepted.receipts[0])
            left = end - office.door.monotonic()
            if left <= 0:
                break
            await _wait(office.feed, seat, seen, min(left, patience.retry))
    return Response(status_code=204)


async def _wait(feed: Feed, seat: Seat, seen: int, seconds: float) -> None:
    """Until something happened after which there may be work, or so many seconds have passed."""
    while await seat.wait(seconds) and feed.made_ready == seen and not seat.gone:
        continue


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/work",
        "Wait for a task and take it",
        work,
        Claimed,
        body=Work,
        others={204: "There was nothing to do in that time."},
    ),
)
