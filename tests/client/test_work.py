"""Work: a task comes into an agent's hands, is kept alive, and ends one way or another."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dragoman.client import Message, NotSent, Refused, Task, Work, Works, connect
from dragoman.client.lease import LEAST_BEAT_MS, Held, Pace
from dragoman.client.shapes import Claim
from dragoman.core.commands import DEFAULT_TTL_MS
from dragoman.services.costs import cost_of_attempt
from tests.client.stage import BEAT_MS, Stage, run
from tests.requirements import proves

DUE = datetime(2026, 2, 10, tzinfo=UTC)
DEAR = {"cost": 0.3}
DEAR_ENDS: dict[str, Callable[[Work], Awaitable[Task]]] = {
    "done": lambda work: work.complete(details=DEAR),
    "partial": lambda work: work.complete(outcome="partial", details=DEAR),
    "blocked": lambda work: work.block("no key", details=DEAR),
    "failed": lambda work: work.fail("it broke", details=DEAR),
}


@proves("SDK-WORK")
def test_an_agent_works_through_what_is_ready(stage: Stage) -> None:
    tasks = [stage.create(f"Number {n}", review_required=False) for n in range(3)]
    seen: list[str] = []

    async def agent() -> None:
        async with stage.connect() as hub:
            async for work in hub.work(agent="ada", stop_when_idle=True):
                seen.append(work.task.id)
                assert (work.agent, work.attempt, work.fence) == ("ada", 1, 1)
                assert (await work.progress("half way")).status == "in-progress"
                assert (await work.note("a line")).notes == 2
                assert (await work.complete("well done", details={"commit": "c0ffee"})).report

    run(agent())

    assert seen == tasks
    assert [stage.status(task) for task in tasks] == ["done"] * 3


@proves("SDK-WORK", "REPORT-COST")
@pytest.mark.parametrize("end", DEAR_ENDS.values(), ids=DEAR_ENDS)
def test_whatever_ends_the_work_tells_its_cost(
    stage: Stage, end: Callable[[Work], Awaitable[Task]]
) -> None:
    task = stage.create("Dear")

    async def agent() -> None:
        async with stage.connect() as hub, await anext(hub.work(agent="ada")) as work:
            await end(work)

    run(agent())
    assert cost_of_attempt(stage.house.store, task, 1) == 0.3


@proves("SDK-WORK")
def test_an_agent_waits_for_work_without_asking_again_and_again(stage: Stage) -> None:
    async def agent() -> Work:
        async with stage.connect() as hub:
            works = hub.work(agent="ada")
            waiting = asyncio.create_task(anext(works))
            await asyncio.to_thread(stage.relay.wait_for, b"POST /v1/work")
            await asyncio.to_thread(stage.create, "Late")
            work = await waiting
            await work.release("looked at it")
            return work

    assert run(agent()).task.title == "Late"
    assert stage.relay.count(b"POST /v1/work") == 1


End = Callable[[Work], Awaitable[Task]]

ENDS: dict[str, tuple[End, str]] = {
    "complete": (lambda work: work.complete("ready for a look"), "review"),
    "partial": (lambda work: work.complete("one half", outcome="partial"), "review"),
    "block": (lambda work: work.block("no access", notes="asked for it"), "blocked"),
    "fail": (lambda work: work.fail("the build is broken"), "ready"),
    "release": (lambda work: work.release("not for me"), "ready"),
}


@proves("SDK-WORK")
@pytest.mark.parametrize(("end", "status"), ENDS.values(), ids=ENDS)
def test_every_end_of_an_attempt(stage: Stage, end: End, status: str) -> None:
    task = stage.create("To be ended")

    async def agent() -> None:
        async with stage.connect() as hub, await anext(hub.work(agent="ada")) as work:
            assert (await end(work)).status == status
            assert not work.is_open

    run(agent())

    assert stage.status(task) == status
    assert len(stage.happened("task.claimed")) == 1


@proves("SDK-WORK")
def test_a_part_is_handed_off_and_its_agent_gets_it(stage: Stage) -> None:
    stage.create("The whole")

    async def whole() -> str:
        async with stage.connect("ada") as hub, await anext(hub.work(agent="ada")) as work:
            with pytest.raises(ValueError, match="no time zone"):
                await work.hand_off("bob", "The part", due_by=DUE.replace(tzinfo=None))
            child = await work.hand_off(
                "bob",
                "The part",
                due_by=DUE,
                body="as agreed",
                acceptance_criteria=["it is green"],
                expected_outputs=["outputs/part.md"],
            )
            assert child.delegation is not None
            assert (child.delegation.from_, child.delegation.to) == ("ada", "bob")
            assert child.delegation.acceptance_criteria == ("it is green",)
            assert child.parent == work.task.id
            await work.complete()
            return child.id

    async def part() -> str:
        async with stage.connect("bob") as hub, await anext(hub.work(agent="bob")) as work:
            with pytest.raises(Refused, match="nested_delegation"):
                await work.hand_off("ada", "Back", due_by=DUE + timedelta(days=1))
            await work.complete()
            return work.task.id

    child = run(whole())

    assert run(part()) == child


@proves("SDK-CRASH-SAFE")
def test_a_part_is_handed_off_once_under_one_key(stage: Stage) -> None:
    stage.create("The whole", assignee="ada")

    async def whole() -> tuple[str, str]:
        async with stage.connect("ada") as hub, await anext(hub.work(agent="ada")) as work:
            first = await work.hand_off("bob", "The part", due_by=DUE, key="part-1")
            stage.house.clock.advance(5_000)
            again = await work.hand_off("bob", "The part", due_by=DUE, key="part-1")
            await work.complete()
            return first.id, again.id

    first, again = run(whole())

    assert first == again
    assert len(stage.happened("delegation.requested")) == 1


@proves("SDK-WORK", "SDK-OWNER")
def test_the_owner_s_connection_works_as_the_agent_that_it_names(stage: Stage) -> None:
    task = stage.create("Ada's", assignee="ada", review_required=False)

    async def agent() -> None:
        async with stage.connect("owner") as hub, await anext(hub.work(agent="ada")) as work:
            assert (await work.send(_update(task, "half way"))).agent == "ada"
            told = await work.call("aof_task_update", {"taskId": task, "notes": "more"})
            assert told == {"taskId": task, "status": "in-progress"}
            await work.complete()

    run(agent())

    assert stage.status(task) == "done"
    assert len(stage.happened("task.progressed")) == 2


@proves("SDK-HEARTBEAT")
@pytest.mark.parametrize("beat_ms", [-1, 0, LEAST_BEAT_MS - 1])
def test_heartbeats_without_a_pause_are_not_begun(stage: Stage, beat_ms: int) -> None:
    hub = stage.connect()
    with pytest.raises(ValueError, match=f"beat_ms is {beat_ms}"):
        hub.work(agent="ada", beat_ms=beat_ms)
    assert isinstance(hub.work(agent="ada", beat_ms=LEAST_BEAT_MS), Works)


@proves("SDK-HEARTBEAT")
def test_a_task_that_is_soon_done_needs_no_heartbeat(stage: Stage) -> None:
    for number in range(5):
        stage.create(f"Short {number}")

    async def agent() -> None:
        async with stage.connect() as hub:
            async for work in hub.work(agent="ada", stop_when_idle=True):
                async with work:
                    await work.complete()

    run(agent())

    assert len(stage.happened("task.reported")) == 5
    assert stage.relay.count(b"/heartbeat") == 0
    assert stage.happened("command.refused") == []


@proves("SDK-HEARTBEAT")
@pytest.mark.parametrize(("age", "is_due"), [(0.0, False), (9.0, False), (11.0, True)])
def test_a_lease_that_may_be_old_already_is_renewed_at_once(age: float, *, is_due: bool) -> None:
    task: Any = None
    held = Held(Claim("ada", 1, 1, task), Pace(30_000, 60_000), since=100.0)
    assert held.is_due(100.0 + age) is is_due


@proves("SDK-HEARTBEAT")
def test_a_heartbeat_keeps_the_lease_for_as_long_as_the_work_takes(stage: Stage) -> None:
    task = stage.create("Long")

    async def agent() -> None:
        async with (
            stage.connect() as hub,
            await anext(hub.work(agent="ada", beat_ms=BEAT_MS)) as work,
        ):
            for _ in range(3):
                await asyncio.to_thread(stage.relay.wait_for_answer, b"/heartbeat", 2)
                await asyncio.to_thread(stage.pass_time, DEFAULT_TTL_MS - 1)
                work.check()
            await work.complete()

    run(agent())

    assert stage.status(task) == "review"
    assert stage.happened("task.requeued") == []


@proves("SDK-LEFT")
@pytest.mark.parametrize("entered", [True, False], ids=["with-work", "plain-loop"])
def test_an_exception_fails_the_attempt_and_says_why(stage: Stage, *, entered: bool) -> None:
    task = stage.create("Breaks")

    async def agent() -> None:
        async with stage.connect() as hub:
            async for work in hub.work(agent="ada"):
                if entered:
                    async with work:
                        raise ZeroDivisionError("by \udc80 nothing")
                raise ZeroDivisionError("by \udc80 nothing")

    with pytest.raises(ZeroDivisionError):
        run(agent())

    assert stage.status(task) == "ready"
    assert len(stage.happened("task.requeued")) == 1
    shown = stage.house.get(f"/v1/runs/{task}")["runs"]
    assert shown[0]["report"]["notes"] == "ZeroDivisionError: by \ufffd nothing"


@proves("SDK-LEFT")
@pytest.mark.parametrize("entered", [True, False], ids=["with-work", "plain-loop"])
def test_a_worker_that_is_stopped_gives_its_task_back(stage: Stage, *, entered: bool) -> None:
    task = stage.create("Interrupted")
    has_begun = asyncio.Event()

    async def agent() -> None:
        async with stage.connect() as hub:
            async for work in hub.work(agent="ada"):
                has_begun.set()
                if entered:
                    async with work:
                        await asyncio.Event().wait()
                await asyncio.Event().wait()

    async def stopped() -> None:
        working = asyncio.create_task(agent())
        await has_begun.wait()
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working

    run(stopped())

    assert stage.status(task) == "ready"
    assert stage.happened("task.requeued") == []
    assert len(stage.happened("task.transitioned")) == 1


@proves("SDK-LEFT")
def test_a_worker_that_is_stopped_while_its_last_word_is_heard_warns_of_nothing(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    task = stage.create("Done just in time")
    stage.relay.holds_back = f"POST /v1/tasks/{task}/report".encode()

    async def agent() -> None:
        async with stage.connect() as hub:
            async for work in hub.work(agent="ada"):
                async with work:
                    await work.complete("done")

    async def stopped() -> None:
        async with connect(stage.url, stage.tokens["owner"]) as boss:
            working = asyncio.create_task(agent())
            await anext(boss.events(0, task=task, type="task.reported"))
            working.cancel()
            with pytest.raises(asyncio.CancelledError):
                await working

    run(stopped())

    assert stage.status(task) == "review"
    assert caplog.messages == []


@proves("SDK-LEFT")
def test_work_that_is_left_without_a_word_has_failed(stage: Stage) -> None:
    first, second = stage.create("Forgotten"), stage.create("Next")

    async def agent() -> None:
        async with stage.connect() as hub:
            async for work in hub.work(agent="ada", stop_when_idle=True):
                if work.task.id == second:
                    await work.complete()

    run(agent())

    assert (stage.status(first), stage.status(second)) == ("ready", "review")
    report = stage.house.get(f"/v1/runs/{first}")["runs"][0]["report"]
    assert report["notes"] == "the worker went on without saying how its work ended"


@proves("SDK-LEFT")
def test_a_goodbye_that_is_not_heard_does_not_hide_what_went_wrong(stage: Stage) -> None:
    stage.create("Breaks")

    async def agent() -> None:
        async with stage.connect(patience=0) as hub, await anext(hub.work(agent="ada")):
            stage.relay.target = 0
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(agent())


@proves("SDK-CALLS")
def test_tasks_are_made_listed_found_and_moved(stage: Stage) -> None:
    async def person() -> None:
        async with stage.connect("owner") as hub:
            made = [await hub.create(f"Task {n}", priority="high") for n in range(101)]
            late = await hub.create("Later", ready=False, aliases=["bead:ol-5"], key="once")
            assert await hub.create("Later", ready=False, aliases=["bead:ol-5"], key="once") == late
            listed = [task.id async for task in hub.tasks(status="ready")]
            assert listed == [task.id for task in reversed(made)]
            assert [task.id async for task in hub.tasks(ready=True, assignee="ada")] == []
            assert (await hub.task("bead:ol-5")).id == late.id
            assert (await hub.move(late.id, "cancelled", "not needed")).status == "cancelled"
            with pytest.raises(Refused, match="task_not_found"):
                await hub.task("TASK-2026-02-09-001/events")

    run(person())


@proves("SDK-CALLS")
def test_messages_and_operations_of_any_dialect(stage: Stage) -> None:
    async def agent() -> None:
        async with stage.connect("owner") as hub:
            with pytest.raises(Refused, match="not_recognized"):
                await hub.send({"hello": "hub"})
            with pytest.raises(Refused, match="invalid_envelope"):
                await hub.send('AOF/1 {"protocol": "aof"}', dialect="aof")
            with pytest.raises(Refused, match="not_recognized"):
                await hub.send(b"neither text nor object")
            with pytest.raises(Refused, match="did you mean aof_task_update"):
                await hub.call("aof_task_updat", {})
            with pytest.raises(Refused, match="invalid_envelope"):
                await hub.call("aof_task_update", {"taskId": 1})
            assert await hub.call("session_end", {}) == {"sessionId": "", "tasks": []}

    run(agent())


@proves("SDK-CALLS")
def test_a_batch_of_messages_is_answered_one_by_one(stage: Stage) -> None:
    task = stage.create("Talked about")
    filler = "x" * 50_000

    async def agent() -> None:
        async with stage.connect() as hub, await anext(hub.work(agent="ada")) as work:
            messages: list[Message] = [_update(task, f"{n} {filler}") for n in range(30)]
            messages[17] = "this is no message"
            told = await hub.send_all(messages)
            assert len(told) == 30
            wrong = [one for one in told if isinstance(one, NotSent)]
            assert told.index(wrong[0]) == 17
            assert [one.problem.code for one in wrong] == ["not_recognized"]
            assert await hub.send_all([]) == []
            await work.complete()

    run(agent())

    assert len(stage.happened("task.progressed")) == 29
    assert stage.relay.count(b"POST /v1/messages") == 2


def _update(task: str, progress: str) -> dict[str, Any]:
    return {
        "protocol": "aof",
        "version": 1,
        "type": "status.update",
        "taskId": task,
        "fromAgent": "ada",
        "toAgent": "dispatcher",
        "sentAt": "2026-02-09T21:00:00Z",
        "payload": {"taskId": task, "agentId": "ada", "progress": progress},
    }


@proves("REDACT-TOLD")
def test_who_tells_a_secret_finds_it_in_the_log(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    task, secret = stage.create("Carefully"), "ghp_" + "a1B2" * 9

    async def agent() -> None:
        async with stage.connect() as hub:
            async for work in hub.work(agent="ada", stop_when_idle=True):
                await work.note("plain words")
                assert caplog.messages == []
                await work.progress(f"with {secret}")
                await work.call("aof_task_update", {"taskId": work.task.aof_id, "notes": secret})
                await work.complete(secret)

    with caplog.at_level(logging.WARNING, "dragoman.client"):
        run(agent())

    told, by_operation, at_end = caplog.messages
    assert told == f"/v1/tasks/{task}/update: a secret was masked: progress (github_token)"
    assert "a secret was masked: " in by_operation
    assert "a secret was masked: notes (github_token)" in at_end
    assert secret not in caplog.text
