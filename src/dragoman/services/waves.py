"""Waves: beads are let go as places and files become free, and a finished wave is closed.

All that matters is in the ledger: each round looks at it anew, so that a wave goes on wherever the
hub or its orchestrator stopped.
"""

from dragoman.core.actors import SYSTEM
from dragoman.core.commands import AdvanceWave, MoveTask
from dragoman.core.errors import LedgerError, Refusal, Refused
from dragoman.core.states.task import Task
from dragoman.core.states.wave import Wave, tasks_of
from dragoman.engine.hub import Hub
from dragoman.engine.reads.waves import (
    failures_of,
    find_wave,
    look_at_wave,
    open_waves,
    task_finder,
)


class Waves:
    """Takes every open wave as far as it can go."""

    name = "waves"

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def run_once(self, now: int) -> int:
        """One step of each wave that has one to make; how many there were."""
        return sum(self._step(id, now) for id in list(open_waves(self._hub.store)))

    def _step(self, id: str, now: int) -> bool:
        """Whether something was done; what cannot be done for one wave does not stop the others."""
        try:
            wave = find_wave(self._hub.store, id)
            if isinstance(wave, Refusal):
                return False
            given_up = self._give_up(wave) if wave.retries else 0
            seen = look_at_wave(self._hub.store, wave, now)
            if seen.plan.is_idle:
                return given_up > 0
            self._hub.do(SYSTEM, AdvanceWave(wave.id, dict(seen.stuck)))
        except (LedgerError, Refused):
            return False
        return True

    def _give_up(self, wave: Wave) -> int:
        """Block the beads that failed too often in one way; how many there were."""
        find, store = task_finder(self._hub.store), self._hub.store
        blocked = 0
        for task in tasks_of(wave, find):
            # While somebody works on it, the attempt may still succeed.
            if task.status == "ready" and (task.failures or task.checkpoint is not None):
                counted = failures_of(store, task, wave.started_at)
                blocked += self._blocked(wave, task, dict(counted))
        return blocked

    def _blocked(self, wave: Wave, task: Task, failures: dict[str, int]) -> bool:
        for type, count in failures.items():
            allowed = wave.retries.get(type)
            if allowed is not None and count > allowed:
                retries = "1 retry" if allowed == 1 else f"{allowed} retries"
                often = "once" if count == 1 else f"{count} times"
                reason = f"failed {often} with {type}; wave {wave.id} allows {retries}"
                self._hub.do(SYSTEM, MoveTask(task.id, "blocked", reason))
                return True
        return False
