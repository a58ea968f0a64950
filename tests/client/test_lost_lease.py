"""Lost lease: its worker is cancelled with the reason; others go on."""

import asyncio

import pytest

from dragoman.client import HubUnreachable, LeaseLost, Work
from dragoman.core.agent import RevokeToken
from dragoman.core.task_state import MoveTask
from tests.client.backend import HEARTBEAT_MS, Backend, run
from tests.client.relay import PROXY_PAGE
from tests.requirements import proves

pytestmark = proves("SDK-LEASE-LOST")


async def _cancel_task(backend: Backend, task: str) -> None:
    """Cancel a task that is being worked on."""
    await asyncio.to_thread(backend.server.submit, MoveTask(task, "cancelled"))


@pytest.mark.parametrize("is_entered", [True, False], ids=["with-work", "plain-loop"])
def test_lost_lease_cancels_handler_and_raises(backend: Backend, *, is_entered: bool) -> None:
    task = backend.create_task("Taken away")
    cleanups: list[str] = []

    async def handle() -> None:
        try:
            await _cancel_task(backend, task)
            await asyncio.Event().wait()
        finally:
            cleanups.append("cleaned up")

    async def agent() -> None:
        async with backend.connect() as hub:
            async for work in hub.work(agent="ada", beat_ms=HEARTBEAT_MS):
                if is_entered:
                    async with work:
                        await handle()
                await handle()

    with pytest.raises(LeaseLost, match=r"^lease_lost: nobody holds .* now, it is cancelled"):
        run(agent())

    assert cleanups == ["cleaned up"]
    assert backend.status(task) == "cancelled"
    assert backend.streams_with("task.reported") == []


def test_worker_goes_on_with_the_next_task(backend: Backend) -> None:
    first, second = backend.create_task("Taken away"), backend.create_task("Next")
    lost_codes: list[str] = []

    async def agent() -> None:
        async with backend.connect() as hub:
            async for work in hub.work(agent="ada", beat_ms=HEARTBEAT_MS, stop_when_idle=True):
                try:
                    async with work:
                        if work.task.id == first:
                            await _cancel_task(backend, first)
                            await asyncio.Event().wait()
                        await work.complete()
                except LeaseLost as error:
                    lost_codes.append(error.code)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    run(agent())

    assert lost_codes == ["lease_lost"]
    assert backend.status(second) == "review"


def test_lost_lease_cancels_only_its_worker(backend: Backend) -> None:
    task = backend.create_task("Taken away", assignee="ada")
    backend.create_task("Kept", assignee="bob")
    ended: list[str] = []

    async def worker(work: Work, has_lost: asyncio.Event) -> None:
        async with work:
            if work.task.id == task:
                await _cancel_task(backend, task)
                await asyncio.Event().wait()
            await has_lost.wait()
            ended.append((await work.complete()).status)

    async def agents() -> None:
        has_lost = asyncio.Event()
        async with backend.connect("ada") as hub, backend.connect("bob") as other_hub:
            kept = await anext(other_hub.work(agent="bob", beat_ms=HEARTBEAT_MS))
            assert kept.task.title == "Kept"
            keeping = asyncio.create_task(worker(kept, has_lost))
            losing = asyncio.create_task(
                worker(await anext(hub.work(agent="ada", beat_ms=HEARTBEAT_MS)), has_lost)
            )
            with pytest.raises(LeaseLost):
                await losing
            has_lost.set()
            await keeping

    run(agents())

    assert ended == ["review"]


def test_reports_after_lost_lease_are_refused(backend: Backend) -> None:
    task = backend.create_task("Taken away")

    async def agent() -> None:
        async with backend.connect() as hub:
            work = await anext(hub.work(agent="ada"))
            # The next heartbeat is ten seconds away: it does not find out first.
            await asyncio.to_thread(backend.relay.wait_for_response, b"/heartbeat")
            await _cancel_task(backend, task)
            with pytest.raises(LeaseLost):
                await work.progress("still here")
            with pytest.raises(LeaseLost):
                await work.complete()

    run(agent())

    assert backend.status(task) == "cancelled"


