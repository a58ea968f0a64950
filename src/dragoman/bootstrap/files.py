"""The plain-files face of a data directory: what is read there, written there, and seen to."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import monotonic

from dragoman.bootstrap.duties import FileServices
from dragoman.engine.facts import StoreFacts
from dragoman.engine.hints import DirtyStreams
from dragoman.engine.hub import Hub
from dragoman.engine.reads.handoffs import needed_artifact_hashes
from dragoman.files.handoffs.copies import ArtifactCleanup
from dragoman.files.inbox import Inbox
from dragoman.files.projector import Projector
from dragoman.files.tasks.lookup import has_task_file
from dragoman.protocols import aof
from dragoman.services.projector import FileService
from dragoman.system.beneath import SafeDisk
from dragoman.system.clock import SystemClock


class FileProjection:
    """Projection, inbox and folders of one hub's data directory."""

    def __init__(
        self, data: Path, hub: Hub, warn: Callable[[str], None], *, trust_moves: bool
    ) -> None:
        self._data = data
        self._hub = hub
        self._warn = warn
        self.disk = SafeDisk(data)
        self.projector = Projector(hub, self.disk, aof.render_lines, warn, trust_moves=trust_moves)

    def facts(self) -> StoreFacts:
        """Facts that operations look up in the store and in the folders of tasks."""
        hub, runs = self._hub, FileService("runs", self._check_runs, self._warn)
        return StoreFacts(
            hub.store, self._has_file, lambda: runs.run_once(hub.clock.now()), hub.clock.now
        )

    def services(
        self, inbox: Inbox, sweep: Callable[[int], int], renewed_leases: DirtyStreams
    ) -> FileServices:
        """Services for the files; `sweep` removes what a crash has left of artifacts."""
        projector, warn, now = self.projector, self._warn, self._hub.clock.now
        return FileServices(
            inbox=(
                FileService(
                    "inbox",
                    lambda: inbox.run_once(now()),
                    warn,
                    find_leftovers=inbox.failure_summary,
                ),
            ),
            polled=(
                FileService("files", projector.scan, warn, monotonic),
                FileService("artifacts", lambda: sweep(now()), warn),
            ),
            commit_driven=(
                FileService(
                    "projection",
                    lambda: projector.catch_up(renewed_leases.take()),
                    warn,
                    find_leftovers=projector.failure_summary,
                ),
            ),
            cleanup=(FileService("copies", self._artifact_copies().remove_old, warn, monotonic),),
        )

    def _artifact_copies(self) -> ArtifactCleanup:
        """Cleanup of artifact copies that no handoff needs, by the time of the disk."""
        store = self._hub.store
        return ArtifactCleanup(
            lambda: SafeDisk(self._data), lambda: needed_artifact_hashes(store), SystemClock().now
        )

    # Facts are looked up in any thread of a running hub, while another one writes files: each
    # lookup has a disk of its own.

    def _has_file(self, task: str, ref: str) -> bool:
        with closing(SafeDisk(self._data)) as disk:
            return has_task_file(self._hub.store, disk, task, ref)

    def _check_runs(self) -> int:
        with closing(SafeDisk(self._data)) as disk:
            Projector(self._hub, disk, aof.render_lines, self._warn).check_runs()
        return 0
