"""The story of a task as Markdown, and as one HTML page without scripts that opens without a hub.

Titles, names and words come from agents. In Markdown their words stand in fenced blocks; in HTML
every character that could act is escaped. Control, bidi and invisible characters are replaced.
"""

import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Final, TypeVar

from msgspec import UnsetType
from msgspec.structs import replace

from dragoman.core.task_state import Task
from dragoman.core.timestamps import format_duration, to_rfc3339
from dragoman.engine.queries.story import StoryItem
from dragoman.engine.schemas.story import StoryItemResource
from dragoman.files.markdown import escape_line
from dragoman.text.safe_text import safe_text

# --- items ------------------------------------------------------------------------------------

Item = TypeVar("Item", StoryItem, StoryItemResource)

_CHUNKED: Final = frozenset(("thought", "terminal"))
"""Kinds of items that are pieces of one text."""

_SEPARATORS: Final = {"thought": "", "terminal": "\n"}


_PROGRESS: Final = frozenset[str](("task.progressed", "intent.updated"))
"""Events by which one request records the same progress with a task and with its intent."""


def join_chunks(items: Iterable[Item]) -> Iterator[Item]:
    """Join pieces of a thought or of a terminal's output that follow each other, and show progress
    once that a task and its intent both have.
    """
    last: Item | None = None
    for item in items:
        is_same = last is not None and last.cause == item.cause
        if last is not None and is_same and frozenset((last.type, item.type)) == _PROGRESS:
            continue
        if last is not None and item.kind in _CHUNKED and _continues(last, item):
            text = f"{last.text}{_SEPARATORS[item.kind]}{item.text}"
            last = replace(last, text=text)
            continue
        if last is not None:
            yield last
        last = item
    if last is not None:
        yield last


def _continues(last: Item, item: Item) -> bool:
    return (last.kind, last.stream, last.actor) == (item.kind, item.stream, item.actor)


def _by_request(items: Iterable[StoryItem]) -> Iterator[tuple[StoryItem, int]]:
    """Items, each with the position of the first one of its request; 0 for that one."""
    cause, first = "", 0
    for item in join_chunks(items):
        is_same = item.cause == cause
        cause, first = item.cause, first if is_same else item.position
        yield item, first if is_same else 0


def _facts(item: StoryItem, first: int) -> Iterator[str]:
    """Short facts beside an item: its dialect, its cause, and how long that took which ended."""
    if item.dialect:
        yield item.dialect
    if first:
        yield f"with {first}"
    if item.duration_ms is not None:
        yield f"after {format_duration(item.duration_ms)}"
    if item.status:
        yield f"now {item.status}"


def _attempt_heading(number: int) -> str:
    return f"Attempt {number}" if number else "Before the first attempt"


# --- Markdown ---------------------------------------------------------------------------------

_BACKTICKS: Final = re.compile("`+")

MARKS: Final = "`*_[]#"
"""Further characters that act in a line of Markdown."""


def story_as_markdown(task: Task, items: Iterable[StoryItem]) -> Iterator[str]:
    """Lines of the story as Markdown."""
    yield f"# {escape_line(task.id, MARKS)}: {escape_line(task.title, MARKS)}"
    yield ""
    yield f"{task.status} since {to_rfc3339(task.moved_at)}"
    attempt = -1
    for item, first in _by_request(items):
        if item.attempt != attempt:
            attempt = item.attempt
            yield ""
            yield f"## {_attempt_heading(attempt)}"
            yield ""
        facts = ", ".join(_facts(item, first))
        head = f"- {item.position} · {to_rfc3339(item.at)} · **{escape_line(item.actor, MARKS)}**"
        yield f"{head} {escape_line(item.title, MARKS)}{f' ({facts})' if facts else ''}"
        if item.text and item.text not in item.title:
            yield from _fenced(item.text)


def _fenced(text: str) -> Iterator[str]:
    """Lines of a text in a fenced block that nothing in it can end."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield ""
    yield f"  {fence}text"
    yield from (f"  {line}" for line in safe_text(text).split("\n"))
    yield f"  {fence}"
    yield ""


# --- HTML -------------------------------------------------------------------------------------

_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
ol { list-style: none; padding: 0; }
li { border-left: 3px solid #8884; padding: .2rem 0 .2rem .8rem; margin: .4rem 0; }
li.question, li.delegation, li.handoff { border-color: #b80; }
li.attempt, li.task { border-color: #27a; }
li.letter { border-color: #2a7; }
li.intent { border-color: #a4c; }
time, .position, .facts { opacity: .7; font-size: .85em; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0; padding: .4rem .6rem;
  background: #8881; border-radius: 4px; max-height: 30rem; overflow: auto; }
details { font-size: .85em; }
table { border-collapse: collapse; margin: .5rem 0; width: 100%; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #8883;
  vertical-align: top; overflow-wrap: anywhere; }
"""


def story_as_html(task: Task, items: Iterable[StoryItem]) -> str:
    """The story as one page: no script, nothing loaded from elsewhere."""
    status = f"{task.status} since {to_rfc3339(task.moved_at)}"
    body = f"<p>{safe_html(status)}</p>\n{''.join(_html_parts(items))}"
    return html_page(f"{task.id}: {task.title}", body)


def html_page(title: str, body: str) -> str:
    """One page with this title, which is any text, and a body of HTML."""
    shown = safe_html(title, one_line=True)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{shown}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{shown}</h1>\n{body}</body>\n</html>\n"
    )


def _html_parts(items: Iterable[StoryItem]) -> Iterator[str]:
    attempt = -1
    for item, first in _by_request(items):
        if item.attempt != attempt:
            yield "" if attempt < 0 else "</ol>\n"
            attempt = item.attempt
            yield f"<h2>{_attempt_heading(attempt)}</h2>\n<ol>\n"
        yield _html_item(item, first)
    yield "" if attempt < 0 else "</ol>\n"


def _html_item(item: StoryItem, first: int) -> str:
    at, facts = to_rfc3339(item.at), ", ".join(_facts(item, first))
    head = (
        f'<span class="position">{item.position}</span> <time datetime="{at}">{at}</time> '
        f"<b>{safe_html(item.actor, one_line=True)}</b> {safe_html(item.title, one_line=True)}"
        f"{f' <span class=facts>({safe_html(facts)})</span>' if facts else ''}"
    )
    is_more = item.text and item.text not in item.title
    words = f"\n<pre>{safe_html(item.text)}</pre>" if is_more else ""
    return f'<li class="{item.kind}">{head}{words}{_html_original(item)}</li>\n'


def _html_original(item: StoryItem) -> str:
    if isinstance(item.original, UnsetType):
        return ""
    received = safe_html(bytes(item.original).decode())
    return f"\n<details><summary>as received</summary><pre>{received}</pre></details>"


def safe_html(text: str, *, one_line: bool = False) -> str:
    """Any text as HTML that shows it as it is."""
    return escape(safe_text(text, one_line=one_line))
