"""Search for one order of concurrent operations that explains every answer (Wing & Gong, Lowe).

An operation takes effect at one moment between its call and its return. Operations that ended
before another one was called stand before it; all others may stand in any order. The search places
them one by one, and remembers where it has been: the operations that were placed, and the state
that they led to. One without an answer may have happened or not.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

S = TypeVar("S", bound=Hashable)
MAX_OPERATIONS = 200
"""Longest history that is checked in one window."""


class Operation(Struct, frozen=True):
    """Request and answer of one client, with their moments."""

    client: int
    call: int
    """Moment of the call; moments are numbered in the order in which they came."""
    end: int
    """Moment of the answer."""
    request: Hashable
    answer: Hashable
    """None if no answer came."""


class Model(Struct, Generic[S], frozen=True):
    """Sequential behaviour of one object."""

    start: S
    step: Callable[[S, Operation], S | None]
    """State after the operation, or None if its answer is impossible."""


def explains(model: Model[S], history: Sequence[Operation]) -> bool:
    """Search for such an order; true if there is one."""
    assert len(history) <= MAX_OPERATIONS, f"{len(history)} operations are too many for one window"
    operations = sorted(history, key=lambda one: one.call)
    everything = (1 << len(operations)) - 1
    unanswered = _mask_of(operations, lambda one: one.answer is None)
    seen: set[tuple[int, S]] = set()
    to_visit: list[tuple[int, S]] = [(0, model.start)]
    while to_visit:
        placed, state = to_visit.pop()
        if placed | unanswered == everything:
            return True
        for index in _candidates(operations, placed):
            after = model.step(state, operations[index])
            if after is None:
                continue
            reached = placed | 1 << index, after
            if reached not in seen:
                seen.add(reached)
                to_visit.append(reached)
    return False


def _candidates(operations: Sequence[Operation], placed: int) -> list[int]:
    """Operations that may come next: no remaining one ended before their call."""
    remaining = [index for index in range(len(operations)) if not placed >> index & 1]
    first_end = min(_end(operations[index]) for index in remaining)
    return [index for index in remaining if operations[index].call <= first_end]


def _end(operation: Operation) -> float:
    return float("inf") if operation.answer is None else operation.end


def _mask_of(operations: Sequence[Operation], fits: Callable[[Operation], bool]) -> int:
    return sum(1 << index for index, one in enumerate(operations) if fits(one))
