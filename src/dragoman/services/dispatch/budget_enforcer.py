"""Daily budgets: usage per agent (UTC day), and the pause when an agent has used it up.

An attempt counts from its start, so that no two share the last one that is left; its minutes and
output count as they are used, its cost when it is known. An attempt is open until its cost is
recorded; open attempts are saved with the figures, so that the successor of a killed hub knows
which costs are missing: the ledger has them, whatever has become of the task since.

A pause is a fact of the ledger; this module only reads it. An agent that was paused for its budget
and is not paused any more on the same day was resumed by a person, and its budget begins anew.
Several hubs that start the same agent each count for themselves, but only one asks a person.
"""

import asyncio
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from typing import Protocol

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.agent import AgentRecord, Pause, PauseAgent
from dragoman.core.attempt_state import TaskReported
from dragoman.core.authority import holder_objection
from dragoman.core.base import Role
from dragoman.core.command_table import AnyCommand
from dragoman.core.errors import DragomanError, Refused, StoreError
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.ids import agent_stream, task_stream
from dragoman.core.limits import MAX_RECIPIENTS
from dragoman.core.mail import PostMail
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Store
from dragoman.engine.queries.agents import find_agent, names_in_role
from dragoman.engine.queries.streams import decode_event, stream_entries
from dragoman.ledger.entry import Entry, read_line
from dragoman.text.strict_json import get_field

# --- budgets and usage, pure ------------------------------------------------------------------

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

    last_dispatch: int = 0
    """Increases with each dispatch; 0: never dispatched."""
    recent_failures: int = 0
    """Failed attempts of today since the last one that did not fail."""


class Usage(Struct, frozen=True, omit_defaults=True):
    """Usage of a day."""

    day: str = ""
    attempts: int = 0
    elapsed_ms: int = 0
    output_bytes: int = 0
    cost: float = 0
    is_notified: bool = False
    """True if it was paused for its budget, and a person was asked."""
    before_reset: "Usage | None" = None
    """Usage of the same day before a person resumed the agent; it counts no more."""
    open_attempts: tuple[OpenAttempt, ...] = ()
    """Started attempts, of any day, whose cost is not recorded yet."""
    fairness: FairShare = FairShare()


def day_of(now: int) -> str:
    """UTC day of a timestamp."""
    return to_rfc3339(now)[:10]


def usage_today(usage: Usage, now: int) -> Usage:
    """Usage of today; a new day keeps only open attempts, and forgets failures."""
    today = day_of(now)
    if usage.day == today:
        return usage
    return Usage(
        today,
        open_attempts=usage.open_attempts,
        fairness=replace(usage.fairness, recent_failures=0),
    )


