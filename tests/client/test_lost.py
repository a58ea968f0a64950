"""A lost lease: whoever works on the task is stopped, and is told why; nobody else is."""

import asyncio

import pytest

from dragoman.client import HubUnreachable, LeaseLost, Work
from dragoman.core.commands import MoveTask, RevokeToken
from tests.client.relay import PROXY_PAGE
from tests.client.stage import BEAT_MS, Stage, run
from tests.requirements import proves

pytestmark = proves("SDK-LEASE-LOST")


async def _take_away(stage: Stage, task: str) -> None:
    """A person ends the task, whoever works on it."""
    await asyncio.to_thread(stage.house.do, MoveTask(task, "cancelled"))


@pytest.mark.parametrize("entered", [True, False], ids=["with-work", "plain-loop"])
def test_the_handler_is_cancelled_and_its_block_raises_lease_lost(
    stage: Stage, *, entered: bool
) -> None:
    task = stage.create("Taken away")
    seen: list[str] = []

    async def handle() -> None:
        try:
            await _take_away(stage, task)
            await asyncio.Event().wait()
        finally:
            seen.append("cleaned up")

    async def agent() -> None:
        async with stage.connect() as hub:
            async for work in hub.work(agent="ada", beat_ms=BEAT_MS):
                if entered:
                    async with work:
                        await handle()
                await handle()

    with pytest.raises(LeaseLost, match=r"^lease_lost: nobody holds .* now, it is cancelled"):
        run(agent())

    assert seen == ["cleaned up"]
    assert stage.status(task) == "cancelled"
    assert stage.happened("task.reported") == []


def test_a_worker_goes_on_with_the_next_task(stage: Stage) -> None:
    first, second = stage.create("Taken away"), stage.create("Next")
    lost: list[str] = []

    async def agent() -> None:
        async with stage.connect() as hub:
            async for work in hub.work(agent="ada", beat_ms=BEAT_MS, stop_when_idle=True):
                try:
                    async with work:
                        if work.task.id == first:
                            await _take_away(stage, first)
                            await asyncio.Event().wait()
                        await work.complete()
                except LeaseLost as error:
                    lost.append(error.code)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    run(agent())

    assert lost == ["lease_lost"]
    assert stage.status(second) == "review"


def test_only_the_worker_whose_lease_is_lost_is_cancelled(stage: Stage) -> None:
    task = stage.create("Taken away", assignee="ada")
    stage.create("Kept", assignee="bob")
    ended: list[str] = []

    async def worker(work: Work, has_lost: asyncio.Event) -> None:
        async with work:
            if work.task.id == task:
                await _take_away(stage, task)
                await asyncio.Event().wait()
            await has_lost.wait()
            ended.append((await work.complete()).status)

    async def agents() -> None:
        has_lost = asyncio.Event()
        async with stage.connect("ada") as hub, stage.connect("bob") as other:
            kept = await anext(other.work(agent="bob", beat_ms=BEAT_MS))
            assert kept.task.title == "Kept"
            going_on = asyncio.create_task(worker(kept, has_lost))
            losing = asyncio.create_task(
                worker(await anext(hub.work(agent="ada", beat_ms=BEAT_MS)), has_lost)
            )
            with pytest.raises(LeaseLost):
                await losing
            has_lost.set()
            await going_on

    run(agents())

    assert ended == ["review"]


def test_what_the_agent_says_after_that_is_refused_here_and_there(stage: Stage) -> None:
    task = stage.create("Taken away")

    async def agent() -> None:
        async with stage.connect() as hub:
            work = await anext(hub.work(agent="ada"))
            # The next heartbeat is ten seconds away: it is not the one that finds out.
            await asyncio.to_thread(stage.relay.wait_for_answer, b"/heartbeat")
            await _take_away(stage, task)
            with pytest.raises(LeaseLost):
                await work.progress("still here")
            with pytest.raises(LeaseLost):
                await work.complete()

    run(agent())

    assert stage.status(task) == "cancelled"


