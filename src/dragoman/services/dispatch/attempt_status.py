"""Derives the status of an attempt (held, reported, released, lost) from the ledger.

Every function reads the store, so call them in a thread. A store error is answered so that nothing
follows from it.
"""

from collections.abc import Sequence
from enum import Enum, auto

from dragoman.core.actor import Actor
from dragoman.core.attempt_state import TaskClaimed, TaskRequeued
from dragoman.core.authority import holder_objection
from dragoman.core.errors import DragomanError, Refusal
from dragoman.core.event_table import EVENT_NAMES, STATUS_CHANGE_NAMES
from dragoman.core.ids import task_stream
from dragoman.engine.ports import Assignment, Store
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.queries.streams import decode_event, stream_entries
from dragoman.engine.queries.tasks import find_task
from dragoman.ledger.entry import Entry, read_line
from dragoman.services.dispatch.budget_enforcer import attempt_cost
from dragoman.services.dispatch.cooldown import ReleaseEvent

_CLAIMED = EVENT_NAMES[TaskClaimed]
_REQUEUED = EVENT_NAMES[TaskRequeued]
_ENDING_EVENTS = STATUS_CHANGE_NAMES - {_CLAIMED}
"""Events that end an attempt."""


class AttemptStatus(Enum):
    """Status of an attempt."""

    HELD = auto()
    REPORTED = auto()
    """Held, and its agent has reported; the report has not taken effect."""
    RELEASED = auto()
    """Ended by its own agent."""
    LOST = auto()
    """Ended by somebody else, or superseded by another attempt."""


class AttemptRecord:
    """Ledger entries of one attempt."""

    def __init__(self, store: Store, assignment: Assignment, actor: Actor) -> None:
        """`actor` is its agent, as it acts in this attempt."""
        self._store = store
        self._assignment = assignment
        self._actor = actor

    def status(self, *, was_held: bool) -> AttemptStatus:
        """Current status; as before while the store cannot be read."""
        fence = self._assignment.fence
        try:
            view = find_task(self._store, self._assignment.task)
            if isinstance(view, Refusal):
                return AttemptStatus.HELD
            if view.lease is not None and view.lease.fence == fence:
                return AttemptStatus.HELD if view.task.reported is None else AttemptStatus.REPORTED
            if view.task.fence == fence and self._ended_by_agent(self._transitions()):
                return AttemptStatus.RELEASED
        except DragomanError:
            return AttemptStatus.HELD if was_held else AttemptStatus.RELEASED
        return AttemptStatus.LOST

    def check_may_hold(self) -> str:
        """Reason why its agent may hold no task any more; empty: it may."""
        try:
            return holder_objection(find_agent(self._store, self._assignment.agent))
        except DragomanError:
            return ""

    def find_release(self) -> ReleaseEvent | None:
        """The release by its own agent, if its last transition made the task ready again. A failure
        has a backoff anyway, and a forced stop with a checkpoint is followed at once.
        """
        try:
            view = find_task(self._store, self._assignment.task)
            if isinstance(view, Refusal) or view.task.fence != self._assignment.fence:
                return None
            task, transitions = view.task, self._transitions()
        except DragomanError:
            return None
        checkpoint = task.checkpoint
        was_forced = (
            checkpoint is not None and checkpoint.is_forced and checkpoint.at == task.moved_at
        )
        is_ready = task.status == "ready" and not task.not_before and not was_forced
        if is_ready and len(transitions) == 1 and self._ended_by_agent(transitions):
            return ReleaseEvent(self._assignment.agent, task.reserved_for, task.moved_at)
        return None

    def has_failed(self) -> bool:
        """Check whether its task was requeued for a retry."""
        try:
            return any(entry.event == _REQUEUED for entry in self._transitions()[:1])
        except DragomanError:
            return False

    def cost(self) -> float:
        """Cost that its agent reported; `StoreError` when the store cannot be read."""
        return attempt_cost(self._store, self._assignment.task, self._assignment.attempt)

    def _transitions(self) -> list[Entry]:
        """Transitions of the task from its claim until the next one."""
        transitions, is_ours = list[Entry](), False
        for entry in stream_entries(self._store, task_stream(self._assignment.task)):
            if entry.event == _CLAIMED:
                claimed = decode_event(entry)
                is_ours = isinstance(claimed, TaskClaimed) and (
                    claimed.fence == self._assignment.fence
                )
            elif is_ours and entry.event in _ENDING_EVENTS:
                transitions.append(entry)
        return transitions

    def _ended_by_agent(self, transitions: Sequence[Entry]) -> bool:
        """Check whether the attempt was ended by its own agent."""
        return bool(transitions) and read_line(transitions[0].line).actor == self._actor.label
