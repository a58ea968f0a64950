"""A task as its clients see it, for the checker: status and fencing token; nothing else.

Written from S-TASK and S-RUN, without a clock: nothing runs out while a history is made.
"""

from typing import NamedTuple

from tests.linearizability.checker import Model, Operation


class Seen(NamedTuple):
    """One task."""

    status: str = "ready"
    fence: int = 0


class Asked(NamedTuple):
    """What a client wants: `claim`, `beat`, `note`, `done`, `release`, `read`, or `again`, by which
    a person sends it back."""

    what: str
    fence: int = 0


_AFTER = {"done": "review", "release": "ready"}
"""What the holder does -> where the task goes."""

Told = tuple[str, str, int]
"""A code ("" for a yes), and of a yes the status and the token."""


def step(state: Seen, operation: Operation) -> Seen | None:
    """The task afterwards, if the answer is the one that it must be."""
    asked, told = operation.asked, operation.answer
    assert isinstance(asked, Asked)
    after, expected = _decide(state, asked)
    return after if told is None or told == expected else None


def _decide(state: Seen, asked: Asked) -> tuple[Seen, Told]:
    what, fence = asked
    is_held = state.status == "in-progress"
    if what == "read":
        return _yes(state)
    if what == "claim":
        # From review, too: whose work it was may go on with it.
        return (
            _no(state, "already_claimed") if is_held else _yes(Seen("in-progress", state.fence + 1))
        )
    if what == "again":
        return _yes(Seen("ready", state.fence))
    if what == "done" and state.status == "review" and fence == state.fence:
        return _yes(state)  # said again, by whom it was said
    if not is_held or fence != state.fence:
        return _no(state, "lease_lost")
    return _yes(Seen(_AFTER.get(what, state.status), state.fence))


def _no(state: Seen, code: str) -> tuple[Seen, Told]:
    return state, (code, "", 0)


def _yes(state: Seen) -> tuple[Seen, Told]:
    return state, ("", state.status, state.fence)


TASK = Model(Seen(), step)
