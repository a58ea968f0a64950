"""Report of a day as Markdown, and as one HTML page without scripts that opens without a hub.

Both are made of the same tables. Titles and words come from agents: in Markdown their marks are
escaped, in HTML every character that could act.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from msgspec import Struct

from dragoman.core.timestamps import format_rough_duration, to_rfc3339
from dragoman.engine.queries.attention import AttentionItem
from dragoman.engine.queries.day_report import DayItem, DayKind, DayReport
from dragoman.engine.queries.numbers import DAY_MS
from dragoman.engine.schemas.day_report import day_of
from dragoman.files.markdown import escape_line
from dragoman.surfaces.story_text import MARKS, html_page, safe_html

# --- tables -----------------------------------------------------------------------------------


class _Table(Struct, frozen=True):
    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


_KINDS: Final[dict[DayKind, str]] = {
    "finished": "Finished",
    "failed": "Failed attempts",
    "given_up": "Given up",
    "escalated": "Escalated",
}


def _tables(report: DayReport) -> Iterator[_Table]:
    yield _Table("In numbers", ("", ""), tuple(_figures(report)))
    if report.numbers.agents:
        yield _agent_table(report)
    for kind, heading in _KINDS.items():
        rows = tuple(_item_row(item) for item in report.items if item.kind == kind)
        more = report.counts.get(kind, 0) - len(rows)
        if rows:
            note = f"and {more} more" if more else ""
            yield _Table(heading, ("At", "About", "Agent", "Title", "Said"), rows, note)
    waits = tuple(map(_need_row, report.attention.items))
    if waits:
        more = report.attention.total - len(waits)
        heading = f"Waits for a person at {to_rfc3339(report.numbers.now)}"
        columns = ("Kind", "Since", "About", "Matter", "Command")
        yield _Table(heading, columns, waits, f"and {more} more" if more else "")


def _figures(report: DayReport) -> Iterator[tuple[str, str]]:
    total = report.numbers.total
    yield "Tasks finished", f"{total.finished}"
    yield "Attempts begun", f"{total.attempts}"
    yield "Attempts failed", f"{total.failures}"
    yield "Tasks given up", f"{total.given_up}"
    yield "Escalations", f"{report.counts.get('escalated', 0)}"
    yield "Questions asked", f"{total.questions}"
    if total.answers:
        yield "Questions answered", _with_mean(total.answers, total.answer_ms)
    if total.reviews:
        yield "Reviews ended", _with_mean(total.reviews, total.review_ms)
    if total.tokens:
        yield "Tokens, as agents report them", _format_amount(total.tokens)
    if total.cost:
        yield "Cost, as agents report it", _format_amount(total.cost)


def _with_mean(count: int, ms: int) -> str:
    return f"{count}, after {format_rough_duration(ms // count)} on average"


def _format_amount(amount: float) -> str:
    return f"{round(amount, 6):,}".removesuffix(".0")


def _agent_table(report: DayReport) -> _Table:
    total = report.numbers.total
    amounts = tuple(name for name in ("tokens", "cost") if getattr(total, name))
    rows = tuple(
        (
            name,
            *map(str, (one.attempts, one.finished, one.failures, one.questions)),
            *(_format_amount(getattr(one, amount)) for amount in amounts),
        )
        for name, one in report.numbers.agents
    )
    columns = ("Agent", "Attempts", "Finished", "Failed", "Questions")
    return _Table("By agent", (*columns, *map(str.capitalize, amounts)), rows)


def _item_row(item: DayItem) -> tuple[str, ...]:
    return to_rfc3339(item.at)[11:19], item.about, item.agent, item.title, item.text


def _need_row(item: AttentionItem) -> tuple[str, ...]:
    about = item.task or item.agent
    kind = item.kind.replace("_", " ")
    return kind, to_rfc3339(item.since), about, item.text, item.command


def _title(report: DayReport) -> str:
    return f"Report of {day_of(report.begin)} (UTC)"


def _remarks(report: DayReport) -> Iterator[str]:
    numbers = report.numbers
    if numbers.now < report.begin + DAY_MS:
        yield f"The day as far as it has come, at {to_rfc3339(numbers.now)}."
    if numbers.since > report.begin:
        yield f"The numbers are counted from {to_rfc3339(numbers.since)} on."


# --- Markdown ---------------------------------------------------------------------------------


def day_as_markdown(report: DayReport) -> Iterator[str]:
    """Lines of the report as Markdown."""
    yield f"# {_title(report)}"
    for remark in _remarks(report):
        yield from ("", remark)
    for table in _tables(report):
        yield from ("", f"## {table.heading}", "")
        yield _markdown_row(table.columns)
        yield _markdown_row("---" for _ in table.columns)
        for row in table.rows:
            yield _markdown_row(escape_line(cell, MARKS) for cell in row)
        if table.note:
            yield from ("", table.note)


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


# --- HTML -------------------------------------------------------------------------------------


def day_as_html(report: DayReport) -> str:
    """The report as one page: no script, nothing loaded from elsewhere."""
    remarks = (f"<p>{remark}</p>\n" for remark in _remarks(report))
    return html_page(_title(report), "".join(chain(remarks, map(_html_table, _tables(report)))))


def _html_table(table: _Table) -> str:
    head = "".join(f"<th>{name}</th>" for name in table.columns)
    rows = "".join(
        f"<tr>{''.join(f'<td>{safe_html(cell)}</td>' for cell in row)}</tr>\n" for row in table.rows
    )
    note = f"<p>{table.note}</p>\n" if table.note else ""
    return f"<h2>{table.heading}</h2>\n<table>\n<tr>{head}</tr>\n{rows}</table>\n{note}"
