"""What happened to one thing, a page at a time; and how pages are asked for."""

from typing import Annotated

from msgspec import Meta, Struct

from dragoman.core.limits import MAX_PAGE
from dragoman.engine.shown.tasks import EntryResource, entry_resource
from dragoman.surfaces.http.endpoint import Query
from dragoman.surfaces.http.office import Call

Limit = Annotated[int, Meta(ge=1, le=MAX_PAGE, description="How many at most.")]
Cursor = Annotated[
    int, Meta(ge=0, le=2**53 - 1, description="`next` of the page before; else the first.")
]
After = Annotated[int, Meta(ge=0, le=2**53 - 1, description="Begin after this position.")]
AfterVersion = Annotated[
    int,
    Meta(ge=0, le=2**53 - 1, description="Begin after this `version`: no position of the ledger."),
]


class HistoryQuery(Query, frozen=True):
    """Paging of a history."""

    after: AfterVersion = 0
    limit: Limit = 100


class HistoryPage(Struct, frozen=True):
    """The entries of one task, oldest first; `next` is the `after` of the next page, or null."""

    events: list[EntryResource]
    next: int | None


async def history_page(call: Call, stream: str) -> HistoryPage:
    """Read the requested page of a stream, counted by the versions of its own entries."""
    query: HistoryQuery = call.query
    found = await call.context.read(
        lambda store: store.history(stream, query.after, query.limit + 1)
    )
    page = found[: query.limit]
    return HistoryPage(
        [entry_resource(entry) for entry in page],
        page[-1].version if found[query.limit :] else None,
    )
