"""Budgets: how much an agent may use of a day (UTC), and how much it has used. Pure.

An attempt counts from its beginning, so that no two of them share the last one that is left; its
minutes and output count as they are used, its cost when it is known.
"""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.moments import to_rfc3339
from dragoman.text.strict_json import field_of

_MINUTE_MS = 60_000
_DAY_MS = 86_400_000
_MOST_COST = 1e12
"""Larger costs count as this one: no budget is larger."""
_LARGE = 100_000


class Budget(Struct, frozen=True):
    """Daily budget of an agent; 0 is no limit."""

    attempts: int = 0
    minutes: int = 0
    output: int = 0
    cost: float = 0


class Begun(Struct, frozen=True):
    """An attempt, by its number on its task."""

    task: str
    attempt: int


class Turn(Struct, frozen=True, omit_defaults=True):
    """Fairness of dispatch: time of the last dispatch, and recent failures."""

    number: int = 0
    """Increases with each dispatch; 0: never dispatched."""
    failed: int = 0
    """Failed attempts of today since the last one that did not fail."""


class Used(Struct, frozen=True, omit_defaults=True):
    """Usage of a day."""

    day: str = ""
    attempts: int = 0
    ms: int = 0
    output: int = 0
    cost: float = 0
    told: bool = False
    """True if it was paused for its budget, and a person was asked."""
    earlier: "Used | None" = None
    """Usage of the same day before a person resumed the agent; it counts no more."""
    open: tuple[Begun, ...] = ()
    """Started attempts, of any day, whose cost is not recorded yet."""
    turn: Turn = Turn()


def day_of(now: int) -> str:
    """UTC day of a timestamp."""
    return to_rfc3339(now)[:10]


def of_today(used: Used, now: int) -> Used:
    """Usage of today; a new day keeps only open attempts, and forgets failures."""
    today = day_of(now)
    if used.day == today:
        return used
    return Used(today, open=used.open, turn=replace(used.turn, failed=0))


def next_day(now: int) -> int:
    """Timestamp of the next day's start."""
    return (now // _DAY_MS + 1) * _DAY_MS


def begin(used: Used, one: Begun, turn: int = 0) -> Used:
    """Count one more attempt; an open one that is resumed was counted when it started."""
    if one in used.open:
        return used
    given = replace(used.turn, number=turn)
    return replace(used, attempts=used.attempts + 1, open=(*used.open, one), turn=given)


def take_back(used: Used) -> Used:
    """Discount an attempt whose agent could not be started."""
    return replace(used, attempts=max(used.attempts - 1, 0))


def close(used: Used, one: Begun, cost: float = 0) -> Used:
    """Close an attempt and add its cost."""
    left = tuple(begun for begun in used.open if begun != one)
    return replace(used, cost=used.cost + cost, open=left)


def judge(used: Used, *, has_failed: bool) -> Used:
    """Count a failed attempt; one that did not fail resets the count."""
    failed = used.turn.failed + 1 if has_failed else 0
    return replace(used, turn=replace(used.turn, failed=failed))


def spend(used: Used, *, ms: int, output: int) -> Used:
    """Add time and output."""
    return replace(used, ms=used.ms + max(ms, 0), output=used.output + output)


def afresh(used: Used, running: Used) -> Used:
    """Reset the usage, although runs in progress have used something already.

    Their figures are added when they end; until then they are subtracted, so that only new usage
    counts.
    """
    so_far = spend(whole(used), ms=running.ms, output=running.output)
    earlier = replace(so_far, told=False, open=(), turn=Turn())
    owed = Used(used.day, ms=-running.ms, output=-running.output, earlier=earlier)
    return replace(owed, open=used.open, turn=used.turn)


def nothing_owed(used: Used) -> Used:
    """Usage without debts, for when nothing runs: a killed hub has not added the figures of its
    runs.
    """
    return replace(used, ms=max(used.ms, 0), output=max(used.output, 0))


def whole(used: Used) -> Used:
    """Usage of the whole day, including what was reset."""
    earlier = used.earlier
    if earlier is None:
        return used
    return replace(
        used,
        attempts=used.attempts + earlier.attempts,
        ms=used.ms + earlier.ms,
        output=used.output + earlier.output,
        cost=used.cost + earlier.cost,
        earlier=None,
    )


def used_up(agent: str, budget: Budget, used: Used) -> str:
    """Message for a person: what is exhausted and what can be done; empty: nothing is."""
    return next(_used_up(agent, budget, used), "")


def cost_of(report: object, said: object) -> float:
    """Parse the cost from a report; 0 if it has none.

    A dialect without a field for it has one that the sender added to the original text, beside the
    other fields or in the payload.
    """
    places = (report, said, field_of(said, "payload"))
    return next(filter(None, (_number(field_of(place, "cost")) for place in places)), 0.0)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(min(value, _MOST_COST)) if value > 0 else 0.0


def _used_up(agent: str, budget: Budget, used: Used) -> Iterator[str]:
    of_day = whole(used)
    for key, most, spent, in_all in (
        ("attempts_per_day", budget.attempts, used.attempts, of_day.attempts),
        ("minutes_per_day", budget.minutes, used.ms / _MINUTE_MS, of_day.ms / _MINUTE_MS),
        ("output_per_day", budget.output, used.output, of_day.output),
        ("cost_per_day", budget.cost, used.cost, of_day.cost),
    ):
        if most and spent >= most:
            since = f" since it was resumed, {_plain(in_all)} in all" if used.earlier else ""
            yield (
                f"{agent} has used {_plain(spent)} of {_plain(most)} ({key}){since} on {used.day} "
                f"and pauses until the next day (UTC); `dragoman agent resume {agent}` resumes it "
                "now, with the same budget again"
            )


def _plain(number: float) -> str:
    """Format a number for people: a large one without a fraction, and with all its digits."""
    return f"{number:g}" if number < _LARGE else f"{number:.0f}"
