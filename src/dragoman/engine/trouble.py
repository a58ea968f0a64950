"""What keeps a duty of the hub from its work: from all of it, or from a part."""

from msgspec import Struct

from dragoman.core.errors import DragomanError, StoreError
from dragoman.text.fault_words import in_words


class Trouble(Struct, frozen=True):
    """What is wrong with a duty."""

    words: str = ""
    """Empty: nothing."""
    is_partial: bool = False
    """Whether the rest of its work is done, so that the hub can be relied on all the same."""
    is_of_store: bool = False
    """Whether it is the store's, and so that of every other duty too."""


NONE = Trouble()


def trouble_of(error: DragomanError | OSError) -> Trouble:
    """What has kept a duty from its work."""
    return Trouble(in_words(error), is_of_store=isinstance(error, StoreError))
