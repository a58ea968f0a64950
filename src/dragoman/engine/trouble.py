"""What keeps a duty of the hub from its work: from all of it, or from a part."""

from msgspec import Struct

from dragoman.core.errors import DragomanError, StoreError
from dragoman.text.fault_words import in_words


class Trouble(Struct, frozen=True):
    """The problem of a background service."""

    words: str = ""
    """The message; empty: no problem."""
    is_partial: bool = False
    """True if only a part of its work is not done, so that the hub is usable all the same."""
    is_of_store: bool = False
    """True if it is the store's problem, and so that of every service."""


NONE = Trouble()


def trouble_of(error: DragomanError | OSError) -> Trouble:
    """The health problem that an error stands for."""
    return Trouble(in_words(error), is_of_store=isinstance(error, StoreError))
