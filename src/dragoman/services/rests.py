"""Rests: a task that its agent has given back is not started again at once, over and over.

It is ready all the same, and whoever asks for work itself may have it; only the dispatcher waits.
What is known here ends with the process: a new start tries once more.
"""

from dragoman.core.deadlines import Backoff, rest_after


class Rests:
    """How often tasks were given back in a row, and until when each of them is left alone."""

    def __init__(self, backoff: Backoff) -> None:
        """`backoff` says how long, as after failures."""
        self._backoff = backoff
        self._given_back: dict[str, tuple[int, float]] = {}
        """Task -> how often in a row, and the end of its rest."""

    def note(self, task: str, now: float, *, is_given_back: bool) -> None:
        """An attempt on a task has ended, so or otherwise."""
        times, _ = self._given_back.pop(task, (0, 0.0))
        if is_given_back:
            rest = rest_after(times + 1, self._backoff) / 1_000
            self._given_back[task] = times + 1, now + rest

    def resting(self, now: float) -> set[str]:
        """Tasks that are left alone now; what was left alone for long enough is forgotten."""
        longest = self._backoff.cap_ms / 1_000
        self._given_back = {
            task: (times, until)
            for task, (times, until) in self._given_back.items()
            if now < until + longest
        }
        return {task for task, (_, until) in self._given_back.items() if now < until}
