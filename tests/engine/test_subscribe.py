"""Subscriptions from a cursor: every entry once, in order, under any timing."""

import threading

import pytest

from dragoman.core.task_state import CreateTask, NoteTask
from dragoman.engine import subscribe
from dragoman.engine.subscribe import follow
from tests.engine.lab import HUMAN, Lab
from tests.requirements import proves

pytestmark = proves("ENGINE-SUBSCRIBE")


def do_not_wait() -> bool:
    return False


@pytest.mark.parametrize("after", range(8))
def test_every_entry_after_the_cursor_comes_once_and_in_order(lab: Lab, after: int) -> None:
    for number in range(7):
        lab.do(HUMAN, CreateTask("t", f"T{number}"))
    seen = [entry.position for entry in follow(lab.store.entries, after, do_not_wait)]
    assert seen == list(range(after + 1, 8))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
def test_page_size_does_not_matter(lab: Lab, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscribe, "_PAGE", size)
    for number in range(7):
        lab.do(HUMAN, CreateTask("t", f"T{number}"))
    assert [entry.position for entry in follow(lab.store.entries, 0, do_not_wait)] == list(
        range(1, 8)
    )


def test_entries_committed_during_a_wait_come_after_it(lab: Lab) -> None:
    waits = 0

    def wait() -> bool:
        nonlocal waits
        waits += 1
        for _ in range(waits):
            lab.do(HUMAN, CreateTask("t"))
        return waits < 4

    assert [entry.position for entry in follow(lab.store.entries, 0, wait)] == [1, 2, 3, 4, 5, 6]
    assert waits == 4, "what came with the last wait is left for the next subscriber"


def test_late_duplicate_or_lost_hint_changes_nothing(lab: Lab) -> None:
    """A wait may return without a new entry, and need not return for each."""
    hints = iter([True, True, True, False])
    lab.do(HUMAN, CreateTask("t", "T"))
    seen: list[int] = []
    for entry in follow(lab.store.entries, 0, lambda: next(hints)):
        seen.append(entry.position)
        if entry.position < 5:
            lab.do(HUMAN, NoteTask("T", "two in one"), NoteTask("T", "go"))
    assert seen == [1, 2, 3, 4, 5, 6, 7, 8, 9][: len(seen)]
    assert len(seen) == len(set(seen)) >= 4


def test_subscriber_beside_busy_writers_misses_nothing(lab: Lab) -> None:
    done = threading.Event()
    goal = 200

    def write() -> None:
        for _ in range(goal // 4):
            lab.do(HUMAN, CreateTask("t"))

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()

    def wait() -> bool:
        return not done.is_set()

    seen: list[int] = []
    for entry in follow(lab.store.entries, 0, wait):
        seen.append(entry.position)
        if len(seen) == goal:
            done.set()
    for writer in writers:
        writer.join()
    assert seen == list(range(1, goal + 1))


def test_subscription_resumes_from_any_entry(lab: Lab) -> None:
    for number in range(6):
        lab.do(HUMAN, CreateTask("t", f"T{number}"))
    first = follow(lab.store.entries, 0, do_not_wait)
    read = [next(first) for _ in range(3)]
    rest = list(follow(lab.store.entries, read[-1].position, do_not_wait))
    assert [entry.stream for entry in [*read, *rest]] == [f"task:T{n}" for n in range(6)]
