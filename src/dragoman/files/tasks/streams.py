"""A task's stream, read for its files: its state, its story, and what it looked like earlier."""

from dragoman.core.errors import Refusal
from dragoman.core.events import AnyEvent, Status
from dragoman.core.ids import is_aof_id, task_stream
from dragoman.core.states.task import Task
from dragoman.engine.ports import Store, StreamRow
from dragoman.engine.reads.ask import find_task, stream_entries
from dragoman.engine.reads.intents import find_intent_of_task
from dragoman.files.tasks.pictures import TaskSnapshot, build_snapshot, build_task_file
from dragoman.files.tasks.story import TaskHistory, build_history
from dragoman.files.tasks.task_file import TaskFile
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import read_line
from dragoman.ledger.views import FOLD_VERSION, State, fold, load_state


class TaskSnapshots:
    """Builds snapshots of tasks from the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def load(self, stream: str) -> TaskSnapshot | None:
        """Build the snapshot of a task; None when the stream is not a task's."""
        row = self._store.stream(stream)
        return self.of_row(row) if row is not None else None

    def of_row(self, row: StreamRow) -> TaskSnapshot | None:
        """Build the snapshot of a row that was read before."""
        if not row.name.startswith(task_stream("")):
            return None
        lines = (
            ()
            if row.fold_version == FOLD_VERSION
            else (entry.line for entry in stream_entries(self._store, row.name))
        )
        task = load_state(row.name, row.fold_version, row.state, lines)
        if not isinstance(task, Task):
            return None
        task_history = TaskHistory()
        if task.attempts or task.notes:
            task_history = build_history(self._read_events(row.name, row.version))
        intent = find_intent_of_task(self._store, task)
        return build_snapshot(task, row.version, task_history, row.lease, self.aof_id_of, intent)

    def status_of(self, stream: str) -> Status | None:
        """Present status of a task; None when there is no such task."""
        row = self._store.stream(stream)
        return row.index.status if row is not None else None

    def task_file_at(self, stream: str, version: int) -> TaskFile | None:
        """Task file at an earlier version; None when there was none."""
        events = self._read_events(stream, version)
        if not version or len(events) < version:
            return None
        state: State | None = None
        for at, event in events:
            state = fold(state, event, at)
        if not isinstance(state, Task):
            return None
        return build_task_file(state, version, build_history(events), self.aof_id_of)

    def aof_id_of(self, name: str) -> str:
        """AOF id of a task by any of its names; an unknown name is returned as it is."""
        if is_aof_id(name):
            return name
        found = find_task(self._store, name)
        return name if isinstance(found, Refusal) else found.task.aof_id

    def _read_events(self, stream: str, version: int) -> list[tuple[int, AnyEvent]]:
        events = list[tuple[int, AnyEvent]]()
        for entry in stream_entries(self._store, stream):
            if entry.version > version:
                break
            line = read_line(entry.line)
            events.append((line.at, CODEC.decode(line.event, line.v, line.body)))
        return events
