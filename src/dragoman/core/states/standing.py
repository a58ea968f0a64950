"""How an agent stands in the registry: what it offers, and what was learned of it (S-CCOS-5).

Folded from the stream `standing:NAME`, apart from what the agent is recognized by: this changes
with each piece of work.
"""

from collections.abc import Callable
from math import sqrt
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.events import (
    AgentAssigned,
    AgentDescribed,
    AgentRated,
    AgentRelieved,
    ReputationEvent,
)
from dragoman.core.offers import Trust

REMEMBERED_RESULTS: Final = 32
"""Latest results that count: what an agent did long ago is forgotten."""

EVIDENCE_HALF_LIFE_MS: Final = 7 * 86_400_000
"""With each whole week without a result, the evidence about an agent weighs half as much."""

_MAX_HALF_LIVES: Final = 60
_SUCCESS, _FAILURE = "1", "0"


class AgentDescriptor(Struct, frozen=True, omit_defaults=True):
    """Capabilities of an agent, its terms, and its endpoint."""

    skills: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    locality: tuple[str, ...] = ()
    trust: Trust = "T0"
    cost: float = 0.0
    latency_ms: int = 0
    capacity: int = 0
    """Requests it takes on at a time; 0: any number."""
    reach: str = ""


class Reputation(Struct, frozen=True, omit_defaults=True):
    """Capabilities and record of an agent in the registry."""

    name: str
    descriptor: AgentDescriptor | None = None
    """None: not described, so that it is no candidate."""
    successes: int = 0
    failures: int = 0
    recent: str = ""
    """Latest results, oldest first: 1 for a success, 0 for a failure."""
    rated_at: int = 0
    """When the last result came."""
    latency_ms: int = 0
    """Moving average of the duration of its requests."""
    assigned: int = 0
    """Requests it was ever given."""
    open: int = 0
    """Requests it has not finished."""

    def is_at_capacity(self, capacity: int) -> bool:
        """True if it has as many requests as it takes on at a time; 0: unlimited."""
        return 0 < capacity <= self.open

    def evidence(self, now: int) -> "Evidence":
        """Evidence of its latest results for the next one."""
        weeks = min(max(now - self.rated_at, 0) // EVIDENCE_HALF_LIFE_MS, _MAX_HALF_LIVES)
        weight = 0.5**weeks  # a power of two: the same on every machine
        return Evidence(len(self.recent) * weight, self.recent.count(_SUCCESS) * weight)


class Evidence(Struct, frozen=True, gc=False):
    """Number of results and of successes; older ones may count in part."""

    samples: float
    successes: float

    @property
    def lower_bound(self) -> float:
        """Lower bound of the success rate (Wilson, one sigma)."""
        return self._bounds()[0]

    @property
    def upper_bound(self) -> float:
        """Upper bound of the success rate."""
        return self._bounds()[1]

    def _bounds(self) -> tuple[float, float]:
        samples, successes = self.samples, self.successes
        if not samples:
            return 0.0, 1.0
        center = (successes + 0.5) / (samples + 1)
        margin = sqrt(successes * (samples - successes) / samples + 0.25) / (samples + 1)
        return max(0.0, center - margin), min(1.0, center + margin)


def reputation_list_keys(reputation: Reputation) -> tuple[str, ...]:
    """Keys of the lists it stands on: the roster of all candidates."""
    return () if reputation.descriptor is None else ("roster",)


def _fold_described(reputation: Reputation | None, event: AgentDescribed, at: int) -> Reputation:
    del at
    descriptor = AgentDescriptor(
        event.skills,
        event.constraints,
        event.locality,
        event.trust,
        event.cost,
        event.latency_ms,
        event.capacity,
        event.reach,
    )
    return replace(reputation or Reputation(event.name), descriptor=descriptor)


def _fold_assigned(reputation: Reputation | None, event: AgentAssigned, at: int) -> Reputation:
    del at
    reputation_before = reputation or Reputation(event.name)
    return replace(
        reputation_before, assigned=reputation_before.assigned + 1, open=reputation_before.open + 1
    )


def _fold_relieved(reputation: Reputation, event: AgentRelieved, at: int) -> Reputation:
    del event, at
    return replace(reputation, open=reputation.open - 1)


def _fold_rated(reputation: Reputation, event: AgentRated, at: int) -> Reputation:
    recent = (reputation.recent + (_SUCCESS if event.success else _FAILURE))[-REMEMBERED_RESULTS:]
    is_first = not reputation.recent
    latency_ms = (
        event.duration_ms if is_first else (7 * reputation.latency_ms + event.duration_ms) // 8
    )
    return replace(
        reputation,
        successes=reputation.successes + event.success,
        failures=reputation.failures + (not event.success),
        recent=recent,
        rated_at=at,
        latency_ms=latency_ms,
        open=reputation.open - 1,
    )


REPUTATION_FOLDS: dict[type[ReputationEvent], Callable[[Any, Any, int], Reputation]] = {
    AgentDescribed: _fold_described,
    AgentAssigned: _fold_assigned,
    AgentRelieved: _fold_relieved,
    AgentRated: _fold_rated,
}
"""Event -> fold: the reputation after it, from the one before it (None at first) and its time."""
