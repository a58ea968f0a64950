"""Rests: a task that its agent has given back is not started again at once, over and over.

It is ready all the same, and whoever asks for work itself may have it; only the dispatcher waits,
and only until somebody says a word about the task. What is known here ends with the process: a new
start tries once more.
"""

import asyncio
from collections.abc import Callable, Collection

from msgspec import Struct

from dragoman.core.deadlines import Backoff, rest_after
from dragoman.core.errors import Refusal
from dragoman.core.moments import to_rfc3339
from dragoman.core.states.task import Task
from dragoman.engine.hub import Hub
from dragoman.engine.reads.ask import find_task


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

    def note(self, task: str, now: float, given_back: GivenBack | None) -> float | None:
        """An attempt on a task has ended, so or otherwise; until when it rests now, if it does."""
        before = self._rests.pop(task, None)
        if given_back is None:
            return None
        times = 1 if before is None else before.times + 1
        until = now + rest_after(times, self._backoff) / 1_000
        self._rests[task] = Rest(task, given_back, times, until)
        return until

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


class LeftAlone:
    """The rests of a hub's tasks, which last until somebody has said a word about one."""

    def __init__(self, hub: Hub, backoff: Backoff, asked_at: Callable[[Task], int]) -> None:
        """`asked_at` tells when somebody last asked for a worker on a task."""
        self._hub = hub
        self._rests = Rests(backoff)
        self._asked_at = asked_at

    def note(self, task: str, now: float, given_back: GivenBack | None) -> float | None:
        """An attempt on a task has ended, so or otherwise; until when it rests now, if it does."""
        return self._rests.note(task, now, given_back)

    async def tasks(self, now: float) -> set[str]:
        """Tasks that are left alone now; a word about one since it was given back ends that."""
        rests = self._rests.resting(now)
        if not rests:
            return set()
        called = await asyncio.to_thread(lambda: set(filter(self._is_called_for, rests)))
        for rest in called:
            self._rests.end(rest.task)
        return {rest.task for rest in rests if rest not in called}

    def words(self, queues: Collection[str], now: float) -> str:
        """What is told of the first of these queues that will be free; empty: nothing rests."""
        rests = [one for one in self._rests.resting(now) if one.given_back.queue in queues]
        if not rests:
            return ""
        first = min(rests, key=lambda one: one.until)
        return first.words(self._hub.clock.now() + round((first.until - now) * 1_000))

    def _is_called_for(self, rest: Rest) -> bool:
        view, given_back_at = find_task(self._hub.store, rest.task), rest.given_back.at
        if isinstance(view, Refusal) or view.task.moved_at != given_back_at:
            return True
        return self._asked_at(view.task) >= given_back_at
