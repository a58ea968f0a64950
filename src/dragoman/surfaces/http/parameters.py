"""Parameters shared by routes: names in paths and filters, paging, and pages of a history."""

import asyncio
from typing import Annotated

from msgspec import Meta, Struct

from dragoman.core.ids import AGENT_PATTERN, ID_PATTERN, TASK_NAME_PATTERN
from dragoman.core.limits import MAX_PAGE
from dragoman.engine.schemas.name_formats import pattern_meta
from dragoman.engine.schemas.tasks import EntryResource, shown_resource
from dragoman.surfaces.http.context import Call
from dragoman.surfaces.http.endpoint import Query

# --- names in paths and filters ---------------------------------------------------------------

AGENT_PATH_PATTERN = f"^{AGENT_PATTERN}$"

TASK_PATH_PATTERN = f"^{TASK_NAME_PATTERN}$"

HANDOFF_PATH_PATTERN = f"^{ID_PATTERN}$"

QUESTION_PATH_PATTERN = "^q[1-9][0-9]{0,15}$"

TaskFilter = Annotated[
    str, pattern_meta(TASK_NAME_PATTERN, 300, "Only of this task, by any of its names.")
]

AgentFilter = Annotated[str, pattern_meta(AGENT_PATTERN, 257)]

WordFilter = Annotated[str, pattern_meta(ID_PATTERN, 128)]
"""A filter is a name, or is left out."""

TaskHistoryFilter = Annotated[
    str,
    pattern_meta(
        TASK_NAME_PATTERN,
        300,
        "Only the history of this task itself, by any of its names. Refusals are in the stream of "
        "their caller; mail, handoffs and intents about the task have streams of their own.",
    ),
]


# --- paging and histories ---------------------------------------------------------------------

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
    found = await asyncio.to_thread(
        call.context.entries.history, stream, query.after, query.limit + 1
    )
    page, reader = found[: query.limit], call.reader
    return HistoryPage(
        [shown_resource(entry, audience, reader) for entry, audience in page],
        page[-1][0].version if found[query.limit :] else None,
    )
