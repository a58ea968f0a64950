"""The files face: how fast files follow the ledger, beside the raw atomic write of this disk."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from bench.aof import AGENT, claim_tasks, task_ids
from bench.callers import open_hub
from dragoman.core.attempt import ReportOutcome
from dragoman.engine.hub import Hub
from dragoman.files.projector import Projector
from dragoman.protocols import aof
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import new_id
from dragoman.system.safe_fs import SafeDisk

_CONTENT = b"." * 500
"""As long as the file of an ordinary task."""


def raw_writes(folder: Path, seconds: float) -> float:
    """Files per second, each written whole and durably: temp, fsync, rename, folder fsync."""
    written, start = 0, perf_counter()
    parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    while perf_counter() < start + seconds:
        new = os.open("next", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=parent)
        os.write(new, _CONTENT)
        os.fsync(new)
        os.close(new)
        os.rename("next", f"{written}.md", src_dir_fd=parent, dst_dir_fd=parent)
        os.fsync(parent)
        written += 1
    os.close(parent)
    return written / (perf_counter() - start)


def following(folder: Path, tasks: int, seconds: float) -> float:
    """Files per second of the projector behind agents that report, all tasks again and again."""
    spent, turn = 0.0, 0
    with _projected(folder, tasks) as (hub, projector, disk):
        projector.catch_up()
        disk.replaced = 0
        while spent < seconds:
            turn += 1
            reports = (ReportOutcome(task, "done", notes=f"{turn}") for task in task_ids(tasks))
            hub.submit(AGENT, *reports)
            start = perf_counter()
            projector.catch_up()
            spent += perf_counter() - start
    return disk.replaced / spent


def rebuilding(folder: Path, tasks: int) -> float:
    """Files per second when there are none and all tasks get theirs."""
    with _projected(folder, tasks) as (_, projector, disk):
        start = perf_counter()
        projector.rebuild(lambda _: None)
        return disk.replaced / (perf_counter() - start)


class _CountingDisk(SafeDisk):
    """The disk of the files face; every file that is written whole ends with a `replace`."""

    replaced = 0

    def replace(self, old: str, new: str) -> None:
        super().replace(old, new)
        self.replaced += 1


@contextmanager
def _projected(folder: Path, tasks: int) -> Generator[tuple[Hub, Projector, _CountingDisk]]:
    with open_hub(SqliteStore.open(folder / "dragoman.db", new_id)) as hub:
        claim_tasks(hub, task_ids(tasks))
        disk = _CountingDisk(folder)
        yield hub, Projector(hub, disk, aof.render_lines, print), disk
