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
"""Who gets the question: those who can answer it."""
_IN_OTHER_WORDS = "key_reused"
"""Another hub has asked the same in the same moment, with its own figures."""


class UsageKeeper(Protocol):
    """Where it is kept what agents have used."""

    def load(self) -> bytes:
        """What was saved last; empty before the first time."""
        ...

    def save(self, data: bytes) -> None:
        """Keep it, durably."""
        ...


class Account(Protocol):
    """An agent with a budget."""

    @property
    def name(self) -> str:
        """Whose it is."""
        ...

    @property
    def budget(self) -> Budget:
        """What it may use of a day."""
        ...


class Booking:
    """The books of all agents; used in one event loop."""

    def __init__(self, hub: Hub, usage: UsageKeeper, tell: Callable[[str], None]) -> None:
        """`tell` is told what a person at the hub's terminal should know."""
        self._hub = hub
        self._keeper = usage
        self._tell = tell
        self._used = _decode_usage(usage.load())
        self._kept = dict(self._used)
        self._pauses: Mapping[str, Pause] = {}
        self._versions: Mapping[str, int] = {}
        """How often anything had happened to an agent when its pause was looked for."""
        self._saving = asyncio.Lock()

    def used(self, name: str) -> Used:
        """What an agent has used today, by attempts that have ended."""
        return of_today(self._used.get(name, Used()), self._hub.clock.now())

    def why_idle(self, account: Account, running: Used) -> str:
        """Why nothing is started for it, beside what runs: it is paused, or has used up its day."""
        pause = self._pause_of(account)
        return self._used_up(account, running) if pause is None else pause.reason

    def turn(self, name: str) -> Turn:
        """Since when it waits for something to do, and how it did of late."""
        return self.used(name).turn

    def begin(self, name: str, one: Begun) -> None:
        """An attempt begins or goes on; it counts at once, and once, and is kept by `save`."""
        turn = max((used.turn.number for used in self._used.values()), default=0) + 1
        self._used[name] = begin(self.used(name), one, turn)

    def take_back(self, name: str) -> None:
        """It could not even be started."""
        self._used[name] = take_back(self.used(name))

    def spend(self, name: str, *, ms: int, output: int) -> None:
        """It has used so much."""
        self._used[name] = spend(self.used(name), ms=ms, output=output)

    def close(self, name: str, one: Begun, cost: float) -> None:
        """It is over, and has cost so much."""
        self._used[name] = close(self.used(name), one, cost)

    def judge(self, name: str, *, has_failed: bool) -> None:
        """How an attempt of its own went."""
        self._used[name] = judge(self.used(name), has_failed=has_failed)

    async def settle(self, under_way: Container[Begun]) -> None:
        """Close what an earlier hub has left open, but for what goes on."""
        left = [(name, one) for name, used in self._used.items() for one in used.open]
        for name, one in left:
            if one not in under_way:
                cost = await asyncio.to_thread(
                    cost_of_attempt, self._hub.store, one.task, one.attempt
                )
                self.close(name, one, cost)
        await self.save()

    async def save(self) -> None:
        """Keep what was booked, for all: who has no budget yet may have one before the day ends."""
        async with self._saving:  # one after the other, so that the last one stays
            used = dict(self._used)
            if used != self._kept:
                await asyncio.to_thread(self._keeper.save, msgspec.json.encode(used))
                self._kept = used

    async def save_before(self, account: Account) -> None:
        """What it has left must be known before it begins; who has no budget need not wait."""
        if account.budget != Budget():
            await self.save()

    async def review(self, accounts: Collection[tuple[Account, Callable[[], Used]]]) -> None:
        """See who is paused, and pause whoever has used up its day.

        Beside each account stands who knows what its attempts that run have used so far. It is
        asked at the moment that counts: an attempt that has ended meanwhile is booked already.
        """
        names = [account.name for account, _ in accounts]
        # First, so that whatever comes meanwhile is not taken for seen.
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
                    await self._note_told(account.name)  # another hub has asked, also for this one
            elif used.told:
                self._used[account.name] = afresh(used, running)
                await self.save()
            else:
                await self._pause(account, why)

    def _pause_of(self, account: Account) -> Pause | None:
        """The pause that lasts now, as far as known since the last review."""
        pause = self._pauses.get(account.name)
        return pause if pause is not None and pause.lasts(self._hub.clock.now()) else None

    def _used_up(self, account: Account, running: Used) -> str:
        used = spend(self.used(account.name), ms=running.ms, output=running.output)
        return used_up(account.name, account.budget, used)

    async def _pause(self, account: Account, why: str) -> None:
        now = self._hub.clock.now()
        pause = Pause(why, now, next_day(now))
        people = await asyncio.to_thread(self._people)
        # Two hubs that have seen the same ask the same, and one of them is heard.
        question = f"pause.{account.name}.{self._versions[account.name]}"
        commands: list[AnyCommand] = [PauseAgent(account.name, pause.reason, pause.until)]
        if people:
            subject = f"{account.name} has used up its day: may it go on?"
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
        """The question was asked; who goes on after that was told to."""
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
    """Why nothing is started for it, by what is on record: who may only read has to wait too."""
    cannot_hold = why_no_holder(known)
    return Pause(cannot_hold, known.registered_at) if cannot_hold else known.pause


def _decode_usage(data: bytes) -> dict[str, Used]:
    try:
        used = msgspec.json.decode(data, type=dict[str, Used]) if data else {}
    except msgspec.MsgspecError:  # a damaged count must not stop the work: it begins anew
        return {}
    return {name: nothing_owed(one) for name, one in used.items()}
