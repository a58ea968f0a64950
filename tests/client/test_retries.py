"""Retries: how long an unreachable hub is retried, by a clock that can be advanced."""

import asyncio
from math import inf

import pytest

from dragoman.client import HubUnreachable
from dragoman.client.transport import NoResponse, Retries
from tests.requirements import proves

pytestmark = proves("SDK-CRASH-SAFE")

NO_RESPONSE = NoResponse("gone")
PATIENCE = 5.0


class ClockedLoop(asyncio.SelectorEventLoop):
    """Event loop with a clock that the test advances."""

    ahead = 0.0

    def time(self) -> float:
        """Return the advanced time."""
        return super().time() + self.ahead


async def _retries_after(wait: float, *seconds: float) -> bool:
    """Report whether it still retries when attempts failed after each of these times."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ClockedLoop)
    retries = Retries("http://hub", "/v1/work", wait, PATIENCE, "seed")
    try:
        for elapsed in seconds:
            loop.ahead += elapsed
            await retries.pause(NO_RESPONSE)
    except HubUnreachable:
        return False
    return True


@pytest.mark.parametrize(
    ("wait", "seconds", "expected"),
    [
        (0.0, (PATIENCE - 1,), True),
        (0.0, (PATIENCE + 1,), False),
        (20.0, (19.0,), True),
        (20.0, (19.0, PATIENCE - 1), True),
        (20.0, (19.0, PATIENCE), False),
        (20.0, (20.0 + PATIENCE,), False),
        (inf, (86_400.0, PATIENCE - 1), True),
        (inf, (86_400.0, PATIENCE), False),
    ],
    ids=[
        "late response",
        "no response",
        "failure during a wait",
        "failure during a wait, back in time",
        "failure during a wait, not back",
        "hanging hub",
        "stream ends after a day",
        "stream ends after a day, for good",
    ],
)
def test_patience_counts_from_the_failure_not_from_the_wait(
    wait: float, seconds: tuple[float, ...], *, expected: bool
) -> None:
    with asyncio.Runner(loop_factory=ClockedLoop) as runner:
        assert runner.run(_retries_after(wait, *seconds)) is expected
