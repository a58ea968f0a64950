"""The power goes at any moment: nothing acknowledged is lost, nothing is doubled, all verifies."""

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from dragoman.store.sqlite import log
from tests.conftest import LONG_RUN
from tests.faults.power import SOUND, Judge, Judgement, cuts, findings
from tests.faults.recording import NAME, Copied, Recording, Watched, put, record
from tests.faults.workday import DAY
from tests.requirements import proves

IS_LONG = bool(os.environ.get(LONG_RUN))
ROUNDS = 60 if IS_LONG else 1
GOING_ON = 2_000 if IS_LONG else 10
FIRST_SEED = int(os.environ.get("DRAGOMAN_SEED", "1"))


def told(complaints: Iterable[Judgement]) -> list[str]:
    """The first few of them, in words."""
    return list(map(str, islice(complaints, 5)))


@proves("POWER-CUT")
def test_a_cut_between_any_two_operations(day: Recording, judge: Judge) -> None:
    assert told(judge.complaints(day, 0, FIRST_SEED)) == []
    assert judge.points > 3_000


@proves("POWER-CUT")
@pytest.mark.parametrize(
    ("pages", "ways", "points"), [(5, 3, 4_500), (16, 5, 6_700), (50, 5, 5_900)]
)
def test_what_was_not_synced_is_dropped_torn_and_reordered(
    judge: Judge, tmp_path: Path, pages: int, ways: int, points: int
) -> None:
    """Whether the WAL is copied back often or not."""

    class Store(Watched):
        settings = (("wal_autocheckpoint", pages),)

    day = record(tmp_path, store_type=Store)
    for seed in range(FIRST_SEED, FIRST_SEED + ROUNDS):
        assert told(judge.complaints(day, ways, seed)) == []
    assert judge.points > points * ROUNDS


@proves("POWER-CUT")
@pytest.mark.parametrize(("pages", "points"), [(5, 3_000), (30, 3_000)])
def test_or_is_copied_beside_whoever_writes(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: int, points: int
) -> None:
    monkeypatch.setattr(log, "_PAGES", pages)
    day = record(tmp_path, store_type=Copied)
    assert told(judge.complaints(day, 3, FIRST_SEED)) == []
    assert judge.points > points


@proves("POWER-CUT")
def test_after_every_commit_all_verifies(day: Recording, tmp_path: Path) -> None:
    """A cut is sound when it leaves one of these, byte for byte: what holds here holds there."""
    assert len(day.images) > 50
    for number, image in enumerate(day.images):
        put(tmp_path, {NAME: image})
        store = Watched.at(tmp_path)
        assert findings(store) == [], f"after commit {number}"
        store.leave()


@proves("POWER-CUT", "IDEM-REPEAT")
def test_whoever_goes_on_finds_everything_once_and_may_be_cut_again(
    day: Recording, judge: Judge, tmp_path: Path
) -> None:
    """Steps without an answer are done again under their keys; meanwhile the power goes again."""
    chance = Random(FIRST_SEED)
    all_cuts = [cut for cut in cuts(day, 1, chance) if cut.due]
    for number in range(GOING_ON):
        cut = chance.choice(all_cuts)
        again = record(tmp_path, cut.files, range(cut.step, len(DAY)))
        told_where = f"seed {FIRST_SEED}, round {number}, after operation {cut.at}, {cut.way}"
        assert again.ledger == day.ledger, told_where
        assert again.answers == {n: day.answers[n] for n in again.answers}, told_where
        second = islice(cuts(again, 1, chance), 200)
        assert {judge.verdict(again, cut) for cut in second} == {SOUND}, told_where
        store = Watched.at(tmp_path)
        assert findings(store) == [], told_where
        store.close()
