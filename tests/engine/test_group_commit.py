"""Engine: many callers, one writer, group commit, overload, cancellation and closing."""

import asyncio
import threading
from collections.abc import Generator
from queue import SimpleQueue
from typing import Any

import pytest

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, RenewLease
from dragoman.core.errors import Refusal, Refused
from dragoman.core.task_state import CreateTask, MoveTask, NoteTask
from dragoman.engine import group_commit
from dragoman.engine.group_commit import Engine
from dragoman.engine.request import Committed
from tests.engine.lab import ALICE, HUMAN, Lab, OpenStore, assert_accepted, code, findings
from tests.requirements import proves


class WriterGate:
    """Failpoint that blocks the writer until the test opens it."""

    def __init__(self) -> None:
        self.point = "decided"
        self.passed: list[str] = []
        self._closed = False
        self._reached = threading.Event()
        self._open = threading.Event()

    def __call__(self, point: str) -> None:
        """Record the failpoint, and block if the gate is closed there."""
        self.passed.append(point)
        if self._closed and point == self.point:
            self._reached.set()
            assert self._open.wait(30)

    def close(self) -> None:
        """Block the writer from now on."""
        self._reached.clear()
        self._open.clear()
        self._closed = True

    def open(self) -> None:
        """Let the writer continue."""
        self._closed = False
        self._open.set()

    async def reached(self) -> None:
        """Wait until the writer is blocked."""
        assert await asyncio.to_thread(self._reached.wait, 30)


async def let_loop_run() -> None:
    """Run the loop until submitted requests have reached the writer's queue."""
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
def writer_gate() -> Generator[WriterGate]:
    """Gate that is open at the end, so that no writer stays blocked."""
    writer_gate = WriterGate()
    yield writer_gate
    writer_gate.open()


@pytest.fixture
def lab_with_gate(writer_gate: WriterGate) -> Generator[Lab]:
    """Lab whose writer passes the gate."""
    lab = Lab(failpoint=writer_gate)
    yield lab
    writer_gate.open()
    lab.engine.close()
    assert findings(lab.store) == []


@proves("ENGINE-HANDLE")
def test_sync_and_async_calls_answer_alike(lab: Lab) -> None:
    other = Lab()
    script = (
        (HUMAN, CreateTask("a", "A", ready=True)),
        (ALICE, ClaimTask("A", "alice")),
        (ALICE, ClaimTask("A", "alice")),
        (ALICE, RenewLease("A", 1)),
        (ALICE, MoveTask("A", "review")),
        (ALICE, MoveTask("A", "done")),
        (HUMAN, MoveTask("A", "done")),
    )
    now = [other.ask(actor, command) for actor, command in script]
    soon = [lab.batch(lab.request(actor, command))[0] for actor, command in script]
    assert now == soon
    assert [entry.line for entry in other.store.entries(0, 99)] == [
        entry.line for entry in lab.store.entries(0, 99)
    ]


@proves("ENGINE-HANDLE")
def test_requests_of_one_loop_tick_share_a_commit(lab: Lab) -> None:
    answers = lab.batch(*(lab.request(HUMAN, CreateTask(f"t{n}", f"T{n}")) for n in range(500)))
    assert len({assert_accepted(answer).receipts[0].task for answer in answers}) == 500
    assert lab.store.transactions == 1
    assert [stream for stream, _ in lab.lines()] == [f"task:T{n}" for n in range(500)]


@proves("ENGINE-HANDLE")
def test_requests_during_a_commit_share_the_next_commit(
    writer_gate: WriterGate, lab_with_gate: Lab
) -> None:
    async def run() -> None:
        writer_gate.close()
        first = asyncio.ensure_future(
            lab_with_gate.hub.submit_async(HUMAN, CreateTask("first", "F"))
        )
        await writer_gate.reached()
        later = [
            asyncio.ensure_future(lab_with_gate.hub.submit_async(HUMAN, CreateTask(f"t{n}")))
            for n in range(20)
        ]
        await let_loop_run()
        another = asyncio.ensure_future(
            lab_with_gate.hub.submit_async(HUMAN, CreateTask("another"))
        )
        await let_loop_run()
        writer_gate.open()
        await asyncio.gather(first, *later, another)

    asyncio.run(run())
    assert lab_with_gate.store.transactions == 2


