"""A hub with MCP behind its real HTTP door, for tests and for the conformance suite.

`python -m tests.surfaces.mcp.stand` serves the test profile until its standard input ends, and
prints the address of it. The suite shows no token, so there everyone is taken for the owner.
"""

import sys
from collections.abc import Mapping
from typing import Any, cast

from starlette.types import Receive, Scope, Send

from dragoman.config import ProfileSettings
from dragoman.surfaces.http.app import HttpApp, build_app
from dragoman.surfaces.mcp import resources
from dragoman.surfaces.mcp.desk import HubRoom
from dragoman.surfaces.mcp.http import McpApp, caller
from dragoman.surfaces.mcp.mount import PATH, LateApp
from dragoman.surfaces.mcp.profiles import Profiles
from dragoman.surfaces.mcp.server import Tables, build_server
from dragoman.surfaces.mcp.tools import table
from tests.surfaces.http.house import OWNER_TOKEN, House, serving
from tests.surfaces.mcp import fixtures

VERSION = "0"


def furnish(
    house: House,
    profiles: Mapping[str, ProfileSettings] | None = None,
    *,
    with_fixtures: bool = False,
) -> House:
    """The house, with MCP in it."""
    door = house.door
    more, shelves = (fixtures.TOOLS, fixtures.SHELVES) if with_fixtures else ((), ())
    tools = table(door.interpreter.dialects, more)
    chosen = Profiles(tools, profiles or {})

    def load() -> McpApp:
        room = HubRoom(door.hub, door.interpreter, door.settings)
        tables = Tables(tools, (*resources.SHELVES, *shelves), chosen)
        server = build_server(room, tables, caller, VERSION)
        if with_fixtures:
            fixtures.equip(server)
        return McpApp(server, chosen.names, door.settings.http.max_body, door.patience)

    house.app = build_app(door, {PATH: LateApp(load)})
    return house


class Trusting:
    """An application that takes everyone for the owner."""

    def __init__(self, app: HttpApp) -> None:
        self._app = app
        self.office = app.office
        self.close = app.close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as if it had shown the owner's token."""
        shown = (b"authorization", f"Bearer {OWNER_TOKEN}".encode())
        await self._app({**scope, "headers": [*scope["headers"], shown]}, receive, send)


def main() -> None:
    """Serve until standard input ends."""
    house = furnish(House(), with_fixtures=True)
    house.app = cast(Any, Trusting(house.app))
    with serving(house):
        sys.stdout.write(f"http://127.0.0.1:{house.port}{PATH}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
