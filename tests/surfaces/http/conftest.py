"""A hub that is served, for the tests of the door."""

from collections.abc import Generator

import pytest

from tests.surfaces.http.house import House, serving


@pytest.fixture
def house() -> Generator[House]:
    """Give a hub in memory that is served at a free port, with an agent and an observer."""
    with serving(House()) as served:
        served.welcome("ada")
        served.welcome("bob")
        served.welcome("olga", "observer")
        yield served
