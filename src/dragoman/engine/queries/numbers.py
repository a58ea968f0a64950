"""Numbers of the last two weeks by the hour: finished and failed work, waits for a person, cost.

They are counted from the ledger in one pass, of which the index keeps the sums: a request reads
only what was written since the last one, and the first one a bounded part of the end.
"""

import threading
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct

from dragoman.core.attempt_state import TaskClaimed, TaskReported, TaskRequeued
from dragoman.core.base import Event
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.question_state import QuestionAnswered, QuestionAsked
from dragoman.core.task_state import STATUS_CHANGES, status_change_of
from dragoman.engine.ports import Store
from dragoman.engine.queries.entries import ENTRY_PAGE
from dragoman.ledger.entry import CODEC, Line, read_line
from dragoman.text.strict_json import get_field

HOUR_MS: Final = 3_600_000

DAY_MS: Final = 24 * HOUR_MS

MAX_DAYS: Final = 14

MAX_ENTRIES: Final = 200_000
"""Entries that are read at once; of a longer ledger what was written before them is not counted."""

_COUNTED_TYPES = (*STATUS_CHANGES, TaskReported, QuestionAsked, QuestionAnswered)

_COUNTED: Final = frozenset(EVENT_NAMES[one] for one in _COUNTED_TYPES)

_ENDS: Final = frozenset({"done", "cancelled", "deadletter"})
"""Statuses in which nothing about a task is open."""

# --- amounts that agents report ---------------------------------------------------------------

_MAX_AMOUNT = 1e12
"""Larger amounts count as this one: no budget is larger."""


def parse_amount(name: str, report: object, original: object) -> float:
    """Parse an amount, such as `cost` or `tokens`, from a report; 0 if it has none.

    A dialect without a field for it has one that the sender added to the original text, beside the
    other fields or in the payload.
    """
    candidates = (report, original, get_field(original, "payload"))
    amounts = (_number(get_field(candidate, name)) for candidate in candidates)
    return next(filter(None, amounts), 0.0)


def reported_amount(name: str, report: TaskReported, line: Line[Raw]) -> float:
    """Read such an amount from a report on record."""
    text = line.original_text
    return parse_amount(name, report.details, None if text is UNSET else msgspec.json.decode(text))


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(min(value, _MAX_AMOUNT)) if value > 0 else 0.0


# --- counts -----------------------------------------------------------------------------------


class Counts(Struct):
    """Counts of some time."""

    attempts: int = 0
    """Attempts that began."""
    finished: int = 0
    """Tasks that became done."""
    failures: int = 0
    """Attempts that failed or vanished."""
    given_up: int = 0
    """Tasks that became deadletter."""
    questions: int = 0
    answers: int = 0
    answer_ms: int = 0
    """Time that the answered questions had waited."""
    reviews: int = 0
    review_ms: int = 0
    """Time that the work that left review had been there."""
    tokens: float = 0
    cost: float = 0

    def add(self, other: "Counts") -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Numbers(Struct, frozen=True):
    """Counts of the last days."""

    now: int
    since: int
    """Time from which on everything is counted."""
    total: Counts
    hours: tuple[tuple[int, Counts], ...]
    """Beginning of an hour, and its counts; hours in which nothing happened are left out."""
    agents: tuple[tuple[str, Counts], ...]


class _Work(Struct):
    """The last attempt on a task, and what is open about the task."""

    agent: str = ""
    attempt: int = 0
    tokens: float = 0
    cost: float = 0
    """Amounts that were counted for the attempt."""
    status: str = ""
    since: int = 0
    questions: dict[str, int] = {}
    """Open questions, and when they were asked."""


