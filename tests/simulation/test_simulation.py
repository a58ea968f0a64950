"""Weeks of a hub from a seed: under all faults promises are kept, and work goes on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.bootstrap.data_directory import open_directory
from dragoman.services.file_service import FileService
from tests.conftest import LONG_RUN
from tests.requirements import proves
from tests.simulation.__main__ import read_seeds
from tests.simulation.mutants import MUTANTS, Change, Mutant
from tests.simulation.run import SimulationResult, SqliteStorage, simulate, total_counts

IS_LONG = bool(os.environ.get(LONG_RUN))
SEEDS = range(1, 2_001 if IS_LONG else 25)
DAYS = 200
SQLITE_SEED = 2


@pytest.fixture(scope="module")
def results() -> list[SimulationResult]:
    """Results of all seeds, simulated once."""
    return [simulate(seed) for seed in SEEDS]


@proves("SIM-PROMISES", "SIM-LEASES", "SIM-LIVENESS")
def test_promises_are_kept_and_all_work_ends(results: list[SimulationResult]) -> None:
    assert sum(result.days for result in results) >= DAYS


@proves("SIM-PROMISES")
@pytest.mark.parametrize(
    "kind",
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
        "service lease-expiry",
        "service sla",
        "service waves",
        "service stale-streams",
        "service spawner",
        "service retry-promotion",
        "service notifier",
    ],
)
def test_kind_of_event_happens_in_some_seed(results: list[SimulationResult], kind: str) -> None:
    assert total_counts(results).get(kind, 0) > 0, sorted(total_counts(results))


@proves("SIM-PROMISES", "HUB-ALL-DUTIES")
def test_simulated_duties_are_those_of_a_hub_except_files(
    results: list[SimulationResult], tmp_path: Path
) -> None:
    data_dir = open_directory(tmp_path / "hub", "", None, create=True)
    shipped = {
        service.name for service in data_dir.services if not isinstance(service, FileService)
    }
    data_dir.hub.close()
    assert {f"service {name}" for name in shipped} == {
        kind for kind in total_counts(results) if kind.startswith("service ")
    }


@proves("SIM-PROMISES")
def test_nearly_every_seed_delegates_a_part_of_a_task(results: list[SimulationResult]) -> None:
    # With high fault rates one seed in twenty may lose all of these messages.
    for kind in ("delegate yes", "answer yes"):
        without = [result.seed for result in results if not result.done.get(kind)]
        assert len(without) <= len(results) // 20, f"{kind} is missing in {without}"


@proves("SIM-SEED")
def test_same_seed_gives_same_ledger_in_any_process(results: list[SimulationResult]) -> None:
    again = [
        subprocess.run(
            [sys.executable, "-m", "tests.simulation", str(results[0].seed)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout.split()[7]
        for hash_seed in ("1", "2")
    ]
    assert again == [results[0].root[:16]] * 2


@proves("SIM-PROMISES", "SIM-LEASES", "SIM-LIVENESS")
def test_promises_are_kept_on_sqlite(tmp_path: Path) -> None:
    result = simulate(SQLITE_SEED, SqliteStorage(tmp_path / "dragoman.db"))
    assert result.done["deaths"] > 0


@proves("SIM-TEETH", "SIM-SEED")
@pytest.mark.parametrize("change", MUTANTS, ids=lambda change: change.__name__)
def test_broken_store_is_found(change: Change) -> None:
    # The engine itself counts the entries that the store says to have written.
    with pytest.raises(AssertionError, match=r"seed [0-9]+ fails: (Broken|.*zip)") as found:
        [simulate(seed, Mutant(change)) for seed in range(2, 22, 2)]
    assert "the last steps:" in str(found.value)


@proves("SIM-SEED")
def test_seed_arguments_are_parsed_or_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert read_seeds(["17"]) == (17, 18)
    assert read_seeds(["1", "500"]) == (1, 500)
    for arguments, expected in (
        (["5", "3"], "no seed from 5 on"),
        ([], "SEED"),
        (["x"], "invalid int"),
    ):
        with pytest.raises(SystemExit, match="2"):
            read_seeds(arguments)
        assert expected in capsys.readouterr().err
