"""What the tests of this door share: a hub with MCP behind its real HTTP door."""

from collections.abc import Generator

import pytest

from dragoman.config import ProfileSettings
from tests.surfaces.http.house import House, serving
from tests.surfaces.mcp.stand import furnish

PROFILES = {
    "night": ProfileSettings(("claim", "complete", "aof")),
    "eve": ProfileSettings(("read",)),
}


@pytest.fixture(scope="module")
def house() -> Generator[House]:
    """Give a hub that runs, with agents, an observer and profiles."""
    with serving(furnish(House(), PROFILES)) as served:
        for name in ("ada", "bob", "eve"):
            served.welcome(name)
        served.welcome("olga", "observer")
        yield served
