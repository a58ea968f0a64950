"""What can be chosen about CCOS."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from dragoman.core.offers import KEPT_BYTES, Policy


class Choices(Struct, frozen=True):
    """The settings that this dialect goes by."""

    policy: Policy = Policy()
    tries: int = 3
    """How many requests are made of an intent before it is given up."""
    patience_ms: int = 3_600_000
    """How long a request may take that has no deadline of its own."""
    called: Mapping[str, int] = {}
    """The agents that the settings say how to call -> how much each works on at a time."""
    kept_bytes: int = KEPT_BYTES
    """Outputs up to so many bytes stand whole in the ledger; of others only their digest."""


DEFAULTS: Final = Choices()
