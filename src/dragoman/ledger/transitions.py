"""The id of a task's move as an event of a trace: a UUID that is made of its entry's hash."""

from dragoman.text.uuid8 import uuid8


def transition_id(digest: bytes) -> str:
    """The id of a task's move as a trace event: a UUID made of its entry's hash, the same in every
    copy of the ledger."""
    return uuid8(digest)
