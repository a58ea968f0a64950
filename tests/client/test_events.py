"""Following the ledger: no event is missed or repeated, whatever fails."""

import asyncio
from contextlib import aclosing

import pytest

from dragoman.client import BadAnswer, Event, Gap, Hub, HubUnreachable, Refused
from dragoman.client.address import Address
from dragoman.client.event_stream import OnGap, follow_events, log_gap
from dragoman.client.requests import EventFilter
from dragoman.client.transport import Transport
from dragoman.system.ids import new_id
from tests.client.backend import Backend, run
from tests.client.relay import BUSY, GARBLED, PROXY_PAGE
from tests.requirements import proves

pytestmark = proves("SDK-EVENTS")

GAP = b'id: 900\nevent: gap\ndata: {"after":5,"until":900}\n\n'


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
            await asyncio.to_thread(backend.relay.wait_for_request, b"GET /v1/stream")
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
            await asyncio.to_thread(backend.relay.wait_for_request, b"GET /v1/stream")
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


@pytest.mark.parametrize("failure", ["cut", "gap"])
def test_broken_stream_is_resumed_at_its_position(backend: Backend, failure: str) -> None:
    async def reader() -> list[Event]:
        async with backend.connect("owner") as hub:
            reading = asyncio.create_task(_collect(hub, 6))
            for number in (1, 2):
                await asyncio.to_thread(backend.relay.wait_for_request, b"GET /v1/stream", number)
                if failure == "cut":
                    await asyncio.to_thread(backend.relay.cut_streams)
                elif number == 1:
                    await asyncio.to_thread(backend.relay.inject, GAP)
            await asyncio.to_thread(backend.create_task, "One")
            await asyncio.to_thread(backend.create_task, "Two")
            return await reading

    assert [event.position for event in run(reader())] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("source", ["stream", "pages"])
def test_cursor_beyond_the_ledger_resumes_at_its_end(
    backend: Backend, source: str, caplog: pytest.LogCaptureFixture
) -> None:
    head = backend.server.store.head()
    request = b"GET /v1/stream" if source == "stream" else b"GET /v1/events"
    if source == "pages":
        backend.relay.canned_responses[b"GET /v1/stream"] = PROXY_PAGE

    async def reader() -> list[Event]:
        async with backend.connect("owner") as hub:
            reading = asyncio.create_task(_collect(hub, 1, after=5_000))
            await asyncio.to_thread(backend.relay.wait_for_request, request, 2)
            await asyncio.to_thread(backend.create_task, "After the restore")
            return await reading

    assert [event.position for event in run(reader())] == [head + 1]
    assert backend.relay.count(request) == 2
    assert f"the ledger ends at {head}, before 5000" in caplog.text


def test_cursor_beyond_the_ledger_calls_on_gap(backend: Backend) -> None:
    gaps, head = list[Gap](), backend.server.store.head()

    async def reader() -> None:
        async with backend.connect("owner") as hub:
            reading = asyncio.create_task(_collect(hub, 1, after=5_000, on_gap=gaps.append))
            await asyncio.to_thread(backend.relay.wait_for_request, b"GET /v1/stream", 2)
            await asyncio.to_thread(backend.create_task, "After the restore")
            await reading

    run(reader())
    assert gaps == [Gap(5_000, head)]


@pytest.mark.parametrize("obstacle", ["answered by a proxy", "held back"])
def test_blocked_stream_falls_back_to_pages(backend: Backend, obstacle: str) -> None:
    if obstacle == "held back":
        backend.relay.stalled_request = b"GET /v1/stream"
    else:
        backend.relay.canned_responses[b"GET /v1/stream"] = PROXY_PAGE

    async def reader() -> list[int]:
        address = Address(backend.relay.url, backend.tokens["owner"])
        positions: list[int] = []
        async with (
            Transport(address, 30, new_id) as transport,
            aclosing(follow_events(transport, EventFilter(), 0, first_frame_s=0.2)) as events,
        ):
            async for event in events:
                positions.append(event.position)
                if event.position == 4:
                    await asyncio.to_thread(backend.create_task, "Later")
                if event.position == 5:
                    break
        return positions

    assert run(reader()) == [1, 2, 3, 4, 5]
    assert backend.relay.count(b"GET /v1/stream") == 1
    assert backend.relay.count(b"GET /v1/events") == 2


def test_refused_stream_is_retried_until_patience_ends(backend: Backend) -> None:
    backend.relay.canned_responses[b"GET /v1/stream"] = BUSY

    async def reader() -> None:
        async with backend.connect("owner", patience=0.5) as hub:
            await anext(hub.events(0))

    with pytest.raises(HubUnreachable, match="overloaded"):
        run(reader())
    assert backend.relay.count(b"GET /v1/stream") > 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", "which begins no stream"),
        (GARBLED, "not in the encoding that it names"),
    ],
    ids=["nothing", "garbled"],
)
def test_invalid_stream_response_is_reported(backend: Backend, answer: bytes, reason: str) -> None:
    backend.relay.canned_responses[b"GET /v1/stream"] = answer

    async def reader() -> None:
        async with backend.connect("owner") as hub:
            await anext(hub.events(0))

    with pytest.raises(BadAnswer, match=reason):
        run(reader())


def test_garbled_response_is_reported(backend: Backend) -> None:
    async def agent() -> None:
        async with backend.connect("owner") as hub:
            backend.relay.canned_responses[b"GET /v1/tasks"] = GARBLED
            await hub.task("any")

    with pytest.raises(BadAnswer, match="not in the encoding that it names"):
        run(agent())


def test_unknown_frame_is_reported(backend: Backend) -> None:
    async def reader() -> None:
        async with backend.connect("owner") as hub:
            reading = asyncio.create_task(_collect(hub, 1, after=None))
            await asyncio.to_thread(backend.relay.inject, b"id: 7\nevent: x\ndata: {}\n\n")
            await reading

    with pytest.raises(BadAnswer, match="does not understand"):
        run(reader())
