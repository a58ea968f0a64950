"""The id of a task's move as an event of a trace: a UUID that is made of its entry's hash."""

from dragoman.text.uuid8 import uuid8


def transition_id(digest: bytes) -> str:
    """Always the same for the same entry, in every copy of the ledger."""
    return uuid8(digest)
