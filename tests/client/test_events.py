"""Following the ledger: nothing is missed, nothing comes twice, whatever happens on the way."""

import asyncio
from contextlib import aclosing

import pytest

from dragoman.client import BadAnswer, Event, Gap, Hub, HubUnreachable, Refused
from dragoman.client.address import Address
from dragoman.client.follow import OnGap, follow, log_gap
from dragoman.client.requests import Wanted
from dragoman.client.wire import Wire
from dragoman.system.ids import new_id
from tests.client.relay import BUSY, GARBLED, PROXY_PAGE
from tests.client.stage import Stage, run
from tests.requirements import proves

pytestmark = proves("SDK-EVENTS")

GAP = b'id: 900\nevent: gap\ndata: {"after":5,"until":900}\n\n'


async def _collect(
    hub: Hub, count: int, after: int | None = 0, on_gap: OnGap = log_gap
) -> list[Event]:
    found: list[Event] = []
    async with aclosing(hub.events(after, on_gap=on_gap)) as events:
        async for event in events:
            found.append(event)
            if len(found) == count:
                break
    return found


def test_events_come_from_the_beginning_and_go_on_as_they_happen(stage: Stage) -> None:
    task = stage.create("Seen")

    async def reader() -> list[Event]:
        async with stage.connect("owner") as hub:
            reading = asyncio.create_task(_collect(hub, 6))
            await asyncio.to_thread(stage.relay.wait_for, b"GET /v1/stream")
            await asyncio.to_thread(stage.house.post, f"/v1/tasks/{task}/note", {"text": "hello"})
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


def test_from_now_on_means_nothing_of_before(stage: Stage) -> None:
    stage.create("Before")

    async def reader() -> list[Event]:
        async with stage.connect("owner") as hub:
            reading = asyncio.create_task(_collect(hub, 1, after=None))
            await asyncio.to_thread(stage.relay.wait_for, b"GET /v1/stream")
            await asyncio.to_thread(stage.create, "After")
            return await reading

    assert [event.body["title"] for event in run(reader())] == ["After"]


def test_filters_are_the_hub_s(stage: Stage) -> None:
    stage.create("Other")
    task = stage.create("Wanted")

    async def reader() -> Event:
        async with stage.connect("owner") as hub:
            with pytest.raises(Refused, match="is not an event"):
                await anext(hub.events(type="nothing.of.the.kind"))
            return await anext(hub.events(0, task=task, type="task", agent="hera", dialect="aof"))

    assert run(reader()).task == task


@pytest.mark.parametrize("way", ["cut", "gap"])
def test_a_stream_that_breaks_off_or_skips_is_taken_up_where_it_was(stage: Stage, way: str) -> None:
    async def reader() -> list[Event]:
        async with stage.connect("owner") as hub:
            reading = asyncio.create_task(_collect(hub, 6))
            for number in (1, 2):
                await asyncio.to_thread(stage.relay.wait_for, b"GET /v1/stream", number)
                if way == "cut":
                    await asyncio.to_thread(stage.relay.cut_streams)
                elif number == 1:
                    await asyncio.to_thread(stage.relay.inject, GAP)
            await asyncio.to_thread(stage.create, "One")
            await asyncio.to_thread(stage.create, "Two")
            return await reading

    assert [event.position for event in run(reader())] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("way", ["stream", "pages"])
def test_a_ledger_that_ends_before_what_was_seen_is_followed_from_its_end(
    stage: Stage, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    head = stage.house.store.head()
    asks = b"GET /v1/stream" if way == "stream" else b"GET /v1/events"
    if way == "pages":
        stage.relay.answers[b"GET /v1/stream"] = PROXY_PAGE

    async def reader() -> list[Event]:
        async with stage.connect("owner") as hub:
            reading = asyncio.create_task(_collect(hub, 1, after=5_000))
            await asyncio.to_thread(stage.relay.wait_for, asks, 2)
            await asyncio.to_thread(stage.create, "After the restore")
            return await reading

    assert [event.position for event in run(reader())] == [head + 1]
    assert stage.relay.count(asks) == 2
    assert f"the ledger ends at {head}, before 5000" in caplog.text


def test_whoever_wants_to_know_of_a_ledger_that_ends_before_is_told(stage: Stage) -> None:
    told, head = list[Gap](), stage.house.store.head()

    async def reader() -> None:
        async with stage.connect("owner") as hub:
            reading = asyncio.create_task(_collect(hub, 1, after=5_000, on_gap=told.append))
            await asyncio.to_thread(stage.relay.wait_for, b"GET /v1/stream", 2)
            await asyncio.to_thread(stage.create, "After the restore")
            await reading

    run(reader())
    assert told == [Gap(5_000, head)]


@pytest.mark.parametrize("way", ["answered by a proxy", "held back"])
def test_where_no_stream_gets_through_pages_do(stage: Stage, way: str) -> None:
    if way == "held back":
        stage.relay.holds_back = b"GET /v1/stream"
    else:
        stage.relay.answers[b"GET /v1/stream"] = PROXY_PAGE

    async def reader() -> list[int]:
        address = Address(stage.relay.url, stage.tokens["owner"])
        found: list[int] = []
        async with (
            Wire(address, 30, new_id) as wire,
            aclosing(follow(wire, Wanted(), 0, first_frame_s=0.2)) as events,
        ):
            async for event in events:
                found.append(event.position)
                if event.position == 4:
                    await asyncio.to_thread(stage.create, "Later")
                if event.position == 5:
                    break
        return found

    assert run(reader()) == [1, 2, 3, 4, 5]
    assert stage.relay.count(b"GET /v1/stream") == 1
    assert stage.relay.count(b"GET /v1/events") == 2


def test_a_hub_that_gives_no_stream_for_now_is_asked_again_with_patience(stage: Stage) -> None:
    stage.relay.answers[b"GET /v1/stream"] = BUSY

    async def reader() -> None:
        async with stage.connect("owner", patience=0.5) as hub:
            await anext(hub.events(0))

    with pytest.raises(HubUnreachable, match="overloaded"):
        run(reader())
    assert stage.relay.count(b"GET /v1/stream") > 1


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", "which begins no stream"),
        (GARBLED, "not in the encoding that it names"),
    ],
    ids=["nothing", "garbled"],
)
def test_a_stream_that_no_hub_gives_is_told(stage: Stage, answer: bytes, why: str) -> None:
    stage.relay.answers[b"GET /v1/stream"] = answer

    async def reader() -> None:
        async with stage.connect("owner") as hub:
            await anext(hub.events(0))

    with pytest.raises(BadAnswer, match=why):
        run(reader())


def test_an_answer_that_was_changed_on_its_way_is_told(stage: Stage) -> None:
    async def agent() -> None:
        async with stage.connect("owner") as hub:
            stage.relay.answers[b"GET /v1/tasks"] = GARBLED
            await hub.task("any")

    with pytest.raises(BadAnswer, match="not in the encoding that it names"):
        run(agent())


def test_a_frame_that_is_none_of_ours_is_told(stage: Stage) -> None:
    async def reader() -> None:
        async with stage.connect("owner") as hub:
            reading = asyncio.create_task(_collect(hub, 1, after=None))
            await asyncio.to_thread(stage.relay.inject, b"id: 7\nevent: x\ndata: {}\n\n")
            await reading

    with pytest.raises(BadAnswer, match="does not understand"):
        run(reader())
