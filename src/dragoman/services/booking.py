"""Booking: what agents have used of their day, and the pause and the question when it is used up.

A pause is a fact of the ledger, made by whoever may make it; this only reads it. An agent that was
paused because of its day and is no longer, on the same day, was told to go on: its day begins
afresh. Of several hubs that have the same agent each keeps books of its own, but one asks for all.

An attempt is open from its beginning until its cost is booked. That is kept with the figures, so
that whoever comes after a hub that was killed can tell what is still to be booked: the ledger has
the cost, whatever has become of the task since.
"""

import asyncio
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from typing import Protocol

import msgspec
from msgspec.structs import replace

from dragoman.core.actors import HUB_ACTOR
from dragoman.core.authority import holder_objection
from dragoman.core.commands import AnyCommand, PauseAgent, PostMail
from dragoman.core.errors import Refused
from dragoman.core.events import Role
from dragoman.core.ids import agent_stream
from dragoman.core.limits import MAX_RECIPIENTS
from dragoman.core.states.agent import AgentRecord, Pause
from dragoman.engine.hub import Hub
from dragoman.engine.reads.ask import find_agent, names_in_role
from dragoman.services.budgets import (
    Budget,
    FairShare,
    OpenAttempt,
    Usage,
    add_usage,
    clear_debts,
    exhaustion_message,
    next_day_start,
    record_end,
    record_outcome,
    record_start,
    reset_usage,
    undo_start,
    usage_today,
)
from dragoman.services.costs import attempt_cost

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
        return self.usage(name).turn

    def record_start(self, name: str, attempt: OpenAttempt) -> None:
        """Count an attempt that starts or is resumed: at once, and only once; `save` stores it."""
        number = max((usage.turn.number for usage in self._usage.values()), default=0) + 1
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
            (name, attempt) for name, usage in self._usage.items() for attempt in usage.open
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

    async def review(self, agents: Collection[tuple[BudgetedAgent, Callable[[], Usage]]]) -> None:
        """Read the pauses, and pause agents whose budget is exhausted.

        With each agent comes a function for the usage of its runs. It is called at the last moment:
        the usage of a run that has ended meanwhile is recorded already.
        """
        names = [agent.name for agent, _ in agents]
        # Read first, so that a later change is not missed.
        self._versions = await asyncio.to_thread(self._read_versions, names)
        self._pauses = await asyncio.to_thread(self._read_pauses, names)
        for account, running_usage in agents:
            running = running_usage()
            reason = self._exhaustion_message(account, running)
            if not reason:
                continue
            usage, pause = self.usage(account.name), self._current_pause(account)
            if pause is not None:
                if pause.until is not None and not usage.told:
                    await self._mark_notified(account.name)  # already asked by another hub
            elif usage.told:
                self._usage[account.name] = reset_usage(usage, running)
                await self.save()
            else:
                await self._pause_agent(account, reason)

    def _current_pause(self, agent: BudgetedAgent) -> Pause | None:
        """The pause in effect, as of the last review."""
        pause = self._pauses.get(agent.name)
        return pause if pause is not None and pause.is_active(self._hub.clock.now()) else None

    def _exhaustion_message(self, agent: BudgetedAgent, running: Usage) -> str:
        usage = add_usage(self.usage(agent.name), ms=running.ms, output=running.output)
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
        self._usage[name] = replace(self.usage(name), told=True)
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
