"""What an attempt has cost, by the reports of its agent that the ledger has."""

import msgspec
from msgspec import UNSET

from dragoman.core.errors import DragomanError, StoreError
from dragoman.core.events import EVENT_NAMES, TaskReported
from dragoman.core.ids import task_stream
from dragoman.engine.ports import Entry, Store
from dragoman.engine.reads.ask import decode_event, stream_entries
from dragoman.ledger.entry import read_line
from dragoman.services.budgets import parse_cost

_REPORTED = EVENT_NAMES[TaskReported]


def attempt_cost(store: Store, task: str, attempt: int) -> float:
    """Last cost that the agent reported for this attempt, whoever has the task by now; 0: unknown.

    Raises `StoreError` when the store cannot be read just now.
    """
    try:
        reports = [
            entry for entry in stream_entries(store, task_stream(task)) if entry.event == _REPORTED
        ]
        costs = (_reported_cost(entry, attempt) for entry in reversed(reports))
        return next(filter(None, costs), 0.0)
    except StoreError:
        raise
    except DragomanError:  # an unreadable line, which will not change
        return 0.0


def _reported_cost(entry: Entry, attempt: int) -> float:
    """Cost in a report, if it is of this attempt."""
    report = decode_event(entry)
    if not isinstance(report, TaskReported) or report.attempt != attempt:
        return 0.0
    original = read_line(entry.line).said
    return parse_cost(report.details, None if original is UNSET else msgspec.json.decode(original))
