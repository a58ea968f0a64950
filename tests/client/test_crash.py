"""Crashes of the connection, the hub and the worker: each write is applied once."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest

from dragoman.client import BadAnswer, Hub, HubUnreachable, Refused, Work, connect
from dragoman.core.agent import RevokeToken
from tests.client.backend import Backend, run
from tests.client.relay import BUSY
from tests.requirements import proves

TASK = "TASK-2026-02-09-001"
Action = Callable[[Hub], Awaitable[Any]]

WORKER = """
import asyncio, sys
from dragoman.client import connect

async def main():
    async with connect(sys.argv[1]) as hub:
        async for work in hub.work(agent="ada"):
            await work.progress("the first half")
            print(work.task.id, flush=True)
            await asyncio.Event().wait()

asyncio.run(main())
"""


def _update() -> dict[str, Any]:
    return {"taskId": TASK, "progress": "half way"}


def _message() -> dict[str, Any]:
    return {
        "protocol": "aof",
        "version": 1,
        "type": "status.update",
        "taskId": TASK,
        "fromAgent": "ada",
        "toAgent": "dispatcher",
        "sentAt": "2026-02-09T21:00:00Z",
        "payload": _update() | {"agentId": "ada"},
    }


async def _work_once(hub: Hub, action: Callable[[Work], Awaitable[Any]]) -> None:
    work = await anext(hub.work(agent="ada"))
    await action(work)
    if work.is_open:
        await work.release()


WRITES: dict[str, tuple[bytes, Action, str]] = {
    "create": (b"POST /v1/tasks ", lambda hub: hub.create("Once"), "task.created"),
    "claim": (b"POST /v1/work ", lambda hub: _work_once(hub, Work.release), "task.claimed"),
    "note": (b"/note ", lambda hub: _work_once(hub, lambda work: work.note("x")), "task.noted"),
    "update": (
        b"/update ",
        lambda hub: _work_once(hub, lambda work: work.progress("x")),
        "task.progressed",
    ),
    "report": (b"/report ", lambda hub: _work_once(hub, Work.complete), "task.reported"),
    "messages": (b"/messages ", lambda hub: hub.send_all([_message()]), "task.progressed"),
    "call": (
        b"POST /v1/aof/",
        lambda hub: hub.call("aof_task_update", _update()),
        "task.progressed",
    ),
}
"""Name -> part of its request line, the call, and the event that it records."""


@proves("SDK-CRASH-SAFE")
@pytest.mark.parametrize(("line", "action", "event"), WRITES.values(), ids=WRITES)
def test_lost_response_is_retried_without_duplicates(
    backend: Backend, line: bytes, action: Action, event: str
) -> None:
    backend.create_task("Worked on", assignee="ada")
    before = len(backend.streams_with(event))
    if event == "task.progressed" and line in (b"/messages ", b"POST /v1/aof/"):
        backend.server.post("/v1/work", {}, by="ada")

    async def agent() -> None:
        async with backend.connect() as hub:
            backend.relay.responses_to_drop += [line, line]
            await action(hub)

    run(agent())

    assert backend.relay.responses_to_drop == []
    assert len(backend.streams_with(event)) == before + 1


@proves("SDK-CRASH-SAFE")
def test_hub_restart_causes_no_duplicates(backend: Backend) -> None:
    async def agent(hub: Hub, number: int, has_begun: asyncio.Event) -> None:
        for n in range(10):
            await hub.create(f"Task {number}.{n}")
            if n == 2:
                has_begun.set()

    async def worker(hub: Hub) -> None:
        async for work in hub.work(agent="ada"):
            async with work:
                await work.progress("on it")
                await work.complete()
                if backend.server.store.status_counts().get("review", 0) == 40:
                    return

    async def run_agents() -> None:
        async with backend.connect("owner") as owner_hub, backend.connect("ada") as hub:
            begun_events = [asyncio.Event() for _ in range(4)]
            async with asyncio.TaskGroup() as together:
                for number, has_begun in enumerate(begun_events):
                    together.create_task(agent(owner_hub, number, has_begun))
                together.create_task(worker(hub))
                await asyncio.gather(*(event.wait() for event in begun_events))
                await asyncio.to_thread(backend.stop)
                await asyncio.to_thread(backend.start)

    run(run_agents())

    assert backend.server.store.status_counts() == {"review": 40}
    for event in ("task.created", "task.claimed", "task.progressed", "task.reported"):
        streams = backend.streams_with(event)
        assert len(streams) == len(set(streams)) == 40, event


@proves("SDK-CRASH-SAFE")
def test_killed_worker_is_replaced_by_another(backend: Backend) -> None:
    task = backend.create_task("Survives")
    environment = {"DRAGOMAN_TOKEN": backend.tokens["ada"], "PATH": ""}
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, backend.url],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline().strip() == task
        first.send_signal(signal.SIGKILL)
    backend.advance(300_000)
    backend.advance(1_000)

    async def second() -> None:
        async with backend.connect("bob") as hub, await anext(hub.work(agent="bob")) as work:
            assert (work.task.id, work.attempt, work.fence) == (task, 2, 2)
            await work.complete("both halves")

    run(second())

    assert backend.status(task) == "review"
    assert len(backend.streams_with("task.claimed")) == 2
    assert len(backend.streams_with("task.reported")) == 1


@proves("SDK-CRASH-SAFE")
def test_busy_hub_is_retried_until_patience_ends(
    backend: Backend,
) -> None:
    async def agent() -> None:
        async with backend.connect(patience=0.5) as hub:
            backend.relay.canned_responses[b"POST /v1/tasks "] = BUSY
            with pytest.raises(HubUnreachable, match=r"puts .* off .* overloaded: so busy$"):
                await hub.create("Never")
            request_count = backend.relay.count(b"POST /v1/tasks ")
            assert request_count > 1
            backend.relay.canned_responses.clear()
            await hub.create("At last")

    run(agent())

    assert len(backend.streams_with("task.created")) == 1


@proves("SDK-CRASH-SAFE")
def test_unreachable_hub_fails_at_once_on_connect(backend: Backend) -> None:
    backend.relay.target = 0

    async def agent() -> None:
        async with backend.connect(patience=3_600):
            raise AssertionError("nobody answers")

    with pytest.raises(HubUnreachable, match="Is it running"):
        run(agent())


@proves("SDK-CRASH-SAFE")
def test_busy_hub_is_waited_for_on_connect(backend: Backend) -> None:
    backend.relay.canned_responses[b"GET /v1/tasks"] = BUSY

    async def agent() -> None:
        async with backend.connect() as hub:
            await hub.create("At last")

    async def agent_and_hub() -> None:
        working = asyncio.create_task(agent())
        await asyncio.to_thread(backend.relay.wait_for_request, b"GET /v1/tasks", 2)
        backend.relay.canned_responses.clear()
        await working

    run(agent_and_hub())

    assert len(backend.streams_with("task.created")) == 1


@proves("SDK-CRASH-SAFE")
def test_other_server_is_not_taken_for_a_hub(backend: Backend) -> None:
    page = b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\n<p>no</p>"
    backend.relay.canned_responses[b"GET /v1/tasks"] = page

    async def agent() -> None:
        async with backend.connect():
            raise AssertionError("that is no hub")

    with pytest.raises(BadAnswer, match="no dragoman hub"):
        run(agent())
    backend.relay.canned_responses[b"GET /v1/tasks"] = page.replace(b"404 Not Found", b"200 OK")
    with pytest.raises(BadAnswer, match=r"no dragoman hub, so check its url, or .* too far apart"):
        run(agent())


@proves("SDK-CRASH-SAFE")
def test_wrong_or_revoked_token_is_not_retried(backend: Backend) -> None:
    async def stranger() -> None:
        async with connect(backend.url, "drg_nobody_at_all"):
            raise AssertionError("nobody knows this token")

    with pytest.raises(Refused, match="unauthenticated"):
        run(stranger())

    backend.server.submit(RevokeToken("ada"))
    with pytest.raises(Refused, match="token_revoked"):
        run(_enter(backend))


async def _enter(backend: Backend) -> None:
    async with backend.connect("ada"):
        raise AssertionError("the token was taken back")


@proves("SDK-EVENTS")
def test_event_stream_survives_hub_restart(backend: Backend) -> None:
    async def reader() -> list[int]:
        positions: list[int] = []
        async with backend.connect("owner") as hub, aclosing(hub.events(after=0)) as events:
            async for event in events:
                positions.append(event.position)
                if event.position == 4:
                    await asyncio.to_thread(backend.stop)
                    await asyncio.to_thread(backend.start)
                    await asyncio.to_thread(backend.create_task, "After the restart")
                if event.type == "task.created":
                    return positions
        return positions

    assert run(reader()) == [1, 2, 3, 4, 5]
