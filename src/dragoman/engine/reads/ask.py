"""Reading: tasks as they are, as they were, their history, and what stands where."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TypeVar, cast

from msgspec import Struct

from dragoman.core import missing
from dragoman.core.errors import Refusal
from dragoman.core.events import AnyEvent, Role
from dragoman.core.ids import (
    agent_stream,
    check_id,
    handoff_stream,
    intent_stream,
    is_task_name,
    task_stream,
    wave_stream,
    workq_stream,
)
from dragoman.core.states.agent import AgentRecord
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.intent import Intent
from dragoman.core.states.lease import Lease
from dragoman.core.states.task import Task
from dragoman.core.states.wave import Wave
from dragoman.core.states.work_item import WorkItem
from dragoman.engine.names import streams_named, unresolved_name
from dragoman.engine.ports import ListQuery, Store, StreamRow, TaskQuery
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import Entry, read_line
from dragoman.ledger.views import FOLD_VERSION, State, fold, load_state, replay, split_alias

_ENTRY_PAGE = 1_000

Found = TypeVar("Found")
_FOUND_BY_ID: Mapping[type, tuple[str, Callable[[str], str], Callable[[str], Refusal]]] = {
    Handoff: ("handoff id", handoff_stream, missing.handoff),
    Intent: ("intent id", intent_stream, missing.intent),
    Wave: ("wave id", wave_stream, missing.wave),
    WorkItem: ("item id", workq_stream, missing.work_item),
}
"""Kind of record -> what its id is called, its stream, and the refusal if there is none."""


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
    return _task_view(store, row) or missing.task(name)


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


def find_by_id(store: Store, id: str, kind: type[Found], version: int = 0) -> Found | Refusal:
    """The record of this kind with this id, as it is now or was after this entry of its stream."""
    what, stream, not_found = _FOUND_BY_ID[kind]
    malformed = check_id(id, what)
    if malformed is not None:
        return malformed
    row = store.stream(stream(id))
    state = None if row is None else stream_state(store, row, version)
    return state if isinstance(state, kind) else not_found(id)


def find_agent(store: Store, name: str) -> AgentRecord | None:
    """The record of the agent or person with this name."""
    row = store.stream(agent_stream(name))
    return None if row is None else cast(AgentRecord | None, stream_state(store, row))


def list_agents(store: Store, after: str = "", limit: int = _ENTRY_PAGE) -> list[AgentRecord]:
    """A page of the registered agents and people by name, after a given name."""
    states = (stream_state(store, row) for row in store.streams_of_kind("agent", after, limit))
    return [state for state in states if isinstance(state, AgentRecord)]


def names_in_role(store: Store, role: Role) -> tuple[str, ...]:
    """The names of all agents and people in this role."""
    names, after = list[str](), 0
    while page := store.list_page(ListQuery(f"role:{role}", after, limit=_ENTRY_PAGE)):
        names += [place.row.name.partition(":")[2] for place in page]
        after = page[-1].position
    return tuple(sorted(names))


def task_as_of(store: Store, name: str, position: int) -> Task | Refusal:
    """The task as it was when the ledger had reached this position."""
    stream = find_task_stream(store, name)
    if isinstance(stream, Refusal):
        return stream
    state = replay(entry.line for entry in stream_entries(store, stream, until=position))
    if isinstance(state, Task):
        return state
    return missing.task_at_position(name, position)


def list_tasks(store: Store, query: TaskQuery) -> list[TaskView]:
    """A page of tasks as they are now, newest first."""
    views = (_task_view(store, row) for row in store.task_page(query))
    return [view for view in views if view is not None]


def tasks_offered_to(store: Store, agent: str, limit: int) -> list[TaskView]:
    """Tasks offered to this agent by a handoff that wait for its answer, the oldest first."""
    items = store.list_page(ListQuery(f"offered:{agent}", limit=limit))
    views = (_task_view(store, place.row) for place in items)
    return [view for view in views if view is not None]


def tasks_as_of(store: Store, position: int) -> list[Task]:
    """All tasks as they were when the ledger had reached this position, oldest first."""
    states: dict[str, State] = {}
    for entry in all_entries(store, until=position):
        states[entry.stream] = fold(
            states.get(entry.stream), decode_event(entry), read_line(entry.line).at
        )
    return [state for state in states.values() if isinstance(state, Task)]


def all_entries(store: Store, after: int = 0, *, until: int | None = None) -> Iterator[Entry]:
    """Every entry after a position, in order."""
    while page := store.entries(after, _ENTRY_PAGE, until=until):
        yield from page
        after = page[-1].position


def stream_entries(store: Store, stream: str, *, until: int | None = None) -> Iterator[Entry]:
    """Every entry of one stream, in order."""
    after = 0
    while page := store.history(stream, after, _ENTRY_PAGE, until=until):
        yield from page
        after = page[-1].version


def decode_event(entry: Entry) -> AnyEvent:
    """The event that an entry holds."""
    line = read_line(entry.line)
    return CODEC.decode(line.event, line.v, line.body)


def stream_state(store: Store, row: StreamRow, version: int = 0) -> State | None:
    """The state of a stored row, as it is now or was after this entry."""
    if version not in (0, row.version):
        return replay(entry.line for entry in islice(stream_entries(store, row.name), version))
    lines = (
        ()
        if row.fold_version == FOLD_VERSION
        else (entry.line for entry in stream_entries(store, row.name))
    )
    return load_state(row.name, row.fold_version, row.state, lines)


def _task_view(store: Store, row: StreamRow) -> TaskView | None:
    state = stream_state(store, row)
    return TaskView(state, row.lease, row.number) if isinstance(state, Task) else None


def _task_view_at(store: Store, row: StreamRow, version: int) -> TaskView:
    """The task as it was then; with its lease, if that is still of the same attempt."""
    task = cast(Task, stream_state(store, row, version))
    is_same = row.lease is not None and row.lease.fence == task.fence
    return TaskView(task, row.lease if is_same else None, row.number)
