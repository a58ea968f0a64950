"""Work of an agent: claim, heartbeats, reports, release, subtasks."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dragoman.client import (
    LeaseLost,
    Message,
    Refused,
    RejectedMessage,
    Task,
    Work,
    Works,
    connect,
    connect_sync,
)
from dragoman.client.models import Claim
from dragoman.client.work import MIN_HEARTBEAT_MS, HeldClaim, LeaseTiming
from dragoman.config import LeaseSettings
from dragoman.core.attempt_state import grant_lease
from dragoman.core.base import DEFAULT_LEASE_MS
from dragoman.engine.schemas.tasks import task_detail
from dragoman.services.dispatch.budget_enforcer import attempt_cost
from tests.client.backend import HEARTBEAT_MS, Backend, run, running_backend
from tests.core.world import task as stored_task
from tests.requirements import proves

DUE = datetime(2026, 2, 10, tzinfo=UTC)
COST_DETAILS = {"cost": 0.3}
ENDS_WITH_COST: dict[str, Callable[[Work], Awaitable[Task]]] = {
    "done": lambda work: work.complete(details=COST_DETAILS),
    "partial": lambda work: work.complete(outcome="partial", details=COST_DETAILS),
    "blocked": lambda work: work.block("no key", details=COST_DETAILS),
    "failed": lambda work: work.fail("it broke", details=COST_DETAILS),
}


@proves("SDK-WORK")
def test_agent_works_through_ready_tasks(backend: Backend) -> None:
    tasks = [backend.create_task(f"Number {n}", review_required=False) for n in range(3)]
    task_ids: list[str] = []

    async def agent() -> None:
        async with backend.connect() as hub:
            async for work in hub.work(agent="ada", stop_when_idle=True):
                task_ids.append(work.task.id)
                assert (work.agent, work.attempt, work.fence) == ("ada", 1, 1)
                assert (await work.progress("half way")).status == "in-progress"
                assert (await work.note("a line")).notes == 2
                assert (await work.complete("well done", details={"commit": "c0ffee"})).report

    run(agent())

    assert task_ids == tasks
    assert [backend.status(task) for task in tasks] == ["done"] * 3


@proves("SDK-WORK", "REPORT-COST")
@pytest.mark.parametrize("end", ENDS_WITH_COST.values(), ids=ENDS_WITH_COST)
def test_every_end_reports_cost(backend: Backend, end: Callable[[Work], Awaitable[Task]]) -> None:
    task = backend.create_task("Dear")

    async def agent() -> None:
        async with backend.connect() as hub, await anext(hub.work(agent="ada")) as work:
            await end(work)

    run(agent())
    assert attempt_cost(backend.server.store, task, 1) == 0.3


@proves("SDK-WORK")
def test_waiting_for_work_is_one_long_poll(backend: Backend) -> None:
    async def agent() -> Work:
        async with backend.connect() as hub:
            works = hub.work(agent="ada")
            next_work = asyncio.create_task(anext(works))
            await asyncio.to_thread(backend.relay.wait_for_request, b"POST /v1/work")
            await asyncio.to_thread(backend.create_task, "Late")
            work = await next_work
            await work.release("looked at it")
            return work

    assert run(agent()).task.title == "Late"
    assert backend.relay.count(b"POST /v1/work") == 1


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
def test_every_end_of_an_attempt_sets_the_status(backend: Backend, end: End, status: str) -> None:
    task = backend.create_task("To be ended")

    async def agent() -> None:
        async with backend.connect() as hub, await anext(hub.work(agent="ada")) as work:
            assert (await end(work)).status == status
            assert not work.is_open

    run(agent())

    assert backend.status(task) == status
    assert len(backend.streams_with("task.claimed")) == 1


@proves("SDK-WORK")
def test_subtask_is_handed_off_to_its_agent(backend: Backend) -> None:
    backend.create_task("The whole")

    async def hand_off() -> str:
        async with backend.connect("ada") as hub, await anext(hub.work(agent="ada")) as work:
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

    async def complete_subtask() -> str:
        async with backend.connect("bob") as hub, await anext(hub.work(agent="bob")) as work:
            with pytest.raises(Refused, match="nested_delegation"):
                await work.hand_off("ada", "Back", due_by=DUE + timedelta(days=1))
            await work.complete()
            return work.task.id

    child = run(hand_off())

    assert run(complete_subtask()) == child


@proves("DELEGATION-ATOMIC")
def test_subtask_never_exists_without_its_terms(backend: Backend) -> None:
    backend.create_task("The whole", assignee="ada")

    async def hand_off() -> str:
        async with backend.connect("ada") as hub, await anext(hub.work(agent="ada")) as work:
            child = await work.hand_off("bob", "The part", due_by=DUE, constraints=["no network"])
            await work.complete()
            return child.id

    child = run(hand_off())

    lines = [line for line in backend.lines() if line.stream == f"task:{child}"]
    assert [line.event for line in lines[:2]] == ["task.created", "delegation.requested"]
    assert lines[0].cause == lines[1].cause, "one request, and hence one transaction"


@proves("SDK-CRASH-SAFE")
def test_subtask_is_handed_off_once_under_one_key(backend: Backend) -> None:
    backend.create_task("The whole", assignee="ada")

    async def hand_off_twice() -> tuple[str, str]:
        async with backend.connect("ada") as hub, await anext(hub.work(agent="ada")) as work:
            first = await work.hand_off("bob", "The part", due_by=DUE, key="part-1")
            backend.server.clock.advance(5_000)
            again = await work.hand_off("bob", "The part", due_by=DUE, key="part-1")
            await work.complete()
            return first.id, again.id

    first, again = run(hand_off_twice())

    assert first == again
    assert len(backend.streams_with("delegation.requested")) == 1


@proves("SDK-WORK", "SDK-OWNER")
def test_owner_connection_acts_as_the_named_agent(backend: Backend) -> None:
    task = backend.create_task("Ada's", assignee="ada", review_required=False)

    async def agent() -> None:
        async with backend.connect("owner") as hub, await anext(hub.work(agent="ada")) as work:
            assert (await work.send(_update(task, "half way"))).agent == "ada"
            reply = await work.call("aof_task_update", {"taskId": task, "notes": "more"})
            assert reply == {"taskId": task, "status": "in-progress"}
            await work.complete()

    run(agent())

    assert backend.status(task) == "done"
    assert len(backend.streams_with("task.progressed")) == 2


@proves("SDK-HEARTBEAT")
@pytest.mark.parametrize("beat_ms", [-1, 0, MIN_HEARTBEAT_MS - 1])
def test_too_short_heartbeat_interval_is_refused(backend: Backend, beat_ms: int) -> None:
    hub = backend.connect()
    with pytest.raises(ValueError, match=f"beat_ms is {beat_ms}"):
        hub.work(agent="ada", beat_ms=beat_ms)
    assert isinstance(hub.work(agent="ada", beat_ms=MIN_HEARTBEAT_MS), Works)


@proves("SDK-HEARTBEAT")
def test_short_task_needs_no_heartbeat(backend: Backend) -> None:
    for number in range(5):
        backend.create_task(f"Short {number}")

    async def agent() -> None:
        async with backend.connect() as hub:
            async for work in hub.work(agent="ada", stop_when_idle=True):
                async with work:
                    await work.complete()

    run(agent())

    assert len(backend.streams_with("task.reported")) == 5
    assert backend.relay.count(b"/heartbeat") == 0
    assert backend.streams_with("command.refused") == []


@proves("SDK-HEARTBEAT")
@pytest.mark.parametrize(("age", "is_due"), [(0.0, False), (9.0, False), (11.0, True)])
def test_lease_that_may_be_old_is_renewed_at_once(age: float, *, is_due: bool) -> None:
    task: Any = None
    held = HeldClaim(
        Claim("ada", None, 1, 1, None, task), LeaseTiming(30_000, 60_000), earliest_start=100.0
    )
    assert held.is_heartbeat_due(100.0 + age) is is_due


@proves("SDK-LEASE-TIME")
@pytest.mark.parametrize(("wanted", "granted"), [(None, 61_000), (7_000, 7_000)])
def test_lease_time_is_that_of_the_settings_unless_one_is_given(
    tmp_path: Path, wanted: int | None, granted: int
) -> None:
    with running_backend(tmp_path, LeaseSettings(61_000)) as backend:
        task = backend.create_task("Mine")

        async def agent() -> None:
            async with (
                backend.connect() as hub,
                await anext(hub.work(agent="ada", ttl_ms=wanted)) as work,
            ):
                assert work.task.lease
                assert work.task.lease.ttl_ms == granted
                await work.release()

        run(agent())
        with connect_sync(backend.url, backend.tokens["ada"]) as hub:
            work = next(hub.work("ada", ttl_ms=wanted))
            assert work.task.lease
            assert work.task.lease.ttl_ms == granted
            work.complete()
        assert backend.status(task) == "review"


@proves("SDK-LEASE-TIME")
def test_lease_of_the_settings_is_lost_at_its_end(tmp_path: Path) -> None:
    with running_backend(tmp_path, LeaseSettings(1_000)) as backend:
        backend.create_task("Cut off")

        async def agent() -> None:
            async with backend.connect() as hub, await anext(hub.work(agent="ada")):
                backend.relay.target = 0
                backend.stop()
                await asyncio.Event().wait()

        with pytest.raises(LeaseLost, match="could not be reached for 1 s"):
            run(agent())


@proves("SDK-LEASE-TIME")
@pytest.mark.parametrize("is_held", [True, False])
def test_timing_follows_the_granted_lease(*, is_held: bool) -> None:
    now = 1_770_670_500_000
    lease = grant_lease("ada", 1, "", 6_000, now) if is_held else None
    timing = LeaseTiming(30_000, 60_000).as_granted(task_detail(stored_task(), lease, now))
    assert (timing.ttl_s, timing.interval_s) == ((6, 2) if is_held else (30, 10))


@proves("SDK-HEARTBEAT")
def test_heartbeats_keep_the_lease(backend: Backend) -> None:
    task = backend.create_task("Long")

    async def agent() -> None:
        async with (
            backend.connect() as hub,
            await anext(hub.work(agent="ada", beat_ms=HEARTBEAT_MS)) as work,
        ):
            for _ in range(3):
                await asyncio.to_thread(backend.relay.wait_for_response, b"/heartbeat", 2)
                await asyncio.to_thread(backend.advance, DEFAULT_LEASE_MS - 1)
                work.check()
            await work.complete()

    run(agent())

    assert backend.status(task) == "review"
    assert backend.streams_with("task.requeued") == []


@proves("SDK-LEFT")
@pytest.mark.parametrize("is_entered", [True, False], ids=["with-work", "plain-loop"])
def test_exception_fails_the_attempt_with_its_message(
    backend: Backend, *, is_entered: bool
) -> None:
    task = backend.create_task("Breaks")

    async def agent() -> None:
        async with backend.connect() as hub:
            async for work in hub.work(agent="ada"):
                if is_entered:
                    async with work:
                        raise ZeroDivisionError("by \udc80 nothing")
                raise ZeroDivisionError("by \udc80 nothing")

    with pytest.raises(ZeroDivisionError):
        run(agent())

    assert backend.status(task) == "ready"
    assert len(backend.streams_with("task.requeued")) == 1
    runs = backend.server.get(f"/v1/runs/{task}")["runs"]
    assert runs[0]["report"]["notes"] == "ZeroDivisionError: by \ufffd nothing"


@proves("SDK-LEFT")
@pytest.mark.parametrize("is_entered", [True, False], ids=["with-work", "plain-loop"])
def test_cancelled_worker_releases_its_task(backend: Backend, *, is_entered: bool) -> None:
    task = backend.create_task("Interrupted")
    has_begun = asyncio.Event()

    async def agent() -> None:
        async with backend.connect() as hub:
            async for work in hub.work(agent="ada"):
                has_begun.set()
                if is_entered:
                    async with work:
                        await asyncio.Event().wait()
                await asyncio.Event().wait()

    async def cancel_worker() -> None:
        working = asyncio.create_task(agent())
        await has_begun.wait()
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working

    run(cancel_worker())

    assert backend.status(task) == "ready"
    assert backend.streams_with("task.requeued") == []
    assert len(backend.streams_with("task.transitioned")) == 1


@proves("SDK-LEFT")
def test_worker_cancelled_during_final_report_logs_nothing(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    task = backend.create_task("Done just in time")
    backend.relay.stalled_request = f"POST /v1/tasks/{task}/report".encode()

    async def agent() -> None:
        async with backend.connect() as hub:
            async for work in hub.work(agent="ada"):
                async with work:
                    await work.complete("done")

    async def cancel_worker() -> None:
        async with connect(backend.url, backend.tokens["owner"]) as owner_hub:
            working = asyncio.create_task(agent())
            await anext(owner_hub.events(0, task=task, type="task.reported"))
            working.cancel()
            with pytest.raises(asyncio.CancelledError):
                await working

    run(cancel_worker())

    assert backend.status(task) == "review"
    assert caplog.messages == []


@proves("SDK-LEFT")
def test_work_without_report_fails(backend: Backend) -> None:
    first, second = backend.create_task("Forgotten"), backend.create_task("Next")

    async def agent() -> None:
        async with backend.connect() as hub:
            async for work in hub.work(agent="ada", stop_when_idle=True):
                if work.task.id == second:
                    await work.complete()

    run(agent())

    assert (backend.status(first), backend.status(second)) == ("ready", "review")
    report = backend.server.get(f"/v1/runs/{first}")["runs"][0]["report"]
    assert report["notes"] == "the worker went on without reporting an outcome"


@proves("SDK-LEFT")
def test_failed_final_report_does_not_hide_the_error(backend: Backend) -> None:
    backend.create_task("Breaks")

    async def agent() -> None:
        async with backend.connect(patience=0) as hub, await anext(hub.work(agent="ada")):
            backend.relay.target = 0
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(agent())


@proves("SDK-CALLS")
def test_tasks_are_created_listed_shown_and_moved(backend: Backend) -> None:
    async def manage_tasks() -> None:
        async with backend.connect("owner") as hub:
            created = [await hub.create(f"Task {n}", priority="high") for n in range(101)]
            late = await hub.create("Later", ready=False, aliases=["bead:ol-5"], key="once")
            assert await hub.create("Later", ready=False, aliases=["bead:ol-5"], key="once") == late
            listed = [task.id async for task in hub.tasks(status="ready")]
            assert listed == [task.id for task in reversed(created)]
            assert [task.id async for task in hub.tasks(ready=True, assignee="ada")] == []
            assert (await hub.task("bead:ol-5")).id == late.id
            assert (await hub.move(late.id, "cancelled", "not needed")).status == "cancelled"
            with pytest.raises(Refused, match="task_not_found"):
                await hub.task("TASK-2026-02-09-001/events")

    run(manage_tasks())


@proves("SDK-CALLS")
def test_messages_and_operations_of_any_dialect_are_sent(backend: Backend) -> None:
    async def agent() -> None:
        async with backend.connect("owner") as hub:
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
def test_batch_of_messages_is_answered_one_by_one(backend: Backend) -> None:
    task = backend.create_task("Talked about")
    filler = "x" * 50_000

    async def agent() -> None:
        async with backend.connect() as hub, await anext(hub.work(agent="ada")) as work:
            messages: list[Message] = [_update(task, f"{n} {filler}") for n in range(30)]
            messages[17] = "this is no message"
            results = await hub.send_all(messages)
            assert len(results) == 30
            refused = [one for one in results if isinstance(one, RejectedMessage)]
            assert results.index(refused[0]) == 17
            assert [one.problem.code for one in refused] == ["not_recognized"]
            assert await hub.send_all([]) == []
            await work.complete()

    run(agent())

    assert len(backend.streams_with("task.progressed")) == 29
    assert backend.relay.count(b"POST /v1/messages") == 2


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
def test_masked_secret_is_logged(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    task, secret = backend.create_task("Carefully"), "ghp_" + "a1B2" * 9

    async def agent() -> None:
        async with backend.connect() as hub:
            async for work in hub.work(agent="ada", stop_when_idle=True):
                await work.note("plain words")
                assert caplog.messages == []
                await work.progress(f"with {secret}")
                await work.call("aof_task_update", {"taskId": work.task.aof_id, "notes": secret})
                await work.complete(secret)

    with caplog.at_level(logging.WARNING, "dragoman.client"):
        run(agent())

    by_update, by_operation, at_end = caplog.messages
    assert by_update == f"/v1/tasks/{task}/update: a secret was masked: progress (github_token)"
    assert "a secret was masked: " in by_operation
    assert "a secret was masked: notes (github_token)" in at_end
    assert secret not in caplog.text
