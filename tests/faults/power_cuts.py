"""Power cuts at every moment of a recorded day, and the judge of what is left."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, cast

import apsw
from msgspec import Struct

from dragoman.core.errors import StoreError
from dragoman.engine.verifying.verify import check_ledger, check_views
from tests.faults.memory_disk import MemoryDisk
from tests.faults.recording import NAME, ObservableStore, Recording, restore_files
from tests.faults.simulated_disk import (
    DETERMINISTIC_OUTCOMES,
    RANDOM_OUTCOMES,
    CutOutcome,
    Files,
    SimulatedDisk,
)

SOUND = "sound"


class PowerCut(Struct):
    """One moment, and one outcome of it."""

    at: int
    """So many operations were done."""
    outcome: str
    files: Files
    acknowledged: int
    """The last commit that somebody had an answer of."""
    commits: int
    """How many were done."""
    step: int


class Violation(Struct):
    """What was found, and how to see it again."""

    verdict: str
    cut: PowerCut
    seed: int

    def __str__(self) -> str:
        """For whoever looks into it."""
        cut = self.cut
        return f"seed {self.seed}, after operation {cut.at}, {cut.outcome}: {self.verdict}"


def power_cuts(recording: Recording, outcomes: int, rng: Random) -> Iterator[PowerCut]:
    """So many outcomes of chance before every operation and after the last; 0: the certain ones."""
    disk = SimulatedDisk(recording.base)
    for at in range(len(recording.operations) + 1):
        chosen = [rng.choice(RANDOM_OUTCOMES) for _ in range(outcomes)] or DETERMINISTIC_OUTCOMES
        for outcome in () if outcomes and disk.is_settled() else chosen:
            yield _make_cut(recording, disk, at, outcome, rng)
        if at < len(recording.operations):
            disk.do(*recording.operations[at])


def _make_cut(
    recording: Recording, disk: SimulatedDisk, at: int, outcome: CutOutcome, rng: Random
) -> PowerCut:
    files = disk.cut(outcome, rng)
    acknowledged, commits, step = (
        recording.acknowledged(at),
        recording.commits(at),
        recording.step(at),
    )
    return PowerCut(at, outcome.__name__, files, acknowledged, commits, step)


class CutChecker:
    """Opens what is left, mostly in memory, and every so often with the real store."""

    def __init__(self, disk: MemoryDisk, folder: Path, every: int) -> None:
        self._disk = disk
        self._folder = folder
        self._every = every
        self.checked = 0

    def violations(
        self, recording: Recording, outcomes: int, seed: int, first: int = 0
    ) -> Iterator[Violation]:
        """Every cut, from an operation on, after which something is not as it must be."""
        for cut in power_cuts(recording, outcomes, Random(seed)):
            verdict = self.check(recording, cut) if cut.at >= first else SOUND
            if verdict != SOUND:
                yield Violation(verdict, cut, seed)

    def check(self, recording: Recording, cut: PowerCut) -> str:
        """`sound`, or what is wrong."""
        self.checked += 1
        try:
            is_before_first_answer = not cut.acknowledged and not recording.base
            return (
                self._check_before_first_answer(recording, cut)
                if is_before_first_answer
                else self._check_after_answer(recording, cut)
            )
        except (StoreError, apsw.Error) as error:
            return f"damaged, {type(error).__name__}"

    def _check_before_first_answer(self, recording: Recording, cut: PowerCut) -> str:
        """Nobody was answered yet: there may be nothing, but whatever there is must be whole."""
        with self._open_store(cut) as store:
            is_known = store.image() in recording.images[: cut.commits + 1]
            is_empty = store.head() == 0 and not findings(store)
            return SOUND if is_known or is_empty else "strange"

    def _check_after_answer(self, recording: Recording, cut: PowerCut) -> str:
        if self.checked % self._every:
            found = self._disk.pages(NAME, cut.files)
        else:
            with self._open_store(cut) as store:
                found = store.image()
        images = recording.images
        # All that was answered, and at most the one commit that was under way beside what was done.
        if any(found == image for image in images[cut.acknowledged : cut.commits + 1]):
            return SOUND
        is_older = found in images[: cut.acknowledged] or _count_entries(found) < _count_entries(
            images[cut.acknowledged]
        )
        return "lost" if is_older else "strange"

    @contextmanager
    def _open_store(self, cut: PowerCut) -> Generator[ObservableStore]:
        """The real store on what a cut has left."""
        restore_files(self._folder, cut.files)
        store = ObservableStore.at(self._folder)
        try:
            yield store
        finally:
            store.abandon()


def _count_entries(image: bytes) -> int:
    """How many entries the ledger of a database has; 0: not even the table is there."""
    # What is in memory has no WAL, and must not say that it has.
    plain = image[:18] + b"\1\1" + image[20:]
    connection = cast(Any, apsw.Connection(":memory:"))
    try:
        connection.deserialize("main", plain)
        return connection.execute("SELECT count(*) FROM entries").get
    except apsw.Error:
        return 0
    finally:
        connection.close()


def findings(store: ObservableStore) -> list[str]:
    """Whatever is wrong: with the file, the ledger, the views."""

    def ignore_progress(_: int) -> None:
        """Nobody watches."""

    found = [*check_ledger(store, (), ignore_progress), *check_views(store, ignore_progress)]
    return [*store.integrity(), *(f"{one.stream}: {one.problem}" for one in found)]
