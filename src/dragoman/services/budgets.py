"""Budgets: how much an agent may use of a day (UTC), and how much it has used. Pure.

An attempt counts from its beginning, so that no two of them share the last one that is left; its
minutes and output count as they are used, its cost when it is known.
"""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.moments import to_rfc3339
from dragoman.text.strict_json import get_field

_MINUTE_MS = 60_000
_DAY_MS = 86_400_000
_MAX_COST = 1e12
"""Larger costs count as this one: no budget is larger."""
_LARGE = 100_000


class Budget(Struct, frozen=True):
    """Daily budget of an agent; 0 is no limit."""

    attempts: int = 0
    minutes: int = 0
    output: int = 0
    cost: float = 0


class OpenAttempt(Struct, frozen=True):
    """An attempt, by its number on its task."""

    task: str
    attempt: int


class FairShare(Struct, frozen=True, omit_defaults=True):
    """Fairness of dispatch: time of the last dispatch, and recent failures."""

    number: int = 0
    """Increases with each dispatch; 0: never dispatched."""
    failed: int = 0
    """Failed attempts of today since the last one that did not fail."""


class Usage(Struct, frozen=True, omit_defaults=True):
    """Usage of a day."""

    day: str = ""
    attempts: int = 0
    ms: int = 0
    output: int = 0
    cost: float = 0
    told: bool = False
    """True if it was paused for its budget, and a person was asked."""
    earlier: "Usage | None" = None
    """Usage of the same day before a person resumed the agent; it counts no more."""
    open: tuple[OpenAttempt, ...] = ()
    """Started attempts, of any day, whose cost is not recorded yet."""
    turn: FairShare = FairShare()


def day_of(now: int) -> str:
    """UTC day of a timestamp."""
    return to_rfc3339(now)[:10]


def usage_today(usage: Usage, now: int) -> Usage:
    """Usage of today; a new day keeps only open attempts, and forgets failures."""
    today = day_of(now)
    if usage.day == today:
        return usage
    return Usage(today, open=usage.open, turn=replace(usage.turn, failed=0))


def next_day_start(now: int) -> int:
    """Timestamp of the next day's start."""
    return (now // _DAY_MS + 1) * _DAY_MS


def record_start(usage: Usage, attempt: OpenAttempt, number: int = 0) -> Usage:
    """Count one more attempt; an open one that is resumed was counted when it started."""
    if attempt in usage.open:
        return usage
    share = replace(usage.turn, number=number)
    return replace(usage, attempts=usage.attempts + 1, open=(*usage.open, attempt), turn=share)


def undo_start(usage: Usage) -> Usage:
    """Discount an attempt whose agent could not be started."""
    return replace(usage, attempts=max(usage.attempts - 1, 0))


def record_end(usage: Usage, attempt: OpenAttempt, cost: float = 0) -> Usage:
    """Close an attempt and add its cost."""
    open_attempts = tuple(other for other in usage.open if other != attempt)
    return replace(usage, cost=usage.cost + cost, open=open_attempts)


def record_outcome(usage: Usage, *, has_failed: bool) -> Usage:
    """Count a failed attempt; one that did not fail resets the count."""
    failed = usage.turn.failed + 1 if has_failed else 0
    return replace(usage, turn=replace(usage.turn, failed=failed))


def add_usage(usage: Usage, *, ms: int, output: int) -> Usage:
    """Add time and output."""
    return replace(usage, ms=usage.ms + max(ms, 0), output=usage.output + output)


def reset_usage(usage: Usage, running: Usage) -> Usage:
    """Reset the usage, although runs in progress have used something already.

    Their figures are added when they end; until then they are subtracted, so that only new usage
    counts.
    """
    so_far = add_usage(total_usage(usage), ms=running.ms, output=running.output)
    earlier = replace(so_far, told=False, open=(), turn=FairShare())
    owed = Usage(usage.day, ms=-running.ms, output=-running.output, earlier=earlier)
    return replace(owed, open=usage.open, turn=usage.turn)


def clear_debts(usage: Usage) -> Usage:
    """Usage without debts, for when nothing runs: a killed hub has not added the figures of its
    runs.
    """
    return replace(usage, ms=max(usage.ms, 0), output=max(usage.output, 0))


def total_usage(usage: Usage) -> Usage:
    """Usage of the whole day, including what was reset."""
    earlier = usage.earlier
    if earlier is None:
        return usage
    return replace(
        usage,
        attempts=usage.attempts + earlier.attempts,
        ms=usage.ms + earlier.ms,
        output=usage.output + earlier.output,
        cost=usage.cost + earlier.cost,
        earlier=None,
    )


def exhaustion_message(agent: str, budget: Budget, usage: Usage) -> str:
    """Message for a person: what is exhausted and what can be done; empty: nothing is."""
    return next(_exhaustion_messages(agent, budget, usage), "")


def parse_cost(report: object, original: object) -> float:
    """Parse the cost from a report; 0 if it has none.

    A dialect without a field for it has one that the sender added to the original text, beside the
    other fields or in the payload.
    """
    candidates = (report, original, get_field(original, "payload"))
    return next(
        filter(None, (_number(get_field(candidate, "cost")) for candidate in candidates)), 0.0
    )


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(min(value, _MAX_COST)) if value > 0 else 0.0


def _exhaustion_messages(agent: str, budget: Budget, usage: Usage) -> Iterator[str]:
    total = total_usage(usage)
    for key, limit, current, day_total in (
        ("attempts_per_day", budget.attempts, usage.attempts, total.attempts),
        ("minutes_per_day", budget.minutes, usage.ms / _MINUTE_MS, total.ms / _MINUTE_MS),
        ("output_per_day", budget.output, usage.output, total.output),
        ("cost_per_day", budget.cost, usage.cost, total.cost),
    ):
        if limit and current >= limit:
            since = (
                f" since it was resumed, {_format_number(day_total)} in all"
                if usage.earlier
                else ""
            )
            yield (
                f"{agent} has used {_format_number(current)} of {_format_number(limit)} "
                f"({key}){since} on {usage.day} "
                f"and pauses until the next day (UTC); `dragoman agent resume {agent}` resumes it "
                "now, with the same budget again"
            )


def _format_number(number: float) -> str:
    """Format a number for people: a large one without a fraction, and with all its digits."""
    return f"{number:g}" if number < _LARGE else f"{number:.0f}"
