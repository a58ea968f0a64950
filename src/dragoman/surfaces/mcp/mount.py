"""Mount point of MCP in the HTTP surface: the application is loaded with its first request.

The SDK takes a second and 25 MB, which a hub that nobody calls by MCP need not spend.
"""

import asyncio
from collections.abc import Callable

from starlette.types import Receive, Scope, Send

from dragoman.surfaces.http.app import MountedApp

PATH = "/mcp"


class LazyApp:
    """An application that is loaded with its first request."""

    def __init__(self, load: Callable[[], MountedApp]) -> None:
        self._load = load
        self._loading = asyncio.Lock()
        self._app: MountedApp | None = None
        self._is_closed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        async with self._loading:
            if self._app is None:
                self._app = await asyncio.to_thread(self._load)
                if self._is_closed:
                    self._app.close()
        await self._app(scope, receive, send)

    def close(self) -> None:
        """End its streams, if it has any; there will be no more."""
        self._is_closed = True
        if self._app is not None:
            self._app.close()
