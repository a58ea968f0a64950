"""Questions of a working agent: it waits for the answer, and is told when none will come."""

import asyncio
import threading

import pytest

from dragoman.client import LeaseLost, QuestionClosed, connect_sync
from dragoman.core.question_state import AnswerQuestion, WithdrawQuestion
from dragoman.core.task_state import MoveTask
from tests.client.backend import HEARTBEAT_MS, Backend, run
from tests.requirements import proves

pytestmark = proves("QUESTION-WAIT", "SDK-WORK")

WAITING = b"/questions/q1?wait="


def test_answer_is_returned_to_the_waiting_agent(backend: Backend) -> None:
    task = backend.create_task("Paint it")

    async def agent() -> str:
        async with backend.connect() as hub, await anext(hub.work(agent="ada")) as work:
            asking = asyncio.create_task(work.ask("red or blue?"))
            await asyncio.to_thread(backend.relay.wait_for_request, WAITING)
            await asyncio.to_thread(backend.server.submit, AnswerQuestion(task, "blue"))
            answer = await asking
            assert await work.ask("red or blue?") == answer, "it was answered before"
            await work.complete(answer)
            return answer

    assert run(agent()) == "blue"


def test_secret_in_a_question_does_not_hide_its_answer(backend: Backend) -> None:
    task = backend.create_task("Paint it")

    async def agent() -> str:
        async with backend.connect() as hub, await anext(hub.work(agent="ada")) as work:
            asking = asyncio.create_task(work.ask(f"is ghp_{'a1B2' * 9} yours?"))
            await asyncio.to_thread(backend.relay.wait_for_request, WAITING)
            await asyncio.to_thread(backend.server.submit, AnswerQuestion(task, "no"))
            return await asking

    assert run(agent()) == "no"


def test_withdrawn_question_raises(backend: Backend) -> None:
    task = backend.create_task("Paint it")

    async def agent() -> None:
        async with backend.connect() as hub, await anext(hub.work(agent="ada")) as work:
            asking = asyncio.create_task(work.ask("red or blue?"))
            await asyncio.to_thread(backend.relay.wait_for_request, WAITING)
            await asyncio.to_thread(backend.server.submit, WithdrawQuestion(task, "q1"))
            with pytest.raises(QuestionClosed, match=f"q1 of {task} was withdrawn by hera"):
                await asking
            await work.release("nobody knows")

    run(agent())


def test_question_of_a_task_that_has_gone_on_raises(backend: Backend) -> None:
    task = backend.create_task("Paint it")

    async def agent() -> None:
        async with backend.connect() as hub, await anext(hub.work(agent="ada")) as work:
            await work.block("the paint is out")
        async with backend.connect() as hub:
            await asyncio.to_thread(backend.server.submit, MoveTask(task, "ready"))
            work = await anext(hub.work(agent="ada"))
            assert work.briefing is not None
            assert work.briefing.last_attempt is not None
            assert work.briefing.last_attempt.blockers == ("the paint is out",)
            asking = asyncio.create_task(work.ask("which paint?"))
            await asyncio.to_thread(backend.relay.wait_for_request, b"/questions/q2?wait=")
            await work.complete("any paint")
            await asyncio.to_thread(backend.server.submit, MoveTask(task, "done"))
            with pytest.raises(QuestionClosed, match=f"{task} has gone on without an answer to q2"):
                await asking

    run(agent())


def test_unanswered_question_times_out_and_stays_open(backend: Backend) -> None:
    task = backend.create_task("Paint it")

    async def agent() -> str:
        async with backend.connect() as hub, await anext(hub.work(agent="ada")) as work:
            with pytest.raises(TimeoutError, match=f"q1 of {task} was not answered within 0 s"):
                await work.ask("red or blue?", timeout=0)
            await asyncio.to_thread(backend.server.submit, AnswerQuestion(task, "blue"))
            return await work.ask("red or blue?", timeout=0)

    assert run(agent()) == "blue"


def test_lost_lease_ends_the_wait_of_both_clients(backend: Backend) -> None:
    task = backend.create_task("Taken away")

    async def agent() -> None:
        async with backend.connect() as hub:
            works = hub.work(agent="ada", beat_ms=HEARTBEAT_MS)
            async with await anext(works) as work:
                asking = asyncio.create_task(work.ask("red or blue?"))
                await asyncio.to_thread(backend.relay.wait_for_request, WAITING)
                await asyncio.to_thread(backend.server.submit, MoveTask(task, "ready"))
                await asking

    with pytest.raises(LeaseLost):
        run(agent())

    def take_away() -> None:
        backend.relay.wait_for_request(WAITING)
        backend.server.submit(MoveTask(task, "ready"))

    backend.relay.requests.clear()
    taking = threading.Thread(target=take_away)
    with connect_sync(backend.relay.url, backend.tokens["bob"], patience=30) as hub:
        work = next(hub.work("bob", beat_ms=HEARTBEAT_MS))
        taking.start()
        with pytest.raises(LeaseLost):
            work.ask("red or blue?")
        taking.join()


def test_sync_client_gets_the_answer(backend: Backend) -> None:
    task = backend.create_task("Paint it")

    def answer() -> None:
        backend.relay.wait_for_request(WAITING)
        backend.server.submit(AnswerQuestion(task, "blue"))

    answering = threading.Thread(target=answer)
    answering.start()
    with connect_sync(backend.relay.url, backend.tokens["ada"], patience=30) as hub:
        work = next(hub.work("ada"))
        assert work.briefing is None
        assert work.ask("red or blue?") == "blue"
        work.complete()
    answering.join()
