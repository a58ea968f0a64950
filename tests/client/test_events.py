"""Following the ledger: no event is missed or repeated, whatever fails."""

import asyncio
from contextlib import aclosing

import pytest

from dragoman.client import BadAnswer, Event, Gap, Hub, HubUnreachable, Refused
from dragoman.client.hub import OnGap, log_gap
from tests.client.backend import Backend, run
from tests.client.relay import BUSY, GARBLED
from tests.requirements import proves

pytestmark = proves("SDK-EVENTS")


async def _collect(
    hub: Hub, count: int, after: int | None = 0, on_gap: OnGap = log_gap
) -> list[Event]:
    collected: list[Event] = []
    async with aclosing(hub.events(after, on_gap=on_gap)) as events:
        async for event in events:
            collected.append(event)
            if len(collected) == count:
                break
    return collected


def test_events_are_replayed_and_then_live(backend: Backend) -> None:
    task = backend.create_task("Seen")

    async def reader() -> list[Event]:
        async with backend.connect("owner") as hub:
            reading = asyncio.create_task(_collect(hub, 6))
            await asyncio.to_thread(backend.relay.wait_for_request, b"GET /v1/events")
            await asyncio.to_thread(
                backend.server.post, f"/v1/tasks/{task}/note", {"text": "hello"}
            )
            return await reading

    events = run(reader())

    assert [event.position for event in events] == [1, 2, 3, 4, 5, 6]
    assert (events[4].type, events[4].task, events[4].body["title"]) == (
        "task.created",
        task,
        "Seen",
    )
    assert (events[5].type, events[5].actor, events[5].via) == (
        "task.noted",
        "human:owner",
        "http",
    )
    assert events[0].task == ""


def test_events_from_now_on_skip_earlier_ones(backend: Backend) -> None:
    backend.create_task("Before")

    async def reader() -> list[Event]:
        async with backend.connect("owner") as hub:
            reading = asyncio.create_task(_collect(hub, 1, after=None))
            await asyncio.to_thread(backend.relay.wait_for_request, b"GET /v1/events", 2)
            await asyncio.to_thread(backend.create_task, "After")
            return await reading

    assert [event.body["title"] for event in run(reader())] == ["After"]


def test_events_are_filtered_by_the_hub(backend: Backend) -> None:
    backend.create_task("Other")
    task = backend.create_task("Wanted")

    async def reader() -> Event:
        async with backend.connect("owner") as hub:
            with pytest.raises(Refused, match="is not an event"):
                await anext(hub.events(type="nothing.of.the.kind"))
            return await anext(hub.events(0, task=task, type="task", agent="hera", dialect="aof"))

    assert run(reader()).task == task


def test_broken_connection_is_resumed_at_its_position(backend: Backend) -> None:
    async def reader() -> list[Event]:
        async with backend.connect("owner") as hub:
            reading = asyncio.create_task(_collect(hub, 6))
            for number in (2, 3):
                await asyncio.to_thread(backend.relay.wait_for_request, b"GET /v1/events", number)
                await asyncio.to_thread(backend.relay.cut_connections)
            await asyncio.to_thread(backend.create_task, "One")
            await asyncio.to_thread(backend.create_task, "Two")
            return await reading

    assert [event.position for event in run(reader())] == [1, 2, 3, 4, 5, 6]


def test_cursor_beyond_the_ledger_resumes_at_its_end(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    head = backend.server.store.head()

    async def reader() -> list[Event]:
        async with backend.connect("owner") as hub:
            reading = asyncio.create_task(_collect(hub, 1, after=5_000))
            await asyncio.to_thread(backend.relay.wait_for_request, b"GET /v1/events", 2)
            await asyncio.to_thread(backend.create_task, "After the restore")
            return await reading

    assert [event.position for event in run(reader())] == [head + 1]
    assert f"the ledger ends at {head}, before 5000" in caplog.text


def test_cursor_beyond_the_ledger_calls_on_gap(backend: Backend) -> None:
    gaps, head = list[Gap](), backend.server.store.head()

    async def reader() -> None:
        async with backend.connect("owner") as hub:
            reading = asyncio.create_task(_collect(hub, 1, after=5_000, on_gap=gaps.append))
            await asyncio.to_thread(backend.relay.wait_for_request, b"GET /v1/events", 2)
            await asyncio.to_thread(backend.create_task, "After the restore")
            await reading

    run(reader())
    assert gaps == [Gap(5_000, head)]


def test_refused_page_is_retried_until_patience_ends(backend: Backend) -> None:
    backend.relay.canned_responses[b"GET /v1/events"] = BUSY

    async def reader() -> None:
        async with backend.connect("owner", patience=0.5) as hub:
            await anext(hub.events(0))

    with pytest.raises(HubUnreachable, match="overloaded"):
        run(reader())
    assert backend.relay.count(b"GET /v1/events") > 1


def test_garbled_response_is_reported(backend: Backend) -> None:
    async def agent() -> None:
        async with backend.connect("owner") as hub:
            backend.relay.canned_responses[b"GET /v1/tasks"] = GARBLED
            await hub.task("any")

    with pytest.raises(BadAnswer, match="not in the encoding that it names"):
        run(agent())
