"""Killed, or a sync failed, and then the power goes: what was answered since is there all the same.

A killed process leaves what it wrote for the next one to see, synced or not. After a failed sync
Linux shows what was written and never writes it again.
"""

import os
import sys
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from random import Random

import apsw

from dragoman.store.sqlite.driver import Connection
from tests.conformance.store.scripts import SCRIPT
from tests.conftest import LONG_RUN
from tests.faults.power import SOUND, Judge, cuts
from tests.faults.recorder import Operation, Recorder
from tests.faults.recording import Killed, Recording, Watched, record
from tests.requirements import proves

ONE_IN = 1 if os.environ.get(LONG_RUN) else 41
UNSYNCED = slice(1, None, 4)
"""Which of the commits are interrupted before their sync, every day."""
SEED = 1
AFTERWARDS = 60
"""So many operations are looked at after each interruption."""


class Mortal(Watched):
    """Its process is killed when the disk says so."""

    def _drop(self, writer: Connection) -> None:
        if isinstance(sys.exception(), apsw.IOError):
            self._writer = writer
            raise Killed
        try:
            super()._drop(writer)
        except apsw.IOError:
            raise Killed from None


def interrupted(at: int, mark: str) -> Callable[[Recorder], None]:
    """A disk that fails once, when the tape is that long, and puts on it what that meant."""

    def disturb(disk: Recorder) -> None:
        def fail(operation: Operation) -> None:
            if len(disk.tape) == at:
                disk.tape.append((mark, *operation[1:2]))
                raise apsw.IOError

        disk.before = fail

    return disturb


def check(judge: Judge, recording: Recording, day: Recording, at: int) -> None:
    """All is done once and as answered before, and holds if the power goes soon afterwards."""
    told = f"interrupted at operation {at}"
    steps = len(recording.answers)
    assert recording.answers == dict(islice(day.answers.items(), steps)), told
    assert recording.ledger == day.ledger[: len(recording.ledger)], told
    later = (cut for cut in cuts(recording, 0, Random(SEED)) if at < cut.at < at + AFTERWARDS)
    assert {judge.verdict(recording, cut) for cut in later} == {SOUND}, told


def moments(day: Recording, steps: int, verbs: Sequence[str]) -> list[int]:
    """When the day does one of these to the disk, in its first steps."""
    return [
        at
        for at, operation in enumerate(day.tape)
        if operation[0] in verbs and day.step(at) < steps
    ]


def commits(day: Recording, steps: int) -> list[int]:
    """When a commit is written and is about to be synced: a sync right after a write to the WAL."""
    return [
        at
        for at in moments(day, steps, ("sync",))
        if day.tape[at - 1][0] == "write" and day.tape[at - 1][1] == day.tape[at][1] != 1
    ]


def killed(day: Recording, folder: Path, at: int) -> Recording:
    """The day, up to a little after its process was killed at this operation."""
    steps = range(min(day.step(at) + 3, len(SCRIPT)))
    disturb = interrupted(at, "notice_nothing")
    return record(folder, steps=steps, store_type=Mortal, disturb=disturb)


@proves("POWER-CUT", "STORE-DURABLE", "IDEM-REPEAT")
def test_a_commit_that_was_seen_after_a_kill_outlives_a_power_cut(
    day: Recording, judge: Judge, tmp_path: Path
) -> None:
    kills = moments(day, len(SCRIPT), ("write", "sync", "truncate"))
    # What is written and not yet synced is what the next process sees and a power cut takes back.
    unsynced = commits(day, len(SCRIPT))[UNSYNCED]
    for at in sorted({*kills[5::ONE_IN], *unsynced}):
        check(judge, killed(day, tmp_path, at), day, at)


@proves("DISK-ERROR", "IDEM-REPEAT")
def test_after_a_failed_sync_the_writer_begins_anew_from_the_disk(
    day: Recording, judge: Judge, tmp_path: Path
) -> None:
    syncs = commits(day, len(day.answers))
    assert len(syncs) > 60
    for at in syncs[2 :: ONE_IN // 4 or 1]:
        recording = record(tmp_path, disturb=interrupted(at, "fail_to_sync"))
        check(judge, recording, day, at)


@proves("DISK-ERROR", "IDEM-REPEAT")
def test_whichever_write_fails_once_all_is_done_once(
    day: Recording, judge: Judge, tmp_path: Path
) -> None:
    writes = moments(day, len(SCRIPT), ("write", "truncate"))
    for at in writes[9 :: 2 * ONE_IN]:
        steps = range(min(day.step(at) + 3, len(SCRIPT)))
        recording = record(tmp_path, steps=steps, disturb=interrupted(at, "notice_nothing"))
        check(judge, recording, day, at)
