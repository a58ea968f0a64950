"""Report of a day (UTC): what was finished, failed, given up and escalated, by whom, at what cost,
and what waits for a person now."""

from collections.abc import Iterator
from typing import Final, Literal

import msgspec
from msgspec import Struct

from dragoman.core.attempt_state import AttemptEscalated, TaskReported, TaskRequeued
from dragoman.core.base import Event
from dragoman.core.handoff.state import HandoffEscalated
from dragoman.core.mail import MailEscalated
from dragoman.core.task_state import (
    DelegationEscalated,
    Task,
    TaskRewound,
    TaskTransitioned,
    status_change_of,
)
from dragoman.core.trace import EntropyEscalated
from dragoman.engine.event_sentences import describe_event, describe_reason
from dragoman.engine.ports import Store
from dragoman.engine.queries.attention import Attention
from dragoman.engine.queries.entries import all_entries, decode_event, stream_state
from dragoman.engine.queries.numbers import DAY_MS, Numbers, NumbersIndex, find_position
from dragoman.engine.queries.visibility import OWNER, Reader, visible_to
from dragoman.ledger.entry import Entry, read_line
from dragoman.ledger.stream_state import State

MAX_LISTED: Final = 500
"""Items of a kind that are listed; all are counted."""

DayKind = Literal["finished", "failed", "given_up", "escalated"]

_ESCALATIONS: Final = (
    *(AttemptEscalated, DelegationEscalated, HandoffEscalated, MailEscalated, EntropyEscalated),
)

_MOVES: Final = (TaskTransitioned, TaskRewound)


class DayItem(Struct, frozen=True):
    """Something that happened on a day."""

    position: int
    at: int
    kind: DayKind
    about: str
    """The task, else the letter, handoff or session."""
    title: str
    """Title of the task."""
    agent: str
    """The agent that reported about the task that day, else the one that has it."""
    text: str
    """Report of its agent that day, else the reason."""


class DayReport(Struct, frozen=True):
    """A day, as far as it has come."""

    begin: int
    numbers: Numbers
    items: tuple[DayItem, ...]
    """In the order of the ledger; of each kind the first ones."""
    counts: dict[DayKind, int]
    """Number of each kind, which may be more than are listed."""
    attention: Attention
    """Needs of a person at present."""


def read_day(
    store: Store, begin: int, now: int, attention: Attention, reader: Reader = OWNER
) -> DayReport:
    """Read the day that begins at a time; the reader sees no escalation that is hidden from it."""
    end = begin + DAY_MS
    numbers = NumbersIndex(store).read_span(min(now, end), begin, end)
    is_visible = visible_to(reader, store)
    items, counts = list[DayItem](), dict[DayKind, int]()
    for kind, entry, event, report in _day_events(store, begin):
        row = store.stream(entry.stream)
        assert row is not None, "an entry has its stream"
        state = stream_state(store, row)
        if not is_visible(state):
            continue
        counts[kind] = counts.get(kind, 0) + 1
        if counts[kind] <= MAX_LISTED:
            items.append(_item(kind, entry, event, report, state))
    return DayReport(begin, numbers, tuple(items), counts, attention)


def _day_events(
    store: Store, begin: int
) -> Iterator[tuple[DayKind, Entry, Event, TaskReported | None]]:
    """Events of a day that are told, each with the last report of that day about its task."""
    head = store.head()
    after, until = (find_position(store, at, head) for at in (begin, begin + DAY_MS))
    reports = dict[str, TaskReported]()
    for entry in all_entries(store, after, until=until):
        event = decode_event(entry)
        if isinstance(event, TaskReported):
            reports[entry.stream] = event
        kind = _kind_of(event)
        if kind is not None:
            yield kind, entry, event, reports.get(entry.stream)


def _kind_of(event: Event) -> DayKind | None:
    if isinstance(event, _ESCALATIONS):
        return "escalated"
    if isinstance(event, TaskRequeued):
        return "failed"
    if isinstance(event, _MOVES) and event.to == "done":
        return "finished"
    return "given_up" if isinstance(event, _MOVES) and event.to == "deadletter" else None


def _item(
    kind: DayKind, entry: Entry, event: Event, report: TaskReported | None, state: State | None
) -> DayItem:
    line = read_line(entry.line)
    change = status_change_of(event)
    if change is None:
        text = describe_event(entry.event, msgspec.json.decode(line.body))
    else:
        text = report.notes if report and report.notes else describe_reason(change.reason)
    task = state if isinstance(state, Task) else None
    return DayItem(
        position=entry.position,
        at=line.at,
        kind=kind,
        about=entry.stream.partition(":")[2],
        title="" if task is None else task.title,
        agent=report.agent if report else "" if task is None else task.assignee,
        text=text,
    )
