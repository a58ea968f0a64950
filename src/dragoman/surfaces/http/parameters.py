"""Parameters shared by routes: formats of names, paging, and pages of a history.

The formats are only published in OpenAPI; the core checks names, and its refusals say what would be
valid.
"""

from typing import Annotated

from msgspec import Meta, Struct

from dragoman.core.ids import (
    AGENT_PATTERN,
    ALIAS_PATTERN,
    ID_PATTERN,
    SESSION_PATTERN,
    TASK_NAME_PATTERN,
)
from dragoman.core.limits import MAX_PAGE
from dragoman.engine.schemas.tasks import EntryResource, entry_resource
from dragoman.surfaces.http.context import Call
from dragoman.surfaces.http.endpoint import Query

# --- formats of names -------------------------------------------------------------------------

AGENT_PATH_PATTERN = f"^{AGENT_PATTERN}$"

TASK_PATH_PATTERN = f"^{TASK_NAME_PATTERN}$"

HANDOFF_PATH_PATTERN = f"^{ID_PATTERN}$"


def _pattern_meta(pattern: str, max_length: int, description: str = "") -> Meta:
    return Meta(
        max_length=max_length,
        description=description or None,
        extra_json_schema={"pattern": f"^{pattern}$"},
    )


TaskName = Annotated[str, _pattern_meta(TASK_NAME_PATTERN, 300)]

OptionalTaskName = Annotated[str, _pattern_meta(f"(?:{TASK_NAME_PATTERN})?", 300)]
"""A name, or none."""

NewId = Annotated[str, _pattern_meta(ID_PATTERN, 128)]

Alias = Annotated[str, _pattern_meta(ALIAS_PATTERN, 300)]

AgentName = Annotated[str, _pattern_meta(f"(?:{AGENT_PATTERN})?", 257)]

NewAssignee = Annotated[str, _pattern_meta(AGENT_PATTERN, 257)]

Session = Annotated[
    str, _pattern_meta(f"(?:{SESSION_PATTERN})?", 256, "Name of the agent's session.")
]

TaskFilter = Annotated[
    str, _pattern_meta(TASK_NAME_PATTERN, 300, "Only of this task, by any of its names.")
]

AgentFilter = Annotated[str, _pattern_meta(AGENT_PATTERN, 257)]

WordFilter = Annotated[str, _pattern_meta(ID_PATTERN, 128)]
"""A filter is a name, or is left out."""

TaskHistoryFilter = Annotated[
    str,
    _pattern_meta(
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
    found = await call.context.read(
        lambda store: store.history(stream, query.after, query.limit + 1)
    )
    page = found[: query.limit]
    return HistoryPage(
        [entry_resource(entry) for entry in page],
        page[-1].version if found[query.limit :] else None,
    )
