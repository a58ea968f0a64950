"""Before a rewind: which transition is meant, and what going back to it would change."""

import re
from collections.abc import Iterator
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import asdict

from dragoman.core.deciding.tasks.rewinding import (
    handoff_ended_by_rewind,
    restorable_state,
    without_attempt,
)
from dragoman.core.errors import Refusal
from dragoman.core.events import RestoredState, Status, TaskCreated
from dragoman.core.ids import task_stream
from dragoman.core.states.moves import status_change_of
from dragoman.core.states.task import ActiveHandoff, Task
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import decode_event, stream_entries
from dragoman.ledger.entry import Entry, read_line
from dragoman.ledger.transitions import transition_id
from dragoman.ledger.views import replay

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
    asked_by: str = getattr(event, "asked_by", "")
    return Transition(
        entry.position,
        entry.version,
        asked_by.lower() or transition_id(entry.hash),
        line.at,
        line.actor,
        from_,
        to,
    )


def _changed_fields(now: RestoredState, then: RestoredState) -> dict[str, tuple[Any, Any]]:
    before, after = asdict(now), asdict(then)
    return {name: (before[name], after[name]) for name in before if before[name] != after[name]}
