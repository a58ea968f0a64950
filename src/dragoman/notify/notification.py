"""Notifications: one for each transition into a status that the settings name, and one for each
entry after which a person is needed.

A notification is made from the ledger alone, so that making it again gives the same bytes.
"""

from collections.abc import Collection

import msgspec
from msgspec import Struct

from dragoman.core.base import AttentionKind, Status
from dragoman.core.errors import LedgerError, Refusal
from dragoman.core.event_table import STATUS_CHANGE_NAMES
from dragoman.core.task_state import status_change_of
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import Store
from dragoman.engine.queries.attention import AttentionItem
from dragoman.engine.queries.entries import decode_event
from dragoman.engine.queries.notices import find_notice
from dragoman.engine.queries.tasks import find_task, task_as_of
from dragoman.ledger.entry import Entry, read_line


class Notice(Struct, frozen=True):
    """Something that needs a person, and the entry that told it."""

    item: AttentionItem
    entry: Entry


class Notification(Struct, frozen=True):
    """A notification for one target."""

    id: str
    """The same in every delivery: the ledger's id and the entry's position."""
    task: str
    """The task's AOF id; empty: it is about no task."""
    body: bytes
    notice: Notice | None = None
    """The notice that it is about; None: it is about a transition."""


class NotificationBody(Struct, frozen=True, rename={"task_id": "taskId", "from_": "from"}):
    """The JSON of a notification."""

    id: str
    task_id: str
    title: str
    from_: Status
    to: Status
    reason: str
    actor: str
    at: str


class AttentionBody(Struct, frozen=True, rename={"task_id": "taskId"}):
    """The JSON of a notification about something that needs a person."""

    id: str
    kind: AttentionKind
    task_id: str | None
    agent: str | None
    text: str
    command: str
    """The command line that deals with it."""
    actor: str
    at: str


class NotificationBuilder:
    """Makes notifications of entries."""

    def __init__(
        self,
        store: Store,
        statuses: Collection[Status],
        attention: Collection[AttentionKind] = (),
    ) -> None:
        self._store = store
        self._statuses = statuses
        self._attention = attention

    def __call__(self, entry: Entry) -> Notification | None:
        """Make the notification of an entry; None if it needs none."""
        transition = (
            status_change_of(decode_event(entry)) if entry.event in STATUS_CHANGE_NAMES else None
        )
        if transition is None or transition.to not in self._statuses:
            item = find_notice(self._store, entry) if self._attention else None
            is_wanted = item is not None and item.kind in self._attention
            return self._of_item(item, entry) if item is not None and is_wanted else None
        task = task_as_of(self._store, entry.stream.partition(":")[2], entry.position)
        if isinstance(task, Refusal):
            raise LedgerError(f"entry {entry.position} is of a task that was never created")
        line, notification_id = read_line(entry.line), f"{self._store.ledger_id()}:{entry.position}"
        body = NotificationBody(
            id=notification_id,
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
        return Notification(notification_id, task.aof_id, msgspec.json.encode(body))

    def _of_item(self, item: AttentionItem, entry: Entry) -> Notification:
        line, notification_id = read_line(entry.line), f"{self._store.ledger_id()}:{entry.position}"
        found = find_task(self._store, item.task) if item.task else None
        task = "" if found is None or isinstance(found, Refusal) else found.task.aof_id
        body = AttentionBody(
            id=notification_id,
            kind=item.kind,
            task_id=task or None,
            agent=item.agent or None,
            text=item.text,
            command=item.command,
            actor=line.actor,
            at=to_rfc3339(line.at),
        )
        return Notification(notification_id, task, msgspec.json.encode(body), Notice(item, entry))
