"""Resource schema of the report of a day."""

from msgspec import Struct

from dragoman.core.base import AttentionKind
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.queries.day_report import DayItem, DayKind, DayReport
from dragoman.engine.schemas.numbers import NumbersResource, numbers_resource
from dragoman.engine.schemas.status import AttentionResource, attention_resource


class DayItemResource(Struct, frozen=True):
    """Something that happened on a day."""

    position: int
    at: str
    kind: DayKind
    about: str
    """The task, else the letter, handoff or session."""
    title: str
    """Title of the task."""
    agent: str
    """The agent that reported about the task that day, else the one that has it."""
    text: str
    """Report of its agent that day, else the reason; show it as text."""


class DayReportResource(Struct, frozen=True, rename="camel"):
    """The report of a day (UTC), as far as it has come."""

    day: str
    numbers: NumbersResource
    items: tuple[DayItemResource, ...]
    """In the order of the ledger; of each kind the first ones."""
    counts: dict[DayKind, int]
    """Number of each kind, which may be more than are listed."""
    attention: tuple[AttentionResource, ...]
    """Needs of a person at present."""
    attention_counts: dict[AttentionKind, int]


def day_report_resource(report: DayReport) -> DayReportResource:
    """The resource of the report of a day."""
    return DayReportResource(
        day=day_of(report.begin),
        numbers=numbers_resource(report.numbers),
        items=tuple(map(_item_resource, report.items)),
        counts=report.counts,
        attention=tuple(map(attention_resource, report.attention.items)),
        attention_counts=dict(report.attention.counts),
    )


def day_of(at: int) -> str:
    """Day (UTC) of a time, as 2026-02-09."""
    return to_rfc3339(at).partition("T")[0]


def _item_resource(item: DayItem) -> DayItemResource:
    return DayItemResource(
        position=item.position,
        at=to_rfc3339(item.at),
        kind=item.kind,
        about=item.about,
        title=item.title,
        agent=item.agent,
        text=item.text,
    )
