"""The gates script: every gate runs, one failure fails the run, and the tests count as well."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.requirements import proves

pytestmark = proves("PROJECT-GATES")

CI = Path(__file__).parents[2] / ".ci"

# Replaces uv: records its arguments, and fails where FAILING says so.
FAKE_UV = """#!/usr/bin/env bash
echo "$*" >> "$CALLS"
[[ -z "$FAILING" || "$*" != *"$FAILING"* ]] || { echo "trouble in $FAILING"; exit 3; }
"""


class Run:
    """A run of one of the scripts, with uv replaced."""

    def __init__(self, folder: Path, script: str, failing: str = "") -> None:
        calls = folder / "calls"
        calls.touch()
        uv = folder / "uv"
        uv.write_text(FAKE_UV)
        uv.chmod(0o755)
        result = subprocess.run(
            [CI / script],
            env={
                "PATH": f"{folder}:{os.environ['PATH']}",
                "CALLS": str(calls),
                "FAILING": failing,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        self.exit_code = result.returncode
        self.output = result.stdout
        self.calls = calls.read_text().splitlines()


def test_all_gates_pass(tmp_path: Path) -> None:
    run = Run(tmp_path, "gates")

    assert run.exit_code == 0
    assert run.output.count("ok  ") == len(run.calls)
    assert run.output.endswith("all gates passed\n")


@pytest.mark.parametrize(
    "failing",
    ["ruff check", "ruff format", "pyright", "lint-imports", "vulture", "deptry", "--cov-fail"],
)
def test_failing_gate_fails_the_run_and_stops_no_other(tmp_path: Path, failing: str) -> None:
    run = Run(tmp_path, "gates", failing)

    all_gates = len(run.calls)
    failed = sum(failing in call for call in run.calls)
    assert failed
    assert run.exit_code == 1
    assert f"trouble in {failing}" in run.output
    assert run.output.count("FAIL  ") == failed
    assert run.output.count("ok  ") == all_gates - failed
    assert f"{failed} of the gates failed" in run.output


@pytest.mark.parametrize("failing", ["run pytest", "ruff check", "mcp-conformance"])
def test_failing_part_fails_the_build_and_stops_no_other(tmp_path: Path, failing: str) -> None:
    run = Run(tmp_path, "run", failing)

    assert run.exit_code == 1
    assert run.calls[0] == "run pytest"
    assert any("lint-imports" in call for call in run.calls)
    assert run.calls[-1] == "run --quiet bash .ci/mcp-conformance"


def test_build_passes_when_tests_and_gates_do(tmp_path: Path) -> None:
    assert Run(tmp_path, "run").exit_code == 0
