"""How a stream tells its reader that it goes on from another position than it was to."""

from dragoman.engine.subscribe import Gap
from dragoman.surfaces.http.office import Office
from dragoman.surfaces.http.problems import encode


def gap_frame(office: Office, gap: Gap) -> bytes:
    """The gap as a server-sent event; back, from a position that there is not (yet)."""
    office.metrics.gaps += 1
    return b"id: %d\nevent: gap\ndata: %s\n\n" % (gap.until, encode(gap))
