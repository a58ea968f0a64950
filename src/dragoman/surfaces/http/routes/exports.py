"""Exports over HTTP: the report of a day, and stories, also as one HTML page for keeping."""

from typing import Annotated
from urllib.parse import quote

from msgspec import Meta
from starlette.responses import Response

from dragoman.core.errors import Refusal
from dragoman.core.timestamps import parse_rfc3339
from dragoman.engine.ports import Store
from dragoman.engine.queries.attention import find_attention
from dragoman.engine.queries.day_report import DayReport, read_day
from dragoman.engine.queries.numbers import DAY_MS
from dragoman.engine.queries.story import Story, StoryItem, read_story, whole_story
from dragoman.engine.schemas.day_report import DayReportResource, day_of, day_report_resource
from dragoman.surfaces.day_report_text import day_as_html
from dragoman.surfaces.http.context import Call
from dragoman.surfaces.http.endpoint import Endpoint, Query
from dragoman.surfaces.http.errors import problem_error
from dragoman.surfaces.story_text import story_as_html

HTML = "text/html"

_ITEMS_PER_READ = 1_000


class DayQuery(Query, frozen=True):
    """The day of a report."""

    day: Annotated[
        str,
        Meta(
            max_length=10,
            description="The day (UTC), such as 2026-02-09; else today.",
            extra_json_schema={"format": "date"},
        ),
    ] = ""


async def show_day_report(call: Call) -> DayReportResource:
    """Report a day: what was finished, failed, given up and escalated, by whom and at what cost."""
    return day_report_resource(await _read_day(call))


async def export_day_report(call: Call) -> Response:
    """Report a day as one HTML page that opens without a hub."""
    report = await _read_day(call)
    return _to_page(day_as_html(report), f"report-{day_of(report.begin)}")


async def _read_day(call: Call) -> DayReport:
    now, reader = call.now, call.reader
    begin = _parse_day(call.query.day) if call.query.day else now - now % DAY_MS
    served = call.context.deps.settings.served_names

    def read(store: Store) -> DayReport:
        attention = find_attention(store, now, served=served, reader=reader)
        return read_day(store, begin, now, attention, reader)

    return await call.context.read(read)


def _parse_day(text: str) -> int:
    try:
        return parse_rfc3339(f"{text}T00:00:00Z")
    except ValueError:
        detail = f"{text!a} is not a day: write it like 2026-02-09"
        raise problem_error("invalid_request", detail, "day") from None


async def export_story(call: Call) -> Response:
    """Tell the whole story of a task as one HTML page that opens without a hub."""
    name, reader = call.path_params["name"], call.reader
    dialects = call.context.deps.router.dialects

    def read(store: Store) -> tuple[Story, tuple[StoryItem, ...]] | Refusal:
        def read_after(after: int) -> Story | Refusal:
            return read_story(
                store, name, dialects, after=after, limit=_ITEMS_PER_READ, reader=reader
            )

        first = read_after(0)
        if isinstance(first, Refusal):
            return first
        return first, tuple(whole_story(first, read_after))

    story, items = await call.context.find_or_raise(read)
    task = story.task.task
    return _to_page(story_as_html(task, items), f"story-{task.id}")


def _to_page(html: str, name: str) -> Response:
    """Response with a page to be kept: beside the pages of the hub, nothing in it may act."""
    headers = {
        "content-disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}.html",
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    }
    return Response(html, headers=headers, media_type=HTML)


ENDPOINTS = (
    Endpoint("GET", "/v1/report", show_day_report, DayReportResource, query=DayQuery),
    Endpoint("GET", "/v1/report.html", export_day_report, query=DayQuery, media_type=HTML),
    Endpoint("GET", "/v1/tasks/{name}/story.html", export_story, media_type=HTML),
)
