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
from tests.faults.platter import CERTAIN, CHANCY, Files, Platter, Way
from tests.faults.recording import NAME, Recording, Watched, put

SOUND = "sound"


class Cut(Struct):
    """One moment, and one outcome of it."""

    at: int
    """So many operations were done."""
    way: str
    files: Files
    due: int
    """The last commit that somebody had an answer of."""
    commits: int
    """How many were done."""
    step: int


class Judgement(Struct):
    """What was found, and how to see it again."""

    verdict: str
    cut: Cut
    seed: int

    def __str__(self) -> str:
        """For whoever looks into it."""
        cut = self.cut
        return f"seed {self.seed}, after operation {cut.at}, {cut.way}: {self.verdict}"


def cuts(recording: Recording, ways: int, chance: Random) -> Iterator[Cut]:
    """So many outcomes of chance before every operation and after the last; 0: the certain ones."""
    platter = Platter(recording.base)
    for at in range(len(recording.tape) + 1):
        chosen = [chance.choice(CHANCY) for _ in range(ways)] or CERTAIN
        for way in () if ways and platter.is_settled() else chosen:
            yield _cut(recording, platter, at, way, chance)
        if at < len(recording.tape):
            platter.do(*recording.tape[at])


def _cut(recording: Recording, platter: Platter, at: int, way: Way, chance: Random) -> Cut:
    files = platter.cut(way, chance)
    due, commits, step = recording.due(at), recording.commits(at), recording.step(at)
    return Cut(at, way.__name__, files, due, commits, step)


class Judge:
    """Opens what is left, mostly in memory, and every so often with the real store."""

    def __init__(self, disk: MemoryDisk, folder: Path, every: int) -> None:
        self._disk = disk
        self._folder = folder
        self._every = every
        self.points = 0

    def complaints(
        self, recording: Recording, ways: int, seed: int, first: int = 0
    ) -> Iterator[Judgement]:
        """Every cut, from an operation on, after which something is not as it must be."""
        for cut in cuts(recording, ways, Random(seed)):
            verdict = self.verdict(recording, cut) if cut.at >= first else SOUND
            if verdict != SOUND:
                yield Judgement(verdict, cut, seed)

    def verdict(self, recording: Recording, cut: Cut) -> str:
        """`sound`, or what is wrong."""
        self.points += 1
        try:
            is_dawn = not cut.due and not recording.base
            return self._of_dawn(recording, cut) if is_dawn else self._of_day(recording, cut)
        except (StoreError, apsw.Error) as error:
            return f"damaged, {type(error).__name__}"

    def _of_dawn(self, recording: Recording, cut: Cut) -> str:
        """Nobody was answered yet: there may be nothing, but whatever there is must be whole."""
        with self._opened(cut) as store:
            is_known = store.image() in recording.images[: cut.commits + 1]
            is_empty = store.head() == 0 and not findings(store)
            return SOUND if is_known or is_empty else "strange"

    def _of_day(self, recording: Recording, cut: Cut) -> str:
        if self.points % self._every:
            found = self._disk.pages(NAME, cut.files)
        else:
            with self._opened(cut) as store:
                found = store.image()
        images = recording.images
        # All that was answered, and at most the one commit that was under way beside what was done.
        if any(found == image for image in images[cut.due : cut.commits + 1]):
            return SOUND
        is_older = found in images[: cut.due] or _length(found) < _length(images[cut.due])
        return "lost" if is_older else "strange"

    @contextmanager
    def _opened(self, cut: Cut) -> Generator[Watched]:
        """The real store on what a cut has left."""
        put(self._folder, cut.files)
        store = Watched.at(self._folder)
        try:
            yield store
        finally:
            store.leave()


def _length(image: bytes) -> int:
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


def findings(store: Watched) -> list[str]:
    """Whatever is wrong: with the file, the ledger, the views."""

    def silent(_: int) -> None:
        """Nobody watches."""

    found = [*check_ledger(store, (), silent), *check_views(store, silent)]
    return [*store.integrity(), *(f"{one.stream}: {one.problem}" for one in found)]