@proves("ENGINE-HANDLE")
def test_batch_size_is_bounded(
    writer_gate: WriterGate, lab_with_gate: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "MAX_BATCH", 3)

    async def run() -> None:
        writer_gate.close()
        waiting = [
            asyncio.ensure_future(lab_with_gate.hub.submit_async(HUMAN, CreateTask("first")))
        ]
        await writer_gate.reached()
        for _ in range(7):
            waiting.append(
                asyncio.ensure_future(lab_with_gate.hub.submit_async(HUMAN, CreateTask("later")))
            )
            await let_loop_run()
        writer_gate.open()
        await asyncio.gather(*waiting)

    asyncio.run(run())
    assert lab_with_gate.store.transactions == 1 + 3, "seven in batches of three"


@proves("ENGINE-HANDLE")
@pytest.mark.parametrize("point", ["decided", "written", "committed"])
def test_answer_is_sent_after_the_commit(
    writer_gate: WriterGate, lab_with_gate: Lab, point: str
) -> None:
    writer_gate.point = point

    async def run() -> None:
        writer_gate.close()
        pending = asyncio.ensure_future(lab_with_gate.hub.submit_async(HUMAN, CreateTask("a", "A")))
        await writer_gate.reached()
        await let_loop_run()
        assert not pending.done()
        writer_gate.open()
        await pending
        assert lab_with_gate.store.head() == 1

    asyncio.run(run())
    assert writer_gate.passed == ["decided", "written", "committed"]


@proves("ENGINE-HANDLE", "STORE-CLAIM-RACE")
def test_many_callers_each_get_their_own_answer(lab: Lab) -> None:
    async def caller(number: int) -> list[str]:
        agent = Actor("agent", f"agent-{number}")
        claimed_tasks: list[str] = []
        for round_ in range(3):
            made = await lab.hub.submit_async(HUMAN, CreateTask(f"t{number}.{round_}", ready=True))
            claimed = await lab.hub.submit_async(agent, ClaimTask("", agent.name))
            receipt = claimed.receipts[0]
            claimed_tasks.append(receipt.task)
            await lab.hub.submit_async(agent, RenewLease(receipt.task, receipt.fence))
            noted = await lab.hub.submit_async(agent, NoteTask(receipt.task, agent.name))
            assert noted.receipts[0].task == receipt.task
            assert made.receipts[0].status == "ready"
        return claimed_tasks

    async def run() -> list[list[str]]:
        return await asyncio.gather(*map(caller, range(64)))

    claimed = [name for claimed_tasks in asyncio.run(run()) for name in claimed_tasks]
    assert len(claimed) == len(set(claimed)) == 64 * 3
    assert all(lab.task(name).notes == 1 for name in claimed)


