"""Pages of tasks as they are now, newest first, by more filters than the store indexes."""

import re
from collections.abc import Iterator
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import asdict

from dragoman.core import not_found
from dragoman.core.attempt_state import Lease
from dragoman.core.base import Status
from dragoman.core.errors import Refusal
from dragoman.core.ids import is_task_name, task_stream
from dragoman.core.task import handoff_ended_by_rewind, restorable_state, without_attempt
from dragoman.core.task_state import (
    ActiveHandoff,
    RestoredState,
    Task,
    TaskCreated,
    status_change_of,
)
from dragoman.engine.ports import ListQuery, Store, StreamRow, TaskQuery
from dragoman.engine.queries.entries import all_entries, decode_event, stream_entries, stream_state
from dragoman.ledger.entry import Entry, read_line, transition_id
from dragoman.ledger.stream_state import (
    State,
    fold,
    replay,
    split_alias,
    streams_named,
    unresolved_name,
)

# --- one task ---------------------------------------------------------------------------------


class TaskView(Struct, frozen=True):
    """A task, its lease if it has one, and its stream number, which is the cursor of a page."""

    task: Task
    lease: Lease | None
    number: int


def find_task_stream(store: Store, name: str) -> str | Refusal:
    """The stream of the task with this id, alias (KIND:NAME) or bare alias name."""
    row = _find_task_row(store, name)
    return row if isinstance(row, Refusal) else row.name


def find_task(store: Store, name: str, version: int = 0) -> TaskView | Refusal:
    """The task as it is now, or as it was after this entry of its own."""
    row = _find_task_row(store, name)
    if isinstance(row, Refusal):
        return row
    if version not in (0, row.version):
        return _task_view_at(store, row, version)
    return _task_view(store, row) or not_found.task(name)


def task_as_of(store: Store, name: str, position: int) -> Task | Refusal:
    """The task as it was when the ledger had reached this position."""
    stream = find_task_stream(store, name)
    if isinstance(stream, Refusal):
        return stream
    state = replay(entry.line for entry in stream_entries(store, stream, until=position))
    if isinstance(state, Task):
        return state
    return not_found.task_at_position(name, position)


def tasks_as_of(store: Store, position: int) -> list[Task]:
    """All tasks as they were when the ledger had reached this position, oldest first."""
    states: dict[str, State] = {}
    for entry in all_entries(store, until=position):
        states[entry.stream] = fold(
            states.get(entry.stream), decode_event(entry), read_line(entry.line).at
        )
    return [state for state in states.values() if isinstance(state, Task)]


def _find_task_row(store: Store, name: str) -> StreamRow | Refusal:
    if not is_task_name(name):
        return unresolved_name(name, ())
    row = store.stream(task_stream(name))
    if row is not None:
        return row
    bare, kind = split_alias(name) if ":" in name else (name, "")
    streams = streams_named(kind, store.find_aliases(bare))
    if len(streams) != 1:
        return unresolved_name(name, streams)
    return store.stream(streams[0]) or unresolved_name(name, ())


def _task_view(store: Store, row: StreamRow) -> TaskView | None:
    state = stream_state(store, row)
    return TaskView(state, row.lease, row.number) if isinstance(state, Task) else None


def _task_view_at(store: Store, row: StreamRow, version: int) -> TaskView:
    """The task as it was then; with its lease, if that is still of the same attempt."""
    task = cast(Task, stream_state(store, row, version))
    is_same = row.lease is not None and row.lease.fence == task.fence
    return TaskView(task, row.lease if is_same else None, row.number)


# --- lists ------------------------------------------------------------------------------------


def list_tasks(store: Store, query: TaskQuery) -> list[TaskView]:
    """A page of tasks as they are now, newest first."""
    views = (_task_view(store, row) for row in store.task_page(query))
    return [view for view in views if view is not None]


_ROWS = 500


def task_rows(store: Store, status: Status) -> Iterator[StreamRow]:
    """The rows of all tasks in a status, newest first."""
    before = None
    while rows := store.task_page(TaskQuery(status, before=before, limit=_ROWS)):
        yield from rows
        before = rows[-1].number


def all_tasks(store: Store, status: Status) -> Iterator[TaskView]:
    """All tasks in a status as they are now, newest first."""
    views = (_task_view(store, row) for row in task_rows(store, status))
    return (view for view in views if view is not None)


def tasks_offered_to(store: Store, agent: str, limit: int) -> list[TaskView]:
    """Tasks offered to this agent by a handoff that wait for its answer, the oldest first."""
    items = store.list_page(ListQuery(f"offered:{agent}", limit=limit))
    views = (_task_view(store, place.row) for place in items)
    return [view for view in views if view is not None]


# --- before a rewind --------------------------------------------------------------------------

_POSITION: Final = re.compile(r"[0-9]{1,18}", re.ASCII)

_MAX_SUGGESTED: Final = 5


class Transition(Struct, frozen=True):
    """A change of a task's status."""

    position: int
    version: int
    id: str
    """The id under which traces know it."""
    at: int
    actor: str
    from_: Status | None
    """None: the task was created."""
    to: Status


