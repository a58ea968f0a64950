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
    """An agent's release of a task that could be claimed again at once."""

    by: str
    queue: str
    """Queue of the task: a name, or "" for anyone."""
    at: int
    """Time of the release; the task has not moved since."""


class Rest(Struct, frozen=True):
    """Cooldown of a task."""

    task: str
    given_back: GivenBack
    times: int
    """Consecutive releases."""
    until: float

    def words(self, until: int) -> str:
        """Message for a person, with the end as a timestamp."""
        often = f" {self.times} times" if self.times > 1 else ""
        who = self.given_back.by
        return f"{self.task} is in cooldown until {to_rfc3339(until)}: {who} released it{often}"


class Rests:
    """Consecutive releases of each task, and the end of its cooldown."""

    def __init__(self, backoff: Backoff) -> None:
        """`backoff` sets the lengths, as after failures."""
        self._backoff = backoff
        self._rests: dict[str, Rest] = {}

    def note(self, task: str, now: float, given_back: GivenBack | None) -> float | None:
        """Record the end of an attempt; the end of the cooldown, if one begins."""
        before = self._rests.pop(task, None)
        if given_back is None:
            return None
        times = 1 if before is None else before.times + 1
        until = now + rest_after(times, self._backoff) / 1_000
        self._rests[task] = Rest(task, given_back, times, until)
        return until

    def end(self, task: str) -> None:
        """Forget the cooldown and its count."""
        self._rests.pop(task, None)

    def resting(self, now: float) -> list[Rest]:
        """Cooldowns in effect; those that ended long ago are forgotten."""
        longest = self._backoff.cap_ms / 1_000
        self._rests = {
            task: rest for task, rest in self._rests.items() if now < rest.until + longest
        }
        return [rest for rest in self._rests.values() if now < rest.until]


class LeftAlone:
    """Cooldowns of a hub's tasks, lifted when somebody writes about the task."""

    def __init__(self, hub: Hub, backoff: Backoff, asked_at: Callable[[Task], int]) -> None:
        """`requested_at` returns when somebody last asked for a worker on a task."""
        self._hub = hub
        self._rests = Rests(backoff)
        self._asked_at = asked_at

    def note(self, task: str, now: float, given_back: GivenBack | None) -> float | None:
        """Record the end of an attempt; the end of the cooldown, if one begins."""
        return self._rests.note(task, now, given_back)

    async def tasks(self, now: float) -> set[str]:
        """Tasks that cool down now; a message about one since its release lifts the cooldown."""
        rests = self._rests.resting(now)
        if not rests:
            return set()
        called = await asyncio.to_thread(lambda: set(filter(self._is_called_for, rests)))
        for rest in called:
            self._rests.end(rest.task)
        return {rest.task for rest in rests if rest not in called}

    def words(self, queues: Collection[str], now: float) -> str:
        """Message about the first task of these queues whose cooldown ends; empty: none."""
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
