"""Those who wait at the door, each in a thread of its own."""

import threading
from typing import Any

from tests.surfaces.http.hub_server import HubServer, Response


def request_in_background(
    server: HubServer, *request: Any, by: str
) -> tuple[threading.Thread, list[Response]]:
    """Somebody who asks in a thread of its own, and what it is answered."""
    received: list[Response] = []
    thread = threading.Thread(target=lambda: received.append(server.request(*request, by=by)))
    thread.start()
    return thread, received


def wait_for_waiters(server: HubServer, count: int) -> None:
    """Until so many wait."""
    while server.app.office.feed.seats != count:
        server.request("GET", "/healthz", by="")
