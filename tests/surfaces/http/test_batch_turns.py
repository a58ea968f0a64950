"""Batches beside other requests: their lines are charged first, and decoded in turns."""

import asyncio
import itertools
import json

import pytest

from dragoman.config import HttpSettings
from dragoman.surfaces.http.limits import DecodingTurns, RateLimiter
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, serving

JSON_LINES = {"Content-Type": "application/x-ndjson"}
JUNK = b"[" + b"[]," * 60_000 + b"1]\n"


@proves("HTTP-RATE")
def test_second_batch_of_a_caller_in_debt_is_refused_before_a_line_is_decoded() -> None:
    http = HttpSettings(port=0, rate_per_second=1, burst=5)
    with (
        serving(HubServer(http=http, monotonic=lambda: 0.0)) as server,
        server.connect() as sock,
    ):
        server.add_agent("ada")
        body = b"junk\n" * 20
        head = (f"Content-Length: {len(body)}", "Content-Type: application/x-ndjson")
        sock.sendall(server.request_head("POST", "/v1/messages", *head, by="ada") + body[:-1])
        first = server.request("POST", "/v1/messages", body, by="ada", headers=JSON_LINES)
        assert first.status == 200
        sock.sendall(body[-1:])
        assert sock.recv(12) == b"HTTP/1.1 429"
        metrics = server.request("GET", "/metrics").body
        assert b'outcome="not_recognized"} 20' in metrics


@proves("HTTP-RATE")
def test_debt_of_a_batch_is_paid_within_a_minute() -> None:
    now = [0.0]
    rates = RateLimiter(100.0, 1_000, lambda: now[0])
    assert rates.acquire("ada", 200_000, required=0.0) == 0
    assert rates.acquire("ada") == 61
    now[0] = 61.0
    assert rates.acquire("ada") == 0


@proves("HTTP-TURNS")
def test_each_line_is_decoded_in_a_turn(server: HubServer) -> None:
    class CountedTurns(DecodingTurns):
        count = 0

        async def __aenter__(self) -> None:
            self.count += 1
            await super().__aenter__()

    turns = server.app.context.decoding_turns = CountedTurns()
    response = server.request("POST", "/v1/messages", JUNK * 3 + b"\n1\n", headers=JSON_LINES)
    codes = [json.loads(line)["problem"]["code"] for line in response.body.splitlines()]
    assert codes == ["invalid_json"] * 3 + ["not_recognized"]
    assert turns.count == 4


@proves("HTTP-TURNS")
def test_loop_is_left_to_others_for_as_long_as_a_turn_took() -> None:
    async def run() -> list[tuple[float, float]]:
        loop, turns = asyncio.get_running_loop(), DecodingTurns()
        times: list[tuple[float, float]] = []

        async def decode() -> None:
            async with turns:
                started_at = loop.time()
                while loop.time() < started_at + 0.01:
                    pass
                times.append((started_at, loop.time()))

        await asyncio.gather(decode(), decode(), decode())
        return times

    times = asyncio.run(run())
    for (start, end), (next_start, _) in itertools.pairwise(times):
        assert next_start - end >= 0.9 * (end - start)


@proves("HTTP-TURNS")
def test_turn_that_fails_or_is_cancelled_is_passed_on() -> None:
    async def run() -> None:
        turns = DecodingTurns()
        with pytest.raises(ZeroDivisionError):
            async with turns:
                _ = 1 / 0
        entered = asyncio.Event()

        async def hold() -> None:
            async with turns:
                entered.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(hold())
        await entered.wait()
        task.cancel()
        async with turns:
            assert task.done()

    asyncio.run(run())
