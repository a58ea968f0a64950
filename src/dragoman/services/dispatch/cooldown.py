"""Cooldown before a released task is dispatched again.

The task is ready all the same, and an agent that asks for work itself may claim it: only the
dispatcher waits, with a backoff, or until somebody writes about the task. The state is in memory: a
restarted hub tries once more.
"""

import asyncio
from collections.abc import Callable, Collection

from msgspec import Struct

from dragoman.core.backoff import Backoff, backoff_delay
from dragoman.core.errors import Refusal
from dragoman.core.task_state import Task
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.hub import Hub
from dragoman.engine.queries.tasks import find_task


class ReleaseEvent(Struct, frozen=True):
    """An agent's release of a task that could be claimed again at once."""

    agent: str
    queue: str
    """Queue of the task: a name, or "" for anyone."""
    released_at: int
    """Time of the release; the task has not moved since."""


class Cooldown(Struct, frozen=True):
    """Cooldown of a task."""

    task: str
    release: ReleaseEvent
    release_count: int
    """Consecutive releases."""
    until: float

    def format(self, until: int) -> str:
        """Message for a person, with the end as a timestamp."""
        often = f" {self.release_count} times" if self.release_count > 1 else ""
        who = self.release.agent
        return f"{self.task} is in cooldown until {to_rfc3339(until)}: {who} released it{often}"


class CooldownTable:
    """Consecutive releases of each task, and the end of its cooldown."""

    def __init__(self, backoff: Backoff) -> None:
        """`backoff` sets the lengths, as after failures."""
        self._backoff = backoff
        self._cooldowns: dict[str, Cooldown] = {}

    def record_end(self, task: str, now: float, release: ReleaseEvent | None) -> float | None:
        """Record the end of an attempt; the end of the cooldown, if one begins."""
        previous = self._cooldowns.pop(task, None)
        if release is None:
            return None
        release_count = 1 if previous is None else previous.release_count + 1
        until = now + backoff_delay(release_count, self._backoff) / 1_000
        self._cooldowns[task] = Cooldown(task, release, release_count, until)
        return until

    def clear(self, task: str) -> None:
        """Forget the cooldown and its count."""
        self._cooldowns.pop(task, None)

    def active(self, now: float) -> list[Cooldown]:
        """Cooldowns in effect; those that ended long ago are forgotten."""
        longest = self._backoff.cap_ms / 1_000
        self._cooldowns = {
            task: rest for task, rest in self._cooldowns.items() if now < rest.until + longest
        }
        return [rest for rest in self._cooldowns.values() if now < rest.until]


class Cooldowns:
    """Cooldowns of a hub's tasks, lifted when somebody writes about the task."""

    def __init__(self, hub: Hub, backoff: Backoff, requested_at: Callable[[Task], int]) -> None:
        """`requested_at` returns when somebody last asked for a worker on a task."""
        self._hub = hub
        self._table = CooldownTable(backoff)
        self._requested_at = requested_at

    def record_end(self, task: str, now: float, release: ReleaseEvent | None) -> float | None:
        """Record the end of an attempt; the end of the cooldown, if one begins."""
        return self._table.record_end(task, now, release)

    async def active_tasks(self, now: float) -> set[str]:
        """Tasks that cool down now; a message about one since its release lifts the cooldown."""
        cooldowns = self._table.active(now)
        if not cooldowns:
            return set()
        lifted = await asyncio.to_thread(lambda: set(filter(self._is_lifted, cooldowns)))
        for rest in lifted:
            self._table.clear(rest.task)
        return {rest.task for rest in cooldowns if rest not in lifted}

    def describe_next(self, queues: Collection[str], now: float) -> str:
        """Message about the first task of these queues whose cooldown ends; empty: none."""
        cooldowns = [one for one in self._table.active(now) if one.release.queue in queues]
        if not cooldowns:
            return ""
        first = min(cooldowns, key=lambda one: one.until)
        return first.format(self._hub.clock.now() + round((first.until - now) * 1_000))

    def _is_lifted(self, cooldown: Cooldown) -> bool:
        view, released_at = find_task(self._hub.store, cooldown.task), cooldown.release.released_at
        if isinstance(view, Refusal) or view.task.moved_at != released_at:
            return True
        return self._requested_at(view.task) >= released_at
