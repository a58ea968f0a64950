"""Commit hints: subscribers are notified of commits until they unsubscribe."""

from collections.abc import Collection
from threading import Thread

from dragoman.core.task_state import CreateTask
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.subscribe import CommitHints, DirtyStreams
from dragoman.store.memory import MemoryStore
from dragoman.system.clock import ManualClock, SequentialIds
from tests.engine.lab import HUMAN, START
from tests.requirements import proves

pytestmark = proves("ENGINE-HINTS")


def test_streams_added_during_take_are_returned_by_the_next_take() -> None:
    dirty, count = DirtyStreams(), 2_000
    adding = Thread(target=lambda: [dirty.add([f"task:{n}"]) for n in range(count)])
    adding.start()
    taken = list[str]()
    while adding.is_alive():
        taken += dirty.take()
    adding.join()
    taken += dirty.take()
    assert sorted(taken) == sorted(f"task:{n}" for n in range(count))
    assert dirty.take() == []


def test_subscribers_are_notified_until_they_unsubscribe() -> None:
    hints = CommitHints()
    hub = Hub(
        Engine(MemoryStore("hints"), ManualClock(START), bytes(32), on_commit=hints.notify),
        SequentialIds(),
    )
    first: list[Collection[str]] = []
    second: list[Collection[str]] = []
    stop = hints.subscribe(lambda streams: first.append(tuple(streams)))
    hub.submit(HUMAN, CreateTask("One", id="one"))
    hints.subscribe(lambda streams: second.append(tuple(streams)))
    hub.submit(HUMAN, CreateTask("Two", id="two"))
    stop()
    stop()
    hub.submit(HUMAN, CreateTask("Three", id="three"))
    assert [next(iter(streams)) for streams in first] == ["task:one", "task:two"]
    assert [next(iter(streams)) for streams in second] == ["task:two", "task:three"]
