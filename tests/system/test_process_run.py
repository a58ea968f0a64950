"""Program run to its end: input, output, timeout, and the end of all its children."""

import os
import sys
from pathlib import Path

import pytest

from dragoman.system.process import LimitExceeded, Timeouts, run_program
from tests.requirements import proves
from tests.traces import Trace

pytestmark = proves("SYSTEM-SPAWN")

TIMEOUT_S = 2.0
"""Enough for a shell to begin, and short enough to wait for."""
GRACE_S = 0.1
SHELL = {"PATH": os.defpath}


def python_command(program: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program, *arguments)


def test_program_gets_input_and_arguments_verbatim(tmp_path: Path) -> None:
    program = "import sys; print(sys.argv[1:], sys.stdin.read())"
    words = python_command(program, "a b", "$(touch x); `touch y` && *")
    code, output = run_program(words, b"fed", {}, tmp_path)
    assert (code, output.decode().strip()) == (0, "['a b', '$(touch x); `touch y` && *'] fed")
    assert list(tmp_path.iterdir()) == []


def test_program_has_only_its_variables(tmp_path: Path) -> None:
    program = "import os; print(*sorted(os.environ), os.getcwd())"
    _, output = run_program(python_command(program), b"", {"ONE": "1", "LC_ALL": "C"}, tmp_path)
    assert output.decode().split() == ["LC_ALL", "ONE", str(tmp_path.resolve())]


def test_exit_code_and_stderr_are_returned(tmp_path: Path) -> None:
    program = "import sys; print('why', file=sys.stderr); sys.exit(3)"
    assert run_program(python_command(program), b"", {}, tmp_path) == (3, b"why\n")
    assert run_program(("sh", "-c", "kill -9 $$"), b"", SHELL, tmp_path) == (-9, b"")


@pytest.mark.parametrize("size", [0, 1_000_000])
def test_unread_input_does_not_block(tmp_path: Path, size: int) -> None:
    assert run_program(("true",), b"x" * size, SHELL, tmp_path) == (0, b"")


def test_large_input_and_output_do_not_deadlock(tmp_path: Path) -> None:
    code, output = run_program(("cat",), b"x" * 1_000_000 + b"end", SHELL, tmp_path)
    assert code == 0
    assert output.endswith(b"xend")
    assert len(output) == 4_096


def test_cancelled_program_is_ended_early(tmp_path: Path) -> None:
    script = "trap 'echo cleaned > cleaned; exit' TERM; echo > begun; while :; do sleep 0.01; done"
    patience = Timeouts(60, 10, (tmp_path / "begun").exists)
    with pytest.raises(InterruptedError, match="its caller no longer waits for it"):
        run_program(("sh", "-c", script), b"", SHELL, tmp_path, patience)
    assert (tmp_path / "cleaned").exists()


def test_endless_output_times_out(tmp_path: Path) -> None:
    with pytest.raises(LimitExceeded, match=r"not ended after 0\.3 s") as ended:
        run_program(("yes",), b"", SHELL, tmp_path, Timeouts(0.3, GRACE_S))
    assert ended.value.output.endswith(b"y\n")


def test_program_ignoring_sigterm_is_killed_with_children(tmp_path: Path, trace: Trace) -> None:
    script = "trap '' TERM; exec 3>trace; (while :; do sleep 100; done) & echo x >&3; wait"
    with pytest.raises(TimeoutError):
        run_program(("sh", "-c", script), b"", SHELL, tmp_path, Timeouts(TIMEOUT_S, GRACE_S))
    assert trace.read_to_end() == b"x\n"


def test_program_may_clean_up_on_sigterm(tmp_path: Path, trace: Trace) -> None:
    script = "trap 'echo bye >&3; exit 0' TERM; exec 3>trace; while :; do sleep 100 & wait; done"
    with pytest.raises(TimeoutError):
        run_program(("sh", "-c", script), b"", SHELL, tmp_path, Timeouts(TIMEOUT_S, 10))
    assert trace.read_to_end() == b"bye\n"


def test_background_children_are_ended(tmp_path: Path, trace: Trace) -> None:
    script = "exec 3>trace; echo x >&3; sleep 1000 & echo said; exit 0"
    assert run_program(("sh", "-c", script), b"", SHELL, tmp_path, Timeouts(60)) == (0, b"said\n")
    assert trace.read_to_end() == b"x\n"


def test_program_that_closed_its_output_times_out(tmp_path: Path) -> None:
    script = "exec >&- 2>&-; sleep 1000"
    with pytest.raises(TimeoutError):
        run_program(("sh", "-c", script), b"", SHELL, tmp_path, Timeouts(0.3, GRACE_S))


def test_missing_or_unrunnable_program_raises_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run_program(("no-such-program",), b"", SHELL, tmp_path)
    (tmp_path / "text").write_text("no program")
    with pytest.raises(PermissionError):
        run_program((str(tmp_path / "text"),), b"", SHELL, tmp_path)
