"""Those who wait at the door, each in a thread of its own."""

import threading
from typing import Any

from tests.surfaces.http.house import Answer, House


def asking(house: House, *asked: Any, by: str) -> tuple[threading.Thread, list[Answer]]:
    """Somebody who asks in a thread of its own, and what it is answered."""
    got: list[Answer] = []
    thread = threading.Thread(target=lambda: got.append(house.ask(*asked, by=by)))
    thread.start()
    return thread, got


def until_seats(house: House, count: int) -> None:
    """Until so many wait."""
    while house.app.office.feed.seats != count:
        house.ask("GET", "/healthz", by="")
