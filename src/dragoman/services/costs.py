"""What an attempt has cost, by the reports of its agent that the ledger has."""

import msgspec
from msgspec import UNSET

from dragoman.core.errors import DragomanError, StoreError
from dragoman.core.events import EVENT_NAMES, TaskReported
from dragoman.core.ids import task_stream
from dragoman.engine.ports import Entry, Store
from dragoman.engine.reads.ask import decode, history
from dragoman.ledger.entry import read_line
from dragoman.services.budgets import cost_of

_REPORTED = EVENT_NAMES[TaskReported]


def cost_of_attempt(store: Store, task: str, attempt: int) -> float:
    """Last cost that the agent reported for this attempt, whoever has the task by now; 0: unknown.

    Raises `StoreError` when the store cannot be read just now.
    """
    try:
        reports = [entry for entry in history(store, task_stream(task)) if entry.event == _REPORTED]
        told = (_told(entry, attempt) for entry in reversed(reports))
        return next(filter(None, told), 0.0)
    except StoreError:
        raise
    except DragomanError:  # an unreadable line, which will not change
        return 0.0


def _told(entry: Entry, attempt: int) -> float:
    """Cost in a report, if it is of this attempt."""
    report = decode(entry)
    if not isinstance(report, TaskReported) or report.attempt != attempt:
        return 0.0
    words = read_line(entry.line).said
    return cost_of(report.details, None if words is UNSET else msgspec.json.decode(words))
