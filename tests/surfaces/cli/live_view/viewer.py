"""Live view of a served hub, with keys pressed and the screen read, without a terminal."""

import asyncio
import html
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from msgspec import Struct
from textual.pilot import Pilot
from textual.widgets import Input

from dragoman.core.errors import DragomanError
from dragoman.surfaces.cli.live_view.fleet_app import FleetApp
from dragoman.surfaces.cli.live_view.hub_api import HubApi, HubLocation
from tests.surfaces.http.hub_server import HubServer

_PART = re.compile(r'<text class="[^"]*" x="([^"]*)" y="([^"]*)"[^>]*>([^<]*)</text>')
_CELL_WIDTH = 12.2

SECONDS = 60
"""Limit for what is waited for."""


def location_of(server: HubServer, by: str = "owner") -> HubLocation:
    """Location of a served hub for this caller."""
    return HubLocation(f"http://127.0.0.1:{server.port}", server.tokens[by])


class View(Struct):
    """A live view that runs."""

    app: FleetApp
    pilot: Pilot[DragomanError]

    @property
    def text(self) -> str:
        """All that stands on the screen, without styles."""
        lines = defaultdict[float, str](str)
        for x, y, part in _PART.findall(self.app.export_screenshot()):
            shown = html.unescape(part).replace("\xa0", " ")
            lines[float(y)] = lines[float(y)].ljust(round(float(x) / _CELL_WIDTH)) + shown
        return "\n".join(line.rstrip() for _, line in sorted(lines.items()))

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(SECONDS):
            while not is_so():
                await self.pilot.pause()

    async def see(self, *texts: str) -> None:
        """Wait until these texts stand on the screen."""
        try:
            await self.until(lambda: all(text in self.text for text in texts))
        except TimeoutError:
            raise AssertionError(f"{texts} not in: {self.text}") from None

    async def press(self, *keys: str) -> None:
        """Press keys."""
        await self.pilot.press(*keys)

    async def enter(self, text: str) -> None:
        """Answer the dialog that asks for a text."""
        await self.until(lambda: isinstance(self.app.focused, Input))
        await self.press(*text, "enter")


@asynccontextmanager
async def viewing(
    server: HubServer,
    by: str = "owner",
    *,
    size: tuple[int, int] = (80, 24),
    locate: Callable[[], HubLocation] | None = None,
) -> AsyncGenerator[View]:
    """Open the live view of a hub for this caller."""
    app = FleetApp(HubApi(locate or (lambda: location_of(server, by))))
    async with app.run_test(size=size) as pilot:
        view = View(app, pilot)
        await view.see("● live")
        yield view


def run(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Play a scene to its end."""
    asyncio.run(scene())


async def in_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Call the hub beside the event loop of the view."""
    waiting: Awaitable[Any] = asyncio.to_thread(function, *args)
    return await waiting
