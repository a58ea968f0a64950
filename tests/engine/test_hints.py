"""Hints: whoever listens is told of commits, and nobody else is."""

from collections.abc import Collection
from threading import Thread

from dragoman.core.commands import CreateTask
from dragoman.engine.handle import Engine
from dragoman.engine.hints import Heard, Hints
from dragoman.engine.hub import Hub
from dragoman.store.memory import MemoryStore
from dragoman.system.clock import HandClock
from dragoman.system.ids import CountingIds
from tests.engine.lab import HUMAN, START
from tests.requirements import proves

pytestmark = proves("ENGINE-HINTS")


def test_what_is_heard_while_somebody_sees_to_it_is_there_the_next_time() -> None:
    heard, count = Heard(), 2_000
    adding = Thread(target=lambda: [heard.add([f"task:{n}"]) for n in range(count)])
    adding.start()
    taken = list[str]()
    while adding.is_alive():
        taken += heard.take()
    adding.join()
    taken += heard.take()
    assert sorted(taken) == sorted(f"task:{n}" for n in range(count))
    assert heard.take() == []


def test_all_who_listen_are_told_until_they_no_longer_want_to_be() -> None:
    hints = Hints()
    hub = Hub(
        Engine(MemoryStore("hints"), HandClock(START), bytes(32), on_commit=hints.tell),
        CountingIds(),
    )
    first: list[Collection[str]] = []
    second: list[Collection[str]] = []
    stop = hints.listen(lambda streams: first.append(tuple(streams)))
    hub.do(HUMAN, CreateTask("One", id="one"))
    hints.listen(lambda streams: second.append(tuple(streams)))
    hub.do(HUMAN, CreateTask("Two", id="two"))
    stop()
    stop()
    hub.do(HUMAN, CreateTask("Three", id="three"))
    assert [next(iter(told)) for told in first] == ["task:one", "task:two"]
    assert [next(iter(told)) for told in second] == ["task:two", "task:three"]
