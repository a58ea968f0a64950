"""The plain-files face of a data directory: what is read there, written there, and seen to."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import monotonic

from dragoman.bootstrap.duties import OfFiles
from dragoman.engine.facts import StoreFacts
from dragoman.engine.hints import Heard
from dragoman.engine.hub import Hub
from dragoman.engine.reads.handoffs import copies_needed
from dragoman.files.handoffs.copies import Copies
from dragoman.files.inbox import Inbox
from dragoman.files.projector import Projector
from dragoman.files.tasks.lookup import has_file
from dragoman.protocols import aof
from dragoman.services.projector import FilesDuty
from dragoman.system.beneath import Beneath
from dragoman.system.clock import SystemClock


class FilesFace:
    """Projection, inbox and folders of one hub's data directory."""

    def __init__(
        self, data: Path, hub: Hub, warn: Callable[[str], None], *, trust_moves: bool
    ) -> None:
        self._data = data
        self._hub = hub
        self._warn = warn
        self.disk = Beneath(data)
        self.projector = Projector(hub, self.disk, aof.render_lines, warn, trust_moves=trust_moves)

    def facts(self) -> StoreFacts:
        """Facts that operations look up in the store and in the folders of tasks."""
        hub, runs = self._hub, FilesDuty("runs", self._look_at_runs, self._warn)
        return StoreFacts(
            hub.store, self._has, lambda: runs.run_once(hub.clock.now()), hub.clock.now
        )

    def duties(self, inbox: Inbox, sweep: Callable[[int], int], beaten: Heard) -> OfFiles:
        """Services for the files; `sweep` removes what a crash has left of artifacts."""
        projector, warn, now = self.projector, self._warn, self._hub.clock.now
        return OfFiles(
            inbox=(FilesDuty("inbox", lambda: inbox.run_once(now()), warn, left=inbox.trouble),),
            watched=(
                FilesDuty("files", projector.sweep, warn, monotonic),
                FilesDuty("artifacts", lambda: sweep(now()), warn),
            ),
            followers=(
                FilesDuty(
                    "projection",
                    lambda: projector.level(beaten.take()),
                    warn,
                    left=projector.trouble,
                ),
            ),
            swept=(FilesDuty("copies", self._copies().sweep, warn, monotonic),),
        )

    def _copies(self) -> Copies:
        """Cleanup of artifact copies that no handoff needs, by the time of the disk."""
        store = self._hub.store
        return Copies(lambda: Beneath(self._data), lambda: copies_needed(store), SystemClock().now)

    # Facts are looked up in any thread of a running hub, while another one writes files: each
    # lookup has a disk of its own.

    def _has(self, task: str, ref: str) -> bool:
        with closing(Beneath(self._data)) as looking:
            return has_file(self._hub.store, looking, task, ref)

    def _look_at_runs(self) -> int:
        with closing(Beneath(self._data)) as looking:
            Projector(self._hub, looking, aof.render_lines, self._warn).look_at_runs()
        return 0
