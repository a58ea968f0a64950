"""Sequential model of a task for the checker: status, fence and the last release.

Written from S-TASK and S-RUN, without a clock: nothing expires while a history is made.
"""

from typing import NamedTuple

from tests.linearizability.checker import Model, Operation


class TaskState(NamedTuple):
    status: str = "ready"
    fence: int = 0
    released: int = -1
    """Fence of the attempt that was released last."""


class Request(NamedTuple):
    """Request of a client: `claim`, `beat`, `note`, `done`, `release`, `read`, or `again`, by which
    a person sends it back.
    """

    kind: str
    fence: int = 0


_AFTER = {"done": "review", "release": "ready"}
"""Command of the holder -> status after it."""

Answer = tuple[str, str, int]
"""Code (empty if accepted); if accepted, the status and the fence."""


def step(state: TaskState, operation: Operation) -> TaskState | None:
    """State after the operation, if its answer is the expected one."""
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
        # From review, too: the owner may rework it.
        return (
            _refused(state, "already_claimed")
            if is_held
            else _accepted(TaskState("in-progress", state.fence + 1, state.released))
        )
    if kind == "again":
        return _accepted(TaskState("ready", state.fence, state.released))
    if kind == "release" and not is_held and fence == state.fence == state.released:
        return _accepted(state)  # a repeat within the attempt
    if kind == "done" and state.status == "review" and fence == state.fence:
        return _accepted(state)  # a repeat by the same holder
    if not is_held or fence != state.fence:
        return _refused(state, "lease_lost")
    released = fence if kind == "release" else state.released
    return _accepted(TaskState(_AFTER.get(kind, state.status), state.fence, released))


def _refused(state: TaskState, code: str) -> tuple[TaskState, Answer]:
    return state, (code, "", 0)


def _accepted(state: TaskState) -> tuple[TaskState, Answer]:
    return state, ("", state.status, state.fence)


TASK_MODEL = Model(TaskState(), step)