@proves("ENGINE-HANDLE")
def test_callers_in_threads_and_loops_share_one_ledger(lab: Lab) -> None:
    def synchronous() -> None:
        for _ in range(25):
            lab.do(HUMAN, CreateTask("t"))

    def asynchronous() -> None:
        async def run() -> None:
            await asyncio.gather(*(lab.hub.submit_async(HUMAN, CreateTask("t")) for _ in range(25)))

        asyncio.run(run())

    threads = [threading.Thread(target=run) for run in (synchronous, asynchronous) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lab.store.head() == 150
    assert len({stream for stream, _ in lab.lines()}) == 150


@proves("ENGINE-HANDLE")
def test_cancelled_caller_does_not_affect_the_others(
    writer_gate: WriterGate, lab_with_gate: Lab
) -> None:
    async def run() -> None:
        writer_gate.close()
        gone = asyncio.ensure_future(
            lab_with_gate.hub.submit_async(HUMAN, CreateTask("gone", "GONE"))
        )
        other = asyncio.ensure_future(
            lab_with_gate.hub.submit_async(HUMAN, CreateTask("stays", "STAYS"))
        )
        await writer_gate.reached()
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        writer_gate.open()
        assert (await other).receipts[0].task == "STAYS"

    asyncio.run(run())
    assert lab_with_gate.task("GONE").title == "gone", "what was handed in is done all the same"


@proves("ENGINE-HANDLE")
def test_closed_loop_does_not_stop_the_writer(writer_gate: WriterGate, lab_with_gate: Lab) -> None:
    async def submit_and_cancel() -> None:
        writer_gate.close()
        pending = asyncio.ensure_future(
            lab_with_gate.hub.submit_async(HUMAN, CreateTask("gone", "GONE"))
        )
        await writer_gate.reached()
        pending.cancel()

    asyncio.run(submit_and_cancel())
    writer_gate.open()
    assert assert_accepted(
        lab_with_gate.batch(lab_with_gate.request(HUMAN, CreateTask("next", "NEXT")))[0]
    )
    assert lab_with_gate.task("GONE").id == "GONE"


@proves("ENGINE-OVERLOAD")
def test_overload_is_refused_while_queued_requests_are_served(
    writer_gate: WriterGate, lab_with_gate: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "MAX_QUEUED", 3)

    async def run() -> None:
        writer_gate.close()
        waiting = [
            asyncio.ensure_future(lab_with_gate.hub.submit_async(HUMAN, CreateTask(f"t{n}")))
            for n in range(3)
        ]
        await writer_gate.reached()
        refused = await lab_with_gate.engine.handle(lab_with_gate.request(HUMAN, CreateTask("t4")))
        assert isinstance(refused, Refusal)
        assert refused.code == "overloaded"
        writer_gate.open()
        assert len(await asyncio.gather(*waiting)) == 3
        assert assert_accepted(
            await lab_with_gate.engine.handle(lab_with_gate.request(HUMAN, CreateTask("t5")))
        )

    asyncio.run(run())
    assert lab_with_gate.refused(HUMAN) == [], "an ordinary answer, and nothing for the ledger"
    assert lab_with_gate.store.head() == 4


@proves("ENGINE-OVERLOAD")
def test_overload_limits() -> None:
    assert group_commit.MAX_QUEUED == 20_000
    assert group_commit.MAX_BATCH == 1_024


class EndingQueue(SimpleQueue[Any]):
    """Queue that signals when its end marker was put."""

    ended = threading.Event()

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Put an item; signal if it is the end marker."""
        super().put(item, block, timeout)
        if item is None:
            self.ended.set()


@proves("ENGINE-HANDLE")
def test_close_waits_for_submitted_requests(
    writer_gate: WriterGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "SimpleQueue", EndingQueue)
    EndingQueue.ended.clear()
    before = set(threading.enumerate())
    lab = Lab(failpoint=writer_gate)

    async def run() -> None:
        writer_gate.close()
        first = asyncio.ensure_future(lab.hub.submit_async(HUMAN, CreateTask("first", "A")))
        await writer_gate.reached()
        second = asyncio.ensure_future(lab.hub.submit_async(HUMAN, CreateTask("second", "B")))
        await let_loop_run()
        closing = asyncio.ensure_future(asyncio.to_thread(lab.engine.close))
        assert await asyncio.to_thread(EndingQueue.ended.wait, 30)
        writer_gate.open()
        await closing
        assert [(await pending).receipts[0].task for pending in (first, second)] == ["A", "B"]

    asyncio.run(run())
    assert not set(threading.enumerate()) - before, "the writer has ended"


@proves("ENGINE-HANDLE")
def test_engine_can_be_closed_twice_and_used_again(lab: Lab) -> None:
    lab.engine.close()
    lab.batch(lab.request(HUMAN, CreateTask("a")))
    lab.engine.close()
    lab.engine.close()
    assert assert_accepted(lab.batch(lab.request(HUMAN, CreateTask("b")))[0])
    lab.hub.close()


@proves("ENGINE-HANDLE")
def test_hub_raises_refusals_and_exposes_its_parts() -> None:
    lab = Lab()
    assert isinstance(lab.hub.submit(HUMAN, CreateTask("a", "A"), key="k"), Committed)
    with pytest.raises(Refused, match="task_not_found"):
        lab.hub.submit(HUMAN, NoteTask("B", "x"))
    with pytest.raises(Refused, match="not_ready"):
        asyncio.run(lab.hub.submit_async(ALICE, ClaimTask("A", "alice")))
    assert lab.hub.store is lab.store
    assert lab.hub.clock is lab.clock
    lab.hub.close()


@proves("ENGINE-HANDLE")
def test_failpoints_are_optional() -> None:
    lab = Lab()
    engine = Engine(OpenStore(), lab.clock, b"")
    answer: Any = engine.handle_now(lab.request(HUMAN, CreateTask("a")))
    assert code(answer) == ""
