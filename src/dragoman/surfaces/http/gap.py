"""How a stream tells its reader that it goes on from another position than it was to."""

from dragoman.engine.subscribe import Gap
from dragoman.surfaces.http.office import AppContext
from dragoman.surfaces.http.problems import encode


def gap_frame(context: AppContext, gap: Gap) -> bytes:
    """Encode a gap as a server-sent event; it may lead back, from a position beyond the end."""
    context.metrics.gaps += 1
    return b"id: %d\nevent: gap\ndata: %s\n\n" % (gap.until, encode(gap))
