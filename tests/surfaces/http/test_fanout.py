"""Fan-out: coalesced traces for slow readers, and crowds of waiters."""

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from dragoman.core.actor import Actor
from dragoman.core.task_state import CreateTask
from dragoman.core.trace import RecordTrace
from dragoman.engine.queries.traces import TraceEvent
from dragoman.surfaces.http import fanout
from dragoman.surfaces.http.fanout import MAX_TEXT, MAX_WOKEN, TraceFilter, Waiter, coalesce
from dragoman.surfaces.http.routes.events import MAX_WAITING_EVENTS, StreamReader
from tests.protocols.saop.hub import completed, event, invoked, pulse, thought
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer
from tests.surfaces.http.reader import Event

TIMEOUT_S = 30.0


def trace_event(position: int, payload: dict[str, object], session: str = "s-1") -> TraceEvent:
    """Build an event as the bus has it."""
    envelope = event(position, payload, session)
    return TraceEvent(position, f"{payload['type']}", "", False, envelope)


@proves("SAOP-SLOW")
def test_only_thoughts_and_terminal_lines_are_coalesced() -> None:
    events = [
        trace_event(1, thought("a")),
        trace_event(2, pulse("one")),
        trace_event(3, thought("b")),
        trace_event(4, invoked("c")),
        trace_event(5, thought("c", final=True)),
        trace_event(6, pulse("two")),
        trace_event(7, pulse("three")),
        trace_event(8, pulse("else"), "s-2"),
        trace_event(9, completed("c")),
    ]
    merged = coalesce(events)

    assert [one.position for one in merged] == [2, 3, 4, 5, 7, 8, 9]
    assert merged[1].event["payload"]["chunk"] == "ab"
    assert merged[1].event["gap"] == {
        "coalesced": 2,
        "missing_characters": 0,
        "from_position": 1,
        "to_position": 3,
    }
    assert merged[4].event["payload"]["line"] == "two\nthree"
    assert "gap" not in merged[3].event
    assert merged[2].event == events[3].event
    long = coalesce([trace_event(n, thought("x" * 1_000)) for n in range(1, 11)])
    assert [len(one.event["payload"]["chunk"]) for one in long] == [MAX_TEXT]
    assert long[0].event["gap"]["missing_characters"] == 10_000 - MAX_TEXT


def record(server: HubServer, first: int, payloads: Sequence[dict[str, Any]]) -> None:
    """Record events in one transaction."""
    commands = [
        RecordTrace(
            event_id=envelope["event_id"],
            session="s-1",
            kind=envelope["payload"]["type"],
            envelope=envelope,
            digest=f"{number}",
            call=f"c-{number}",
        )
        for number, payload in enumerate(payloads, first)
        for envelope in [event(number, payload)]
    ]
    server.submit(*commands, actor=Actor("agent", "developer"))


async def wait_for_head(server: HubServer) -> None:
    """Wait until the feed has read everything."""
    feed = server.app.context.feed
    async with feed.open_waiter() as waiter:
        while feed.head < server.store.head():
            await waiter.wait(TIMEOUT_S)


def read_while_stalled(server: HubServer, *batches: Sequence[dict[str, Any]]) -> list[Event]:
    """Return what a reader of traces gets that takes nothing while these batches are recorded."""
    context, feed = server.app.context, server.app.context.feed

    async def read() -> bytes:
        received = b""
        async with asyncio.timeout(TIMEOUT_S), feed.open_waiter(traces=True) as waiter:
            chunks = StreamReader(context, TraceFilter(), None, None).chunks(waiter)
            received += await anext(chunks)
            for number, batch in enumerate(batches):
                record(server, number * 10_000, batch)
                await wait_for_head(server)
                async for chunk in chunks:
                    received += chunk
                    if _last_id(received) == feed.head:
                        break
            await chunks.aclose()
        return received

    return [one for one in map(_parse, asyncio.run(read()).split(b"\n\n")) if one.event]


