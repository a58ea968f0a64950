"""Commit order: a reader that tails the ledger never skips a late commit."""

import threading
from concurrent.futures import Future

import pytest

from dragoman.core.task_state import CreateTask, NoteTask
from tests.conformance.store.hubs import ANN, Hub, Hubs
from tests.conformance.store.tails import Tail
from tests.conformance.store.threads import (
    BLOCKED_AFTER_S,
    TIMEOUT_S,
    run_concurrently,
    start_thread,
)
from tests.requirements import proves

pytestmark = proves("STORE-CONTRACT", "STORE-LATE-COMMIT", "ENGINE-SUBSCRIBE", "LEDGER-POSITION")


@pytest.mark.parametrize("moment", ["decided", "written"])
def test_late_commit_is_neither_skipped_nor_seen_twice(hubs: Hubs, moment: str) -> None:
    slow, fast = hubs.new(), hubs.new()
    slow.do(ANN, CreateTask("slow", "slow"))
    slow.do(ANN, CreateTask("fast", "fast"))
    tail = Tail(hubs.new().store)
    overtaking: list[Future[None]] = []
    has_overtaken = threading.Event()

    def overtake() -> None:
        for n in range(5):
            note(fast, "fast", n)
        has_overtaken.set()

    def on_failpoint(failpoint: str) -> None:
        """Let the fast hub commit after the slow one has read, if the store allows it."""
        if failpoint == moment and not overtaking:
            overtaking.append(start_thread(overtake))
            has_overtaken.wait(BLOCKED_AFTER_S)

    slow.on_failpoint = on_failpoint
    note(slow, "slow", 0)
    overtaking[0].result(TIMEOUT_S)
    tail.finish()

    assert [position for position, _, _ in tail.seen] == list(range(1, 9))
    assert versions(tail, "task:slow") == [1, 2]
    assert versions(tail, "task:fast") == [1, 2, 3, 4, 5, 6]


def test_tail_sees_every_position_once_and_in_order_during_writes(hubs: Hubs) -> None:
    both = hubs.new(), hubs.new()
    for name in ("a", "b", "c", "d"):
        both[0].do(ANN, CreateTask("a task", name))
    tail = Tail(hubs.new().store)

    def write(hub: Hub, task: str) -> None:
        for n in range(25):
            note(hub, task, n)

    run_concurrently(
        [
            lambda hub=both[n % 2], task=task: write(hub, task)
            for n, task in enumerate(("a", "b", "c", "d"))
        ]
    )
    tail.finish()

    assert [position for position, _, _ in tail.seen] == list(range(1, 105))
    for name in ("a", "b", "c", "d"):
        assert versions(tail, f"task:{name}") == list(range(1, 27))
    assert tail.seen == [
        (entry.position, entry.stream, entry.version) for entry in both[0].store.entries(0, 1_000)
    ]


def note(hub: Hub, task: str, n: int) -> None:
    """Add one entry."""
    hub.do(ANN, NoteTask(task, f"note {n}"))


def versions(tail: Tail, stream: str) -> list[int]:
    """List the versions that were seen of one stream."""
    return [version for _, seen, version in tail.seen if seen == stream]
