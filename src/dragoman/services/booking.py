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

from dragoman.core.actors import SYSTEM
from dragoman.core.authority import why_no_holder
from dragoman.core.commands import AnyCommand, PauseAgent, PostMail
from dragoman.core.errors import Refused
from dragoman.core.events import Role
from dragoman.core.ids import agent_stream
from dragoman.core.limits import RECIPIENTS
from dragoman.core.states.agent import AgentRecord, Pause
from dragoman.engine.hub import Hub
from dragoman.engine.reads.ask import find_agent, names_in_role
from dragoman.services.budgets import (
    Begun,
    Budget,
    Turn,
    Used,
    afresh,
    begin,
    close,
    judge,
    next_day,
    nothing_owed,
    of_today,
    spend,
    take_back,
    used_up,
)
from dragoman.services.costs import cost_of_attempt

_ASKED: tuple[Role, ...] = ("human", "orchestrator")
"""Roles that get the question whether an agent may go on: those who can resume it."""
_IN_OTHER_WORDS = "key_reused"
"""Refusal code: another hub asked in the same moment, with figures of its own."""


class UsageKeeper(Protocol):
    """Stores the usage of agents."""

    def load(self) -> bytes:
        """Saved data; empty before the first save."""
        ...

    def save(self, data: bytes) -> None:
        """Save the data, durably."""
        ...


class Account(Protocol):
    """An agent with a budget."""

    @property
    def name(self) -> str:
        """Name of the agent."""
        ...

    @property
    def budget(self) -> Budget:
        """Budget of a day."""
        ...


