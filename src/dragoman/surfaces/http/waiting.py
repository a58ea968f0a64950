"""Waiting: a seat for whoever asks, until it has gone or may no longer be told anything."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.requests import Request

from dragoman.surfaces.http.departure import until_gone
from dragoman.surfaces.http.office import Office
from dragoman.surfaces.http.seat import Seat

MOST_WAIT_MS = 60_000
"""Maximum time of a long poll."""


@asynccontextmanager
async def waiting(office: Office, request: Request) -> AsyncGenerator[Seat]:
    """Open a waiter for the caller of a request whose body has been read."""
    scope = request.scope
    async with office.feed.seat() as seat, until_gone(request.receive, seat):
        with office.stays.stay(scope["principal"], scope["token"], seat.leave):
            yield seat
