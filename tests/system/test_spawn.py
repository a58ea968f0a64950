"""A program is fed, heard, and ended with everything that it has started."""

import os
import sys
from pathlib import Path

import pytest

from dragoman.system.spawn import Patience, run
from tests.requirements import proves
from tests.traces import Trace

pytestmark = proves("SYSTEM-SPAWN")

LATE = 2.0
"""Enough for a shell to begin, and short enough to wait for."""
GRACE = 0.1
SHELL = {"PATH": os.defpath}


def python(program: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program, *arguments)


def test_it_gets_its_input_and_its_words_as_they_are(tmp_path: Path) -> None:
    program = "import sys; print(sys.argv[1:], sys.stdin.read())"
    words = python(program, "a b", "$(touch x); `touch y` && *")
    code, said = run(words, b"fed", {}, tmp_path)
    assert (code, said.decode().strip()) == (0, "['a b', '$(touch x); `touch y` && *'] fed")
    assert list(tmp_path.iterdir()) == []


def test_it_has_only_the_variables_it_was_given(tmp_path: Path) -> None:
    program = "import os; print(*sorted(os.environ), os.getcwd())"
    _, said = run(python(program), b"", {"ONE": "1", "LC_ALL": "C"}, tmp_path)
    assert said.decode().split() == ["LC_ALL", "ONE", str(tmp_path.resolve())]


def test_its_exit_code_and_errors_are_told(tmp_path: Path) -> None:
    program = "import sys; print('why', file=sys.stderr); sys.exit(3)"
    assert run(python(program), b"", {}, tmp_path) == (3, b"why\n")
    assert run(("sh", "-c", "kill -9 $$"), b"", SHELL, tmp_path) == (-9, b"")


@pytest.mark.parametrize("size", [0, 1_000_000])
def test_input_that_is_not_read_holds_nobody_up(tmp_path: Path, size: int) -> None:
    assert run(("true",), b"x" * size, SHELL, tmp_path) == (0, b"")


def test_much_input_and_output_at_once_do_not_wait_for_each_other(tmp_path: Path) -> None:
    code, said = run(("cat",), b"x" * 1_000_000 + b"end", SHELL, tmp_path)
    assert code == 0
    assert said.endswith(b"xend")
    assert len(said) == 4_096


def test_one_that_nobody_waits_for_any_more_is_ended_before_its_time(tmp_path: Path) -> None:
    script = "trap 'echo cleaned > cleaned; exit' TERM; echo > begun; while :; do sleep 0.01; done"
    patience = Patience(60, 10, (tmp_path / "begun").exists)
    with pytest.raises(InterruptedError, match="nobody waits for it"):
        run(("sh", "-c", script), b"", SHELL, tmp_path, patience)
    assert (tmp_path / "cleaned").exists()


def test_one_that_prints_without_end_is_ended(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError, match=r"not ended after 0\.3 s"):
        run(("yes",), b"", SHELL, tmp_path, Patience(0.3, GRACE))


def test_one_that_ignores_sigterm_is_ended_with_its_children(tmp_path: Path, trace: Trace) -> None:
    script = "trap '' TERM; exec 3>trace; (while :; do sleep 100; done) & echo x >&3; wait"
    with pytest.raises(TimeoutError):
        run(("sh", "-c", script), b"", SHELL, tmp_path, Patience(LATE, GRACE))
    assert trace.read_to_end() == b"x\n"


def test_one_that_heeds_sigterm_may_clean_up(tmp_path: Path, trace: Trace) -> None:
    script = "trap 'echo bye >&3; exit 0' TERM; exec 3>trace; while :; do sleep 100 & wait; done"
    with pytest.raises(TimeoutError):
        run(("sh", "-c", script), b"", SHELL, tmp_path, Patience(LATE, 10))
    assert trace.read_to_end() == b"bye\n"


def test_what_it_leaves_running_is_ended_and_not_waited_for(tmp_path: Path, trace: Trace) -> None:
    script = "exec 3>trace; echo x >&3; sleep 1000 & echo said; exit 0"
    assert run(("sh", "-c", script), b"", SHELL, tmp_path, Patience(60)) == (0, b"said\n")
    assert trace.read_to_end() == b"x\n"


def test_one_that_closes_its_output_and_goes_on_is_ended(tmp_path: Path) -> None:
    script = "exec >&- 2>&-; sleep 1000"
    with pytest.raises(TimeoutError):
        run(("sh", "-c", script), b"", SHELL, tmp_path, Patience(0.3, GRACE))


def test_one_that_is_not_there_or_cannot_be_run_is_an_oserror(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run(("no-such-program",), b"", SHELL, tmp_path)
    (tmp_path / "text").write_text("no program")
    with pytest.raises(PermissionError):
        run((str(tmp_path / "text"),), b"", SHELL, tmp_path)
