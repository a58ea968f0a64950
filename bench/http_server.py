"""The servers that are measured, each in a process of its own: `python -m bench.http_server KIND`.

`bare`: a Starlette endpoint that decodes, chains and group-commits a message. `hub`: ours. `busy`:
ours, with a producer inside that commits so many events a second as soon as a line is read: one
that has much to say about one task. `bare-stream`: a Starlette endpoint that tells its readers of
as many lines, which its producer has chained and committed.
"""

import asyncio
import socket
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from time import perf_counter, perf_counter_ns

import msgspec
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from bench.aof import AGENT, PERSON, claim_tasks, lay_summaries, task_ids
from bench.raw import RawFront, RawLog
from dragoman.config import HttpSettings, Settings
from dragoman.core.agent import IssueToken, RegisterAgent, digest_token
from dragoman.core.task_state import NoteTask
from dragoman.engine.auth import Authenticator
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.router import Router
from dragoman.engine.schemas.settings import ReloadedSettings
from dragoman.engine.store_facts import StoreFacts
from dragoman.engine.subscribe import CommitHints
from dragoman.files.task_work_folder import has_task_file
from dragoman.protocols import aof
from dragoman.protocols.aof.wire import MESSAGES
from dragoman.store.sqlite import SqliteStore
from dragoman.surfaces.http import HttpDeps, HttpServer, build_app
from dragoman.surfaces.http.sessions import Sessions
from dragoman.system.clock import SystemClock, new_id
from dragoman.system.process_tuning import freeze_gc, tune_gc
from dragoman.system.safe_fs import SafeDisk

TOKEN = f"drg_{AGENT.name}_{1:012x}_{'s' * 43}"
OWNER_TOKEN = "drgo_the-owner"
"""Of whom any number of readers is taken."""
BUSY = 1_000
_SECRET = b"bench" * 6
_A_DAY = 86_400_000
_TICK_S = 0.005
_BODY = 1 << 26
_BEFORE = b'event: line\ndata: {"before":"%b","text":"' % (b"." * 270)
_AFTER = b'"}\n\n'
"""Around what a line says, so that it is as long as an event of ours."""

Serving = tuple[uvicorn.Server, Callable[[], None]]
"""A server, and what begins when a line is read."""


@asynccontextmanager
async def _bare(folder: Path) -> AsyncGenerator[Serving]:
    log = RawLog(folder / "raw.db")
    front = RawFront(log.write)
    decoder = msgspec.json.Decoder(MESSAGES["completion.report"])

    async def take(request: Request) -> Response:
        body = await request.body()
        message = decoder.decode(body)
        await front.write(body)
        answer = msgspec.json.encode({"ok": True, "taskId": message.task_id})
        return Response(answer, media_type="application/json")

    yield _starlette(Route("/v1/messages", take, methods=["POST"])), _nothing
    front.close()
    log.close()


def _starlette(route: Route) -> uvicorn.Server:
    """A server of one route, and nothing else."""
    app = Starlette(routes=[route])
    config = uvicorn.Config(app, loop="uvloop", http="httptools", log_config=None, access_log=False)
    return uvicorn.Server(config)


@asynccontextmanager
async def _bare_stream(folder: Path, rate: int) -> AsyncGenerator[Serving]:
    log, loop = RawLog(folder / "raw.db"), asyncio.get_running_loop()
    readers: set[asyncio.Queue[bytes]] = set()

    def tell(chunk: bytes) -> None:
        for reader in readers:
            reader.put_nowait(chunk)

    def produce() -> None:
        position = 0
        for due in pace(rate):
            now = perf_counter_ns()
            frames = [
                b"id: %d\n%b%020d%b" % (position + n, _BEFORE, now, _AFTER) for n in range(due)
            ]
            position += due
            log.write(frames)
            loop.call_soon_threadsafe(tell, b"".join(frames))

    async def lines() -> AsyncGenerator[bytes]:
        reader = asyncio.Queue[bytes]()
        readers.add(reader)
        yield b"retry: 1000\n\n"
        try:
            while True:
                yield await reader.get()
        finally:
            readers.discard(reader)

    async def follow(request: Request) -> Response:
        del request
        return StreamingResponse(lines(), media_type="text/event-stream")

    yield _starlette(Route("/v1/stream", follow)), produce
    log.close()


@asynccontextmanager
async def _hub(folder: Path, rate: int = 0) -> AsyncGenerator[Serving]:
    store, clock, hints = (
        SqliteStore.open(folder / "dragoman.db", new_id),
        SystemClock(),
        CommitHints(),
    )
    hub = Hub(Engine(store, clock, _SECRET, on_commit=hints.notify), new_id)
    names = task_ids(BUSY)
    claim_tasks(hub, names)
    lay_summaries(folder, names)
    expires = clock.now() + _A_DAY
    hub.submit(
        PERSON,
        RegisterAgent(AGENT.name),
        IssueToken(AGENT.name, f"{1:012x}", digest_token(TOKEN), expires),
    )
    facts = StoreFacts(store, partial(has_task_file, store, SafeDisk(folder)))
    deps = HttpDeps(
        hub=hub,
        router=Router(hub, (aof.dialect(),), facts),
        identity=Authenticator(store, _SECRET, OWNER_TOKEN.encode(), clock),
        settings=Settings(http=HttpSettings(port=0, rate_per_second=0, max_body=_BODY)),
        hints=hints,
        sessions=Sessions(_SECRET, clock),
        reload=_reload_nothing,
    )
    yield HttpServer(build_app(deps), deps.settings.http), lambda: _produce(hub, names[0], rate)
    hub.close()


async def _reload_nothing() -> ReloadedSettings:
    return ReloadedSettings((), (), (), ())


def pace(rate: int) -> Iterator[int]:
    """Yield the number of events that are due, every few milliseconds."""
    made, start, never = 0, perf_counter(), threading.Event()
    next_one = start
    while True:
        never.wait(max(0.0, next_one - perf_counter()))
        next_one = max(next_one + _TICK_S, perf_counter())
        due = int((perf_counter() - start) * rate)
        if due > made:
            yield due - made
        made = due


def _produce(hub: Hub, task: str, rate: int) -> None:
    """So many events a second, each with the moment at which it was asked for."""
    for due in pace(rate):
        now = perf_counter_ns()
        hub.submit(PERSON, *(NoteTask(task, f"{now:020d}") for _ in range(due)))


def _nothing() -> None:
    """A server that only answers."""


_KINDS: dict[str, Callable[..., AbstractAsyncContextManager[Serving]]] = {
    "bare": _bare,
    "bare-stream": _bare_stream,
    "hub": _hub,
    "busy": _hub,
}


def _bound(config: uvicorn.Config) -> socket.socket:
    config.host, config.port = "127.0.0.1", 0
    bound = config.bind_socket()
    bound.listen()
    return bound


async def _serve(kind: str, folder: Path, *more: int) -> None:
    async with _KINDS[kind](folder, *more) as (server, begin):
        bound = server.bind() if isinstance(server, HttpServer) else _bound(server.config)
        serving = asyncio.create_task(server.serve([bound]))
        freeze_gc()
        print(bound.getsockname()[1], flush=True)
        if more:
            await asyncio.to_thread(sys.stdin.readline)
            threading.Thread(target=begin, daemon=True).start()
        await serving


if __name__ == "__main__":
    tune_gc()
    uvloop.run(_serve(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:])))