@proves("SDK-HEARTBEAT")
def test_invalid_heartbeat_response_does_not_stop_heartbeats(backend: Backend) -> None:
    task = backend.create_task("Behind a proxy")
    request_line = f"POST /v1/tasks/{task}/heartbeat".encode()

    async def agent() -> None:
        async with (
            backend.connect() as hub,
            await anext(hub.work(agent="ada", beat_ms=HEARTBEAT_MS)) as work,
        ):
            backend.relay.canned_responses[request_line] = PROXY_PAGE
            await asyncio.to_thread(
                backend.relay.wait_for_request, request_line, backend.relay.count(request_line) + 2
            )
            del backend.relay.canned_responses[request_line]
            await asyncio.to_thread(backend.relay.wait_for_response, request_line, 2)
            await work.complete()

    run(agent())

    assert backend.status(task) == "review"


def test_invalid_heartbeat_responses_lose_the_lease_at_its_end(backend: Backend) -> None:
    task = backend.create_task("Behind a proxy")
    backend.relay.canned_responses[f"POST /v1/tasks/{task}/heartbeat".encode()] = PROXY_PAGE

    async def agent() -> None:
        async with (
            backend.connect() as hub,
            await anext(hub.work(agent="ada", ttl_ms=1_000, beat_ms=HEARTBEAT_MS)),
        ):
            await asyncio.Event().wait()

    with pytest.raises(LeaseLost, match="could not be reached for 1 s"):
        run(agent())


def test_unreachable_hub_loses_the_lease_at_its_end(backend: Backend) -> None:
    backend.create_task("Cut off")

    async def agent() -> None:
        async with backend.connect() as hub, await anext(hub.work(agent="ada", ttl_ms=1_000)):
            backend.relay.target = 0
            backend.stop()
            await asyncio.Event().wait()

    with pytest.raises(LeaseLost, match="could not be reached for 1 s"):
        run(agent())


def test_swallowed_cancellation_still_raises_lease_lost(backend: Backend) -> None:
    task = backend.create_task("Taken away")

    async def agent() -> None:
        async with (
            backend.connect() as hub,
            await anext(hub.work(agent="ada", beat_ms=HEARTBEAT_MS)) as work,
        ):
            try:
                await _cancel_task(backend, task)
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                assert work.lost is not None
        raise AssertionError("the loss was hidden")

    with pytest.raises(LeaseLost):
        run(agent())


def test_other_cancellation_at_the_same_time_is_not_swallowed(backend: Backend) -> None:
    task = backend.create_task("Taken away")

    async def agent() -> None:
        async with (
            backend.connect() as hub,
            await anext(hub.work(agent="ada", beat_ms=HEARTBEAT_MS)),
        ):
            try:
                await _cancel_task(backend, task)
                await asyncio.Event().wait()
            finally:
                this_task = asyncio.current_task()
                assert this_task is not None
                this_task.cancel()

    async def expect_cancellation() -> None:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(agent())

    run(expect_cancellation())


def test_failed_final_report_still_raises_lease_lost(backend: Backend) -> None:
    backend.create_task("Cut off")

    async def agent() -> None:
        async with backend.connect(patience=6) as hub:
            work = await anext(hub.work(agent="ada", ttl_ms=1_000))
            backend.relay.target = 0
            backend.stop()
            with pytest.raises(HubUnreachable):
                await work.complete()
            with pytest.raises(LeaseLost):
                work.check()

    run(agent())


def test_revoked_token_loses_the_lease(backend: Backend) -> None:
    backend.create_task("Ada's")

    async def agent() -> None:
        async with (
            backend.connect() as hub,
            await anext(hub.work(agent="ada", beat_ms=HEARTBEAT_MS)),
        ):
            await asyncio.to_thread(backend.server.submit, RevokeToken("ada"))
            await asyncio.Event().wait()

    with pytest.raises(LeaseLost, match="token_revoked"):
        run(agent())


def test_error_of_the_handler_is_not_replaced(backend: Backend) -> None:
    task = backend.create_task("Taken away")

    async def agent() -> None:
        async with (
            backend.connect() as hub,
            await anext(hub.work(agent="ada", beat_ms=HEARTBEAT_MS)),
        ):
            try:
                await _cancel_task(backend, task)
                await asyncio.Event().wait()
            finally:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(agent())
