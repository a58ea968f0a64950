"""Settings of CCOS."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from dragoman.core.intent.candidate import DEFAULT_MAX_OUTPUT_BYTES, Policy


class Choices(Struct, frozen=True):
    """Settings of this dialect."""

    policy: Policy = Policy()
    max_agents: int = 3
    """Number of failed requests after which an intent is given up."""
    patience_ms: int = 3_600_000
    """Time limit of a request without a deadline of its own."""
    concurrency: Mapping[str, int] = {}
    """Agents that the hub calls, by the settings -> how many requests each works on at a time."""
    review_required: bool = False
    """Review the work for an intent."""
    max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES
    """Largest output that is stored in the ledger; of a larger one only its digest is."""


DEFAULTS: Final = Choices()
