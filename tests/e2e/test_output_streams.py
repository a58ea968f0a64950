"""Output streams: closing pipes, terminals, closed and full streams, Ctrl-C."""

import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.program import COMMAND, Program
from tests.requirements import proves


@pytest.fixture
def populated(program: Program) -> Program:
    """Give a ledger with more output than a pipe holds."""
    body = "x" * 60_000
    for number in range(4):
        program.prepare("task", "create", f"{number}", "--id", f"T-{number}", "--body", body)
    return program


def on_terminal(program: Program, *args: str, **variables: str) -> str:
    """Output of a command on a terminal."""
    terminal_fd, process_fd = pty.openpty()
    terminal = {"TERM": "xterm-256color", "COLUMNS": "120", **variables}
    process = subprocess.Popen(
        (*COMMAND, *args),
        stdin=process_fd,
        stdout=process_fd,
        stderr=process_fd,
        env=program.environment(terminal),
    )
    os.close(process_fd)
    shown = bytearray()
    while True:
        try:
            chunk = os.read(terminal_fd, 65_536)
        except OSError:  # raised by Linux when the other side of a terminal is closed
            break
        if not chunk:
            break
        shown += chunk
    os.close(terminal_fd)
    assert process.wait() == 0
    return shown.decode()


@proves("CLI-EVENTS", "CLI-EXIT")
@pytest.mark.parametrize("follow", [(), ("--follow",)], ids=["once", "follow"])
def test_closed_pipe_ends_the_command_quietly(populated: Program, follow: tuple[str, ...]) -> None:
    writing = populated.start("events", "--json", *follow)
    assert writing.stdout is not None
    assert writing.stderr is not None

    assert writing.stdout.readline().startswith('{"ok": true, "position": 1,')
    writing.stdout.close()

    assert writing.wait() == 0
    assert writing.stderr.read() == ""
    writing.stderr.close()


@proves("CLI-EVENTS", "CLI-EXIT")
def test_ctrl_c_ends_follow_with_130_and_no_traceback(populated: Program) -> None:
    following = populated.start("events", "--follow", "--after", "3", "--json")
    assert following.stdout is not None

    assert '"position": 4' in following.stdout.readline()
    following.send_signal(signal.SIGINT)
    out, err = following.communicate()

    assert (following.returncode, out, err) == (130, "", "")


@proves("CLI-PLAIN")
def test_terminal_gets_colours_unless_disabled(program: Program) -> None:
    program.prepare("task", "create", "One", "--id", "T-1", "--ready")

    assert "\x1b[36mready" in on_terminal(program, "task", "list")
    assert "\x1b[36m" not in on_terminal(program, "task", "list", NO_COLOR="1")
    assert "\x1b" not in on_terminal(program, "task", "list", TERM="dumb")
    assert "\x1b" not in program.run("task", "list", more={"FORCE_COLOR": "1"}).out


@proves("CLI-SAFE-TEXT")
def test_title_cannot_control_the_terminal(program: Program) -> None:
    title = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\u202e[red]x[/red]"
    program.prepare("task", "create", title, "--id", "T-1")

    for args in (("task", "list"), ("task", "show", "T-1"), ("events",)):
        shown = on_terminal(program, *args)
        assert "[red]x[/red]" in shown
        assert not any(bad in shown for bad in ("\x1b]", "\x1b[2J", "\x07", "\u202e"))


@proves("CLI-VERIFY")
def test_verify_shows_its_progress_on_a_terminal(program: Program) -> None:
    program.prepare("task", "create", "One")

    assert "all good" in on_terminal(program, "verify")


@proves("CLI-EXIT")
def test_full_disk_behind_the_output_is_an_error(populated: Program) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            (*COMMAND, "task", "list"),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=populated.environment(),
        )

    assert ended.returncode == 1
    assert ended.stderr == "the answer could not be printed: No space left on device\n"


@proves("CLI-EXIT")
def test_closed_streams_do_not_stop_a_command(program: Program) -> None:
    shell = '"$@" >&- 2>&-'
    ended = subprocess.run(
        ("sh", "-c", shell, "sh", *COMMAND, "task", "create", "x", "--id", "T-1"),
        check=False,
        env=program.environment(),
    )

    assert ended.returncode == 0
    assert program.ask("task", "show", "T-1")["title"] == "x"
