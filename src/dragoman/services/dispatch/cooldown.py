"""Cooldown before a released task is dispatched again.

The task is ready all the same, and an agent that asks for work itself may claim it: only the
dispatcher waits, with a backoff. The state is in memory: a restarted hub tries once more.
"""

from collections.abc import Collection

from msgspec import Struct

from dragoman.core.backoff import Backoff, backoff_delay


class ReleaseEvent(Struct, frozen=True):
    """An agent's release of a task that could be claimed again at once."""

    agent: str
    queue: str
    """Queue of the task: a name, or "" for anyone."""


class Cooldown(Struct, frozen=True):
    """Cooldown of a task."""

    task: str
    release: ReleaseEvent
    release_count: int
    """Consecutive releases."""
    until: float


class Cooldowns:
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

    def active(self, now: float) -> list[Cooldown]:
        """Cooldowns in effect; those that ended long ago are forgotten."""
        longest = self._backoff.cap_ms / 1_000
        self._cooldowns = {
            task: one for task, one in self._cooldowns.items() if now < one.until + longest
        }
        return [one for one in self._cooldowns.values() if now < one.until]

    def describe_next(self, queues: Collection[str], now: float) -> str:
        """Message about the first task of these queues whose cooldown ends; empty: none."""
        cooldowns = [one for one in self.active(now) if one.release.queue in queues]
        if not cooldowns:
            return ""
        first = min(cooldowns, key=lambda one: one.until)
        often = f" {first.release_count} times" if first.release_count > 1 else ""
        return (
            f"{first.task} is in cooldown for {first.until - now:.0f} s: {first.release.agent} "
            f"released it{often}"
        )
