"""How the request to an agent ends: by its result, or by the hub's own word."""

from msgspec import Struct

TAKEN_BACK: frozenset[str] = frozenset({"cancelled", "blocked", "given up", "unsent"})
"""Why the hub has ended a request, where that says nothing about the agent: by a person's word, or
because it was never handed over."""


class Ending(Struct, frozen=True):
    """How a request has ended."""

    success: bool
    error: str = ""
    synthetic: str = ""
    """Why the hub itself ends it."""
    digest: str = ""
    output: object = None
    left_out: int = 0
    passed_on: dict[str, object] = {}

    @property
    def feedback(self) -> bool:
        """Whether it says anything about the agent."""
        return self.synthetic not in TAKEN_BACK
