"""A process that makes a data directory of an exported one, and may die while it does."""

from pathlib import Path

from msgspec import Struct

from dragoman.bootstrap.places import import_archive
from tests.crash.life import Said, Voice
from tests.crash.points import Kill, Points


class Restoration(Struct, frozen=True, tag="restore"):
    """What is imported, and when the process is to die."""

    archive: str
    data: str
    said: str
    kill: Kill = Kill()
    microseconds: int = 0


def restore(job: Restoration) -> None:
    """Import the archive."""
    say = Voice(job.said)
    points = Points(job.kill, lambda name: say(Said("dies", text=name)))
    points.stage = "restore"
    points.install()
    import_archive(Path(job.archive), Path(job.data), "", lambda _: None)
