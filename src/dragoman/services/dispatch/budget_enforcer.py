"""Daily budgets: usage per agent (UTC day), and the pause when an agent has used it up.

An attempt counts from its start, so that no two share the last one that is left; its minutes,
output and cost count when it has ended. What a killed hub had running stays counted as attempts.

A pause is a fact of the ledger; this module only reads it. An agent that was paused for its budget
and is not paused any more on the same day was resumed by a person, and its budget begins anew.
Several hubs that start the same agent each count for themselves.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.agent import AgentRecord, Pause, PauseAgent
from dragoman.core.attempt_state import TaskReported
from dragoman.core.authority import holder_objection
from dragoman.core.base import Command, Role
from dragoman.core.errors import DragomanError, StoreError
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.ids import task_stream
from dragoman.core.limits import MAX_RECIPIENTS
from dragoman.core.mail import PostMail
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Store
from dragoman.engine.queries.agents import find_agent, names_in_role
from dragoman.engine.queries.entries import decode_event, stream_entries
from dragoman.engine.queries.numbers import reported_amount
from dragoman.ledger.entry import Entry, read_line

# --- budgets and usage, pure ------------------------------------------------------------------

_MINUTE_MS = 60_000

_DAY_MS = 86_400_000

_LARGE = 100_000


class Budget(Struct, frozen=True):
    """Daily budget of an agent; 0 is no limit."""

    attempts: int = 0
    minutes: int = 0
    output: int = 0
    cost: float = 0


class Usage(Struct, frozen=True, omit_defaults=True):
    """Usage of a day."""

    day: str = ""
    attempts: int = 0
    elapsed_ms: int = 0
    output_bytes: int = 0
    cost: float = 0
    is_notified: bool = False
    """True if the agent was paused for its budget, and a person was asked."""


def usage_today(usage: Usage, now: int) -> Usage:
    """Usage of today: a new day begins with nothing."""
    today = to_rfc3339(now)[:10]
    return usage if usage.day == today else Usage(today)


def next_day_start(now: int) -> int:
    """Timestamp of the next day's start."""
    return (now // _DAY_MS + 1) * _DAY_MS


def add_usage(usage: Usage, *, ms: int, output: int, cost: float = 0) -> Usage:
    """Add time, output and cost."""
    return replace(
        usage,
        elapsed_ms=usage.elapsed_ms + max(ms, 0),
        output_bytes=usage.output_bytes + output,
        cost=usage.cost + cost,
    )


def exhaustion_message(agent: str, budget: Budget, usage: Usage) -> str:
    """Message for a person: what is exhausted and what can be done; empty: nothing is."""
    for key, limit, used in (
        ("attempts_per_day", budget.attempts, usage.attempts),
        ("minutes_per_day", budget.minutes, usage.elapsed_ms / _MINUTE_MS),
        ("output_per_day", budget.output, usage.output_bytes),
        ("cost_per_day", budget.cost, usage.cost),
    ):
        if limit and used >= limit:
            return (
                f"{agent} has used {_format_number(used)} of {_format_number(limit)} ({key}) on "
                f"{usage.day} and pauses until the next day (UTC); `dragoman agent resume {agent}` "
                "resumes it now, with the same budget again"
            )
    return ""


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
    report = decode_event(entry)
    if not isinstance(report, TaskReported) or report.attempt != attempt:
        return 0.0
    return reported_amount("cost", report, read_line(entry.line))


# --- enforcer ---------------------------------------------------------------------------------

_APPROVER_ROLES: tuple[Role, ...] = ("human", "orchestrator")
"""Roles that get the question whether an agent may go on: those who can resume it."""


class UsageStore(Protocol):
    """Stores the usage of agents."""

    def load(self) -> bytes:
        """Saved data; empty before the first save."""
        ...

    def save(self, data: bytes) -> None:
        """Save the data, durably."""
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
        self._save_lock = asyncio.Lock()

    def usage(self, name: str) -> Usage:
        """Usage of today."""
        return usage_today(self._usage.get(name, Usage()), self._hub.clock.now())

    def idle_reason(self, name: str, budget: Budget) -> str:
        """Reason why no attempt is started: paused, or the day is used up."""
        pause = self._current_pause(name)
        return exhaustion_message(name, budget, self.usage(name)) if pause is None else pause.reason

    def record_start(self, name: str) -> None:
        """Count an attempt that starts; `save` stores it."""
        used = self.usage(name)
        self._usage[name] = replace(used, attempts=used.attempts + 1)

    def undo_start(self, name: str) -> None:
        """Discount an attempt that could not be started."""
        used = self.usage(name)
        self._usage[name] = replace(used, attempts=max(used.attempts - 1, 0))

    def record_end(self, name: str, *, ms: int, output: int, cost: float) -> None:
        """Add what an attempt has used."""
        self._usage[name] = add_usage(self.usage(name), ms=ms, output=output, cost=cost)

    async def save(self) -> None:
        """Save the usage of all agents: one without a budget may get one before the day ends."""
        async with self._save_lock:  # one after the other, so that the newest remains
            usage = dict(self._usage)
            if usage != self._saved:
                await asyncio.to_thread(self._usage_store.save, msgspec.json.encode(usage))
                self._saved = usage

    async def review(self, budgets: Mapping[str, Budget], starting: Collection[str]) -> None:
        """Read the pauses, and pause agents whose budget is exhausted.

        An agent that is `starting` is reviewed later: if it cannot be started, that is discounted.
        """
        self._pauses = await asyncio.to_thread(self._read_pauses, [*budgets])
        for name, budget in budgets.items():
            used, pause = self.usage(name), self._current_pause(name)
            reason = exhaustion_message(name, budget, used)
            if not reason or name in starting:
                continue
            if pause is not None:
                if pause.until is not None and not used.is_notified:
                    await self._mark_notified(name)  # already asked by another hub
            elif used.is_notified:
                self._usage[name] = Usage(used.day)
                await self.save()
            else:
                await self._pause_agent(name, reason)

    def _current_pause(self, name: str) -> Pause | None:
        """The pause in effect, as of the last review."""
        pause = self._pauses.get(name)
        return pause if pause is not None and pause.is_active(self._hub.clock.now()) else None

    async def _pause_agent(self, name: str, reason: str) -> None:
        now = self._hub.clock.now()
        pause = Pause(reason, now, next_day_start(now))
        approvers = await asyncio.to_thread(self._approvers)
        commands: list[Command] = [PauseAgent(name, pause.reason, pause.until)]
        if approvers:
            subject = f"{name} has used up its daily budget: resume it?"
            commands.append(PostMail(approvers, subject, reason, importance="high"))
        await self._hub.submit_async(HUB_ACTOR, *commands)
        self._warn(reason)
        self._pauses = {**self._pauses, name: pause}
        await self._mark_notified(name)

    async def _mark_notified(self, name: str) -> None:
        """Remember that the question was asked; an agent that goes on after that was resumed."""
        self._usage[name] = replace(self.usage(name), is_notified=True)
        await self.save()

    def _approvers(self) -> tuple[str, ...]:
        names = [name for role in _APPROVER_ROLES for name in names_in_role(self._hub.store, role)]
        return tuple(names[:MAX_RECIPIENTS])

    def _read_pauses(self, names: Iterable[str]) -> dict[str, Pause]:
        return dict(self._recorded_pauses(names))

    def _recorded_pauses(self, names: Iterable[str]) -> Iterator[tuple[str, Pause]]:
        for name in names:
            record = find_agent(self._hub.store, name)
            pause = None if record is None else _recorded_pause(record)
            if pause is not None:
                yield name, pause


def _recorded_pause(record: AgentRecord) -> Pause | None:
    """The pause on record; an agent that may hold no task counts as paused."""
    cannot_hold = holder_objection(record)
    return Pause(cannot_hold, record.registered_at) if cannot_hold else record.pause


def _decode_usage(data: bytes) -> dict[str, Usage]:
    try:
        return msgspec.json.decode(data, type=dict[str, Usage]) if data else {}
    except msgspec.MsgspecError:  # damaged figures must not stop the work: start anew
        return {}
