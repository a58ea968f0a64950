"""Fixture of the HTTP tests: a hub that is served."""

from collections.abc import Generator

import pytest

from tests.surfaces.http.hub_server import HubServer, serving


@pytest.fixture
def server() -> Generator[HubServer]:
    """Give a hub in memory that is served at a free port, with two agents and an observer."""
    with serving(HubServer()) as served:
        served.add_agent("ada")
        served.add_agent("bob")
        served.add_agent("olga", "observer")
        yield served
