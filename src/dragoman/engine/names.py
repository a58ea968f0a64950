"""Names of tasks: which streams one stands for, and why it may stand for none."""

from collections.abc import Sequence

from dragoman.core import missing
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_alias, check_task_id
from dragoman.ledger.views import REQUEST_ID


def is_storable_name(name: str) -> bool:
    """True for a name that every database can store."""
    return name.isascii() and name.isprintable()


def streams_named(kind: str, aliases: Sequence[tuple[str, str]]) -> Sequence[str]:
    """The streams of the tasks that have this alias, of one kind or (empty) of any."""
    if not aliases:
        return ()
    tasks = (stream for k, stream in aliases if k != REQUEST_ID and kind in ("", k))
    return tuple(dict.fromkeys(tasks))


def unresolved_name(name: str, streams: Sequence[str]) -> Refusal:
    """The refusal of a name that does not lead to one task."""
    if streams:
        tasks = ", ".join(stream.partition(":")[2] for stream in streams)
        return Refusal(
            "ambiguous_name",
            f"{name} names several tasks: {tasks}; use the id of one, or put the kind of the name "
            f"before it, as in bead:{name}",
        )
    malformed = check_alias(name) if ":" in name else check_task_id(name)
    return malformed or missing.task(name)
