"""Weeks of a hub from a seed: whatever fails, what was promised is kept, and work goes on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.bootstrap import open_place
from dragoman.services.projector import FilesDuty
from tests.conftest import LONG_RUN
from tests.requirements import proves
from tests.simulation.__main__ import read_seeds
from tests.simulation.mutants import MUTANTS, Change, Mutant
from tests.simulation.story import OnSqlite, Told, simulate, summed

IS_LONG = bool(os.environ.get(LONG_RUN))
SEEDS = range(1, 2_001 if IS_LONG else 25)
DAYS = 200
SQLITE_SEED = 2


@pytest.fixture(scope="module")
def stories() -> list[Told]:
    """Every seed, once."""
    return [simulate(seed) for seed in SEEDS]


@proves("SIM-PROMISES", "SIM-LEASES", "SIM-LIVENESS")
def test_nothing_that_was_promised_is_lost_and_all_work_comes_to_rest(stories: list[Told]) -> None:
    assert sum(story.days for story in stories) >= DAYS


@proves("SIM-PROMISES")
@pytest.mark.parametrize(
    "what",
    [
        "deaths",
        "stops",
        "outages",
        "lost requests",
        "lost answers",
        "late repeats",
        "silences",
        "crashes of agents",
        "programs that failed",
        "programs that hung",
        "report yes",
        "report no",
        "turn yes",
        "DONE yes",
        "complete yes",
        "result yes",
        "wave yes",
        "spawn yes",
        "reserve yes",
        "duty recovery",
        "duty sla",
        "duty waves",
        "duty thoughts",
        "duty spawner",
        "duty promotion",
        "duty handing-on",
        "duty notify",
    ],
)
def test_all_kinds_of_things_have_happened(stories: list[Told], what: str) -> None:
    assert summed(stories).get(what, 0) > 0, sorted(summed(stories))


@proves("SIM-PROMISES", "HUB-ALL-DUTIES")
def test_its_duties_are_those_of_a_hub_but_for_files(stories: list[Told], tmp_path: Path) -> None:
    place = open_place(tmp_path / "hub", "", None, create=True)
    place.hub.close()
    shipped = {duty.name for duty in place.duties if not isinstance(duty, FilesDuty)}
    assert {f"duty {name}" for name in shipped} == {
        what for what in summed(stories) if what.startswith("duty ")
    }


@proves("SIM-PROMISES")
def test_in_nearly_every_one_a_part_of_a_task_was_asked_of_somebody(stories: list[Told]) -> None:
    # Of a wild one in twenty no word of it may have come through.
    for what in ("delegate yes", "answer yes"):
        without = [story.seed for story in stories if not story.done.get(what)]
        assert len(without) <= len(stories) // 20, f"{what} is missing in {without}"


@proves("SIM-SEED")
def test_the_same_seed_tells_the_same_story_in_any_process(stories: list[Told]) -> None:
    again = [
        subprocess.run(
            [sys.executable, "-m", "tests.simulation", str(stories[0].seed)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout.split()[7]
        for hash_seed in ("1", "2")
    ]
    assert again == [stories[0].root[:16]] * 2


@proves("SIM-PROMISES", "SIM-LEASES", "SIM-LIVENESS")
def test_it_holds_on_sqlite_too(tmp_path: Path) -> None:
    told = simulate(SQLITE_SEED, OnSqlite(tmp_path / "dragoman.db"))
    assert told.done["deaths"] > 0


@proves("SIM-TEETH", "SIM-SEED")
@pytest.mark.parametrize("change", MUTANTS, ids=lambda change: change.__name__)
def test_a_hub_that_is_broken_on_purpose_is_found(change: Change) -> None:
    with pytest.raises(AssertionError, match=r"seed [0-9]+ fails: Broken") as found:
        [simulate(seed, Mutant(change)) for seed in range(2, 22, 2)]
    assert "the last steps:" in str(found.value)


@proves("SIM-SEED")
def test_the_seeds_of_a_run_by_hand_are_read_or_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert read_seeds(["17"]) == (17, 18)
    assert read_seeds(["1", "500"]) == (1, 500)
    for words, told in ((["5", "3"], "no seed from 5 on"), ([], "SEED"), (["x"], "invalid int")):
        with pytest.raises(SystemExit, match="2"):
            read_seeds(words)
        assert told in capsys.readouterr().err
