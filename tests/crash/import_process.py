"""Process that imports an archive into a data directory and may be killed."""

from pathlib import Path

from msgspec import Struct

from dragoman.bootstrap.archives import restore_archive
from tests.crash.data_directories import no_progress
from tests.crash.hub_run import Report, Reporter
from tests.crash.kill_points import Kill, KillPoints


class ImportJob(Struct, frozen=True, tag="restore"):
    """Archive and target, and the point at which the process is killed."""

    archive: str
    data: str
    reports: str
    kill: Kill = Kill()
    microseconds: int = 0


def run_import(job: ImportJob) -> None:
    report = Reporter(job.reports)
    points = KillPoints(job.kill, lambda name: report(Report("dies", text=name)))
    points.stage = "restore"
    points.install()
    restore_archive("export", Path(job.archive), Path(job.data), "", no_progress)
