"""Crashes: of the connection, of the hub, of the worker. What was asked for happens once."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest

from dragoman.client import BadAnswer, Hub, HubUnreachable, Refused, Work, connect
from dragoman.core.commands import RevokeToken
from tests.client.relay import BUSY
from tests.client.stage import Stage, run
from tests.requirements import proves

TASK = "TASK-2026-02-09-001"
Doing = Callable[[Hub], Awaitable[Any]]

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


async def _worked(hub: Hub, doing: Callable[[Work], Awaitable[Any]]) -> None:
    work = await anext(hub.work(agent="ada"))
    await doing(work)
    if work.is_open:
        await work.release()


WRITES: dict[str, tuple[bytes, Doing, str]] = {
    "create": (b"POST /v1/tasks ", lambda hub: hub.create("Once"), "task.created"),
    "claim": (b"POST /v1/work ", lambda hub: _worked(hub, Work.release), "task.claimed"),
    "note": (b"/note ", lambda hub: _worked(hub, lambda work: work.note("x")), "task.noted"),
    "update": (
        b"/update ",
        lambda hub: _worked(hub, lambda work: work.progress("x")),
        "task.progressed",
    ),
    "report": (b"/report ", lambda hub: _worked(hub, Work.complete), "task.reported"),
    "messages": (b"/messages ", lambda hub: hub.send_all([_message()]), "task.progressed"),
    "call": (
        b"POST /v1/aof/",
        lambda hub: hub.call("aof_task_update", _update()),
        "task.progressed",
    ),
}
"""What its request has in its first line, and what happens by it."""


@proves("SDK-CRASH-SAFE")
@pytest.mark.parametrize(("line", "doing", "event"), WRITES.values(), ids=WRITES)
def test_an_answer_that_was_lost_is_asked_for_again_and_nothing_is_doubled(
    stage: Stage, line: bytes, doing: Doing, event: str
) -> None:
    stage.create("Worked on", assignee="ada")
    before = len(stage.happened(event))
    if event == "task.progressed" and line in (b"/messages ", b"POST /v1/aof/"):
        stage.house.post("/v1/work", {}, by="ada")

    async def agent() -> None:
        async with stage.connect() as hub:
            stage.relay.swallows += [line, line]
            await doing(hub)

    run(agent())

    assert stage.relay.swallows == []
    assert len(stage.happened(event)) == before + 1


@proves("SDK-CRASH-SAFE")
def test_a_hub_that_restarts_in_the_middle_doubles_nothing(stage: Stage) -> None:
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
                if stage.house.store.counts().get("review", 0) == 40:
                    return

    async def office() -> None:
        async with stage.connect("owner") as boss, stage.connect("ada") as hub:
            begun = [asyncio.Event() for _ in range(4)]
            async with asyncio.TaskGroup() as together:
                for number, has_begun in enumerate(begun):
                    together.create_task(agent(boss, number, has_begun))
                together.create_task(worker(hub))
                await asyncio.gather(*(one.wait() for one in begun))
                await asyncio.to_thread(stage.down)
                await asyncio.to_thread(stage.up)

    run(office())

    assert stage.house.store.counts() == {"review": 40}
    for event in ("task.created", "task.claimed", "task.progressed", "task.reported"):
        streams = stage.happened(event)
        assert len(streams) == len(set(streams)) == 40, event


@proves("SDK-CRASH-SAFE")
def test_a_worker_that_was_killed_is_followed_by_another(stage: Stage) -> None:
    task = stage.create("Survives")
    environment = {"DRAGOMAN_TOKEN": stage.tokens["ada"], "PATH": ""}
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, stage.url],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline().strip() == task
        first.send_signal(signal.SIGKILL)
    stage.pass_time(300_000)
    stage.pass_time(1_000)

    async def second() -> None:
        async with stage.connect("bob") as hub, await anext(hub.work(agent="bob")) as work:
            assert (work.task.id, work.attempt, work.fence) == (task, 2, 2)
            await work.complete("both halves")

    run(second())

    assert stage.status(task) == "review"
    assert len(stage.happened("task.claimed")) == 2
    assert len(stage.happened("task.reported")) == 1


@proves("SDK-CRASH-SAFE")
def test_a_hub_that_is_busy_is_asked_again_and_only_as_long_as_there_is_patience(
    stage: Stage,
) -> None:
    async def agent() -> None:
        async with stage.connect(patience=0.5) as hub:
            stage.relay.answers[b"POST /v1/tasks "] = BUSY
            with pytest.raises(HubUnreachable, match=r"puts .* off .* overloaded: so busy$"):
                await hub.create("Never")
            asked = stage.relay.count(b"POST /v1/tasks ")
            assert asked > 1
            stage.relay.answers.clear()
            await hub.create("At last")

    run(agent())

    assert len(stage.happened("task.created")) == 1


@proves("SDK-CRASH-SAFE")
def test_a_hub_that_is_not_there_from_the_start_is_told_at_once(stage: Stage) -> None:
    stage.relay.target = 0

    async def agent() -> None:
        async with stage.connect(patience=3_600):
            raise AssertionError("nobody answers")

    with pytest.raises(HubUnreachable, match="Is it running"):
        run(agent())


@proves("SDK-CRASH-SAFE")
def test_a_hub_that_is_busy_from_the_start_is_waited_for(stage: Stage) -> None:
    stage.relay.answers[b"GET /v1/tasks"] = BUSY

    async def agent() -> None:
        async with stage.connect() as hub:
            await hub.create("At last")

    async def agent_and_hub() -> None:
        working = asyncio.create_task(agent())
        await asyncio.to_thread(stage.relay.wait_for, b"GET /v1/tasks", 2)
        stage.relay.answers.clear()
        await working

    run(agent_and_hub())

    assert len(stage.happened("task.created")) == 1


@proves("SDK-CRASH-SAFE")
def test_whatever_else_answers_is_not_taken_for_a_hub(stage: Stage) -> None:
    page = b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\n<p>no</p>"
    stage.relay.answers[b"GET /v1/tasks"] = page

    async def agent() -> None:
        async with stage.connect():
            raise AssertionError("that is no hub")

    with pytest.raises(BadAnswer, match="no dragoman hub"):
        run(agent())
    stage.relay.answers[b"GET /v1/tasks"] = page.replace(b"404 Not Found", b"200 OK")
    with pytest.raises(BadAnswer, match=r"no dragoman hub, so check its url, or .* too far apart"):
        run(agent())


@proves("SDK-CRASH-SAFE")
def test_a_wrong_or_revoked_token_is_told_and_not_tried_again(stage: Stage) -> None:
    async def stranger() -> None:
        async with connect(stage.url, "drg_nobody_at_all"):
            raise AssertionError("nobody knows this token")

    with pytest.raises(Refused, match="unauthenticated"):
        run(stranger())

    stage.house.do(RevokeToken("ada"))
    with pytest.raises(Refused, match="token_revoked"):
        run(_entered(stage))


async def _entered(stage: Stage) -> None:
    async with stage.connect("ada"):
        raise AssertionError("the token was taken back")


@proves("SDK-EVENTS")
def test_events_outlive_a_restart_of_the_hub(stage: Stage) -> None:
    async def reader() -> list[int]:
        seen: list[int] = []
        async with stage.connect("owner") as hub, aclosing(hub.events(after=0)) as events:
            async for event in events:
                seen.append(event.position)
                if event.position == 4:
                    await asyncio.to_thread(stage.down)
                    await asyncio.to_thread(stage.up)
                    await asyncio.to_thread(stage.create, "After the restart")
                if event.type == "task.created":
                    return seen
        return seen

    assert run(reader()) == [1, 2, 3, 4, 5]