class RewindPreview(Struct, frozen=True):
    """The effect that a rewind would have on a task."""

    task: Task
    transition: Transition
    task_then: Task
    target: RestoredState
    changes: dict[str, tuple[Any, Any]]
    """Field -> its value now, and after the rewind."""
    ended_handoff: ActiveHandoff | None
    """The handoff that the rewind would end."""


def list_transitions(store: Store, task: Task) -> Iterator[Transition]:
    """All changes of a task's status, the oldest first."""
    for entry in stream_entries(store, task_stream(task.id)):
        found = _transition_of(entry)
        if found is not None:
            yield found


def preview_rewind(store: Store, task: Task, named: str) -> RewindPreview | Refusal:
    """Preview going back to a status change, named by the id of its event or its position."""
    transition = _find_transition(store, task, named)
    if isinstance(transition, Refusal):
        return transition
    until = transition.position
    past = cast(
        Task, replay(e.line for e in stream_entries(store, task_stream(task.id), until=until))
    )
    target = without_attempt(restorable_state(past))
    changes = _changed_fields(restorable_state(task), target)
    lost = handoff_ended_by_rewind(task, target) if changes else None
    return RewindPreview(task, transition, past, target, changes, lost)


def _find_transition(store: Store, task: Task, named: str) -> Transition | Refusal:
    known = list(list_transitions(store, task))
    for one in known:
        if named.lower() == one.id or (_POSITION.fullmatch(named) and int(named) == one.position):
            return one
    last = ", ".join(f"{one.position} ({one.to})" for one in known[-_MAX_SUGGESTED:])
    return Refusal(
        "invalid_field",
        f"{named[:64]!a} is no transition of {task.id}: name one by its event id or by its "
        f"position in the ledger. The last ones are at {last}",
    )


def _transition_of(entry: Entry) -> Transition | None:
    event, line = decode_event(entry), read_line(entry.line)
    move = status_change_of(event)
    if isinstance(event, TaskCreated):
        from_, to = None, event.status
    elif move is not None:
        from_, to = move.from_, move.to
    else:
        return None
    caused_by: str = getattr(event, "caused_by", "")
    return Transition(
        entry.position,
        entry.version,
        caused_by.lower() or transition_id(entry.hash),
        line.at,
        line.actor,
        from_,
        to,
    )


def _changed_fields(now: RestoredState, then: RestoredState) -> dict[str, tuple[Any, Any]]:
    before, after = asdict(now), asdict(then)
    return {name: (before[name], after[name]) for name in before if before[name] != after[name]}


_MAX_READS = 20
"""Limit of reads to fill a page, so that a page without a match does not read the whole store."""


_SEARCH_PAGE = 500
"""Tasks that are read at a time for one that has some words, which few have."""


class TaskFilter(Struct, frozen=True):
    """Filters for a page of tasks."""

    status: Status | None = None
    assignee: str = ""
    is_claimable: bool = False
    before: int | None = None
    limit: int = 50
    is_unassigned: bool = False
    """True: only tasks that anyone may take."""
    words: tuple[str, ...] = ()
    """Only tasks whose names and texts have all of these, in any case."""

    def matches(self, task: Task, now: int) -> bool:
        """True if the task belongs on the page."""
        if self.status not in (None, task.status) or self.assignee not in ("", task.assignee):
            return False
        if self.is_unassigned and (task.assignee or task.reserved_for):
            return False
        if self.is_claimable and (task.open_blockers or task.not_before > now):
            return False
        return not self.words or self._has_words(task)

    def _has_words(self, task: Task) -> bool:
        notes = task.reported.notes if task.reported else ""
        texts = (task.id, task.aof_id, *task.aliases, task.title, task.assignee, task.body)
        text = "\n".join((*texts, task.obstacle, notes)).casefold()
        return all(word.casefold() in text for word in self.words)


class TaskPage(Struct, frozen=True):
    """Tasks, and the cursor of the next page, if there may be one."""

    tasks: list[TaskView]
    next: int | None


def page_of_past_tasks(store: Store, filters: TaskFilter, position: int, now: int) -> TaskPage:
    """A page of tasks as they were; its cursor counts tasks by age, the oldest is 1."""
    past = list(enumerate(tasks_as_of(store, position), start=1))
    end = len(past) if filters.before is None else min(len(past), max(filters.before - 1, 0))
    matches = [
        TaskView(task, None, number)
        for number, task in reversed(past[:end])
        if filters.matches(task, now)
    ]
    page = matches[: filters.limit]
    return TaskPage(page, page[-1].number if len(matches) > filters.limit else None)


def page_of_tasks(store: Store, filters: TaskFilter, now: int) -> TaskPage:
    """A page of tasks as they are."""
    found, before = list[TaskView](), filters.before
    for _ in range(_MAX_READS):
        # One more than is shown, to know whether there is another page.
        needed = filters.limit + 1 - len(found)
        if filters.words:
            needed = max(needed, _SEARCH_PAGE)
        query = TaskQuery(filters.status, filters.assignee or None, before, needed)
        views = list_tasks(store, query)
        found += [view for view in views if filters.matches(view.task, now)]
        if len(views) < needed:
            before = None
            break
        before = views[-1].number
        if len(found) > filters.limit:
            break
    if len(found) > filters.limit:
        del found[filters.limit :]
        before = found[-1].number
    return TaskPage(found, before)
