"""A task's life, six durable steps, by 64 callers and by one: the engine beside the raw limit."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from time import perf_counter

import uvloop

from bench.callers import Call, drive, open_hub
from bench.raw import STEPS, RawFront, RawLoop
from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, EndAttempt, RenewLease, ReportOutcome
from dragoman.core.base import Command
from dragoman.core.task_state import CreateTask, MoveTask
from dragoman.engine.ports import Store
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import new_id

_AGENT = Actor("agent", "swe-backend")
_PERSON = Actor("human", "reviewer")


def raw_with_callers(folder: Path, callers: int, seconds: float) -> float:
    """Lives per second of the hand-written loop behind an event loop."""

    @asynccontextmanager
    async def lives() -> AsyncGenerator[Call]:
        raw = RawLoop(folder / "raw.db")
        front = RawFront(raw.write)
        streams = iter(range(1, 1 << 62))

        async def life() -> None:
            stream = next(streams)
            for step in range(len(STEPS)):
                await front.write((stream, step))

        yield life
        front.close()
        raw.close()

    return uvloop.run(drive(lives(), callers, seconds))


def engine_with_callers(
    store: Store, callers: int, seconds: float, new_key: Callable[[], str] = new_id
) -> float:
    """Lives per second of the engine's async door."""

    @asynccontextmanager
    async def lives() -> AsyncGenerator[Call]:
        with open_hub(store) as hub:

            async def life() -> None:
                created = await hub.submit_async(_PERSON, _CREATE, key=new_key())
                for actor, command, key in _steps(created.receipts[0].task, new_key):
                    await hub.submit_async(actor, command, key=key)

            yield life

    return uvloop.run(drive(lives(), callers, seconds))


def random_key() -> str:
    """A key in no order, as UUIDv4 has none: each comes to lie somewhere else in an index."""
    return sha256(new_id().encode()).hexdigest()[:32]


def raw_alone(folder: Path, seconds: float) -> float:
    """Lives per second of the hand-written loop, one transaction a step, no event loop."""
    raw, stream, start = RawLoop(folder / "alone.db"), 0, perf_counter()
    while perf_counter() < start + seconds:
        stream += 1
        for step in range(len(STEPS)):
            raw.write([(stream, step)])
    rate = stream / (perf_counter() - start)
    raw.close()
    return rate


def engine_alone(store: Store, seconds: float) -> float:
    """Lives per second through `handle_now`, in the caller's thread."""
    lives, start = 0, perf_counter()
    with open_hub(store) as hub:
        while perf_counter() < start + seconds:
            created = hub.submit(_PERSON, _CREATE, key=new_id())
            for actor, command, key in _steps(created.receipts[0].task):
                hub.submit(actor, command, key=key)
            lives += 1
    return lives / (perf_counter() - start)


def sqlite_store(path: Path) -> Store:
    """A fresh SQLite store, as durable as in production."""
    return SqliteStore.open(path, new_id)


_CREATE = CreateTask("a task of ordinary length", ready=True)


def _steps(
    task: str, new_key: Callable[[], str] = new_id
) -> tuple[tuple[Actor, Command, str], ...]:
    """Steps after the creation, each under a fresh key; a heartbeat needs none."""
    return (
        (_AGENT, ClaimTask(task, agent=_AGENT.name), new_key()),
        (_AGENT, RenewLease(task), ""),
        (_AGENT, ReportOutcome(task, outcome="done"), new_key()),
        (_AGENT, EndAttempt(task), new_key()),
        (_PERSON, MoveTask(task, to="done"), new_key()),
    )
