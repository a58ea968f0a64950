"""Carry-over of chunked redaction: chunks of one batch follow each other."""

from collections.abc import Sequence

from dragoman.core.task_state import CreateTask
from dragoman.engine.redaction_carry_over import (
    BatchCarryOvers,
    CarryOver,
    IsRecorded,
    StoredCarryOver,
)
from tests.requirements import proves

pytestmark = proves("SAOP-MASKED")


class FakeStore:
    """Store of carry-over that records what was put."""

    def __init__(self, **stored: str) -> None:
        self.stored = stored
        self.puts: list[Sequence[StoredCarryOver]] = []

    def get(self, key: str, is_recorded: IsRecorded) -> str:
        del is_recorded
        return self.stored.get(key, "")

    def put(self, updates: Sequence[StoredCarryOver]) -> None:
        self.puts.append(updates)


def make_chunk(store: FakeStore, key: str, text: str, event: str = "e") -> CarryOver:
    """Make a chunk whose last word is carried over."""

    def redact(before: str) -> tuple[CreateTask, str]:
        return CreateTask(title=before + text), (before + text).rpartition(" ")[2]

    return CarryOver(store, key, event, text, redact)


def test_chunk_follows_the_stored_carry_over_and_those_of_its_batch() -> None:
    store = FakeStore(k="ha")
    batch, titles = BatchCarryOvers(lambda _: True), list[str]()
    for number, text in enumerate(("lf a ", "thou", "ght")):
        chunk = make_chunk(store, "k", text, f"e-{number}")
        command, carry_over = batch.redact(chunk)
        assert isinstance(command, CreateTask)
        titles.append(command.title)
        batch.add(chunk, carry_over)
    assert titles == ["half a ", "thou", "thought"]
    batch.save()
    assert store.puts == [(StoredCarryOver("k", "e-2", "ha", "thought"),)], (
        "all of the batch, or none"
    )


def test_chunk_that_is_not_recorded_carries_nothing_over() -> None:
    store = FakeStore()
    batch = BatchCarryOvers(lambda _: True)
    batch.redact(make_chunk(store, "k", "half"))
    chunk = make_chunk(store, "k", "a whole thought ")
    command, carry_over = batch.redact(chunk)
    assert command == CreateTask(title="a whole thought ")
    batch.add(chunk, carry_over)
    batch.save()
    assert store.puts == []
