"""A hub that is served, for the tests of the door."""

from collections.abc import Generator

import pytest

from tests.surfaces.http.hub_server import HubServer, serving


@pytest.fixture
def server() -> Generator[HubServer]:
    """Give a hub in memory that is served at a free port, with an agent and an observer."""
    with serving(HubServer()) as served:
        served.add_agent("ada")
        served.add_agent("bob")
        served.add_agent("olga", "observer")
        yield served
