"""A process that makes a data directory of an exported one, and may die while it does."""

from pathlib import Path

from msgspec import Struct

from dragoman.bootstrap.places import import_archive
from tests.crash.hub_run import Report, Reporter
from tests.crash.kill_points import Kill, KillPoints


class ImportJob(Struct, frozen=True, tag="restore"):
    """What is imported, and when the process is to die."""

    archive: str
    data: str
    reports: str
    kill: Kill = Kill()
    microseconds: int = 0


def run_import(job: ImportJob) -> None:
    """Import the archive."""
    report = Reporter(job.reports)
    points = KillPoints(job.kill, lambda name: report(Report("dies", text=name)))
    points.stage = "restore"
    points.install()
    import_archive(Path(job.archive), Path(job.data), "", lambda _: None)