@proves("SDK-HEARTBEAT")
def test_an_odd_answer_to_a_heartbeat_does_not_end_the_heartbeat(stage: Stage) -> None:
    task = stage.create("Behind a proxy")
    beat = f"POST /v1/tasks/{task}/heartbeat".encode()

    async def agent() -> None:
        async with (
            stage.connect() as hub,
            await anext(hub.work(agent="ada", beat_ms=BEAT_MS)) as work,
        ):
            stage.relay.answers[beat] = PROXY_PAGE
            await asyncio.to_thread(stage.relay.wait_for, beat, stage.relay.count(beat) + 2)
            del stage.relay.answers[beat]
            await asyncio.to_thread(stage.relay.wait_for_answer, beat, 2)
            await work.complete()

    run(agent())

    assert stage.status(task) == "review"


def test_odd_answers_for_as_long_as_the_lease_lasts_are_a_lost_lease(stage: Stage) -> None:
    task = stage.create("Behind a proxy")
    stage.relay.answers[f"POST /v1/tasks/{task}/heartbeat".encode()] = PROXY_PAGE

    async def agent() -> None:
        async with (
            stage.connect() as hub,
            await anext(hub.work(agent="ada", ttl_ms=1_000, beat_ms=BEAT_MS)),
        ):
            await asyncio.Event().wait()

    with pytest.raises(LeaseLost, match="could not be reached for 1 s"):
        run(agent())


def test_a_hub_that_stays_away_longer_than_the_lease_is_a_lost_lease(stage: Stage) -> None:
    stage.create("Cut off")

    async def agent() -> None:
        async with stage.connect() as hub, await anext(hub.work(agent="ada", ttl_ms=1_000)):
            stage.relay.target = 0
            stage.down()
            await asyncio.Event().wait()

    with pytest.raises(LeaseLost, match="could not be reached for 1 s"):
        run(agent())


def test_a_block_that_hides_its_cancellation_raises_the_loss_all_the_same(stage: Stage) -> None:
    task = stage.create("Taken away")

    async def agent() -> None:
        async with (
            stage.connect() as hub,
            await anext(hub.work(agent="ada", beat_ms=BEAT_MS)) as work,
        ):
            try:
                await _take_away(stage, task)
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                assert work.lost is not None
        raise AssertionError("the loss was hidden")

    with pytest.raises(LeaseLost):
        run(agent())


def test_another_s_cancellation_at_the_same_time_is_not_swallowed(stage: Stage) -> None:
    task = stage.create("Taken away")

    async def agent() -> None:
        async with stage.connect() as hub, await anext(hub.work(agent="ada", beat_ms=BEAT_MS)):
            try:
                await _take_away(stage, task)
                await asyncio.Event().wait()
            finally:
                me = asyncio.current_task()
                assert me is not None
                me.cancel()

    async def watched() -> None:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(agent())

    run(watched())


def test_a_last_word_that_is_not_heard_leaves_the_loss_to_be_told(stage: Stage) -> None:
    stage.create("Cut off")

    async def agent() -> None:
        async with stage.connect(patience=6) as hub:
            work = await anext(hub.work(agent="ada", ttl_ms=1_000))
            stage.relay.target = 0
            stage.down()
            with pytest.raises(HubUnreachable):
                await work.complete()
            with pytest.raises(LeaseLost):
                work.check()

    run(agent())


def test_an_agent_whose_token_is_taken_back_has_lost_its_work(stage: Stage) -> None:
    stage.create("Ada's")

    async def agent() -> None:
        async with (
            stage.connect() as hub,
            await anext(hub.work(agent="ada", beat_ms=BEAT_MS)),
        ):
            await asyncio.to_thread(stage.house.do, RevokeToken("ada"))
            await asyncio.Event().wait()

    with pytest.raises(LeaseLost, match="token_revoked"):
        run(agent())


def test_an_error_on_the_way_out_is_not_replaced(stage: Stage) -> None:
    task = stage.create("Taken away")

    async def agent() -> None:
        async with (
            stage.connect() as hub,
            await anext(hub.work(agent="ada", beat_ms=BEAT_MS)),
        ):
            try:
                await _take_away(stage, task)
                await asyncio.Event().wait()
            finally:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(agent())
