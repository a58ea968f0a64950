"""The benchmark runs and prints what it promises; its figures are never asserted."""

import json
import subprocess
import sys
from pathlib import Path

from tests.requirements import proves

ROOT = Path(__file__).parents[2]


@proves("BENCH-RUNS")
def test_one_run_measures_both_sides_with_many_callers_and_with_one() -> None:
    command = [sys.executable, "-m", "bench", "--rounds", "1", "--seconds", "0.2", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    results = json.loads(done.stdout)
    assert [row["name"] for row in results] == [
        "lifecycle, 64 callers",
        "lifecycle, one caller, handle_now",
        "lifecycle, one caller, handle",
    ]
    assert all(row["raw_per_second"] > 0 for row in results)
    assert all(row["dragoman_per_second"] > 0 for row in results)
