"""Notices: one for each transition into a status that the settings name.

A notice is made from the ledger alone, so that making it again gives the same bytes.
"""

from collections.abc import Collection

import msgspec
from msgspec import Struct

from dragoman.core.base import Status
from dragoman.core.errors import LedgerError, Refusal
from dragoman.core.event_table import STATUS_CHANGE_NAMES
from dragoman.core.task_state import status_change_of
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import Store
from dragoman.engine.queries.entries import decode_event
from dragoman.engine.queries.tasks import task_as_of
from dragoman.ledger.entry import Entry, read_line


class Notice(Struct, frozen=True):
    """A notice for one target."""

    id: str
    """The same in every delivery: the ledger's id and the entry's position."""
    task: str
    """The task's AOF id."""
    body: bytes


class NoticeBody(Struct, frozen=True, rename={"task_id": "taskId", "from_": "from"}):
    """The JSON of a notice."""

    id: str
    task_id: str
    title: str
    from_: Status
    to: Status
    reason: str
    actor: str
    at: str


class NoticeBuilder:
    """Makes notices of entries."""

    def __init__(self, store: Store, statuses: Collection[Status]) -> None:
        self._store = store
        self._statuses = statuses

    def __call__(self, entry: Entry) -> Notice | None:
        """Make the notice of an entry; None if it needs none."""
        transition = (
            status_change_of(decode_event(entry)) if entry.event in STATUS_CHANGE_NAMES else None
        )
        if transition is None or transition.to not in self._statuses:
            return None
        task = task_as_of(self._store, entry.stream.partition(":")[2], entry.position)
        if isinstance(task, Refusal):
            raise LedgerError(f"entry {entry.position} is of a task that was never created")
        line, notice_id = read_line(entry.line), f"{self._store.ledger_id()}:{entry.position}"
        body = NoticeBody(
            id=notice_id,
            task_id=task.aof_id,
            title=task.title,
            from_=transition.from_,
            to=transition.to,
            reason=task.obstacle
            if transition.to == "blocked" and transition.by_report
            else transition.reason,
            actor=line.actor,
            at=to_rfc3339(line.at),
        )
        return Notice(notice_id, task.aof_id, msgspec.json.encode(body))
