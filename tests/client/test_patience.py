"""For how long a hub that does not answer is asked again, by a clock that can be set ahead."""

import asyncio
from math import inf

import pytest

from dragoman.client import HubUnreachable
from dragoman.client.answers import Silence
from dragoman.client.wire import Trying
from tests.requirements import proves

pytestmark = proves("SDK-CRASH-SAFE")

GONE = Silence("gone")
PATIENCE = 5.0


class Loop(asyncio.SelectorEventLoop):
    """Runs on a clock that the test sets ahead."""

    ahead = 0.0

    def time(self) -> float:
        """The time, and what it was set ahead by."""
        return super().time() + self.ahead


async def _is_patient(wait: float, *seconds: float) -> bool:
    """Whether there is still patience when something failed after each of these times."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, Loop)
    trying = Trying("http://hub", "/v1/work", wait, PATIENCE, "seed")
    try:
        for passed in seconds:
            loop.ahead += passed
            await trying.pause(GONE)
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
        "an answer that is late",
        "one that comes no more",
        "a hub that dies while we wait for work",
        "and is back in time",
        "and is not",
        "a hub that hangs",
        "a stream that ends after a day",
        "and for good",
    ],
)
def test_patience_begins_with_the_failure_and_not_with_the_wait(
    wait: float, seconds: tuple[float, ...], *, expected: bool
) -> None:
    with asyncio.Runner(loop_factory=Loop) as runner:
        assert runner.run(_is_patient(wait, *seconds)) is expected


def test_what_went_well_begins_it_anew() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Loop)
        trying = Trying("http://hub", "/v1/stream", inf, PATIENCE, "seed")
        for _ in range(3):
            await trying.pause(GONE)
            loop.ahead += PATIENCE
            trying.went_well()
        loop.ahead += PATIENCE
        await trying.pause(GONE)

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(story())
