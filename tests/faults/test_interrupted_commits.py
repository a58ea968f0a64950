"""Kill or failed sync, followed by a power cut: everything answered in between is still there.

A killed process leaves its writes for the next one to see, synced or not. After a failed sync Linux
shows what was written and never writes it again.
"""

import os
import sys
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from random import Random

import apsw

from dragoman.store.sqlite.apsw_types import Connection
from tests.conformance.store.scripts import SCRIPT
from tests.conftest import LONG_RUN
from tests.faults.power_cuts import SOUND, CutChecker, power_cuts
from tests.faults.recorder import Operation, Recorder
from tests.faults.recording import ObservableStore, ProcessKilled, Recording, record
from tests.requirements import proves

SAMPLE_EVERY = 1 if os.environ.get(LONG_RUN) else 41
UNSYNCED = slice(1, None, 4)
"""Commits that are interrupted before their sync, every day."""
SEED = 1
AFTERWARDS = 60
"""Number of operations checked after each interruption."""


class KillableStore(ObservableStore):
    """Store whose process is killed when the disk fails."""

    def _discard_writer(self, writer: Connection) -> None:
        if isinstance(sys.exception(), apsw.IOError):
            self._writer = writer
            raise ProcessKilled
        try:
            super()._discard_writer(writer)
        except apsw.IOError:
            raise ProcessKilled from None


def interrupt_at(at: int, operation_name: str) -> Callable[[Recorder], None]:
    """Let the disk fail once, at an operation, and record what that meant."""

    def disturb(disk: Recorder) -> None:
        def fail(operation: Operation) -> None:
            if len(disk.operations) == at:
                disk.operations.append((operation_name, *operation[1:2]))
                raise apsw.IOError

        disk.before = fail

    return disturb


def check_recording(checker: CutChecker, recording: Recording, day: Recording, at: int) -> None:
    """Check that all is done once, with the same answers, and survives a later power cut."""
    context = f"interrupted at operation {at}"
    steps = len(recording.answers)
    assert recording.answers == dict(islice(day.answers.items(), steps)), context
    assert recording.ledger == day.ledger[: len(recording.ledger)], context
    cuts_afterwards = (
        cut for cut in power_cuts(recording, 0, Random(SEED)) if at < cut.at < at + AFTERWARDS
    )
    assert {checker.check(recording, cut) for cut in cuts_afterwards} == {SOUND}, context


def find_operations(day: Recording, steps: int, verbs: Sequence[str]) -> list[int]:
    """Positions of these operations in the first steps of the day."""
    return [
        at
        for at, operation in enumerate(day.operations)
        if operation[0] in verbs and day.step(at) < steps
    ]


def find_commits(day: Recording, steps: int) -> list[int]:
    """Positions at which a commit is written and about to be synced: a sync right after a write to
    the WAL."""
    return [
        at
        for at in find_operations(day, steps, ("sync",))
        if day.operations[at - 1][0] == "write"
        and day.operations[at - 1][1] == day.operations[at][1] != 1
    ]


def record_killed_day(day: Recording, folder: Path, at: int) -> Recording:
    """Record the day up to a little after its process was killed at this operation."""
    steps = range(min(day.step(at) + 3, len(SCRIPT)))
    disturb = interrupt_at(at, "notice_nothing")
    return record(folder, steps=steps, store_type=KillableStore, disturb=disturb)


@proves("POWER-CUT", "STORE-DURABLE", "IDEM-REPEAT")
def test_commit_visible_after_kill_survives_power_cut(
    day: Recording, checker: CutChecker, tmp_path: Path
) -> None:
    kills = find_operations(day, len(SCRIPT), ("write", "sync", "truncate"))
    # What is written and not yet synced is seen by the next process and lost in a power cut.
    unsynced = find_commits(day, len(SCRIPT))[UNSYNCED]
    for at in sorted({*kills[5::SAMPLE_EVERY], *unsynced}):
        check_recording(checker, record_killed_day(day, tmp_path, at), day, at)


@proves("DISK-ERROR", "IDEM-REPEAT")
def test_writer_reopens_after_failed_sync(
    day: Recording, checker: CutChecker, tmp_path: Path
) -> None:
    syncs = find_commits(day, len(day.answers))
    assert len(syncs) > 60
    for at in syncs[2 :: SAMPLE_EVERY // 4 or 1]:
        recording = record(tmp_path, disturb=interrupt_at(at, "fail_to_sync"))
        check_recording(checker, recording, day, at)


@proves("DISK-ERROR", "IDEM-REPEAT")
def test_steps_are_done_once_after_any_failed_write(
    day: Recording, checker: CutChecker, tmp_path: Path
) -> None:
    writes = find_operations(day, len(SCRIPT), ("write", "truncate"))
    for at in writes[9 :: 2 * SAMPLE_EVERY]:
        steps = range(min(day.step(at) + 3, len(SCRIPT)))
        recording = record(tmp_path, steps=steps, disturb=interrupt_at(at, "notice_nothing"))
        check_recording(checker, recording, day, at)
