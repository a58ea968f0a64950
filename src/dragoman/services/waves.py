"""Wave progress: starts the next beads as slots and files become free, closes finished waves.

All state is in the ledger and read anew in each run, so a wave goes on wherever the hub or its
orchestrator stopped.
"""

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.errors import LedgerError, Refusal, Refused
from dragoman.core.wave import AdvanceWave
from dragoman.engine.hub import Hub
from dragoman.engine.queries.waves import find_wave, open_wave_ids, wave_status


class WaveService:
    """Advances every open wave as far as possible."""

    name = "waves"

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def run_once(self, now: int) -> int:
        """Advance each open wave by one step; the number that moved."""
        return sum(self._advance(id, now) for id in list(open_wave_ids(self._hub.store)))

    def _advance(self, id: str, now: int) -> bool:
        """Advance a wave; True if it moved. One that cannot be read does not stop the others."""
        try:
            wave = find_wave(self._hub.store, id)
            if isinstance(wave, Refusal):
                return False
            inspection = wave_status(self._hub.store, wave, now)
            if inspection.plan.is_idle:
                return False
            self._hub.submit(HUB_ACTOR, AdvanceWave(wave.id, dict(inspection.stuck_reasons)))
        except (LedgerError, Refused):
            return False
        return True
