"""A task as its clients see it, for the checker: status and fencing token; nothing else.

Written from S-TASK and S-RUN, without a clock: nothing runs out while a history is made.
"""

from typing import NamedTuple

from tests.linearizability.checker import Model, Operation


class TaskState(NamedTuple):
    """One task."""

    status: str = "ready"
    fence: int = 0


class Request(NamedTuple):
    """What a client wants: `claim`, `beat`, `note`, `done`, `release`, `read`, or `again`, by which
    a person sends it back."""

    kind: str
    fence: int = 0


_AFTER = {"done": "review", "release": "ready"}
"""What the holder does -> where the task goes."""

Answer = tuple[str, str, int]
"""A code ("" for a yes), and of a yes the status and the token."""


def step(state: TaskState, operation: Operation) -> TaskState | None:
    """The task afterwards, if the answer is the one that it must be."""
    request, answer = operation.request, operation.answer
    assert isinstance(request, Request)
    after, expected = _decide(state, request)
    return after if answer is None or answer == expected else None


def _decide(state: TaskState, request: Request) -> tuple[TaskState, Answer]:
    kind, fence = request
    is_held = state.status == "in-progress"
    if kind == "read":
        return _accepted(state)
    if kind == "claim":
        # From review, too: whose work it was may go on with it.
        return (
            _refused(state, "already_claimed")
            if is_held
            else _accepted(TaskState("in-progress", state.fence + 1))
        )
    if kind == "again":
        return _accepted(TaskState("ready", state.fence))
    if kind == "done" and state.status == "review" and fence == state.fence:
        return _accepted(state)  # said again, by whom it was said
    if not is_held or fence != state.fence:
        return _refused(state, "lease_lost")
    return _accepted(TaskState(_AFTER.get(kind, state.status), state.fence))


def _refused(state: TaskState, code: str) -> tuple[TaskState, Answer]:
    return state, (code, "", 0)


def _accepted(state: TaskState) -> tuple[TaskState, Answer]:
    return state, ("", state.status, state.fence)


TASK_MODEL = Model(TaskState(), step)
