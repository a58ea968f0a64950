"""The Python sample of README: a whole program that works on the tasks of a hub."""

import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.hub_process import run_hub, wait_for_event
from tests.e2e.program import Program
from tests.requirements import proves

pytestmark = proves("SDK-WORK")

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture
def program(tmp_path: Path, bytecode: Path) -> Generator[Program]:
    """Give the program on the data directory of a folder."""
    with closing(Program(tmp_path / ".dragoman", bytecode)) as started:
        yield started


def test_sample_is_a_whole_program_that_runs(program: Program, tmp_path: Path) -> None:
    (sample,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    (tmp_path / "worker.py").write_text(sample)
    program.prepare("task", "create", "Write the parser", "--id", "T-1", "--ready")
    environment = program.environment()
    del environment["DRAGOMAN_DATA"]
    with run_hub(program):
        command = (sys.executable, "worker.py")
        with subprocess.Popen(command, cwd=tmp_path, env=environment) as worker:
            try:
                wait_for_event(program, "T-1", lambda one: one["body"].get("to") == "review")
            finally:
                worker.kill()
        log = program.run("task", "log", "T-1").out
        assert program.ask("task", "show", "T-1")["assignee"] == "ada"
    assert "half" in log
    assert "done" in log
