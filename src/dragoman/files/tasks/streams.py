"""A task's stream, read for its files: its state, its story, and what it looked like earlier."""

from dragoman.core.errors import Refusal
from dragoman.core.events import AnyEvent, Status
from dragoman.core.ids import is_aof_id, task_stream
from dragoman.core.states.task import Task
from dragoman.engine.ports import Row, Store
from dragoman.engine.reads.ask import find_task, history
from dragoman.engine.reads.intents import find_intent_of
from dragoman.files.tasks.pictures import Picture, picture, task_file
from dragoman.files.tasks.story import Story, tell
from dragoman.files.tasks.task_file import TaskFile
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import read_line
from dragoman.ledger.views import FOLD, State, current_state, fold


class TaskStreams:
    """Builds snapshots of tasks from the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def picture(self, stream: str) -> Picture | None:
        """Build the snapshot of a task; None when the stream is not a task's."""
        row = self._store.stream(stream)
        return self.picture_of(row) if row is not None else None

    def picture_of(self, row: Row) -> Picture | None:
        """Build the snapshot of a row that was read before."""
        if not row.name.startswith(task_stream("")):
            return None
        lines = () if row.fold == FOLD else (entry.line for entry in history(self._store, row.name))
        task = current_state(row.name, row.fold, row.state, lines)
        if not isinstance(task, Task):
            return None
        story = Story()
        if task.attempts or task.notes:
            story = tell(self._events(row.name, row.version))
        intent = find_intent_of(self._store, task)
        return picture(task, row.version, story, row.lease, self.aof_id_of, intent)

    def status_of(self, stream: str) -> Status | None:
        """Present status of a task; None when there is no such task."""
        row = self._store.stream(stream)
        return row.shelf.status if row is not None else None

    def as_it_was(self, stream: str, version: int) -> TaskFile | None:
        """Task file at an earlier version; None when there was none."""
        events = self._events(stream, version)
        if not version or len(events) < version:
            return None
        state: State | None = None
        for at, event in events:
            state = fold(state, event, at)
        if not isinstance(state, Task):
            return None
        return task_file(state, version, tell(events), self.aof_id_of)

    def aof_id_of(self, name: str) -> str:
        """AOF id of a task by any of its names; an unknown name is returned as it is."""
        if is_aof_id(name):
            return name
        found = find_task(self._store, name)
        return name if isinstance(found, Refusal) else found.task.aof_id

    def _events(self, stream: str, version: int) -> list[tuple[int, AnyEvent]]:
        events = list[tuple[int, AnyEvent]]()
        for entry in history(self._store, stream):
            if entry.version > version:
                break
            line = read_line(entry.line)
            events.append((line.at, CODEC.decode(line.event, line.v, line.body)))
        return events
