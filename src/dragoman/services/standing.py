"""How an attempt stands to its task, and how it has ended, by what is on record.

All of it asks the store, so whoever runs in a loop asks in a thread; what the store cannot tell
just now is answered so that nothing follows from it.
"""

from collections.abc import Sequence
from enum import Enum, auto

from dragoman.core.actors import Actor
from dragoman.core.authority import why_no_holder
from dragoman.core.errors import DragomanError, Refusal
from dragoman.core.events import EVENT_NAMES, TaskClaimed, TaskRequeued
from dragoman.core.ids import task_stream
from dragoman.core.states.moves import MOVE_NAMES
from dragoman.engine.ports import Entry, Store
from dragoman.engine.reads.ask import decode, find_agent, find_task, history
from dragoman.engine.runner import Assignment
from dragoman.ledger.entry import read_line
from dragoman.services.costs import cost_of_attempt
from dragoman.services.rests import GivenBack

_CLAIMED = EVENT_NAMES[TaskClaimed]
_REQUEUED = EVENT_NAMES[TaskRequeued]
_ENDS_IT = MOVE_NAMES - {_CLAIMED}
"""Events that end an attempt."""


class Standing(Enum):
    """Status of an attempt."""

    HELD = auto()
    REPORTED = auto()
    """Held, and its agent has reported; the report has not taken effect."""
    LEFT = auto()
    """Ended by its own agent."""
    LOST = auto()
    """Ended by somebody else, or superseded by another attempt."""


class Record:
    """Ledger entries of one attempt."""

    def __init__(self, store: Store, assignment: Assignment, actor: Actor) -> None:
        """`actor` is its agent, as it acts in this attempt."""
        self._store = store
        self._assignment = assignment
        self._actor = actor

    def standing(self, *, was_held: bool) -> Standing:
        """Current status; as before while the store cannot be read."""
        fence = self._assignment.fence
        try:
            view = find_task(self._store, self._assignment.task)
            if isinstance(view, Refusal):
                return Standing.HELD
            if view.lease is not None and view.lease.fence == fence:
                return Standing.HELD if view.task.reported is None else Standing.REPORTED
            if view.task.fence == fence and self._has_left(self._moves()):
                return Standing.LEFT
        except DragomanError:
            return Standing.HELD if was_held else Standing.LEFT
        return Standing.LOST

    def why_no_holder(self) -> str:
        """Reason why its agent may hold no task any more; empty: it may."""
        try:
            return why_no_holder(find_agent(self._store, self._assignment.agent))
        except DragomanError:
            return ""

    def given_back(self) -> GivenBack | None:
        """The release by its own agent, if its last transition made the task ready again. A failure
        has a backoff anyway, and a forced stop with a checkpoint is followed at once.
        """
        try:
            view = find_task(self._store, self._assignment.task)
            if isinstance(view, Refusal) or view.task.fence != self._assignment.fence:
                return None
            task, moves = view.task, self._moves()
        except DragomanError:
            return None
        left = task.checkpoint
        was_forced = left is not None and left.is_forced and left.at == task.moved_at
        is_free = task.status == "ready" and not task.not_before and not was_forced
        if is_free and len(moves) == 1 and self._has_left(moves):
            return GivenBack(self._assignment.agent, task.reserved_for, task.moved_at)
        return None

    def has_failed(self) -> bool:
        """Check whether its task was requeued for a retry."""
        try:
            return any(entry.event == _REQUEUED for entry in self._moves()[:1])
        except DragomanError:
            return False

    def cost(self) -> float:
        """Cost that its agent reported; `StoreError` when the store cannot be read."""
        return cost_of_attempt(self._store, self._assignment.task, self._assignment.attempt)

    def _moves(self) -> list[Entry]:
        """Transitions of the task from its claim until the next one."""
        moves, is_ours = list[Entry](), False
        for entry in history(self._store, task_stream(self._assignment.task)):
            if entry.event == _CLAIMED:
                claimed = decode(entry)
                is_ours = isinstance(claimed, TaskClaimed) and (
                    claimed.fence == self._assignment.fence
                )
            elif is_ours and entry.event in _ENDS_IT:
                moves.append(entry)
        return moves

    def _has_left(self, moves: Sequence[Entry]) -> bool:
        """Check whether the attempt was ended by its own agent."""
        return bool(moves) and read_line(moves[0].line).actor == self._actor.label
