"""Requests that block, each in a thread of its own."""

import threading
from typing import Any

from tests.surfaces.http.hub_server import HubServer, Response


def request_in_background(
    server: HubServer, *request: Any, by: str
) -> tuple[threading.Thread, list[Response]]:
    """Send a request from a new thread; return it and the list that gets the response."""
    received: list[Response] = []
    thread = threading.Thread(target=lambda: received.append(server.request(*request, by=by)))
    thread.start()
    return thread, received


def wait_for_waiters(server: HubServer, count: int) -> None:
    """Block until this many streams and long polls are open."""
    while server.app.context.feed.waiter_count != count:
        server.request("GET", "/healthz", by="")
