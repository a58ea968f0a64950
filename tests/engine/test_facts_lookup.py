"""Facts that operations look up do not block the event loop."""

import asyncio
import threading

from dragoman.core.attempt import ClaimTask
from dragoman.core.task_state import CreateTask
from dragoman.engine.request import Accepted, Reply
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.protocols import aof
from tests.engine.lab import ALICE, HUMAN, Lab
from tests.requirements import proves

TASK = "TASK-2026-02-09-001"
REPORT = {
    "taskId": TASK,
    "outcome": "done",
    "summaryRef": "outputs/summary.md",
    "tests": {"total": 0, "passed": 0, "failed": 0},
    "notes": "x",
}


@proves("IDENTITY-LOOK")
def test_slow_file_lookup_does_not_block_the_loop() -> None:
    lab, may_answer = Lab(), threading.Event()
    lab.do(HUMAN, CreateTask("A", TASK, ready=True))
    lab.do(HUMAN, ClaimTask(TASK, "alice"))

    def has_file(task: str, ref: str) -> bool:
        del task, ref
        return may_answer.wait(30)

    router = Router(lab.hub, (aof.dialect(),), StoreFacts(lab.store, has_file))

    async def call_while_blocked() -> Reply:
        pending = asyncio.create_task(router.call_async("aof_task_complete", REPORT, ALICE))
        await asyncio.sleep(0)
        assert not pending.done()  # The loop runs, although the file lookup has not answered.
        may_answer.set()
        return await pending

    answer = asyncio.run(call_while_blocked())
    assert isinstance(answer, Accepted)
    assert answer.warnings == ()
