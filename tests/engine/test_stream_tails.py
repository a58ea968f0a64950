"""Carry-over of chunked redaction: the tracker of expected carry-over, and a batch."""

from collections.abc import Sequence
from itertools import count

from dragoman.core.task_state import CreateTask
from dragoman.engine.redaction_carry_over import (
    BatchCarryOvers,
    CarryOver,
    CarryOverTracker,
    IsRecorded,
    StoredCarryOver,
)
from tests.requirements import proves

pytestmark = proves("SAOP-MASKED")

MOST = 1_024


class FakeStore:
    """Store of carry-over that records what was put."""

    def __init__(self) -> None:
        self.stored: dict[str, str] = {}
        self.puts: list[Sequence[StoredCarryOver]] = []

    def get(self, key: str, is_recorded: IsRecorded) -> str:
        del is_recorded
        return self.stored.get(key, "")

    def put(self, updates: Sequence[StoredCarryOver]) -> None:
        self.puts.append(updates)


def make_chunk(
    tracker: CarryOverTracker, key: str, text: str, event: str = "e", before: str = ""
) -> CarryOver:
    """Make a chunk whose last word is carried over."""
    after = (before + text).rpartition(" ")[2]

    def redo(other_before: str) -> CarryOver:
        return make_chunk(tracker, key, text, event, other_before)

    commands = (CreateTask(title=before + text),)
    return CarryOver(tracker, key, event, text, before, after, commands, redo)


def test_expected_carry_over_is_bounded_and_the_oldest_is_dropped() -> None:
    tracker = CarryOverTracker(FakeStore())
    for number in range(MOST + 1):
        tracker.expect(make_chunk(tracker, f"k-{number}", "half"))
    assert (tracker.expected("k-0"), tracker.expected("k-1")) == ("", "half")
    tracker.expect(make_chunk(tracker, "k-1", "an end "))
    assert tracker.expected("k-1") == ""


def test_cancelled_carry_over_keeps_the_one_after_it() -> None:
    tracker = CarryOverTracker(FakeStore())
    first, second = make_chunk(tracker, "k", "one", "e-1"), make_chunk(tracker, "k", "two", "e-2")
    tracker.expect(first)
    tracker.expect(second)
    tracker.cancel(first)
    assert tracker.expected("k") == "two"
    tracker.cancel(second)
    assert tracker.expected("k") == ""


def test_chunk_with_another_carry_over_is_redacted_again() -> None:
    store = FakeStore()
    store.stored["k"] = "ha"
    tracker, batch, numbers = CarryOverTracker(store), BatchCarryOvers(lambda _: True), count(1)
    for text in ("lf a ", "thou", "ght"):
        chunk = batch.reconcile(make_chunk(tracker, "k", text, f"e-{next(numbers)}"))
        batch.add(chunk)
    assert [type(one) for one in chunk.commands] == [CreateTask]
    assert (chunk.before, chunk.after) == ("thou", "thought")
    assert tracker.expected("k") == "thought"
    batch.save()
    assert store.puts == [(StoredCarryOver("k", "e-3", "ha", "thought"),)], (
        "all of the batch, or none"
    )


def test_chunk_without_carry_over_stores_nothing() -> None:
    store = FakeStore()
    tracker, batch = CarryOverTracker(store), BatchCarryOvers(lambda _: True)
    batch.add(batch.reconcile(make_chunk(tracker, "k", "a whole thought ")))
    batch.save()
    assert store.puts == []