class Booking:
    """Usage and pauses of all agents; use it in one event loop."""

    def __init__(self, hub: Hub, usage: UsageKeeper, tell: Callable[[str], None]) -> None:
        """`warn` shows a message at the hub's terminal."""
        self._hub = hub
        self._keeper = usage
        self._tell = tell
        self._used = _decode_usage(usage.load())
        self._kept = dict(self._used)
        self._pauses: Mapping[str, Pause] = {}
        self._versions: Mapping[str, int] = {}
        """Version of each agent's stream when its pause was read."""
        self._saving = asyncio.Lock()

    def used(self, name: str) -> Used:
        """Usage of today, by attempts that have ended."""
        return of_today(self._used.get(name, Used()), self._hub.clock.now())

    def why_idle(self, account: Account, running: Used) -> str:
        """Reason why no attempt is started beside those that run: paused, or the day is used up."""
        pause = self._pause_of(account)
        return self._used_up(account, running) if pause is None else pause.reason

    def turn(self, name: str) -> Turn:
        """Time of the last dispatch and recent failures."""
        return self.used(name).turn

    def begin(self, name: str, one: Begun) -> None:
        """Count an attempt that starts or is resumed: at once, and only once; `save` stores it."""
        turn = max((used.turn.number for used in self._used.values()), default=0) + 1
        self._used[name] = begin(self.used(name), one, turn)

    def take_back(self, name: str) -> None:
        """Discount an attempt that could not be started."""
        self._used[name] = take_back(self.used(name))

    def spend(self, name: str, *, ms: int, output: int) -> None:
        """Add to the usage."""
        self._used[name] = spend(self.used(name), ms=ms, output=output)

    def close(self, name: str, one: Begun, cost: float) -> None:
        """Record the end of an attempt and its cost."""
        self._used[name] = close(self.used(name), one, cost)

    def judge(self, name: str, *, has_failed: bool) -> None:
        """Record whether an attempt failed."""
        self._used[name] = judge(self.used(name), has_failed=has_failed)

    async def settle(self, under_way: Container[Begun]) -> None:
        """Record the end of attempts that an earlier hub left open, except resumed ones."""
        left = [(name, one) for name, used in self._used.items() for one in used.open]
        for name, one in left:
            if one not in under_way:
                cost = await asyncio.to_thread(
                    cost_of_attempt, self._hub.store, one.task, one.attempt
                )
                self.close(name, one, cost)
        await self.save()

    async def save(self) -> None:
        """Save the usage of all agents: one without a budget may get one before the day ends."""
        async with self._saving:  # one after the other, so that the newest remains
            used = dict(self._used)
            if used != self._kept:
                await asyncio.to_thread(self._keeper.save, msgspec.json.encode(used))
                self._kept = used

    async def save_before(self, account: Account) -> None:
        """Save before an agent with a budget starts; one without need not wait."""
        if account.budget != Budget():
            await self.save()

    async def review(self, accounts: Collection[tuple[Account, Callable[[], Used]]]) -> None:
        """Read the pauses, and pause agents whose budget is exhausted.

        With each agent comes a function for the usage of its runs. It is called at the last moment:
        the usage of a run that has ended meanwhile is recorded already.
        """
        names = [account.name for account, _ in accounts]
        # Read first, so that a later change is not missed.
        self._versions = await asyncio.to_thread(self._read_versions, names)
        self._pauses = await asyncio.to_thread(self._read_pauses, names)
        for account, so_far in accounts:
            running = so_far()
            why = self._used_up(account, running)
            if not why:
                continue
            used, pause = self.used(account.name), self._pause_of(account)
            if pause is not None:
                if pause.until is not None and not used.told:
                    await self._note_told(account.name)  # already asked by another hub
            elif used.told:
                self._used[account.name] = afresh(used, running)
                await self.save()
            else:
                await self._pause(account, why)

    def _pause_of(self, account: Account) -> Pause | None:
        """The pause in effect, as of the last review."""
        pause = self._pauses.get(account.name)
        return pause if pause is not None and pause.lasts(self._hub.clock.now()) else None

    def _used_up(self, account: Account, running: Used) -> str:
        used = spend(self.used(account.name), ms=running.ms, output=running.output)
        return used_up(account.name, account.budget, used)

    async def _pause(self, account: Account, why: str) -> None:
        now = self._hub.clock.now()
        pause = Pause(why, now, next_day(now))
        people = await asyncio.to_thread(self._people)
        # Two hubs that saw the same figures use the same key, so that only one question is asked.
        question = f"pause.{account.name}.{self._versions[account.name]}"
        commands: list[AnyCommand] = [PauseAgent(account.name, pause.reason, pause.until)]
        if people:
            subject = f"{account.name} has used up its daily budget: resume it?"
            commands.append(PostMail(people, subject, why, importance="high"))
        try:
            await self._hub.do_soon(SYSTEM, *commands, key=question)
        except Refused as refused:
            if refused.code != _IN_OTHER_WORDS:
                raise
        self._tell(why)
        self._pauses = {**self._pauses, account.name: pause}
        await self._note_told(account.name)

    async def _note_told(self, name: str) -> None:
        """Remember that the question was asked; an agent that goes on after that was resumed."""
        self._used[name] = replace(self.used(name), told=True)
        await self.save()

    def _people(self) -> tuple[str, ...]:
        known = [name for role in _ASKED for name in names_in_role(self._hub.store, role)]
        return tuple(known[:RECIPIENTS])

    def _read_versions(self, names: Iterable[str]) -> dict[str, int]:
        found = ((name, self._hub.store.stream(agent_stream(name))) for name in names)
        return {name: row.version if row else 0 for name, row in found}

    def _read_pauses(self, names: Iterable[str]) -> dict[str, Pause]:
        found = ((name, find_agent(self._hub.store, name)) for name in names)
        return {name: pause for name, known in found if known and (pause := _pause_in(known))}


def _pause_in(known: AgentRecord) -> Pause | None:
    """The pause on record; an agent that may hold no task counts as paused."""
    cannot_hold = why_no_holder(known)
    return Pause(cannot_hold, known.registered_at) if cannot_hold else known.pause


def _decode_usage(data: bytes) -> dict[str, Used]:
    try:
        used = msgspec.json.decode(data, type=dict[str, Used]) if data else {}
    except msgspec.MsgspecError:  # damaged figures must not stop the work: start anew
        return {}
    return {name: nothing_owed(one) for name, one in used.items()}
