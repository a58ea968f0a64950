"""What keeps a duty of the hub from its work: from all of it, or from a part."""

from msgspec import Struct


class Trouble(Struct, frozen=True):
    """What is wrong with a duty."""

    words: str = ""
    """Empty: nothing."""
    is_partial: bool = False
    """Whether the rest of its work is done, so that the hub can be relied on all the same."""


NONE = Trouble()
