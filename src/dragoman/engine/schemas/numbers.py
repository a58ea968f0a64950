"""Resource schemas of the numbers of the last days."""

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.queries.numbers import Counts, Numbers


class CountsResource(Struct, frozen=True, rename="camel", kw_only=True):
    """Counts of some time; a time in milliseconds is the sum over what it is about."""

    attempts: int
    """Attempts that began."""
    finished: int
    """Tasks that became done."""
    failures: int
    """Attempts that failed or vanished."""
    given_up: int
    """Tasks that became deadletter."""
    questions: int
    """Questions that were asked."""
    answers: int
    answer_ms: int
    """Time that the answered questions had waited."""
    reviews: int
    """Reviews that ended."""
    review_ms: int
    """Time that they had lasted."""
    tokens: float
    cost: float
    """As agents report it of their attempts, in their own unit; 0: nothing."""


class HourResource(CountsResource, frozen=True, kw_only=True):
    """Counts of an hour (UTC)."""

    at: str
    """Beginning of the hour."""


class AgentCountsResource(CountsResource, frozen=True, kw_only=True):
    """Counts of an agent."""

    name: str


class NumbersResource(Struct, frozen=True):
    """Counts of the last days, from the ledger."""

    at: str
    since: str
    """Time from which on everything is counted; of a very long ledger it may be later than asked
    for."""
    total: CountsResource
    hours: tuple[HourResource, ...]
    """Hours in which something happened, the oldest first."""
    agents: tuple[AgentCountsResource, ...]


def numbers_resource(numbers: Numbers) -> NumbersResource:
    """The resource of the numbers."""
    return NumbersResource(
        to_rfc3339(numbers.now),
        to_rfc3339(numbers.since),
        CountsResource(**_rounded(numbers.total)),
        tuple(HourResource(at=to_rfc3339(at), **_rounded(one)) for at, one in numbers.hours),
        tuple(AgentCountsResource(name=name, **_rounded(one)) for name, one in numbers.agents),
    )


def _rounded(counts: Counts) -> dict[str, Any]:
    """Round what was added up, so that 0.1 + 0.2 is 0.3."""
    return {name: round(value, 6) for name, value in asdict(counts).items()}
