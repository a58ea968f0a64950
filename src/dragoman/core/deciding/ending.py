"""How the request to an agent ends: by its result, or by the hub's own word."""

from msgspec import Struct

NO_FEEDBACK_REASONS: frozenset[str] = frozenset({"cancelled", "blocked", "given up", "unsent"})
"""Reasons for which the hub ends a request without feedback for the agent: a person decided so, or
it was never dispatched.
"""


class RequestOutcome(Struct, frozen=True):
    """Outcome of a request: its result, or the reason for which the hub ended it."""

    success: bool
    error: str = ""
    synthetic: str = ""
    """Reason for which the hub itself ends it; empty: it has a result."""
    digest: str = ""
    output: object = None
    left_out: int = 0
    passed_on: dict[str, object] = {}

    @property
    def counts_for_agent(self) -> bool:
        """True if the outcome counts for or against the agent."""
        return self.synthetic not in NO_FEEDBACK_REASONS
