"""Callers who work through a storm, and repeat what they got no answer to until they have one."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec
from msgspec import Struct

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    AnyCommand,
    ClaimTask,
    CreateTask,
    MoveTask,
    NoteTask,
    RenewLease,
    ReportOutcome,
)
from dragoman.core.errors import StoreLost, StoreUnavailable
from dragoman.engine.handle import Engine
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import entries
from dragoman.engine.request import Accepted, Outcome, Request
from dragoman.engine.verifying.verify import check_ledger, check_views
from dragoman.ledger.entry import read_line
from dragoman.system.clock import HandClock
from dragoman.system.ids import new_id
from tests.conformance.store.hubs import ANN, NOW, SECRET, Hub

T = TypeVar("T")

MOST_REPEATS = 200
"""So often a caller asks again; far more than any storm here needs."""
BOARD = "board"
"""A task that everyone writes notes to."""


class Deed(Struct, frozen=True):
    """One step of a life, under its key."""

    actor: Actor
    command: AnyCommand
    key: str


class Told(Struct, frozen=True):
    """What a caller was told in the end."""

    deed: Deed
    outcome: Outcome


class Shout(Struct, frozen=True):
    """A note without a key, asked for once: whether its caller was told yes, no, or nothing."""

    text: str
    heard: bool | None


def life(name: str) -> Iterator[Deed]:
    """A task from its making to its end, with a note for everyone on the way."""
    agent = Actor("agent", f"agent-{name}")
    deeds: tuple[tuple[Actor, AnyCommand], ...] = (
        (ANN, CreateTask("a task", name, ready=True)),
        (agent, ClaimTask(name, agent.name)),
        (agent, RenewLease(name)),
        (agent, NoteTask(BOARD, f"{name} was here")),
        (agent, ReportOutcome(name, outcome="done", apply=True)),
        (ANN, MoveTask(name, to="done")),
    )
    for n, (actor, command) in enumerate(deeds):
        yield Deed(actor, command, f"{name}-{n}")


LIFE = ["task.created", "task.claimed", "task.reported", "task.transitioned", "task.transitioned"]


class Storm:
    """Lives on a store whose connections break, and what came of them."""

    def __init__(self, store: Store, wait_for_better: Callable[[], object] = lambda: None) -> None:
        """`wait_for_better`: what callers do before they ask again."""
        self._wait_for_better = wait_for_better
        self._engine = Engine(store, HandClock(NOW), SECRET)
        self.told: list[Told] = []
        self.shouts: list[Shout] = []
        self.lives: list[str] = []

    def rage(self, callers: int, is_over: Callable[[], bool]) -> None:
        """Live on, all of them at once, until it is over; then end what was begun."""

        async def caller(number: int) -> None:
            while not is_over():
                await self._live(f"t{number}-{len(self.lives)}")

        async def all_callers() -> None:
            await asyncio.gather(*map(caller, range(callers)))

        asyncio.run(all_callers())
        self._engine.close()

    async def _live(self, name: str) -> None:
        self.lives.append(name)
        for deed in life(name):
            self.told.append(Told(deed, await self._until_answered(deed)))
        self.shouts.append(await self._shout(f"{name} shouts"))

    async def _until_answered(self, deed: Deed) -> Outcome:
        for _ in range(MOST_REPEATS):
            try:
                return await self._ask(deed)
            except StoreUnavailable:
                self._wait_for_better()
        raise AssertionError(f"no answer to {deed.key} after {MOST_REPEATS} repeats")

    async def _shout(self, text: str) -> Shout:
        try:
            await self._ask(Deed(ANN, NoteTask(BOARD, text), ""))
        except StoreLost:
            return Shout(text, None)
        except StoreUnavailable:
            return Shout(text, heard=False)
        return Shout(text, heard=True)

    async def _ask(self, deed: Deed) -> Outcome:
        request = Request(deed.actor, (deed.command,), new_id(), deed.key)
        return await self._engine.handle(request)


def faults(store: Store, storm: Storm) -> list[str]:
    """Everything that is not as it must be after a storm; `store` is not in it."""
    return [
        *(f"refused: {told}" for told in storm.told if not isinstance(told.outcome, Accepted)),
        *_lives_that_differ(store, storm),
        *_notes_that_differ(store, storm),
        *_unsound(store),
        *_answers_that_differ(store, storm),
    ]


def _lives_that_differ(store: Store, storm: Storm) -> Iterator[str]:
    for name in storm.lives:
        events = [entry.event for entry in store.history(f"task:{name}", 0, 100)]
        if events != LIFE:
            yield f"{name} has lived {events}"


def _notes_that_differ(store: Store, storm: Storm) -> Iterator[str]:
    kept = Counter(
        msgspec.json.decode(read_line(entry.line).body)["text"]
        for entry in store.history(f"task:{BOARD}", 0, 1_000_000)
        if entry.event == "task.noted"
    )
    for name in storm.lives:
        if (times := kept.pop(f"{name} was here", 0)) != 1:
            yield f"the note of {name} is there {times} times"
    for shout in storm.shouts:
        times = kept.pop(shout.text, 0)
        if times > 1 or (shout.heard is not None and times != shout.heard):
            yield f"{shout} is there {times} times"
    yield from (f"nobody wrote {text}" for text in kept)


def _unsound(store: Store) -> Iterator[str]:
    yield from map(str, check_ledger(store, (), _ignore))
    yield from map(str, check_views(store, _ignore))
    positions = [entry.position for entry in entries(store)]
    if positions != list(range(1, len(positions) + 1)):
        yield "positions have gaps"


def _answers_that_differ(store: Store, storm: Storm) -> Iterator[str]:
    """Each is asked for once more, by somebody who had no part in it: nothing is done again."""
    before, hub = store.head(), Hub(store, HandClock(NOW))
    for told in storm.told:
        again = hub.ask(told.deed.actor, told.deed.command, key=told.deed.key)
        receipts = told.outcome.receipts if isinstance(told.outcome, Accepted) else ()
        if again != Accepted(receipts, repeated=True):
            yield f"{told} is {again} when it is repeated"
    if store.head() != before:
        yield f"repeats have added {store.head() - before} entries"


def _ignore(_: int) -> None:
    """Nobody watches the progress."""
