"""Power cuts at any moment: nothing acknowledged is lost, nothing is doubled, all verifies."""

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from tests.conftest import LONG_RUN
from tests.faults.power_cuts import SOUND, CutChecker, Violation, findings, power_cuts
from tests.faults.recording import (
    NAME,
    ObservableStore,
    Recording,
    record,
    restore_files,
)
from tests.faults.workday import DAY
from tests.requirements import proves

IS_LONG = bool(os.environ.get(LONG_RUN))
ROUNDS = 60 if IS_LONG else 1
CONTINUED_DAYS = 2_000 if IS_LONG else 10
FIRST_SEED = int(os.environ.get("DRAGOMAN_SEED", "1"))


def describe(complaints: Iterable[Violation]) -> list[str]:
    """First few violations, as text."""
    return list(map(str, islice(complaints, 5)))


@proves("POWER-CUT")
def test_power_cut_between_any_two_operations(day: Recording, checker: CutChecker) -> None:
    assert describe(checker.violations(day, 0, FIRST_SEED)) == []
    assert checker.checked > 3_000


@proves("POWER-CUT")
@pytest.mark.parametrize(
    ("pages", "outcomes", "checked"), [(5, 3, 4_500), (16, 5, 6_700), (50, 5, 5_900)]
)
def test_unsynced_writes_may_be_dropped_torn_or_reordered(
    checker: CutChecker, tmp_path: Path, pages: int, outcomes: int, checked: int
) -> None:

    class TunedStore(ObservableStore):
        settings = (("wal_autocheckpoint", pages),)

    day = record(tmp_path, store_type=TunedStore)
    for seed in range(FIRST_SEED, FIRST_SEED + ROUNDS):
        assert describe(checker.violations(day, outcomes, seed)) == []
    assert checker.checked > checked * ROUNDS


@proves("POWER-CUT")
def test_database_verifies_after_every_commit(day: Recording, tmp_path: Path) -> None:
    """A cut is sound when it leaves one of these images, byte for byte: what is verified here holds
    there."""
    assert len(day.images) > 50
    for number, image in enumerate(day.images):
        restore_files(tmp_path, {NAME: image})
        store = ObservableStore.at(tmp_path)
        assert findings(store) == [], f"after commit {number}"
        store.abandon()


@proves("POWER-CUT", "IDEM-REPEAT")
def test_continued_day_is_complete_and_survives_second_cut(
    day: Recording, checker: CutChecker, tmp_path: Path
) -> None:
    """Steps without an answer are repeated under their keys; meanwhile the power is cut again."""
    rng = Random(FIRST_SEED)
    all_cuts = [cut for cut in power_cuts(day, 1, rng) if cut.acknowledged]
    for number in range(CONTINUED_DAYS):
        cut = rng.choice(all_cuts)
        continued = record(tmp_path, cut.files, range(cut.step, len(DAY)))
        context = f"seed {FIRST_SEED}, round {number}, after operation {cut.at}, {cut.outcome}"
        assert continued.ledger == day.ledger, context
        assert continued.answers == {n: day.answers[n] for n in continued.answers}, context
        later_cuts = islice(power_cuts(continued, 1, rng), 200)
        assert {checker.check(continued, cut) for cut in later_cuts} == {SOUND}, context
        store = ObservableStore.at(tmp_path)
        assert findings(store) == [], context
        store.close()
