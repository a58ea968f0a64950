"""Starting agents: from a task that becomes ready to a program that runs, beside the bare start."""

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from bench import hub
from dragoman.bootstrap.data_directory import open_directory
from dragoman.bootstrap.runners import open_dispatcher
from dragoman.core.actor import Actor
from dragoman.core.task_state import CreateTask
from dragoman.engine.auth import Authenticator
from dragoman.system.clock import SystemClock

_PERSON = Actor("human", "bench")
_SCRIPT = 'echo up > "$0"'
_WARM_UP = 5

Start = Callable[[], Awaitable[None]]


def bare_p99(folder: Path, seconds: float) -> float:
    """Starts a second, by the slowest of a hundred bare starts."""
    return 1 / _p99(asyncio.run(_bare(folder, seconds)))


def dispatched_p99(folder: Path, seconds: float) -> float:
    """The same for a task that is created, claimed, and given to an agent that is started."""
    return 1 / _p99(asyncio.run(_dispatched(folder, seconds)))


def hub_p99(folder: Path, seconds: float) -> float:
    """The same for a task that comes to a whole hub over HTTP."""
    with _pipe(folder) as (path, pipe):
        _settings(folder, path)
        with hub.started(folder) as running:
            caller = hub.Caller(running)

            async def start() -> None:
                caller.make_ready()
                os.read(pipe, 100)

            return 1 / _p99(asyncio.run(_timed(start, seconds)))


async def _bare(folder: Path, seconds: float) -> list[float]:
    with _pipe(folder) as (path, pipe):

        async def start() -> None:
            _start_bare(path, pipe)

        return await _timed(start, seconds)


def _start_bare(path: Path, pipe: int) -> None:
    with subprocess.Popen(["sh", "-c", _SCRIPT, str(path)], start_new_session=True):
        os.read(pipe, 100)


async def _dispatched(folder: Path, seconds: float) -> list[float]:
    with _pipe(folder) as (path, pipe):
        _settings(folder, path)
        place = open_directory(folder, "", None, create=True)
        identity = Authenticator(place.hub.store, bytes(32), b"bench", SystemClock())
        dispatcher, _ = open_dispatcher(place, identity, "")
        running = asyncio.create_task(dispatcher.run())

        async def start() -> None:
            await place.hub.submit_async(_PERSON, CreateTask("one", ready=True))
            await asyncio.to_thread(os.read, pipe, 100)

        try:
            return await _timed(start, seconds)
        finally:
            dispatcher.stop()
            await running
            place.hub.close()


def _settings(folder: Path, pipe: Path) -> None:
    (folder / "dragoman.toml").write_text(
        f'[agents.bench]\nconcurrency = 8\ncommand = ["sh", "-c", \'{_SCRIPT}\', "{pipe}"]\n'
    )


async def _timed(start: Start, seconds: float) -> list[float]:
    for _ in range(_WARM_UP):
        await start()
    taken, end = list[float](), perf_counter() + seconds
    while not taken or perf_counter() < end:
        begun = perf_counter()
        await start()
        taken.append(perf_counter() - begun)
    return taken


def _p99(taken: list[float]) -> float:
    return sorted(taken)[min(len(taken) - 1, len(taken) * 99 // 100)]


@contextmanager
def _pipe(folder: Path) -> Generator[tuple[Path, int]]:
    path = folder / "up"
    os.mkfifo(path)
    # Open for both, so that it does not end when one of the programs does.
    descriptor = os.open(path, os.O_RDWR)
    try:
        yield path.absolute(), descriptor
    finally:
        os.close(descriptor)
