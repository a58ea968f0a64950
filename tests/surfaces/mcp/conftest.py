"""Fixture of the MCP tests: a hub with MCP behind its HTTP server."""

from collections.abc import Generator

import pytest

from tests.surfaces.http.hub_server import HubServer, serving
from tests.surfaces.mcp.mcp_hub import mount_mcp


@pytest.fixture(scope="module")
def server() -> Generator[HubServer]:
    """Give a running hub with agents, and an observer."""
    with serving(mount_mcp(HubServer())) as served:
        for name in ("ada", "bob", "eve"):
            served.add_agent(name)
        served.add_agent("olga", "observer")
        yield served
