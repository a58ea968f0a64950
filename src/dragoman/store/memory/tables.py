"""The tables of the memory store, and the one place that changes them."""

from collections.abc import Sequence

from msgspec import json
from msgspec.structs import asdict, replace

from dragoman.core.attempt_state import TaskClaimed
from dragoman.core.event_table import EVENT_NAMES
from dragoman.engine.ports import Changes, IdempotencyRecord, StreamRow
from dragoman.ledger.entry import Entry
from dragoman.ledger.indexes import HandoffRow, LogRow
from dragoman.text.search_terms import Words

_CLAIMED = EVENT_NAMES[TaskClaimed]


class Tables:
    """The tables of the databases, as dictionaries."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.histories: dict[str, list[Entry]] = {}
        self.rows: dict[int, StreamRow] = {}
        self.numbers: dict[str, int] = {}
        """Stream name -> stream number."""
        self.last_stream = 0
        self.aliases: dict[tuple[str, str], str] = {}
        """(Name, kind) -> stream name."""
        self.kinds_of_alias: dict[str, list[str]] = {}
        """Name -> its kinds."""
        self.answers: dict[tuple[int, str], IdempotencyRecord] = {}
        self.daily_numbers: dict[str, int] = {}
        self.lists: dict[str, dict[int, str]] = {}
        """List -> its streams, by position."""
        self.texts: dict[int, Words] = {}
        """Position -> its indexed text."""
        self.indexed_position = 0
        self.handoffs: dict[str, HandoffRow] = {}
        self.active_handoffs: dict[str, str] = {}
        """Task -> its active handoff."""
        self.log_rows: dict[str, tuple[LogRow, Entry]] = {}
        """Key of a turn or a trace event -> its row and its entry."""

    def row(self, stream: str) -> StreamRow | None:
        """One stream."""
        number = self.numbers.get(stream)
        return None if number is None else self.rows[number]

    def find_aliases(self, name: str) -> list[tuple[str, str]]:
        """(kind, stream) of every task that has this name as an alias."""
        return sorted(
            (kind, self.aliases[name, kind]) for kind in self.kinds_of_alias.get(name, ())
        )

    def turns(self, task: str, attempt: int) -> list[tuple[int, Entry]]:
        """The turns of an attempt on a task, by their index."""
        found = [
            (log.turn_index, entry)
            for log, entry in self.log_rows.values()
            if log.turn_index is not None and (log.task, log.attempt) == (task, attempt)
        ]
        return sorted(found, key=lambda one: one[0])

    def claims(self, session: str) -> list[Entry]:
        """The claims in a session, by position."""
        needle = f'"session":"{session}"'.encode()
        likely = (one for one in self.entries if one.event == _CLAIMED and needle in one.line)
        return [one for one in likely if json.decode(one.line)["body"].get("session") == session]

    def apply(self, changes: Changes) -> None:
        """Write all changes."""
        for row in changes.streams:
            self.rows[row.number] = row
            self.numbers[row.name] = row.number
            self.last_stream = max(self.last_stream, row.number)
        for number, lease in changes.leases:
            self.rows[number] = replace(self.rows[number], lease=lease)
        for new in changes.entries:
            stream = self.rows[new.stream].name
            position = len(self.entries) + 1
            entry = Entry(
                position, stream, new.version, new.event, new.line, new.previous, new.hash
            )
            self.entries.append(entry)
            self.histories.setdefault(stream, []).append(entry)
        for name, kind, number in changes.aliases:
            self.aliases[name, kind] = self.rows[number].name
            self.kinds_of_alias.setdefault(name, []).append(kind)
        for answer in changes.answers:
            self.answers[answer.scope, answer.key] = answer
        self.daily_numbers.update(changes.daily_numbers)
        self._update_lists(changes)
        for new in changes.logs:
            entry = self.histories[self.rows[new.stream].name][new.version - 1]
            self.log_rows[new.row.key] = new.row, entry

    def _update_lists(self, changes: Changes) -> None:
        for name, number in changes.list_removals:
            for first in self._first_entry(number):
                self.lists.get(name, {}).pop(first.position, None)
        for name, number in changes.list_additions:
            for first in self._first_entry(number):
                self.lists.setdefault(name, {})[first.position] = first.stream

        self._put_handoff_rows(self.handoff_rows_after(changes))

    def handoff_rows_after(self, changes: Changes) -> list[HandoffRow]:
        """The rows of handoffs after the changes, updated ones first."""
        updated = [
            replace(self.handoffs[course.id], **asdict(course))
            for course in changes.handoff_updates
            if course.id in self.handoffs
        ]
        return [*updated, *changes.new_handoffs]

    def _put_handoff_rows(self, records: Sequence[HandoffRow]) -> None:
        for record in records:
            self.handoffs[record.id] = record
            if record.is_active:
                self.active_handoffs[record.task_id] = record.id
            elif self.active_handoffs.get(record.task_id) == record.id:
                del self.active_handoffs[record.task_id]

    def _first_entry(self, number: int) -> list[Entry]:
        """The entry that gives a stream its position on lists; an empty stream has none."""
        return self.histories.get(self.rows[number].name, [])[:1]
