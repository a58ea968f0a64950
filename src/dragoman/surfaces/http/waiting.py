"""Waiting: a seat for whoever asks, until it has gone or may no longer be told anything."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.requests import Request

from dragoman.surfaces.http.departure import watch_disconnect
from dragoman.surfaces.http.office import AppContext
from dragoman.surfaces.http.seat import Waiter

MAX_WAIT_MS = 60_000
"""Maximum time of a long poll."""


@asynccontextmanager
async def open_waiter(context: AppContext, request: Request) -> AsyncGenerator[Waiter]:
    """Open a waiter for the caller of a request whose body has been read."""
    scope = request.scope
    async with context.feed.open_waiter() as waiter, watch_disconnect(request.receive, waiter):
        with context.stream_limits.admit(scope["principal"], scope["token"], waiter.close):
            yield waiter
