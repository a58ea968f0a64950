"""Power cuts at every moment of a recorded day, and the checker of what is left."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, cast

import apsw
from msgspec import Struct

from dragoman.core.errors import StoreError
from dragoman.engine.verify import check_ledger, check_stored_states
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
    """Power cut at one moment, with one outcome."""

    at: int
    """Number of operations done."""
    outcome: str
    files: Files
    acknowledged: int
    """Last commit with an answer."""
    commits: int
    """Number of commits done."""
    step: int


class Violation(Struct):
    """Violation found, and how to reproduce it."""

    verdict: str
    cut: PowerCut
    seed: int

    def __str__(self) -> str:
        cut = self.cut
        return f"seed {self.seed}, after operation {cut.at}, {cut.outcome}: {self.verdict}"


def power_cuts(recording: Recording, outcomes: int, rng: Random) -> Iterator[PowerCut]:
    """Power cuts before every operation and after the last: so many random outcomes, or (0) the
    certain ones."""
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
    """Opens the files after a cut, mostly in memory, and every so often with the real store."""

    def __init__(self, disk: MemoryDisk, folder: Path, every: int) -> None:
        self._disk = disk
        self._folder = folder
        self._every = every
        self.checked = 0

    def violations(
        self, recording: Recording, outcomes: int, seed: int, first: int = 0
    ) -> Iterator[Violation]:
        """Violations of all cuts, from an operation on."""
        for cut in power_cuts(recording, outcomes, Random(seed)):
            verdict = self.check(recording, cut) if cut.at >= first else SOUND
            if verdict != SOUND:
                yield Violation(verdict, cut, seed)

    def check(self, recording: Recording, cut: PowerCut) -> str:
        """`sound`, or the problem."""
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
        """Check a cut before the first answer: there may be nothing, but it must be whole."""
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
        # All acknowledged commits, and at most the one in progress beside those that were done.
        if any(found == image for image in images[cut.acknowledged : cut.commits + 1]):
            return SOUND
        is_older = found in images[: cut.acknowledged] or _count_entries(found) < _count_entries(
            images[cut.acknowledged]
        )
        return "lost" if is_older else "strange"

    @contextmanager
    def _open_store(self, cut: PowerCut) -> Generator[ObservableStore]:
        """Open the real store on the files after a cut."""
        restore_files(self._folder, cut.files)
        store = ObservableStore.at(self._folder)
        try:
            yield store
        finally:
            store.abandon()


def _count_entries(image: bytes) -> int:
    """Number of entries in the ledger of a database; 0: not even the table exists."""
    # A database in memory has no WAL, so its header must not name one.
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
    """Problems of the file, the ledger and the views."""

    def ignore_progress(_: int) -> None:
        """Ignore the progress."""

    found = [
        *check_ledger(store, (), ignore_progress),
        *check_stored_states(store, ignore_progress),
    ]
    return [*store.integrity(), *(f"{one.stream}: {one.problem}" for one in found)]