def next_day_start(now: int) -> int:
    """Timestamp of the next day's start."""
    return (now // _DAY_MS + 1) * _DAY_MS


def record_start(usage: Usage, attempt: OpenAttempt, number: int = 0) -> Usage:
    """Count one more attempt; an open one that is resumed was counted when it started."""
    if attempt in usage.open_attempts:
        return usage
    share = replace(usage.fairness, last_dispatch=number)
    return replace(
        usage,
        attempts=usage.attempts + 1,
        open_attempts=(*usage.open_attempts, attempt),
        fairness=share,
    )


def undo_start(usage: Usage) -> Usage:
    """Discount an attempt whose agent could not be started."""
    return replace(usage, attempts=max(usage.attempts - 1, 0))


def record_end(usage: Usage, attempt: OpenAttempt, cost: float = 0) -> Usage:
    """Close an attempt and add its cost."""
    open_attempts = tuple(other for other in usage.open_attempts if other != attempt)
    return replace(usage, cost=usage.cost + cost, open_attempts=open_attempts)


def record_outcome(usage: Usage, *, has_failed: bool) -> Usage:
    """Count a failed attempt; one that did not fail resets the count."""
    failed = usage.fairness.recent_failures + 1 if has_failed else 0
    return replace(usage, fairness=replace(usage.fairness, recent_failures=failed))


def add_usage(usage: Usage, *, ms: int, output: int) -> Usage:
    """Add time and output."""
    return replace(
        usage, elapsed_ms=usage.elapsed_ms + max(ms, 0), output_bytes=usage.output_bytes + output
    )


def reset_usage(usage: Usage, running: Usage) -> Usage:
    """Reset the usage, although runs in progress have used something already.

    Their figures are added when they end; until then they are subtracted, so that only new usage
    counts.
    """
    so_far = add_usage(total_usage(usage), ms=running.elapsed_ms, output=running.output_bytes)
    earlier = replace(so_far, is_notified=False, open_attempts=(), fairness=FairShare())
    owed = Usage(
        usage.day,
        elapsed_ms=-running.elapsed_ms,
        output_bytes=-running.output_bytes,
        before_reset=earlier,
    )
    return replace(owed, open_attempts=usage.open_attempts, fairness=usage.fairness)


def clear_debts(usage: Usage) -> Usage:
    """Usage without debts, for when nothing runs: a killed hub has not added the figures of its
    runs.
    """
    return replace(
        usage, elapsed_ms=max(usage.elapsed_ms, 0), output_bytes=max(usage.output_bytes, 0)
    )


def total_usage(usage: Usage) -> Usage:
    """Usage of the whole day, including what was reset."""
    earlier = usage.before_reset
    if earlier is None:
        return usage
    return replace(
        usage,
        attempts=usage.attempts + earlier.attempts,
        elapsed_ms=usage.elapsed_ms + earlier.elapsed_ms,
        output_bytes=usage.output_bytes + earlier.output_bytes,
        cost=usage.cost + earlier.cost,
        before_reset=None,
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
        (
            "minutes_per_day",
            budget.minutes,
            usage.elapsed_ms / _MINUTE_MS,
            total.elapsed_ms / _MINUTE_MS,
        ),
        ("output_per_day", budget.output, usage.output_bytes, total.output_bytes),
        ("cost_per_day", budget.cost, usage.cost, total.cost),
    ):
        if limit and current >= limit:
            since = (
                f" since it was resumed, {_format_number(day_total)} in all"
                if usage.before_reset
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


# --- costs on record --------------------------------------------------------------------------

_REPORTED = EVENT_NAMES[TaskReported]


def attempt_cost(store: Store, task: str, attempt: int) -> float:
    """Last cost that the agent reported for this attempt, whoever has the task by now; 0: unknown.

    Raises `StoreError` when the store cannot be read just now.
    """
    try:
        reports = [
            entry for entry in stream_entries(store, task_stream(task)) if entry.event == _REPORTED
        ]
        costs = (_reported_cost(entry, attempt) for entry in reversed(reports))
        return next(filter(None, costs), 0.0)
    except StoreError:
        raise
    except DragomanError:  # an unreadable line, which will not change
        return 0.0


def _reported_cost(entry: Entry, attempt: int) -> float:
    """Cost in a report, if it is of this attempt."""
    report = decode_event(entry)
    if not isinstance(report, TaskReported) or report.attempt != attempt:
        return 0.0
    original = read_line(entry.line).original_text
    return parse_cost(report.details, None if original is UNSET else msgspec.json.decode(original))


# --- enforcer ---------------------------------------------------------------------------------

_APPROVER_ROLES: tuple[Role, ...] = ("human", "orchestrator")
"""Roles that get the question whether an agent may go on: those who can resume it."""

_KEY_REUSED = "key_reused"
"""Refusal code: another hub asked in the same moment, with figures of its own."""


class UsageStore(Protocol):
    """Stores the usage of agents."""

    def load(self) -> bytes:
        """Saved data; empty before the first save."""
        ...

    def save(self, data: bytes) -> None:
        """Save the data, durably."""
        ...


class BudgetedAgent(Protocol):
    """An agent with a budget."""

    @property
    def name(self) -> str:
        """Name of the agent."""
        ...

    @property
    def budget(self) -> Budget:
        """Budget of a day."""
        ...


class BudgetEnforcer:
    """Usage and pauses of all agents; use it in one event loop."""

    def __init__(self, hub: Hub, usage_store: UsageStore, warn: Callable[[str], None]) -> None:
        """`warn` shows a message at the hub's terminal."""
        self._hub = hub
        self._usage_store = usage_store
        self._warn = warn
        self._usage = _decode_usage(usage_store.load())
        self._saved = dict(self._usage)
        self._pauses: Mapping[str, Pause] = {}
        self._versions: Mapping[str, int] = {}
        """Version of each agent's stream when its pause was read."""
        self._save_lock = asyncio.Lock()

    def usage(self, name: str) -> Usage:
        """Usage of today, by attempts that have ended."""
        return usage_today(self._usage.get(name, Usage()), self._hub.clock.now())

    def idle_reason(self, agent: BudgetedAgent, running: Usage) -> str:
        """Reason why no attempt is started beside those that run: paused, or the day is used up."""
        pause = self._current_pause(agent)
        return self._exhaustion_message(agent, running) if pause is None else pause.reason

    def fair_share(self, name: str) -> FairShare:
        """Time of the last dispatch and recent failures."""
        return self.usage(name).fairness

    def record_start(self, name: str, attempt: OpenAttempt) -> None:
        """Count an attempt that starts or is resumed: at once, and only once; `save` stores it."""
        number = (
            max((usage.fairness.last_dispatch for usage in self._usage.values()), default=0) + 1
        )
        self._usage[name] = record_start(self.usage(name), attempt, number)

    def undo_start(self, name: str) -> None:
        """Discount an attempt that could not be started."""
        self._usage[name] = undo_start(self.usage(name))

    def add_usage(self, name: str, *, ms: int, output: int) -> None:
        """Add to the usage."""
        self._usage[name] = add_usage(self.usage(name), ms=ms, output=output)

    def record_end(self, name: str, attempt: OpenAttempt, cost: float) -> None:
        """Record the end of an attempt and its cost."""
        self._usage[name] = record_end(self.usage(name), attempt, cost)

    def record_outcome(self, name: str, *, has_failed: bool) -> None:
        """Record whether an attempt failed."""
        self._usage[name] = record_outcome(self.usage(name), has_failed=has_failed)

    async def close_orphans(self, resumed: Container[OpenAttempt]) -> None:
        """Record the end of attempts that an earlier hub left open, except resumed ones."""
        open_attempts = [
            (name, attempt)
            for name, usage in self._usage.items()
            for attempt in usage.open_attempts
        ]
        for name, one in open_attempts:
            if one not in resumed:
                cost = await asyncio.to_thread(attempt_cost, self._hub.store, one.task, one.attempt)
                self.record_end(name, one, cost)
        await self.save()

    async def save(self) -> None:
        """Save the usage of all agents: one without a budget may get one before the day ends."""
        async with self._save_lock:  # one after the other, so that the newest remains
            usage = dict(self._usage)
            if usage != self._saved:
                await asyncio.to_thread(self._usage_store.save, msgspec.json.encode(usage))
                self._saved = usage

    async def save_if_budgeted(self, agent: BudgetedAgent) -> None:
        """Save before an agent with a budget starts; one without need not wait."""
        if agent.budget != Budget():
            await self.save()

    async def review(
        self, agents: Collection[tuple[BudgetedAgent, Callable[[], Usage | None]]]
    ) -> None:
        """Read the pauses, and pause agents whose budget is exhausted.

        With each agent comes a function for the usage of its runs. It is called at the last moment:
        the usage of a run that has ended meanwhile is recorded already. None: one of them is being
        started, and is discounted if that fails; the agent is reviewed afterwards.
        """
        names = [agent.name for agent, _ in agents]
        # Read first, so that a later change is not missed.
        self._versions = await asyncio.to_thread(self._read_versions, names)
        self._pauses = await asyncio.to_thread(self._read_pauses, names)
        for account, running_usage in agents:
            running = running_usage()
            if running is None:
                continue
            reason = self._exhaustion_message(account, running)
            if not reason:
                continue
            usage, pause = self.usage(account.name), self._current_pause(account)
            if pause is not None:
                if pause.until is not None and not usage.is_notified:
                    await self._mark_notified(account.name)  # already asked by another hub
            elif usage.is_notified:
                self._usage[account.name] = reset_usage(usage, running)
                await self.save()
            else:
                await self._pause_agent(account, reason)

    def _current_pause(self, agent: BudgetedAgent) -> Pause | None:
        """The pause in effect, as of the last review."""
        pause = self._pauses.get(agent.name)
        return pause if pause is not None and pause.is_active(self._hub.clock.now()) else None

    def _exhaustion_message(self, agent: BudgetedAgent, running: Usage) -> str:
        usage = add_usage(
            self.usage(agent.name), ms=running.elapsed_ms, output=running.output_bytes
        )
        return exhaustion_message(agent.name, agent.budget, usage)

    async def _pause_agent(self, agent: BudgetedAgent, reason: str) -> None:
        now = self._hub.clock.now()
        pause = Pause(reason, now, next_day_start(now))
        approvers = await asyncio.to_thread(self._approvers)
        # Two hubs that saw the same figures use the same key, so that only one question is asked.
        key = f"pause.{agent.name}.{self._versions[agent.name]}"
        commands: list[AnyCommand] = [PauseAgent(agent.name, pause.reason, pause.until)]
        if approvers:
            subject = f"{agent.name} has used up its daily budget: resume it?"
            commands.append(PostMail(approvers, subject, reason, importance="high"))
        try:
            await self._hub.submit_async(HUB_ACTOR, *commands, key=key)
        except Refused as refused:
            if refused.code != _KEY_REUSED:
                raise
        self._warn(reason)
        self._pauses = {**self._pauses, agent.name: pause}
        await self._mark_notified(agent.name)

    async def _mark_notified(self, name: str) -> None:
        """Remember that the question was asked; an agent that goes on after that was resumed."""
        self._usage[name] = replace(self.usage(name), is_notified=True)
        await self.save()

    def _approvers(self) -> tuple[str, ...]:
        names = [name for role in _APPROVER_ROLES for name in names_in_role(self._hub.store, role)]
        return tuple(names[:MAX_RECIPIENTS])

    def _read_versions(self, names: Iterable[str]) -> dict[str, int]:
        found = ((name, self._hub.store.stream(agent_stream(name))) for name in names)
        return {name: row.version if row else 0 for name, row in found}

    def _read_pauses(self, names: Iterable[str]) -> dict[str, Pause]:
        found = ((name, find_agent(self._hub.store, name)) for name in names)
        return {name: pause for name, known in found if known and (pause := _recorded_pause(known))}


def _recorded_pause(record: AgentRecord) -> Pause | None:
    """The pause on record; an agent that may hold no task counts as paused."""
    cannot_hold = holder_objection(record)
    return Pause(cannot_hold, record.registered_at) if cannot_hold else record.pause


def _decode_usage(data: bytes) -> dict[str, Usage]:
    try:
        usage = msgspec.json.decode(data, type=dict[str, Usage]) if data else {}
    except msgspec.MsgspecError:  # damaged figures must not stop the work: start anew
        return {}
    return {name: clear_debts(one) for name, one in usage.items()}