class NumbersIndex:
    """The counts in memory, at any moment those of the ledger; every reader shares them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._position = 0
        self._since = 0
        self._cells: dict[tuple[int, str], Counts] = {}
        """Hour and agent ("": no agent's) -> the counts."""
        self._work: dict[str, _Work] = {}

    def read(self, now: int, days: int = MAX_DAYS) -> Numbers:
        """Count the last days, the present hour included."""
        return self.read_span(now, now - days * DAY_MS, None)

    def read_span(self, now: int, begin: int, end: int | None) -> Numbers:
        """Count the hours from a time on, up to another or to the present one."""
        with self._lock:
            self._catch_up(now)
            hours: dict[int, Counts] = {}
            agents: dict[str, Counts] = {}
            total = Counts()
            for (hour, agent), counts in sorted(self._cells.items()):
                if hour + HOUR_MS > begin and (end is None or hour < end):
                    for sums in (
                        hours.setdefault(hour, Counts()),
                        agents.setdefault(agent, Counts()),
                        total,
                    ):
                        sums.add(counts)
            agents.pop("", None)
            since = max(begin, self._since)
            return Numbers(now, since, total, tuple(hours.items()), tuple(sorted(agents.items())))

    # --- the ledger ---------------------------------------------------------------------------

    def _catch_up(self, now: int) -> None:
        head, oldest = self._store.head(), now - MAX_DAYS * DAY_MS - HOUR_MS
        if head - self._position > ENTRY_PAGE:
            begin = max(find_position(self._store, oldest, head), head - MAX_ENTRIES)
            if begin > self._position:
                self._cells.clear()
                self._work.clear()
                self._position, self._since = begin, _time_at(self._store, begin)
        while self._position < head:
            page = self._store.entry_columns(self._position, head, ENTRY_PAGE)
            for _, stream, _, event, line, _, _ in page:
                if event in _COUNTED:
                    self._count(stream, read_line(line))
            self._position = page[-1][0]
        for key in [key for key in self._cells if key[0] < oldest]:
            del self._cells[key]

    def _count(self, stream: str, line: Line[Raw]) -> None:
        event, at = CODEC.decode(line.event, line.v, line.body), line.at
        work = self._work.setdefault(stream, _Work())
        if isinstance(event, TaskClaimed | TaskReported) and event.attempt != work.attempt:
            work.agent, work.attempt, work.tokens, work.cost = event.agent, event.attempt, 0, 0
        counts = self._cells.setdefault((at - at % HOUR_MS, work.agent), Counts())
        if isinstance(event, TaskReported):
            _count_amounts(counts, work, event, line)
        elif isinstance(event, QuestionAsked):
            work.questions[event.id] = at
            counts.questions += 1
        elif isinstance(event, QuestionAnswered):
            asked_at = work.questions.pop(event.id, None)
            if asked_at is not None:
                counts.answers += 1
                counts.answer_ms += max(0, at - asked_at)
        else:
            _count_move(counts, work, event, at)
            if work.status in _ENDS:
                del self._work[stream]


def find_position(store: Store, at: int, head: int) -> int:
    """Find the last position before a time."""
    low, high = 0, head
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _time_at(store, middle) < at else (low, middle - 1)
    return low


def _time_at(store: Store, position: int) -> int:
    return read_line(store.entries(position - 1, 1)[0].line).at


def _count_amounts(counts: Counts, work: _Work, report: TaskReported, line: Line[Raw]) -> None:
    """Count what an attempt cost; its last report counts, where there are several."""
    for name in ("tokens", "cost"):
        amount = reported_amount(name, report, line)
        if amount:
            before = getattr(work, name)
            setattr(counts, name, getattr(counts, name) + amount - before)
            setattr(work, name, amount)


def _count_move(counts: Counts, work: _Work, event: Event, at: int) -> None:
    change: Any = status_change_of(event)
    counts.attempts += isinstance(event, TaskClaimed)
    counts.failures += isinstance(event, TaskRequeued)
    counts.finished += change.to == "done"
    counts.given_up += change.to == "deadletter"
    if work.status == "review":
        counts.reviews += 1
        counts.review_ms += max(0, at - work.since)
    work.status, work.since = change.to, at
