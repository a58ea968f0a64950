"""`GET /v1/numbers`: what the last days brought, counted from the ledger."""

import asyncio
from typing import Annotated

from msgspec import Meta

from dragoman.engine.queries.numbers import MAX_DAYS
from dragoman.engine.schemas.numbers import NumbersResource, numbers_resource
from dragoman.surfaces.http.context import Call
from dragoman.surfaces.http.endpoint import Endpoint, Query


class NumbersQuery(Query, frozen=True):
    """The days that are counted."""

    days: Annotated[int, Meta(ge=1, le=MAX_DAYS, description="The last so many days.")] = MAX_DAYS


async def show_numbers(call: Call) -> NumbersResource:
    """Show by the hour what was finished, what failed, what waited for a person, and the cost."""
    numbers = await asyncio.to_thread(call.context.numbers.read, call.now, call.query.days)
    return numbers_resource(numbers)


ENDPOINTS = (Endpoint("GET", "/v1/numbers", show_numbers, NumbersResource, query=NumbersQuery),)
