"""`GET /v1/status`: the whole hub at one moment."""

from dragoman.engine.ports import Store
from dragoman.engine.queries.attention import find_attention
from dragoman.engine.queries.status import find_status
from dragoman.engine.schemas.status import StatusResource, status_resource
from dragoman.surfaces.http.context import Call
from dragoman.surfaces.http.endpoint import Endpoint


async def show_status(call: Call) -> StatusResource:
    """Show who works on what, what waits and for whom, and what needs a person."""
    served, reader, now = call.context.deps.settings.served_names, call.reader, call.now

    def read(store: Store) -> StatusResource:
        attention = find_attention(store, now, served=served, reader=reader)
        return status_resource(find_status(store, now, attention))

    return await call.context.read(read)


ENDPOINTS = (Endpoint("GET", "/v1/status", show_status, StatusResource),)
