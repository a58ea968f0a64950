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
    StandingEvent,
)
from dragoman.core.offers import Trust

REMEMBERED: Final = 32
"""Latest results that count: what an agent did long ago is forgotten."""

WEEK_MS: Final = 7 * 86_400_000
"""With each whole week without a result, the evidence about an agent weighs half as much."""

_MOST_WEEKS: Final = 60
_GOOD, _BAD = "1", "0"


class Descriptor(Struct, frozen=True, omit_defaults=True):
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


class Standing(Struct, frozen=True, omit_defaults=True):
    """Capabilities and record of an agent in the registry."""

    name: str
    descriptor: Descriptor | None = None
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

    def has_its_hands_full(self, most: int) -> bool:
        """True if it has as many requests as it takes on at a time; 0: unlimited."""
        return 0 < most <= self.open

    def evidence(self, now: int) -> "Evidence":
        """Evidence of its latest results for the next one."""
        weeks = min(max(now - self.rated_at, 0) // WEEK_MS, _MOST_WEEKS)
        weight = 0.5**weeks  # a power of two: the same on every machine
        return Evidence(len(self.recent) * weight, self.recent.count(_GOOD) * weight)


class Evidence(Struct, frozen=True, gc=False):
    """Number of results and of successes; older ones may count in part."""

    samples: float
    successes: float

    @property
    def lower(self) -> float:
        """Lower bound of the success rate (Wilson, one sigma)."""
        return self._bounds()[0]

    @property
    def upper(self) -> float:
        """Upper bound of the success rate."""
        return self._bounds()[1]

    def _bounds(self) -> tuple[float, float]:
        n, good = self.samples, self.successes
        if not n:
            return 0.0, 1.0
        middle = (good + 0.5) / (n + 1)
        reach = sqrt(good * (n - good) / n + 0.25) / (n + 1)
        return max(0.0, middle - reach), min(1.0, middle + reach)


def lists_of_standing(standing: Standing) -> tuple[str, ...]:
    """Keys of the lists it stands on: the roster of all candidates."""
    return () if standing.descriptor is None else ("roster",)


def _described(standing: Standing | None, event: AgentDescribed, at: int) -> Standing:
    del at
    descriptor = Descriptor(
        event.skills,
        event.constraints,
        event.locality,
        event.trust,
        event.cost,
        event.latency_ms,
        event.capacity,
        event.reach,
    )
    return replace(standing or Standing(event.name), descriptor=descriptor)


def _assigned(standing: Standing | None, event: AgentAssigned, at: int) -> Standing:
    del at
    known = standing or Standing(event.name)
    return replace(known, assigned=known.assigned + 1, open=known.open + 1)


def _relieved(standing: Standing, event: AgentRelieved, at: int) -> Standing:
    del event, at
    return replace(standing, open=standing.open - 1)


def _rated(standing: Standing, event: AgentRated, at: int) -> Standing:
    recent = (standing.recent + (_GOOD if event.success else _BAD))[-REMEMBERED:]
    is_first = not standing.recent
    took = event.duration_ms if is_first else (7 * standing.latency_ms + event.duration_ms) // 8
    return replace(
        standing,
        successes=standing.successes + event.success,
        failures=standing.failures + (not event.success),
        recent=recent,
        rated_at=at,
        latency_ms=took,
        open=standing.open - 1,
    )


EVOLVE_STANDING: dict[type[StandingEvent], Callable[[Any, Any, int], Standing]] = {
    AgentDescribed: _described,
    AgentAssigned: _assigned,
    AgentRelieved: _relieved,
    AgentRated: _rated,
}
"""Event -> fold: the reputation after it, from the one before it (None at first) and its time."""
