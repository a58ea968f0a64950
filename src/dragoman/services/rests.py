"""Rests: a task that its agent has given back is not started again at once, over and over.

It is ready all the same, and whoever asks for work itself may have it; only the dispatcher waits,
and only until somebody says a word about the task. What is known here ends with the process: a new
start tries once more.
"""

from msgspec import Struct

from dragoman.core.deadlines import Backoff, rest_after
from dragoman.core.moments import to_rfc3339


class GivenBack(Struct, frozen=True):
    """That an agent has put its task back into the queue, to be begun again at once."""

    by: str
    queue: str
    """Who may take it from there: a name, or "" for anyone."""
    at: int
    """When; the task has not moved since."""


class Rest(Struct, frozen=True):
    """A task that is left alone."""

    task: str
    given_back: GivenBack
    times: int
    """How often in a row."""
    until: float

    def words(self, until: int) -> str:
        """What is told of it, with its end as a moment."""
        often = f" {self.times} times" if self.times > 1 else ""
        who = self.given_back.by
        return f"{self.task} rests until {to_rfc3339(until)} after {who} gave it back{often}"


class Rests:
    """How often tasks were given back in a row, and until when each of them is left alone."""

    def __init__(self, backoff: Backoff) -> None:
        """`backoff` says how long, as after failures."""
        self._backoff = backoff
        self._rests: dict[str, Rest] = {}

    def note(self, task: str, now: float, given_back: GivenBack | None) -> None:
        """An attempt on a task has ended, so or otherwise."""
        before = self._rests.pop(task, None)
        if given_back is not None:
            times = 1 if before is None else before.times + 1
            until = now + rest_after(times, self._backoff) / 1_000
            self._rests[task] = Rest(task, given_back, times, until)

    def end(self, task: str) -> None:
        """Somebody has said a word about it: it begins anew."""
        self._rests.pop(task, None)

    def resting(self, now: float) -> list[Rest]:
        """What is left alone now; what was left alone for long enough is forgotten."""
        longest = self._backoff.cap_ms / 1_000
        self._rests = {
            task: rest for task, rest in self._rests.items() if now < rest.until + longest
        }
        return [rest for rest in self._rests.values() if now < rest.until]