def _parse(frame: bytes) -> Event:
    fields = dict(line.split(": ", 1) for line in frame.decode().strip().splitlines())
    data = json.loads(fields["data"]) if "data" in fields else None
    return Event(fields.get("id", ""), fields.get("event", ""), data)


def _last_id(received: bytes) -> int:
    return max(map(int, re.findall(rb"^id: (\d+)$", received, re.MULTILINE)), default=0)


@proves("SAOP-SLOW")
def test_slow_reader_gets_coalesced_thoughts_and_every_tool_call() -> None:
    thoughts = [thought("x") for _ in range(MAX_WAITING_EVENTS)]
    events = read_while_stalled(HubServer(), [*thoughts, invoked("c-1"), *thoughts], [invoked("c")])

    assert [one.event for one in events] == [
        "THOUGHT_STREAM",
        "TOOL_LIFECYCLE_INVOKED",
        "THOUGHT_STREAM",
        "TOOL_LIFECYCLE_INVOKED",
    ]
    assert events[0].data["gap"]["coalesced"] == MAX_WAITING_EVENTS
    assert events[0].data["payload"]["chunk"] == "x" * MAX_WAITING_EVENTS


@proves("SAOP-SLOW")
@pytest.mark.parametrize(("count", "size"), [(MAX_WAITING_EVENTS + 1, 1), (1_100, 20_000)])
def test_reader_with_too_much_waiting_is_closed_with_its_cursor(count: int, size: int) -> None:
    server = HubServer()
    first = [invoked("c", text="x")]
    calls = [invoked("c", text="x" * size) for _ in range(count)]
    *before, last = read_while_stalled(server, first, calls)

    assert [one.event for one in before] == ["TOOL_LIFECYCLE_INVOKED"]
    assert (last.event, last.id) == ("lagged", before[-1].id)


@proves("SAOP-BUS")
def test_reader_of_traces_that_comes_later_gets_what_was_read_without_traces() -> None:
    server = HubServer()
    feed = server.app.context.feed

    async def read() -> list[bytes]:
        async with asyncio.timeout(TIMEOUT_S), feed.open_waiter():
            record(server, 0, [pulse("one")])
            await wait_for_head(server)
            async with feed.open_waiter(traces=True):
                kept = feed.next_chunk(feed.head - 1, TraceFilter())
                old, _ = await feed.read_older(feed.head - 1, TraceFilter())
                record(server, 1, [pulse("two")])
                await wait_for_head(server)
                new = feed.next_chunk(feed.head - 1, TraceFilter())
        assert kept is None
        assert new is not None
        return [old, new.data]

    assert [_parse(one).data["payload"]["line"] for one in asyncio.run(read())] == ["one", "two"]


class CountingWaiter(Waiter):
    """Waiter that counts its notifications."""

    notifications = 0

    def notify(self) -> None:
        self.notifications += 1
        super().notify()


@proves("HTTP-STREAM-SLOW")
def test_crowd_of_waiters_is_woken_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fanout, "Waiter", CountingWaiter)
    server, woken = HubServer(), list[int]()
    feed = server.app.context.feed

    async def wait(ready: asyncio.Semaphore, first: asyncio.Event) -> None:
        async with feed.open_waiter() as waiter:
            ready.release()
            await waiter.wait(TIMEOUT_S)
            assert isinstance(waiter, CountingWaiter)
            woken.append(waiter.notifications)
            first.set()

    async def run() -> None:
        ready, first = asyncio.Semaphore(0), asyncio.Event()
        async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
            for _ in range(3 * MAX_WOKEN):
                group.create_task(wait(ready, first))
            for _ in range(3 * MAX_WOKEN):
                await ready.acquire()
            server.submit(CreateTask("One"))
            await first.wait()
            assert len(woken) < 3 * MAX_WOKEN, "the loop is left to others after each batch"

    asyncio.run(run())
    assert woken == [1] * (3 * MAX_WOKEN)
